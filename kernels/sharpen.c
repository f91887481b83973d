/* SPDX-License-Identifier: Apache-2.0 */
/* Sharpness: the picture against its smoothed self. */
#include "kernels/sharpen.h"

#include "kernels/color.h"

#include <string.h>

void dpl_sharpen_row_c(uint8_t *out, const uint8_t *above, const uint8_t *at, const uint8_t *below,
                       size_t n, float factor)
{
    const uint8_t *a = above - 3, *m = at - 3, *b = below - 3; /* the left neighbours */
    for (size_t i = 0; i < n; i++, a++, m++, b++) {
        const int sum = a[0] + a[3] + a[6] + m[0] + 5 * m[3] + m[6] + b[0] + b[3] + b[6];
        /* thirteenths are never halves: the nearest whole number is (sum + 6) / 13 */
        out[i] = dpl_blend8((sum + 6) / 13, m[3], factor);
    }
}

void dpl_sharpen_with(uint8_t *out, const uint8_t *in, int width, int height, double factor,
                      dpl_sharpen_row_fn *row)
{
    const size_t stride = 3 * (size_t)width;
    if (width < 3 || height < 3) { /* nothing but border */
        memcpy(out, in, stride * (size_t)height);
        return;
    }
    memcpy(out, in, stride);
    for (int y = 1; y < height - 1; y++) {
        const uint8_t *at = in + (size_t)y * stride;
        uint8_t *to = out + (size_t)y * stride;
        memcpy(to, at, 3);
        row(to + 3, at + 3 - stride, at + 3, at + 3 + stride, stride - 6, (float)factor);
        memcpy(to + stride - 3, at + stride - 3, 3);
    }
    memcpy(out + stride * (size_t)(height - 1), in + stride * (size_t)(height - 1), stride);
}

void dpl_sharpen_c(uint8_t *out, const uint8_t *in, int width, int height, double factor)
{
    dpl_sharpen_with(out, in, width, height, factor, dpl_sharpen_row_c);
}
