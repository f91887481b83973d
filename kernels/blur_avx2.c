/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian blur with AVX2: 16 values at once, operation by operation as the C variant. */
#include "kernels/blur.h"

#if defined(__x86_64__)
#    include <immintrin.h>

static void weigh(float *out, const float *const *low, const float *const *high, const float *half,
                  int radius, size_t n)
{
    const float *l[DPL_BLUR_RADIUS_MAX + 1], *h[DPL_BLUR_RADIUS_MAX + 1];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 middle = _mm256_set1_ps(half[0]);
        __m256 a = _mm256_mul_ps(middle, _mm256_loadu_ps(low[0] + i));
        __m256 b = _mm256_mul_ps(middle, _mm256_loadu_ps(low[0] + i + 8));
        for (int d = 1; d <= radius; d++) {
            const __m256 w = _mm256_set1_ps(half[d]);
            const __m256 pair_a =
                _mm256_add_ps(_mm256_loadu_ps(low[d] + i), _mm256_loadu_ps(high[d] + i));
            const __m256 pair_b =
                _mm256_add_ps(_mm256_loadu_ps(low[d] + i + 8), _mm256_loadu_ps(high[d] + i + 8));
            a = _mm256_add_ps(a, _mm256_mul_ps(w, pair_a));
            b = _mm256_add_ps(b, _mm256_mul_ps(w, pair_b));
        }
        _mm256_storeu_ps(out + i, a);
        _mm256_storeu_ps(out + i + 8, b);
    }
    if (i == n) return;
    for (int d = 0; d <= radius; d++) {
        l[d] = low[d] + i;
        h[d] = high[d] + i;
    }
    dpl_blur_steps_c.weigh(out + i, l, h, half, radius, n - i);
}

static void widen(float *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(in + i));
        _mm256_storeu_ps(out + i, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
    }
    dpl_blur_steps_c.widen(out + i, in + i, n - i);
}

static void round_bytes(uint8_t *out, const float *in, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i v = _mm256_cvtps_epi32(_mm256_loadu_ps(in + i));
        const __m128i words =
            _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64((__m128i *)(out + i), _mm_packus_epi16(words, words));
    }
    dpl_blur_steps_c.round(out + i, in + i, n - i);
}

void dpl_blur_avx2(uint8_t *px, int width, int height, const float *half, int radius,
                   float *scratch)
{
    static const dpl_blur_steps steps = { weigh, widen, round_bytes };
    dpl_blur_with(px, width, height, half, radius, scratch, &steps);
}
#endif
