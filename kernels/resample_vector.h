/* SPDX-License-Identifier: Apache-2.0 */
/* What the vector variants of the resampling passes share: all but the instructions. A variant hands
 * in its inner function, which is inlined. */
#ifndef DPL_KERNELS_RESAMPLE_VECTOR_H
#define DPL_KERNELS_RESAMPLE_VECTOR_H

#include "kernels/resample.h"
#include "kernels/unroll.h"

/* --- columns --- */

/** One output row: n taps over the rows from `top` on. hi is NULL for 16-bit weights. */
typedef void dpl_cols_row(uint8_t *out, const uint8_t *top, int width, int n, const int16_t *lo,
                          const int16_t *hi, int bits);

/* The usual few taps get a loop of their own, unrolled, with the weights in registers. */
INLINE void dpl_cols_any_row(dpl_cols_row *row, uint8_t *out, const uint8_t *top, int width, int n,
                             const int16_t *lo, const int16_t *hi, int bits)
{
    switch (n) {
    case 1: row(out, top, width, 1, lo, hi, bits); break;
    case 2: row(out, top, width, 2, lo, hi, bits); break;
    case 3: row(out, top, width, 3, lo, hi, bits); break;
    case 4: row(out, top, width, 4, lo, hi, bits); break;
    default: row(out, top, width, n, lo, hi, bits);
    }
}

/** All output rows, as dpl_resample_cols_c() or, unless exact, dpl_resample_cols_fast_c(). */
INLINE void dpl_cols_all_rows(dpl_cols_row *row, uint8_t *out, size_t out_stride, const uint8_t *in,
                              int width, int origin, const dpl_taps *t, int exact)
{
    for (int k = 0; k < t->count; k++, out += out_stride) {
        const size_t at = (size_t)k * (size_t)t->stride;
        const uint8_t *top = in + (size_t)(t->start[k] - origin) * (size_t)width;

        if (exact)
            dpl_cols_any_row(row, out, top, width, t->size[k], t->lo + at, t->hi + at, 22);
        else
            dpl_cols_any_row(row, out, top, width, t->size[k], t->weight16 + at, NULL, t->bits16);
    }
}

/* --- rows, where a load of 16 bytes holds the taps of an output --- */

typedef struct dpl_rows_job {
    uint8_t *out;
    const uint8_t *in;
    size_t in_stride, out_stride;
    int origin, bits;
    const dpl_taps *t;
    const int16_t *lo, *hi; /* weights; hi NULL = one 16-bit half only */
    ptrdiff_t end;          /* one past the last byte of a row that the taps name */
} dpl_rows_job;

/** Rows r0 .. r1 - 1. */
typedef void dpl_rows_block(const dpl_rows_job *j, int r0, int r1, int exact);

/* Bytes of a row that the taps name. Returns how many. */
INLINE ptrdiff_t dpl_rows_find_end(dpl_rows_job *j)
{
    const dpl_taps *t = j->t;
    int lo = t->start[0], hi = t->start[0] + t->size[0];

    for (int k = 1; k < t->count; k++) {
        if (t->start[k] < lo) lo = t->start[k];
        if (t->start[k] + t->size[k] > hi) hi = t->start[k] + t->size[k];
    }
    j->end = 3 * (ptrdiff_t)(hi - j->origin);
    return 3 * (ptrdiff_t)(hi - lo);
}

/** All rows, 32 at a time, as dpl_resample_rows_c() or, unless exact, dpl_resample_rows_fast_c().
 *  @return 0 when the taps name less than a load: nothing was done */
INLINE int dpl_rows_all_blocks(dpl_rows_block *block, uint8_t *out, const uint8_t *in,
                               size_t in_stride, int rows, int origin, const dpl_taps *t, int exact)
{
    enum { BLOCK = 32, LOAD = 16 };
    dpl_rows_job j = { out, in, in_stride, 3 * (size_t)t->count, origin, 22, t, t->lo, t->hi, 0 };

    if (!exact) {
        j.bits = t->bits16;
        j.lo = t->weight16;
        j.hi = NULL;
    }
    if (dpl_rows_find_end(&j) < LOAD) return 0;
    for (int r = 0; r < rows; r += BLOCK) block(&j, r, r + BLOCK < rows ? r + BLOCK : rows, exact);
    return 1;
}

#endif
