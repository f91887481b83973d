/* SPDX-License-Identifier: Apache-2.0 */
/* Columns pass with AVX-512 and VNNI: 64 bytes of a row at once, two taps per multiply-add. */
#include "kernels/resample_vector.h"

#if defined(__x86_64__)
#    include <immintrin.h>

enum { BYTES = 64 };

/* Two neighbouring 16-bit weights in every 32-bit lane. */
INLINE __m512i pair_of(const int16_t *w)
{
    return _mm512_set1_epi32(dpl_weight_pair(w));
}

/* Bytes of two rows as 16-bit pairs. The order within is undone by pack(). */
INLINE void interleave(__m512i px[4], const uint8_t *a, const uint8_t *b)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i va = _mm512_loadu_si512(a), vb = _mm512_loadu_si512(b);
    const __m512i low = _mm512_unpacklo_epi8(va, vb), high = _mm512_unpackhi_epi8(va, vb);
    px[0] = _mm512_unpacklo_epi8(low, zero);
    px[1] = _mm512_unpackhi_epi8(low, zero);
    px[2] = _mm512_unpacklo_epi8(high, zero);
    px[3] = _mm512_unpackhi_epi8(high, zero);
}

INLINE __m512i pack(const __m512i acc[4], __m128i bits)
{
    return _mm512_packus_epi16(
        _mm512_packs_epi32(_mm512_sra_epi32(acc[0], bits), _mm512_sra_epi32(acc[1], bits)),
        _mm512_packs_epi32(_mm512_sra_epi32(acc[2], bits), _mm512_sra_epi32(acc[3], bits)));
}

/* One output row: n taps over the rows from `top` on. hi is NULL for 16-bit weights. */
INLINE void output_row(uint8_t *out, const uint8_t *top, int width, int n, const int16_t *lo,
                       const int16_t *hi, int bits)
{
    const __m512i half = _mm512_set1_epi32(1 << (bits - 1));
    const __m128i shift = _mm_cvtsi32_si128(bits);
    for (int x0 = 0; x0 < width; x0 += BYTES) {
        const int x = x0 + BYTES <= width ? x0 : width - BYTES; /* the last block overlaps */
        const uint8_t *p = top + x;
        __m512i acc[4], acc_hi[4], px[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            acc[i] = half;
            acc_hi[i] = _mm512_setzero_si512();
        }
        for (int i = 0; i < n; i += 2, p += 2 * (ptrdiff_t)width) {
            interleave(px, p, i + 1 < n ? p + width : p); /* an odd last tap: weight 0 */
            UNROLL
            for (int q = 0; q < 4; q++) {
                acc[q] = _mm512_dpwssd_epi32(acc[q], px[q], pair_of(lo + i));
                if (hi) acc_hi[q] = _mm512_dpwssd_epi32(acc_hi[q], px[q], pair_of(hi + i));
            }
        }
        UNROLL
        for (int i = 0; i < 4; i++)
            if (hi) acc[i] = _mm512_add_epi32(acc[i], _mm512_slli_epi32(acc_hi[i], 11));
        _mm512_storeu_si512(out + x, pack(acc, shift));
    }
}

void dpl_resample_cols_avx512vbmi(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                                  int origin, const dpl_taps *t)
{
    if (width < BYTES)
        dpl_resample_cols_avx2(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 1);
}

void dpl_resample_cols_fast_avx512vbmi(uint8_t *out, size_t out_stride, const uint8_t *in,
                                       int width, int origin, const dpl_taps *t)
{
    if (width < BYTES)
        dpl_resample_cols_fast_avx2(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 0);
}
#endif
