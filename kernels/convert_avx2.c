/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 to normalised floats with AVX2: eight pixels (24 bytes) per step, product and sum rounded
 * apart as in the C variant. */
#include "kernels/convert.h"

#if defined(__x86_64__)
#    include <immintrin.h>

static inline __m256 scaled(__m128i bytes, __m256 scale, __m256 bias)
{
    const __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    return _mm256_add_ps(_mm256_mul_ps(v, scale), bias);
}

/* Channel bytes of pixels 0..5 are in bytes 0..15 of a step, those of the others in bytes 8..23. */
static const int8_t low_mask[3][16] = {
    { 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 },
    { 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 },
    { 2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 },
};
static const int8_t high_mask[3][16] = {
    { -1, -1, -1, -1, -1, -1, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1 },
    { -1, -1, -1, -1, -1, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1 },
    { -1, -1, -1, -1, -1, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1 },
};

void dpl_normalize_nchw_avx2(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(in + 3 * i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(in + 3 * i + 8));
        for (size_t c = 0; c < 3; c++) {
            const __m128i low = _mm_loadu_si128((const __m128i *)low_mask[c]);
            const __m128i high = _mm_loadu_si128((const __m128i *)high_mask[c]);
            const __m128i v = _mm_or_si128(_mm_shuffle_epi8(a, low), _mm_shuffle_epi8(b, high));
            _mm256_storeu_ps(out + c * n + i,
                             scaled(v, _mm256_set1_ps(scale[c]), _mm256_set1_ps(bias[c])));
        }
    }
    for (; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[c * n + i] = (float)in[3 * i + c] * scale[c] + bias[c];
}

/* The three values of v over and over, from entry `phase` on. */
static inline __m256 cycle(const float v[3], int phase)
{
    float x[8];
    for (int i = 0; i < 8; i++) x[i] = v[(i + phase) % 3];
    return _mm256_loadu_ps(x);
}

void dpl_normalize_nhwc_avx2(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    __m256 s[3], b[3];
    size_t i = 0;
    for (int v = 0; v < 3; v++) {
        s[v] = cycle(scale, 8 * v % 3);
        b[v] = cycle(bias, 8 * v % 3);
    }
    for (; i + 8 <= n; i += 8)
        for (size_t v = 0; v < 3; v++) {
            const size_t at = 3 * i + 8 * v;
            _mm256_storeu_ps(out + at,
                             scaled(_mm_loadl_epi64((const __m128i *)(in + at)), s[v], b[v]));
        }
    for (; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[3 * i + c] = (float)in[3 * i + c] * scale[c] + bias[c];
}
#endif
