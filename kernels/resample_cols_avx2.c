/* SPDX-License-Identifier: Apache-2.0 */
/* Columns pass with AVX2: 32 bytes of a row at once, two taps per multiply-add. */
#include "kernels/resample_vector.h"

#if defined(__x86_64__)
#    include <immintrin.h>

/* Two neighbouring 16-bit weights in every 32-bit lane. */
INLINE __m256i pair_of(const int16_t *w)
{
    return _mm256_set1_epi32(dpl_weight_pair(w));
}

INLINE void add_pair(__m256i acc[4], const __m256i px[4], __m256i w)
{
    UNROLL
    for (int i = 0; i < 4; i++) acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(px[i], w));
}

/* 32 bytes of two rows as 16-bit pairs. The order within is undone by pack(). */
INLINE void interleave(__m256i px[4], const uint8_t *a, const uint8_t *b)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i va = _mm256_loadu_si256((const __m256i *)a);
    const __m256i vb = _mm256_loadu_si256((const __m256i *)b);
    const __m256i low = _mm256_unpacklo_epi8(va, vb), high = _mm256_unpackhi_epi8(va, vb);
    px[0] = _mm256_unpacklo_epi8(low, zero);
    px[1] = _mm256_unpackhi_epi8(low, zero);
    px[2] = _mm256_unpacklo_epi8(high, zero);
    px[3] = _mm256_unpackhi_epi8(high, zero);
}

INLINE __m256i pack(const __m256i acc[4], __m128i bits)
{
    return _mm256_packus_epi16(
        _mm256_packs_epi32(_mm256_sra_epi32(acc[0], bits), _mm256_sra_epi32(acc[1], bits)),
        _mm256_packs_epi32(_mm256_sra_epi32(acc[2], bits), _mm256_sra_epi32(acc[3], bits)));
}

/* One output row: n taps over the rows from `top` on. hi is NULL for 16-bit weights. */
INLINE void output_row(uint8_t *out, const uint8_t *top, int width, int n, const int16_t *lo,
                       const int16_t *hi, int bits)
{
    const __m256i half = _mm256_set1_epi32(1 << (bits - 1));
    const __m128i shift = _mm_cvtsi32_si128(bits);
    for (int x0 = 0; x0 < width; x0 += 32) {
        const int x = x0 + 32 <= width ? x0 : width - 32; /* the last block overlaps */
        const uint8_t *p = top + x;
        __m256i acc[4], acc_hi[4], px[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            acc[i] = half;
            acc_hi[i] = _mm256_setzero_si256();
        }
        for (int i = 0; i < n; i += 2, p += 2 * (ptrdiff_t)width) {
            interleave(px, p, i + 1 < n ? p + width : p); /* an odd last tap: weight 0 */
            add_pair(acc, px, pair_of(lo + i));
            if (hi) add_pair(acc_hi, px, pair_of(hi + i));
        }
        if (hi) {
            UNROLL
            for (int i = 0; i < 4; i++)
                acc[i] = _mm256_add_epi32(acc[i], _mm256_slli_epi32(acc_hi[i], 11));
        }
        _mm256_storeu_si256((__m256i *)(out + x), pack(acc, shift));
    }
}

void dpl_resample_cols_avx2(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                            int origin, const dpl_taps *t)
{
    if (width < 32)
        dpl_resample_cols_c(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 1);
}

void dpl_resample_cols_fast_avx2(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                                 int origin, const dpl_taps *t)
{
    if (width < 32)
        dpl_resample_cols_fast_c(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 0);
}
#endif
