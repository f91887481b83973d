/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 to normalised numbers as plain C: the specification of the other variants. */
#include "kernels/convert.h"
#include "kernels/convert_math.h"
#include "kernels/unroll.h"

#include <string.h>

static uint32_t bits_of(float v)
{
    uint32_t b;

    memcpy(&b, &v, sizeof b);
    return b;
}

/* The upper half, rounded by what is cut off: up from above the middle, and in it when odd. */
uint16_t dpl_to_bfloat(float v)
{
    const uint32_t b = bits_of(v);

    if ((b & 0x7fffffffU) > 0x7f800000U) return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* x / 2^shift, to the nearest, ties to even; shift 1..31 */
static uint32_t shift_even(uint32_t x, unsigned shift)
{
    const uint32_t rest = x & ((1U << shift) - 1), middle = 1U << (shift - 1);
    const uint32_t q = x >> shift;

    return q + (rest > middle || (rest == middle && (q & 1)));
}

uint16_t dpl_to_half(float v)
{
    const uint32_t b = bits_of(v), size = b & 0x7fffffffU, sign = b >> 16 & 0x8000U;
    const int exponent = (int)(size >> 23) - 127 + 15;
    uint32_t h;

    if (size > 0x7f800000U)
        h = 0x7e00U | (size >> 13 & 0x1ffU); /* not a number */
    else if (exponent >= 31)
        h = 0x7c00U;
    else if (exponent > 0) /* rounding up may carry into the exponent, up to infinity */
        h = shift_even(size - ((127U - 15U) << 23), 13);
    else if (exponent > -11)
        h = shift_even((size & 0x7fffffU) | 0x800000U, (unsigned)(14 - exponent));
    else
        h = 0;
    return (uint16_t)(sign | h);
}

INLINE float normal(const uint8_t *in, size_t i, size_t c, const float *scale, const float *bias)
{
    return dpl_normal(in[3 * i + c], scale[c], bias[c]);
}

void dpl_normalize_nchw_c(float *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[c * n + i] = normal(in, i, c, scale, bias);
}

void dpl_normalize_nhwc_c(float *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[3 * i + c] = normal(in, i, c, scale, bias);
}

void dpl_bfloat_nchw_c(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                       const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[c * n + i] = dpl_to_bfloat(normal(in, i, c, scale, bias));
}

void dpl_bfloat_nhwc_c(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                       const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[3 * i + c] = dpl_to_bfloat(normal(in, i, c, scale, bias));
}

void dpl_half_nchw_c(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                     const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[c * n + i] = dpl_to_half(normal(in, i, c, scale, bias));
}

void dpl_half_nhwc_c(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                     const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[3 * i + c] = dpl_to_half(normal(in, i, c, scale, bias));
}
