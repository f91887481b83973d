/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 to normalised numbers with AVX2 and F16C: eight pixels (24 bytes) per step, product and sum
 * rounded apart as in the C variant. */
#include "kernels/convert.h"
#include "kernels/unroll.h"

#if defined(__x86_64__)
#    include <immintrin.h>

typedef enum number { FLOAT, BFLOAT, HALF } number;

INLINE __m256 scaled(__m128i bytes, __m256 scale, __m256 bias)
{
    const __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    return _mm256_add_ps(_mm256_mul_ps(v, scale), bias);
}

INLINE __m128i to_bfloat(__m256 v)
{
    const __m256i b = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(b, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i near = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m256i none = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_none = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i u = _mm256_blendv_epi8(near, none, is_none);
    return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}

/* Eight numbers at out[at]. */
INLINE void store(void *out, size_t at, __m256 v, number type)
{
    if (type == FLOAT)
        _mm256_storeu_ps((float *)out + at, v);
    else if (type == BFLOAT)
        _mm_storeu_si128((__m128i *)((uint16_t *)out + at), to_bfloat(v));
    else
        _mm_storeu_si128((__m128i *)((uint16_t *)out + at),
                         _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

INLINE void store_one(void *out, size_t at, float v, number type)
{
    if (type == FLOAT)
        ((float *)out)[at] = v;
    else
        ((uint16_t *)out)[at] = type == BFLOAT ? dpl_to_bfloat(v) : dpl_to_half(v);
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

INLINE void to_nchw(void *out, const uint8_t *in, size_t n, const float *scale, const float *bias,
                    number type)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(in + 3 * i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(in + 3 * i + 8));
        for (size_t c = 0; c < 3; c++) {
            const __m128i low = _mm_loadu_si128((const __m128i *)low_mask[c]);
            const __m128i high = _mm_loadu_si128((const __m128i *)high_mask[c]);
            const __m128i v = _mm_or_si128(_mm_shuffle_epi8(a, low), _mm_shuffle_epi8(b, high));
            store(out, c * n + i, scaled(v, _mm256_set1_ps(scale[c]), _mm256_set1_ps(bias[c])),
                  type);
        }
    }
    for (; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            store_one(out, c * n + i, (float)in[3 * i + c] * scale[c] + bias[c], type);
}

/* The three values of v over and over, from entry `phase` on. */
INLINE __m256 cycle(const float v[3], int phase)
{
    float x[8];
    for (int i = 0; i < 8; i++) x[i] = v[(i + phase) % 3];
    return _mm256_loadu_ps(x);
}

INLINE void to_nhwc(void *out, const uint8_t *in, size_t n, const float *scale, const float *bias,
                    number type)
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
            store(out, at, scaled(_mm_loadl_epi64((const __m128i *)(in + at)), s[v], b[v]), type);
        }
    for (; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            store_one(out, 3 * i + c, (float)in[3 * i + c] * scale[c] + bias[c], type);
}

void dpl_normalize_nchw_avx2(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    to_nchw(out, in, n, scale, bias, FLOAT);
}

void dpl_normalize_nhwc_avx2(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    to_nhwc(out, in, n, scale, bias, FLOAT);
}

void dpl_bfloat_nchw_avx2(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    to_nchw(out, in, n, scale, bias, BFLOAT);
}

void dpl_bfloat_nhwc_avx2(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    to_nhwc(out, in, n, scale, bias, BFLOAT);
}

void dpl_half_nchw_avx2(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                        const float bias[3])
{
    to_nchw(out, in, n, scale, bias, HALF);
}

void dpl_half_nhwc_avx2(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                        const float bias[3])
{
    to_nhwc(out, in, n, scale, bias, HALF);
}
#endif
