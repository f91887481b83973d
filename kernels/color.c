/* SPDX-License-Identifier: Apache-2.0 */
/* Colour operations that mix the channels of a pixel. */
#include "kernels/color.h"

void dpl_grayscale(uint8_t *px, size_t n)
{
    for (size_t i = 0; i < n; i++, px += 3) px[0] = px[1] = px[2] = (uint8_t)dpl_gray8(px);
}

void dpl_saturate_c(uint8_t *px, size_t n, double factor)
{
    const float f = (float)factor;
    for (size_t i = 0; i < n; i++, px += 3) {
        const int gray = dpl_gray8(px);
        for (int c = 0; c < 3; c++) px[c] = dpl_blend8(gray, px[c], f);
    }
}
