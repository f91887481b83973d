/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation with AVX2: the three channels of a pixel as one vector of doubles. */
#include "kernels/affine.h"
#include "kernels/rotate.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#    include <string.h>

static inline __m256d doubles(__m128i bytes)
{
    return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(bytes));
}

/* Three bytes, and not one more: the last pixel ends the picture. */
static inline __m256d load_pixel(const uint8_t *p)
{
    uint16_t rg;
    memcpy(&rg, p, sizeof rg);
    return doubles(_mm_cvtsi32_si128(rg | p[2] << 16));
}

static inline __m256d between(__m256d a, __m256d b, __m256d d)
{
    return _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), d));
}

static inline void store_pixel(uint8_t *out, __m256d v)
{
    const __m128i n = _mm256_cvttpd_epi32(v);
    const uint32_t px = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(_mm_packs_epi32(n, n), n));
    const uint16_t rg = (uint16_t)px;
    memcpy(out, &rg, sizeof rg);
    out[2] = (uint8_t)(px >> 16);
}

/* Between two neighbours in a row, which 8 bytes from p on hold. */
static inline __m256d between_neighbours(const uint8_t *p, __m256d dx)
{
    const __m128i v = _mm_loadl_epi64((const __m128i *)p);
    return between(doubles(v), doubles(_mm_srli_si128(v, 3)), dx);
}

/* As blend() of the C variant, operation by operation. */
static inline void blend(uint8_t *out, const dpl_view *in, double x, double y)
{
    x -= 0.5;
    y -= 0.5;
    const int ix = (int)x - (x < 0), iy = (int)y - (y < 0); /* floor of what is >= -1/2 */
    const __m256d dx = _mm256_set1_pd(x - ix), dy = _mm256_set1_pd(y - iy);
    const size_t row = in->stride;
    if (ix >= 0 && ix + 2 < in->w && iy >= 0 && iy + 1 < in->h) { /* 9 bytes of the row left */
        const uint8_t *p = in->px + (size_t)iy * row + 3 * (size_t)ix;
        store_pixel(out, between(between_neighbours(p, dx), between_neighbours(p + row, dx), dy));
        return;
    }
    const size_t x0 = 3 * (size_t)(ix < 0 ? 0 : ix);
    const size_t x1 = 3 * (size_t)(ix + 1 < in->w ? ix + 1 : in->w - 1);
    const uint8_t *top = in->px + (size_t)(iy < 0 ? 0 : iy) * row;
    const uint8_t *bottom = in->px + (size_t)(iy + 1 < in->h ? iy + 1 : iy) * row;
    const __m256d v0 = between(load_pixel(top + x0), load_pixel(top + x1), dx);
    const __m256d v1 = between(load_pixel(bottom + x0), load_pixel(bottom + x1), dx);
    store_pixel(out, between(v0, v1, dy));
}

void dpl_bilinear_rgb_avx2(uint8_t *out, int width, int height, const dpl_view *in,
                           const dpl_affine *m, const uint8_t fill[3])
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, out += 3) {
            const double px = x + 0.5, py = y + 0.5;
            const double sx = m->a * px + m->b * py + m->c, sy = m->d * px + m->e * py + m->f;
            if (sx < 0.0 || sx >= in->w || sy < 0.0 || sy >= in->h)
                memcpy(out, fill, 3);
            else
                blend(out, in, sx, sy);
        }
}

void dpl_rotate_rgb_avx2(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                         int bilinear, const uint8_t fill[3])
{
    dpl_rotate_with(out, in, width, height, degrees,
                    bilinear ? dpl_bilinear_rgb_avx2 : dpl_nearest_rgb, fill);
}
#endif
