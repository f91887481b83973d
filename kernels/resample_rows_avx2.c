/* SPDX-License-Identifier: Apache-2.0 */
/* Rows pass with AVX2. Two outputs share a vector, one per 128-bit half; a step loads 16 bytes of
 * each, which are five pixels, and takes four taps, or five where that is all. Where 16 bytes would
 * pass the last pixel that any tap names, the load moves back and the shuffle forward by as much.
 *
 * Few taps: eight outputs (four vectors) are prepared once for a block of rows. Many taps: one
 * vector for four rows at a time, prepared at every step. */
#include "kernels/resample_vector.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#    include <string.h>

enum { STEPS_MAX = 2 /* prepared steps */, PAIRS_MAX = 3 };

/* Byte of pixel `first` of output k in a row. */
INLINE ptrdiff_t byte_of(const dpl_rows_job *j, int k, int first)
{
    return 3 * (ptrdiff_t)(j->t->start[k] + first - j->origin);
}

INLINE const int16_t *weights_of(const dpl_rows_job *j, const int16_t *w, int k, int first)
{
    return w + (size_t)k * (size_t)j->t->stride + first;
}

/* One step of outputs a and b, as pairs of taps: 0 and 1, 2 and 3, 4 and nothing. */
typedef struct step {
    ptrdiff_t at_a, at_b;
    __m256i shuffle[PAIRS_MAX]; /* channels' bytes of a pair as 16-bit numbers side by side */
    __m256i lo[PAIRS_MAX], hi[PAIRS_MAX];
} step;

INLINE __m256i pairs_of(const int16_t *a, const int16_t *b)
{
    int32_t wa, wb;
    memcpy(&wa, a, sizeof wa);
    memcpy(&wb, b, sizeof wb);
    return _mm256_set_m128i(_mm_set1_epi32(wb), _mm_set1_epi32(wa));
}

INLINE step step_of(const dpl_rows_job *j, int a, int b, int first, int pairs, int exact)
{
    const __m256i base = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const ptrdiff_t last = j->end - 16;
    const ptrdiff_t at_a = byte_of(j, a, first), at_b = byte_of(j, b, first);
    step s;
    s.at_a = at_a < last ? at_a : last;
    s.at_b = at_b < last ? at_b : last;
    /* beyond 15 only pixels of weight 0 are meant: any byte will do for them */
    const __m256i moved = _mm256_set_m128i(_mm_set1_epi16((short)((at_b - s.at_b) & 15)),
                                           _mm_set1_epi16((short)((at_a - s.at_a) & 15)));
    UNROLL
    for (int i = 0; i < PAIRS_MAX; i++) {
        const int tap = i < pairs ? first + 2 * i : first;
        s.shuffle[i] =
            _mm256_add_epi16(_mm256_add_epi16(base, moved), _mm256_set1_epi16((short)(6 * i)));
        s.lo[i] = pairs_of(weights_of(j, j->lo, a, tap), weights_of(j, j->lo, b, tap));
        s.hi[i] = exact ? pairs_of(weights_of(j, j->hi, a, tap), weights_of(j, j->hi, b, tap))
                        : _mm256_setzero_si256();
    }
    return s;
}

INLINE void add_step(__m256i *lo, __m256i *hi, const uint8_t *row, const step *s, int pairs,
                     int exact)
{
    const __m256i v = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row + s->at_a))),
        _mm_loadu_si128((const __m128i *)(row + s->at_b)), 1);
    UNROLL
    for (int i = 0; i < pairs; i++) {
        const __m256i px = _mm256_shuffle_epi8(v, s->shuffle[i]);
        *lo = _mm256_add_epi32(*lo, _mm256_madd_epi16(px, s->lo[i]));
        if (exact) *hi = _mm256_add_epi32(*hi, _mm256_madd_epi16(px, s->hi[i]));
    }
}

/* Four vectors of sums to bytes, 4 per output (the last without meaning): the low half gets those
 * of the low halves in order. */
INLINE __m256i pack(const __m256i lo[4], const __m256i hi[4], int bits, int exact)
{
    const __m128i n = _mm_cvtsi32_si128(bits);
    __m256i v[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_sra_epi32(
            exact ? _mm256_add_epi32(lo[i], _mm256_slli_epi32(hi[i], 11)) : lo[i], n);
    return _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
}

/* Outputs k .. k + 7 of rows r0 .. r1 - 1. */
INLINE void eight_outputs(const dpl_rows_job *j, int k, int r0, int r1, int steps, int pairs,
                          int exact)
{
    const __m256i squeeze = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    const __m256i half = _mm256_set1_epi32(1 << (j->bits - 1));
    step s[4][STEPS_MAX];
    for (int i = 0; i < 4; i++)
        for (int q = 0; q < steps; q++) s[i][q] = step_of(j, k + i, k + 4 + i, 4 * q, pairs, exact);
    const uint8_t *row = j->in + (size_t)r0 * j->in_stride;
    uint8_t *out = j->out + (size_t)r0 * j->out_stride + 3 * (size_t)k;
    for (int r = r0; r < r1; r++, row += j->in_stride, out += j->out_stride) {
        __m256i lo[4], hi[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            lo[i] = half;
            hi[i] = _mm256_setzero_si256();
            UNROLL
            for (int q = 0; q < steps; q++) add_step(&lo[i], &hi[i], row, &s[i][q], pairs, exact);
        }
        const __m256i px = _mm256_permutevar8x32_epi32(
            _mm256_shuffle_epi8(pack(lo, hi, j->bits, exact), squeeze), join);
        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(px));
        _mm_storel_epi64((__m128i *)(out + 16), _mm256_extracti128_si256(px, 1));
    }
}

/* Bytes of outputs a and b for four rows. */
typedef struct pixels2x4 {
    uint8_t a[4][4], b[4][4];
} pixels2x4;

/* Outputs a and b of rows r0 .. r1 - 1, any number of taps. */
INLINE void two_outputs(const dpl_rows_job *j, int a, int b, int r0, int r1, int exact)
{
    const int n = j->t->size[a] > j->t->size[b] ? j->t->size[a] : j->t->size[b];
    for (; r0 < r1; r0 += 4) {
        __m256i lo[4], hi[4];
        size_t row[4]; /* past the end: the last row again */
        pixels2x4 px;
        UNROLL
        for (int i = 0; i < 4; i++) {
            row[i] = (size_t)(r0 + i < r1 ? r0 + i : r1 - 1);
            lo[i] = _mm256_set1_epi32(1 << (j->bits - 1));
            hi[i] = _mm256_setzero_si256();
        }
        for (int first = 0; first < n; first += 4) {
            const step s = step_of(j, a, b, first, 2, exact);
            UNROLL
            for (int i = 0; i < 4; i++)
                add_step(&lo[i], &hi[i], j->in + row[i] * j->in_stride, &s, 2, exact);
        }
        _mm256_storeu_si256((__m256i *)&px, pack(lo, hi, j->bits, exact));
        UNROLL
        for (int i = 0; i < 4; i++) {
            uint8_t *out = j->out + row[i] * j->out_stride;
            memcpy(out + 3 * a, px.a[i], 3);
            memcpy(out + 3 * b, px.b[i], 3);
        }
    }
}

INLINE void rows_block(const dpl_rows_job *j, int r0, int r1, int exact)
{
    const int count = j->t->count;
    for (int k0 = 0; k0 < count; k0 += 8) {
        const int k = count < 8 ? 0 : k0 + 8 <= count ? k0 : count - 8; /* the last overlap */
        const int last = k + 8 < count ? k + 8 : count;
        int n = 0;
        for (int i = k; i < last; i++)
            if (j->t->size[i] > n) n = j->t->size[i];
        if (count >= 8 && n <= 2)
            eight_outputs(j, k, r0, r1, 1, 1, exact);
        else if (count >= 8 && n <= 4)
            eight_outputs(j, k, r0, r1, 1, 2, exact);
        else if (count >= 8 && n <= 5)
            eight_outputs(j, k, r0, r1, 1, 3, exact);
        else if (count >= 8 && n <= 8)
            eight_outputs(j, k, r0, r1, 2, 2, exact);
        else
            for (int i = k; i < last; i += 2)
                two_outputs(j, i, i + 1 < last ? i + 1 : i, r0, r1, exact);
    }
}

void dpl_resample_rows_avx2(uint8_t *out, const uint8_t *in, size_t in_stride, int rows, int origin,
                            const dpl_taps *t)
{
    if (!dpl_rows_all_blocks(rows_block, out, in, in_stride, rows, origin, t, 1))
        dpl_resample_rows_c(out, in, in_stride, rows, origin, t);
}

void dpl_resample_rows_fast_avx2(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                 int origin, const dpl_taps *t)
{
    if (!dpl_rows_all_blocks(rows_block, out, in, in_stride, rows, origin, t, 0))
        dpl_resample_rows_fast_c(out, in, in_stride, rows, origin, t);
}
#endif
