/* SPDX-License-Identifier: Apache-2.0 */
/* Colour operations on 8-bit RGB with Pillow's arithmetic (ImageEnhance, ImageOps, HSV conversion), bit
 * for bit. Operations on single values are 256-entry tables. Pictures are packed [n][3], changed in
 * place; n = pixels, may be 0. */
#ifndef DPL_KERNELS_COLOR_H
#define DPL_KERNELS_COLOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What each value of each channel becomes. */
typedef struct dpl_lookup {
    uint8_t to[3][256];
} dpl_lookup;

/** How often each value of each channel occurs. */
typedef struct dpl_histogram {
    uint32_t of[3][256];
} dpl_histogram;

/** Between `from` (factor 0) and `to` (factor 1), or beyond: single precision, cut off, clipped. */
static inline uint8_t dpl_blend8(int from, int to, float factor)
{
    const float v = (float)from + factor * (float)(to - from);
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/** (19595 R + 38470 G + 7471 B + 32768) >> 16 */
static inline int dpl_gray8(const uint8_t *px)
{
    return (int)((px[0] * 19595U + px[1] * 38470U + px[2] * 7471U + 32768U) >> 16);
}

void dpl_histogram_make(dpl_histogram *h, const uint8_t *px, size_t n);
/** Mean of the grey values, rounded half up; n >= 1. */
int dpl_gray_mean(const uint8_t *px, size_t n);

void dpl_lookup_brightness(dpl_lookup *t, double factor); /**< factor >= 0; 0 = black */
/** factor >= 0; 0 = all of the grey value mean. */
void dpl_lookup_contrast(dpl_lookup *t, double factor, int mean);
void dpl_lookup_posterize(dpl_lookup *t, int bits);        /**< keep the highest 0..8 bits */
void dpl_lookup_solarize(dpl_lookup *t, double threshold); /**< invert from threshold on */
void dpl_lookup_invert(dpl_lookup *t);
/** Stretch each channel to 0..255; a channel of one value stays. */
void dpl_lookup_autocontrast(dpl_lookup *t, const dpl_histogram *h);
/** Spread each channel evenly; a channel of one value, or with fewer than 255 pixels below its
 *  highest value, stays. */
void dpl_lookup_equalize(dpl_lookup *t, const dpl_histogram *h);
void dpl_lookup_apply(uint8_t *px, size_t n, const dpl_lookup *t);

/** Every channel becomes the grey value. */
void dpl_grayscale(uint8_t *px, size_t n);

/** Towards the grey value: factor >= 0; 0 = grey, 1 = unchanged. */
typedef void dpl_saturate_fn(uint8_t *px, size_t n, double factor);
dpl_saturate_fn dpl_saturate_c, dpl_saturate_avx2;

/** Turn the hue by `turn` of the circle, -0.5..0.5, by way of 8-bit HSV: also a turn of 0 changes
 *  most colours a little. */
typedef void dpl_hue_fn(uint8_t *px, size_t n, double turn);
dpl_hue_fn dpl_hue_c, dpl_hue_avx2;

/** The way back from HSV, by hue byte before the turn. Of a colour's three values the highest is v, the
 *  lowest is what the saturation leaves of it, and the third depends on where between two corners of
 *  the hue circle (red, yellow, green …) the hue is. */
typedef struct dpl_hue_table {
    float along[256];    /* 0..1 from one corner to the next; negated where the third value falls */
    uint32_t order[256]; /* which value byte c of a pixel is, in bits 8 c: 0 v, 1 third, 2 lowest */
    float saturation[256]; /* of a saturation byte */
} dpl_hue_table;
void dpl_hue_table_make(dpl_hue_table *t, double turn);

#ifdef __cplusplus
}
#endif
#endif
