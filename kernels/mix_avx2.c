/* SPDX-License-Identifier: Apache-2.0 */
/* Mixing with AVX2 and F16C: 32 levels or 8 floats per step. */
#include "kernels/mix.h"

#if defined(__x86_64__)
#    include <immintrin.h>

/* b + round((a - b) * weight): the high multiply with rounding is exact here, halves up. */
static inline __m256i blend16(__m128i a, __m128i b, __m256i weight)
{
    const __m256i wide_b = _mm256_cvtepu8_epi16(b);
    const __m256i d = _mm256_sub_epi16(_mm256_cvtepu8_epi16(a), wide_b);

    return _mm256_add_epi16(wide_b, _mm256_mulhrs_epi16(d, weight));
}

void dpl_blend_u8_avx2(uint8_t *a, const uint8_t *b, size_t n, int weight)
{
    const __m256i w = _mm256_set1_epi16((int16_t)weight);
    size_t i = 0;

    if (weight == DPL_MIX_ONE) return; /* a as it is; not a 16-bit number */
    for (; i + 32 <= n; i += 32) {
        const __m256i low = blend16(_mm_loadu_si128((const __m128i *)(a + i)),
                                    _mm_loadu_si128((const __m128i *)(b + i)), w);
        const __m256i high = blend16(_mm_loadu_si128((const __m128i *)(a + i + 16)),
                                     _mm_loadu_si128((const __m128i *)(b + i + 16)), w);
        const __m256i both = _mm256_packus_epi16(low, high); /* by 128-bit halves */

        _mm256_storeu_si256((__m256i *)(a + i), _mm256_permute4x64_epi64(both, 0xD8));
    }
    dpl_blend_u8_c(a + i, b + i, n - i, weight);
}

void dpl_blend_f32_avx2(float *a, const float *b, size_t n, int weight)
{
    const float share = (float)weight / DPL_MIX_ONE;
    const __m256 w = _mm256_set1_ps(share), rest = _mm256_set1_ps(1 - share);
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(a + i), w);
        const __m256 y = _mm256_mul_ps(_mm256_loadu_ps(b + i), rest);

        _mm256_storeu_ps(a + i, _mm256_add_ps(x, y));
    }
    dpl_blend_f32_c(a + i, b + i, n - i, weight);
}

static inline __m256 of_bfloat(const uint16_t *p)
{
    const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));

    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}

/* To the nearest, ties to even: half of what is cut off is added, but one less to an even number. */
static inline __m128i to_bfloat(__m256 v)
{
    const __m256i b = _mm256_castps_si256(v), high = _mm256_srli_epi32(b, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i none = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_none = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i u = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), none, is_none);

    return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}

void dpl_blend_bfloat_avx2(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float share = (float)weight / DPL_MIX_ONE;
    const __m256 w = _mm256_set1_ps(share), rest = _mm256_set1_ps(1 - share);
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_add_ps(_mm256_mul_ps(of_bfloat(a + i), w),
                                       _mm256_mul_ps(of_bfloat(b + i), rest));

        _mm_storeu_si128((__m128i *)(a + i), to_bfloat(v));
    }
    dpl_blend_bfloat_c(a + i, b + i, n - i, weight);
}

static inline __m256 of_half(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

void dpl_blend_half_avx2(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float share = (float)weight / DPL_MIX_ONE;
    const __m256 w = _mm256_set1_ps(share), rest = _mm256_set1_ps(1 - share);
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m256 v =
            _mm256_add_ps(_mm256_mul_ps(of_half(a + i), w), _mm256_mul_ps(of_half(b + i), rest));

        _mm_storeu_si128((__m128i *)(a + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    dpl_blend_half_c(a + i, b + i, n - i, weight);
}
#endif
