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

/* --- hue: to 8-bit HSV and back, each step in the precision that Pillow takes it in --- */

/* One of the six sides of the hue circle: its number, and how far along it a hue byte is. */
typedef struct hue_place {
    int side;
    float along;
} hue_place;

static void hue_places(hue_place places[256], int shift)
{
    for (int h = 0; h < 256; h++) {
        const double at = ((h + shift) & 255) * 6.0 / 255.0;
        const int side = (int)at;
        places[h] = (hue_place){ side % 6, (float)(at - side) };
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

static uint8_t near8(double v) /* v in 0..255 */
{
    return (uint8_t)(v + 0.5);
}

static void set_pixel(uint8_t *px, int r, int g, int b)
{
    px[0] = (uint8_t)r;
    px[1] = (uint8_t)g;
    px[2] = (uint8_t)b;
}

static void turn_pixel(uint8_t *px, const hue_place places[256])
{
    const int high = max_of(px[0], max_of(px[1], px[2]));
    const int low = min_of(px[0], min_of(px[1], px[2]));
    if (high == low) return;
    const float exact = (float)(high - low) / (float)high;
    const float s = (float)((int)(exact * 255.0) / 255.0);
    const hue_place at = places[hue_of(px, high, low)];
    const float v = (float)high, part = s * at.along;
    const int p = near8(v * (1.0 - s));
    if (s == 0) { /* a range so small that its saturation is 0 in 8 bits */
        set_pixel(px, high, high, high);
    } else if (at.side % 2) {
        const int q = near8(v * (1.0 - part));
        if (at.side == 1)
            set_pixel(px, q, high, p);
        else if (at.side == 3)
            set_pixel(px, p, q, high);
        else
            set_pixel(px, high, p, q);
    } else {
        const int t = near8(v * (1.0 - s * (1.0 - at.along)));
        if (at.side == 0)
            set_pixel(px, high, t, p);
        else if (at.side == 2)
            set_pixel(px, p, high, t);
        else
            set_pixel(px, t, p, high);
    }
}

void dpl_hue(uint8_t *px, size_t n, double turn)
{
    hue_place places[256];
    hue_places(places, (int)(turn * 255)); /* cut off towards 0 */
    for (size_t i = 0; i < n; i++) turn_pixel(px + 3 * i, places);
}
