/* SPDX-License-Identifier: Apache-2.0 */
/* Rows pass with AVX-512 VBMI and VNNI. A vector makes 16 bytes of output, whatever pixels they
 * belong to: one load of 64 bytes of the row, then for two taps one byte permutation, which brings
 * every lane its two bytes as 16-bit numbers, and one multiply-add. Vectors are prepared
 * once for all rows and go from left to right over four rows at a time, as memory likes it. Taps that
 * reach further than 64 bytes are left to AVX2. */
#include "kernels/resample.h"
#include "kernels/unroll.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#    include <string.h>

enum {
    PAIRS_MAX = 4,
    LANES = 16,
    REACH = 64,  /* bytes of a load */
    ROWS = 4,    /* at a time */
    VECTORS = 48 /* prepared together: 256 pixels */
};

typedef struct rows_job {
    uint8_t *out;
    const uint8_t *in;
    size_t in_stride, out_stride;
    int origin, bits, pairs;
    const dpl_taps *t;
    const int16_t *lo, *hi; /* weights; hi NULL = one 16-bit half only */
    int end;                /* one past the last pixel of a row that the taps name */
} rows_job;

/* Find j->end and j->pairs. @return 0 when some vector's taps reach too far */
static int fits(rows_job *j)
{
    const dpl_taps *t = j->t;
    const int bytes = 3 * t->count;
    int lo = t->start[0], hi = lo, size = 0;
    for (int k = 0; k < t->count; k++) {
        const int stop = t->start[k] + t->size[k];
        lo = t->start[k] < lo ? t->start[k] : lo;
        hi = stop > hi ? stop : hi;
        size = t->size[k] > size ? t->size[k] : size;
    }
    j->end = hi - j->origin;
    j->pairs = (size + 1) / 2;
    if (bytes < LANES || size > 2 * PAIRS_MAX || 3 * (hi - lo) < REACH) return 0;
    for (int b = 0; b < bytes; b += LANES) {
        const int at = b + LANES <= bytes ? b : bytes - LANES;
        int first = hi, stop = lo;
        for (int k = at / 3; k <= (at + LANES - 1) / 3; k++) {
            first = t->start[k] < first ? t->start[k] : first;
            stop = t->start[k] + t->size[k] > stop ? t->start[k] + t->size[k] : stop;
        }
        if (3 * (stop - first) > REACH) return 0;
    }
    return 1;
}

/* Bytes `to` .. `to` + 15 of every output row. */
typedef struct vector {
    __m512i index[PAIRS_MAX], lo[PAIRS_MAX], hi[PAIRS_MAX];
    ptrdiff_t from; /* first byte of the load */
    ptrdiff_t to;
} vector;

INLINE __m512i pairs_at(const int16_t *w, __m512i cell)
{
    return _mm512_i32gather_epi32(cell, (const int *)(const void *)w, 2);
}

INLINE void prepare(vector *v, const rows_job *j, int to, int pairs, int exact)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i byte = _mm512_add_epi32(_mm512_set1_epi32(to % 3), lane); /* 0..17 */
    const __m512i pixel = _mm512_srli_epi32(_mm512_mullo_epi32(byte, _mm512_set1_epi32(11)), 5);
    const __m512i channel = _mm512_sub_epi32(byte, _mm512_mullo_epi32(pixel, _mm512_set1_epi32(3)));
    const __m512i k = _mm512_add_epi32(pixel, _mm512_set1_epi32(to / 3));
    const __m512i start =
        _mm512_sub_epi32(_mm512_i32gather_epi32(k, j->t->start, 4), _mm512_set1_epi32(j->origin));
    const int first = 3 * _mm512_reduce_min_epi32(start), last = 3 * j->end - REACH;
    const int from = first < last ? first : last;
    const __m512i cell = _mm512_mullo_epi32(k, _mm512_set1_epi32(j->t->stride));
    /* of the first tap; taps of weight 0 may point anywhere */
    const __m512i offset = _mm512_add_epi32(_mm512_mullo_epi32(start, _mm512_set1_epi32(3)),
                                            _mm512_sub_epi32(channel, _mm512_set1_epi32(from)));
    v->from = from;
    v->to = to;
    UNROLL
    for (int p = 0; p < pairs; p++) {
        const __m512i a = _mm512_add_epi32(offset, _mm512_set1_epi32(6 * p));
        const __m512i b = _mm512_slli_epi32(_mm512_add_epi32(a, _mm512_set1_epi32(3)), 16);
        const __m512i at = _mm512_add_epi32(cell, _mm512_set1_epi32(2 * p));
        v->index[p] = _mm512_mask_blend_epi16(0xaaaaaaaaU, a, b);
        v->lo[p] = pairs_at(j->lo, at);
        if (exact) v->hi[p] = pairs_at(j->hi, at);
    }
}

INLINE void run_vector(const rows_job *j, const vector *v, const size_t row[ROWS], int pairs,
                       int exact)
{
    const __mmask64 low_bytes = UINT64_C(0x5555555555555555);
    const __m512i half = _mm512_set1_epi32(1 << (j->bits - 1)), zero = _mm512_setzero_si512();
    const __m128i shift = _mm_cvtsi32_si128(j->bits);
    __m512i bytes[ROWS], lo[ROWS], hi[ROWS];
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        bytes[r] = _mm512_loadu_si512(j->in + row[r] * j->in_stride + v->from);
        lo[r] = half;
        hi[r] = zero;
    }
    UNROLL
    for (int p = 0; p < pairs; p++) {
        UNROLL
        for (int r = 0; r < ROWS; r++) {
            const __m512i px = _mm512_maskz_permutexvar_epi8(low_bytes, v->index[p], bytes[r]);
            lo[r] = _mm512_dpwssd_epi32(lo[r], px, v->lo[p]);
            if (exact) hi[r] = _mm512_dpwssd_epi32(hi[r], px, v->hi[p]);
        }
    }
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        if (exact) lo[r] = _mm512_add_epi32(lo[r], _mm512_slli_epi32(hi[r], 11));
        lo[r] = _mm512_max_epi32(_mm512_sra_epi32(lo[r], shift), zero);
        _mm_storeu_si128((__m128i *)(j->out + row[r] * j->out_stride + v->to),
                         _mm512_cvtusepi32_epi8(lo[r]));
    }
}

/* Bytes b0 .. b1 - 1 of all output rows. */
INLINE void run_bytes(const rows_job *j, int b0, int b1, int rows, int pairs, int exact)
{
    const int bytes = 3 * j->t->count;
    vector v[VECTORS];
    int n = 0;
    for (int b = b0; b < b1; b += LANES) /* the last vector of a row overlaps */
        prepare(&v[n++], j, b + LANES <= bytes ? b : bytes - LANES, pairs, exact);
    for (int r0 = 0; r0 < rows; r0 += ROWS) {
        size_t row[ROWS]; /* past the end: the last row again */
        for (int r = 0; r < ROWS; r++) row[r] = (size_t)(r0 + r < rows ? r0 + r : rows - 1);
        for (int i = 0; i < n; i++) run_vector(j, &v[i], row, pairs, exact);
    }
}

/* The number of pairs is known to the compiler in each case. */
INLINE void run(const rows_job *j, int rows, int exact)
{
    const int bytes = 3 * j->t->count;
    for (int b = 0; b < bytes; b += LANES * VECTORS) {
        const int stop = b + LANES * VECTORS < bytes ? b + LANES * VECTORS : bytes;
        switch (j->pairs) {
        case 1: run_bytes(j, b, stop, rows, 1, exact); break;
        case 2: run_bytes(j, b, stop, rows, 2, exact); break;
        case 3: run_bytes(j, b, stop, rows, 3, exact); break;
        default: run_bytes(j, b, stop, rows, PAIRS_MAX, exact);
        }
    }
}

void dpl_resample_rows_avx512vbmi(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                  int origin, const dpl_taps *t)
{
    rows_job j = { out, in, in_stride, 3 * (size_t)t->count, origin, 22, 0, t, t->lo, t->hi, 0 };
    if (fits(&j))
        run(&j, rows, 1);
    else
        dpl_resample_rows_avx2(out, in, in_stride, rows, origin, t);
}

void dpl_resample_rows_fast_avx512vbmi(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                       int origin, const dpl_taps *t)
{
    rows_job j = { out,         in,   in_stride, 3 * (size_t)t->count, origin, t->bits16, 0, t,
                   t->weight16, NULL, 0 };
    if (fits(&j))
        run(&j, rows, 0);
    else
        dpl_resample_rows_fast_avx2(out, in, in_stride, rows, origin, t);
}
#endif
