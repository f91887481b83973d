/* SPDX-License-Identifier: Apache-2.0 */
/* Antialiased separable resampling of 8-bit RGB, crop + scale + flip in one go, with the arithmetic
 * of Pillow's 8-bit resize (python-pillow src/libImaging/Resample.c): taps in double, normalised,
 * turned into 22-bit fixed point; horizontal pass first, rounded to 8 bits, then vertical. */
#ifndef DPL_KERNELS_RESAMPLE_H
#define DPL_KERNELS_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_RESAMPLE_BILINEAR = 0, DPL_RESAMPLE_BICUBIC = 1 };

/** One axis: the interval [box0, box1) of an axis with in_n pixels is resized to out_n pixels; of
 *  these, outputs first .. first + count - 1 are wanted. Coordinates are pixels of that axis; taps
 *  are clamped to [0, in_n) and renormalised, as Pillow does at picture borders. */
typedef struct dpl_axis {
    double box0, box1;
    int in_n, out_n, first, count;
    int filter;  /* DPL_RESAMPLE_* */
    int reverse; /* 1 = outputs in reverse order (flip) */
} dpl_axis;

/** The source pixels [*lo, *hi) that the wanted outputs of the axis may read; count >= 1. */
void dpl_axis_support(const dpl_axis *a, int *lo, int *hi);

/** Fixed-point taps of one axis. Output k reads source pixels start[k] .. start[k] + size[k] - 1. */
typedef struct dpl_taps {
    int count, stride; /* stride = taps reserved per output */
    int *start, *size; /* [count] */
    int32_t *weight;   /* [count][stride], 22 fractional bits, zero past size[k] */
    int16_t *hi, *lo;  /* [count][stride] halves of weight = hi * 2048 + lo */
    int16_t *weight16; /* [count][stride] the same with bits16 fractional bits, summing to 1 */
    int bits16;        /* 14..22, the most with which the largest weight fits 16 bits; at 22,
                          weight16 equals weight (and sums to what that does) */
    void *block;       /* the one allocation behind all of it */
    size_t block_cap;
} dpl_taps;

/** Fill taps for an axis; memory inside t is reused and grown. t starts zeroed.
 *  @return DPL_OK or DPL_ENOMEM */
int dpl_taps_make(dpl_taps *t, const dpl_axis *a);
void dpl_taps_free(dpl_taps *t);

/** Rows: out[r][k] = sum of taps over in[r], for every row r.
 *  in [rows] rows of stride in_stride bytes whose first pixel is source pixel `origin` of the axis;
 *  nothing before the first or past the last pixel that the taps name is read. out [rows][count][3], packed. */
typedef void dpl_resample_rows_fn(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                  int origin, const dpl_taps *t);
/** Columns: out[k][x] = sum of taps over in[..][x]. in: rows of `width` bytes (3 per pixel), packed,
 *  whose first row is source row `origin`; out: rows of out_stride bytes. */
typedef void dpl_resample_cols_fn(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                                  int origin, const dpl_taps *t);

/* exact: bit-equal to Pillow (weight) */
dpl_resample_rows_fn dpl_resample_rows_c, dpl_resample_rows_avx2, dpl_resample_rows_avx512vbmi,
    dpl_resample_rows_neon;
dpl_resample_cols_fn dpl_resample_cols_c, dpl_resample_cols_avx2, dpl_resample_cols_avx512vbmi,
    dpl_resample_cols_neon;
/* fast: 16-bit weights (weight16). Each pass is within 1 level of the exact pass over the same input;
 * after both, bytes that are 2 off are possible where a filter overshoots (bicubic on noise: 1 in
 * 100,000). */
dpl_resample_rows_fn dpl_resample_rows_fast_c, dpl_resample_rows_fast_avx2,
    dpl_resample_rows_fast_avx512vbmi, dpl_resample_rows_fast_neon;
dpl_resample_cols_fn dpl_resample_cols_fast_c, dpl_resample_cols_fast_avx2,
    dpl_resample_cols_fast_avx512vbmi, dpl_resample_cols_fast_neon;

#ifdef __cplusplus
}
#endif
#endif
