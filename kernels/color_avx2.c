/* SPDX-License-Identifier: Apache-2.0 */
/* Saturation and sharpness with AVX2: 16 values blended at once, each as dpl_blend8() does it. */
#include "kernels/color.h"
#include "kernels/sharpen.h"

#if defined(__x86_64__)
#    include <immintrin.h>

enum { BLOCK = 16, CHUNK_PIXELS = 64 /* 12 blocks */ };

/* 16 bytes as 16-bit numbers. */
static inline __m256i load16(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* Eight values as whole numbers of 0..255. */
static inline __m256i blend8(__m128i from, __m128i to, __m256 factor)
{
    const __m256i start = _mm256_cvtepu16_epi32(from);
    const __m256i way = _mm256_sub_epi32(_mm256_cvtepu16_epi32(to), start);
    const __m256 v =
        _mm256_add_ps(_mm256_cvtepi32_ps(start), _mm256_mul_ps(factor, _mm256_cvtepi32_ps(way)));
    const __m256 top = _mm256_set1_ps(255);
    return _mm256_cvttps_epi32(_mm256_max_ps(_mm256_min_ps(v, top), _mm256_setzero_ps()));
}

static inline void blend16(uint8_t *out, __m256i from, __m256i to, __m256 factor)
{
    const __m256i low = blend8(_mm256_castsi256_si128(from), _mm256_castsi256_si128(to), factor);
    const __m256i high =
        blend8(_mm256_extracti128_si256(from, 1), _mm256_extracti128_si256(to, 1), factor);
    /* packing works on halves: the middle quarters come out exchanged */
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
    _mm_storeu_si128((__m128i *)out, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                      _mm256_extracti128_si256(words, 1)));
}

void dpl_saturate_avx2(uint8_t *px, size_t n, double factor)
{
    const __m256 f = _mm256_set1_ps((float)factor);
    uint8_t gray[3 * CHUNK_PIXELS];
    for (; n >= CHUNK_PIXELS; n -= CHUNK_PIXELS, px += sizeof gray) {
        for (size_t i = 0; i < sizeof gray; i += 3)
            gray[i] = gray[i + 1] = gray[i + 2] = (uint8_t)dpl_gray8(px + i);
        for (size_t i = 0; i < sizeof gray; i += BLOCK)
            blend16(px + i, load16(gray + i), load16(px + i), f);
    }
    dpl_saturate_c(px, n, factor);
}

/* A pixel's row of three: left + right + middle * times. */
static inline __m256i three(const uint8_t *p, __m256i times)
{
    const __m256i sides = _mm256_add_epi16(load16(p - 3), load16(p + 3));
    return _mm256_add_epi16(sides, _mm256_mullo_epi16(load16(p), times));
}

static void sharpen_row(uint8_t *out, const uint8_t *above, const uint8_t *at, const uint8_t *below,
                        size_t n, float factor)
{
    const __m256i one = _mm256_set1_epi16(1), five = _mm256_set1_epi16(5);
    const __m256i six = _mm256_set1_epi16(6), part13 = _mm256_set1_epi16(5042); /* 65536 / 13 */
    const __m256 f = _mm256_set1_ps(factor);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const __m256i rows = _mm256_add_epi16(three(above + i, one), three(below + i, one));
        const __m256i sum = _mm256_add_epi16(rows, three(at + i, five));
        const __m256i smooth = _mm256_mulhi_epu16(_mm256_add_epi16(sum, six), part13);
        blend16(out + i, smooth, load16(at + i), f);
    }
    dpl_sharpen_row_c(out + i, above + i, at + i, below + i, n - i, factor);
}

void dpl_sharpen_avx2(uint8_t *out, const uint8_t *in, int width, int height, double factor)
{
    dpl_sharpen_with(out, in, width, height, factor, sharpen_row);
}
#endif
