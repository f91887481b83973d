/* SPDX-License-Identifier: Apache-2.0 */
/* Hue: to 8-bit HSV and back, each step in the precision that Pillow takes it in. */
#include "kernels/color.h"

#include <math.h>

void dpl_hue_table_make(dpl_hue_table *t, double turn)
{
    /* from red to yellow, green, cyan, blue, magenta and back: red is v, green rises, blue is lowest … */
    static const uint32_t orders[6] = {
        0x020100, 0x020001, 0x010002, 0x000102, 0x000201, 0x010200
    };
    const int shift = (int)(turn * 255); /* cut off towards 0 */
    for (int h = 0; h < 256; h++) {
        const double at = ((h + shift) & 255) * 6.0 / 255.0;
        const int side = (int)at;
        const float along = (float)(at - side);
        t->along[h] = side % 2 ? -along : along;
        t->order[h] = orders[side % 6];
        t->saturation[h] = (float)(h / 255.0);
    }
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* Hue byte of a pixel whose channels are not all equal. */
static int hue_of(const uint8_t *px, int high, int low)
{
    const float range = (float)(high - low);
    const float r = (float)(high - px[0]) / range, g = (float)(high - px[1]) / range;
    const float b = (float)(high - px[2]) / range;
    float h;
    if (px[0] == high)
        h = b - g;
    else if (px[1] == high)
        h = (float)(2.0 + r - b);
    else
        h = (float)(4.0 + g - r);
    const double turned = h / 6.0 + 1.0; /* 5/6 .. 11/6 */
    h = (float)(turned >= 1.0 ? turned - 1.0 : turned);
    return (int)(h * 255.0);
}

static void turn_pixel(uint8_t *px, const dpl_hue_table *t)
{
    const int high = max_of(px[0], max_of(px[1], px[2]));
    const int low = min_of(px[0], min_of(px[1], px[2]));
    if (high == low) return;
    const float exact = (float)(high - low) / (float)high, v = (float)high;
    const float s = t->saturation[(int)(exact * 255.0)];
    const int h = hue_of(px, high, low);
    const float along = fabsf(t->along[h]), part = s * along;
    const double gone = signbit(t->along[h]) ? (double)part : s * (1.0 - along);
    const uint8_t values[3] = { (uint8_t)high, (uint8_t)(v * (1.0 - gone) + 0.5),
                                (uint8_t)(v * (1.0 - s) + 0.5) };
    for (int c = 0; c < 3; c++) px[c] = values[t->order[h] >> 8 * c & 3];
}

void dpl_hue_c(uint8_t *px, size_t n, double turn)
{
    dpl_hue_table t;
    dpl_hue_table_make(&t, turn);
    for (size_t i = 0; i < n; i++) turn_pixel(px + 3 * i, &t);
}
