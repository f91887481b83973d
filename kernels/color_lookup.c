/* SPDX-License-Identifier: Apache-2.0 */
/* Colour operations on single values: tables, and what they are made from. */
#include "kernels/color.h"

#include <string.h>

static uint8_t clip8(double v)
{
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

static void same_for_all(dpl_lookup *t)
{
    memcpy(t->to[1], t->to[0], sizeof t->to[0]);
    memcpy(t->to[2], t->to[0], sizeof t->to[0]);
}

void dpl_histogram_make(dpl_histogram *h, const uint8_t *px, size_t n)
{
    memset(h, 0, sizeof *h);
    for (size_t i = 0; i < n; i++, px += 3)
        for (int c = 0; c < 3; c++) h->of[c][px[c]]++;
}

int dpl_gray_mean(const uint8_t *px, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint64_t)dpl_gray8(px + 3 * i);
    return (int)((double)sum / (double)n + 0.5);
}

void dpl_lookup_contrast(dpl_lookup *t, double factor, int mean)
{
    for (int v = 0; v < 256; v++) t->to[0][v] = dpl_blend8(mean, v, (float)factor);
    same_for_all(t);
}

void dpl_lookup_brightness(dpl_lookup *t, double factor)
{
    dpl_lookup_contrast(t, factor, 0);
}

void dpl_lookup_posterize(dpl_lookup *t, int bits)
{
    for (int v = 0; v < 256; v++) t->to[0][v] = (uint8_t)(v & ~((1 << (8 - bits)) - 1));
    same_for_all(t);
}

void dpl_lookup_solarize(dpl_lookup *t, double threshold)
{
    for (int v = 0; v < 256; v++) t->to[0][v] = (uint8_t)(v < threshold ? v : 255 - v);
    same_for_all(t);
}

void dpl_lookup_invert(dpl_lookup *t)
{
    dpl_lookup_solarize(t, 0);
}

void dpl_lookup_autocontrast(dpl_lookup *t, const dpl_histogram *h)
{
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 255;
        while (low < 255 && !h->of[c][low]) low++;
        while (high > 0 && !h->of[c][high]) high--;
        const double scale = high > low ? 255.0 / (high - low) : 1;
        const double offset = high > low ? -low * scale : 0;
        for (int v = 0; v < 256; v++) t->to[c][v] = clip8(v * scale + offset);
    }
}

void dpl_lookup_equalize(dpl_lookup *t, const dpl_histogram *h)
{
    for (int c = 0; c < 3; c++) {
        const uint32_t *count = h->of[c];
        uint64_t below = 0; /* pixels that are not of the highest value */
        int high = 255;
        while (high > 0 && !count[high]) high--;
        for (int v = 0; v < high; v++) below += count[v];
        const uint64_t step = below / 255;
        uint64_t sum = step / 2;
        for (int v = 0; v < 256; v++) {
            const uint64_t to = step ? sum / step : (uint64_t)v;
            t->to[c][v] = (uint8_t)(to > 255 ? 255 : to);
            sum += count[v];
        }
    }
}

void dpl_lookup_apply(uint8_t *px, size_t n, const dpl_lookup *t)
{
    for (size_t i = 0; i < n; i++, px += 3) {
        px[0] = t->to[0][px[0]];
        px[1] = t->to[1][px[1]];
        px[2] = t->to[2][px[2]];
    }
}
