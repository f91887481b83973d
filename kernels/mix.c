/* SPDX-License-Identifier: Apache-2.0 */
/* Mixing as plain C: the specification of the other variants. */
#include "kernels/mix.h"

#include "kernels/convert.h"
#include "kernels/convert_math.h"

#include <string.h>

void dpl_blend_u8_c(uint8_t *a, const uint8_t *b, size_t n, int weight)
{
    const int rest = DPL_MIX_ONE - weight;

    for (size_t i = 0; i < n; i++)
        a[i] = (uint8_t)((a[i] * weight + b[i] * rest + DPL_MIX_ONE / 2) / DPL_MIX_ONE);
}

void dpl_blend_f32_c(float *a, const float *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE, rest = 1 - w;

    for (size_t i = 0; i < n; i++) a[i] = dpl_blend(a[i], b[i], w, rest);
}

static float of_bits(uint32_t b)
{
    float v;

    memcpy(&v, &b, sizeof v);
    return v;
}

static float of_bfloat(uint16_t h)
{
    return of_bits((uint32_t)h << 16);
}

static float of_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 0x3ff;

    if (exponent == 31) return of_bits(sign | 0x7f800000U | rest << 13);
    if (exponent) return of_bits(sign | (exponent + 127 - 15) << 23 | rest << 13);
    return sign ? -(float)rest * 0x1p-24F : (float)rest * 0x1p-24F;
}

void dpl_blend_bfloat_c(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE, rest = 1 - w;

    for (size_t i = 0; i < n; i++)
        a[i] = dpl_to_bfloat(dpl_blend(of_bfloat(a[i]), of_bfloat(b[i]), w, rest));
}

void dpl_blend_half_c(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE, rest = 1 - w;

    for (size_t i = 0; i < n; i++)
        a[i] = dpl_to_half(dpl_blend(of_half(a[i]), of_half(b[i]), w, rest));
}

void dpl_paste(void *a, const void *b, const dpl_mix_shape *shape, const dpl_rect *r)
{
    uint8_t *to = a;
    const uint8_t *from = b;

    for (int p = 0; p < shape->planes; p++)
        for (int y = 0; y < r->h; y++) {
            const size_t row = (size_t)p * (size_t)shape->height + (size_t)(r->y + y);
            const size_t at = (row * (size_t)shape->width + (size_t)r->x) * shape->pixel;

            memcpy(to + at, from + at, (size_t)r->w * shape->pixel);
        }
}
