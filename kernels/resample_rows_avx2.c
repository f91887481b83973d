/* SPDX-License-Identifier: Apache-2.0 */
/* Rows pass with AVX2: two outputs (one per 128-bit half) of four rows at once, four taps per step.
 * A step loads 16 bytes, of which 12 are the four pixels. Where 16 bytes would pass the last pixel
 * that any tap names, the load moves back and the shuffle forward. */
#include "kernels/resample.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#    include <string.h>

#    define INLINE static inline __attribute__((always_inline))

/* Bytes, relative to `in`, that the taps name in each row. */
typedef struct span {
    ptrdiff_t lo, hi;
} span;

static span named_bytes(const dpl_taps *t, int origin)
{
    int lo = t->start[0], hi = t->start[0] + t->size[0];
    for (int k = 1; k < t->count; k++) {
        if (t->start[k] < lo) lo = t->start[k];
        if (t->start[k] + t->size[k] > hi) hi = t->start[k] + t->size[k];
    }
    return (span){ 3 * (ptrdiff_t)(lo - origin), 3 * (ptrdiff_t)(hi - origin) };
}

INLINE __m256i pairs_of(const int16_t *a, const int16_t *b)
{
    int32_t wa, wb;
    memcpy(&wa, a, sizeof wa);
    memcpy(&wb, b, sizeof wb);
    return _mm256_set_m128i(_mm_set1_epi32(wb), _mm_set1_epi32(wa));
}

/* Sums of outputs a and b for four rows; taps at `w` (and `hi`, unless NULL). */
INLINE void sum_taps(__m256i acc[4], const uint8_t *const row[4], ptrdiff_t end, ptrdiff_t at_a,
                     ptrdiff_t at_b, int n, const int16_t *wa, const int16_t *wb, const int16_t *ha,
                     const int16_t *hb)
{
    const __m256i first = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i six = _mm256_set1_epi16(6);
    __m256i acc_hi[4];
    for (int r = 0; r < 4; r++) acc_hi[r] = _mm256_setzero_si256();
    for (int i = 0; i < n; i += 4) {
        const ptrdiff_t a = at_a + 3 * i, b = at_b + 3 * i;
        const ptrdiff_t la = a < end - 16 ? a : end - 16, lb = b < end - 16 ? b : end - 16;
        /* past the window only pixels of weight 0 are meant: any byte will do for them */
        const __m256i back = _mm256_set_m128i(_mm_set1_epi16((short)((b - lb) & 15)),
                                              _mm_set1_epi16((short)((a - la) & 15)));
        const __m256i m01 = _mm256_add_epi16(first, back), m23 = _mm256_add_epi16(m01, six);
        const __m256i w01 = pairs_of(wa + i, wb + i), w23 = pairs_of(wa + i + 2, wb + i + 2);
        for (int r = 0; r < 4; r++) {
            const __m256i v = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row[r] + la))),
                _mm_loadu_si128((const __m128i *)(row[r] + lb)), 1);
            const __m256i p01 = _mm256_shuffle_epi8(v, m01), p23 = _mm256_shuffle_epi8(v, m23);
            acc[r] = _mm256_add_epi32(acc[r], _mm256_madd_epi16(p01, w01));
            acc[r] = _mm256_add_epi32(acc[r], _mm256_madd_epi16(p23, w23));
            if (!ha) continue;
            const __m256i h01 = pairs_of(ha + i, hb + i), h23 = pairs_of(ha + i + 2, hb + i + 2);
            acc_hi[r] = _mm256_add_epi32(acc_hi[r], _mm256_madd_epi16(p01, h01));
            acc_hi[r] = _mm256_add_epi32(acc_hi[r], _mm256_madd_epi16(p23, h23));
        }
    }
    if (ha)
        for (int r = 0; r < 4; r++)
            acc[r] = _mm256_add_epi32(acc[r], _mm256_slli_epi32(acc_hi[r], 11));
}

/* Bytes of outputs a and b (4 per row, the last without meaning). */
typedef struct pixels4x2 {
    uint8_t a[4][4], b[4][4];
} pixels4x2;

INLINE void pack(pixels4x2 *out, const __m256i acc[4], int bits)
{
    const __m128i n = _mm_cvtsi32_si128(bits);
    const __m256i v = _mm256_packus_epi16(
        _mm256_packs_epi32(_mm256_sra_epi32(acc[0], n), _mm256_sra_epi32(acc[1], n)),
        _mm256_packs_epi32(_mm256_sra_epi32(acc[2], n), _mm256_sra_epi32(acc[3], n)));
    _mm256_storeu_si256((__m256i *)out, v);
}

INLINE void rows_avx2(uint8_t *out, const uint8_t *in, size_t in_stride, int rows, int origin,
                      const dpl_taps *t, ptrdiff_t end, int exact)
{
    const size_t out_stride = 3 * (size_t)t->count;
    const int bits = exact ? 22 : t->bits16;
    for (int r0 = 0; r0 < rows; r0 += 4) {
        const uint8_t *row[4];
        uint8_t *dst[4];
        for (int i = 0; i < 4; i++) { /* below the last row: the last row again */
            const size_t r = (size_t)(r0 + i < rows ? r0 + i : rows - 1);
            row[i] = in + r * in_stride;
            dst[i] = out + r * out_stride;
        }
        for (int k = 0; k < t->count; k += 2) {
            const int l = k + 1 < t->count ? k + 1 : k;
            const size_t ka = (size_t)k * (size_t)t->stride, la = (size_t)l * (size_t)t->stride;
            const int n = t->size[k] > t->size[l] ? t->size[k] : t->size[l];
            const int16_t *w = exact ? t->lo : t->weight16, *hi = exact ? t->hi : NULL;
            __m256i acc[4];
            pixels4x2 px;
            for (int i = 0; i < 4; i++) acc[i] = _mm256_set1_epi32(1 << (bits - 1));
            sum_taps(acc, row, end, 3 * (ptrdiff_t)(t->start[k] - origin),
                     3 * (ptrdiff_t)(t->start[l] - origin), n, w + ka, w + la,
                     exact ? hi + ka : NULL, exact ? hi + la : NULL);
            pack(&px, acc, bits);
            for (int i = 0; i < 4; i++) {
                memcpy(dst[i] + 3 * k, px.a[i], 3);
                memcpy(dst[i] + 3 * l, px.b[i], 3);
            }
        }
    }
}

void dpl_resample_rows_avx2(uint8_t *out, const uint8_t *in, size_t in_stride, int rows, int origin,
                            const dpl_taps *t)
{
    const span s = named_bytes(t, origin);
    if (s.hi - s.lo < 16)
        dpl_resample_rows_c(out, in, in_stride, rows, origin, t);
    else
        rows_avx2(out, in, in_stride, rows, origin, t, s.hi, 1);
}

void dpl_resample_rows_fast_avx2(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                 int origin, const dpl_taps *t)
{
    const span s = named_bytes(t, origin);
    if (s.hi - s.lo < 16)
        dpl_resample_rows_fast_c(out, in, in_stride, rows, origin, t);
    else
        rows_avx2(out, in, in_stride, rows, origin, t, s.hi, 0);
}
#endif
