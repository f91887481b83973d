/* SPDX-License-Identifier: Apache-2.0 */
/* Mixing as plain C: the specification of the other variants. */
#include "kernels/mix.h"

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

    for (size_t i = 0; i < n; i++) a[i] = a[i] * w + b[i] * rest;
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
