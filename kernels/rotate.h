/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of an 8-bit RGB picture about its centre, same size, as Pillow's Image.rotate()
 * (src/libImaging/Geometry.c): exact transposes for multiples of 90 degrees where Pillow uses them,
 * else the inverse affine map; pixels from outside are `fill`. */
#ifndef DPL_KERNELS_ROTATE_H
#define DPL_KERNELS_ROTATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** degrees counter-clockwise. in, out: [height][width][3] packed, no overlap; sides 1..8192.
 *  bilinear = 0: nearest (16.16 fixed point); 1: bilinear in double, truncated. Bit-equal to Pillow,
 *  and so are the variants. */
typedef void dpl_rotate_fn(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                           int bilinear, const uint8_t fill[3]);

dpl_rotate_fn dpl_rotate_rgb_c, dpl_rotate_rgb_avx2;

/** From output to input: x' = a x + b y + c, y' = d x + e y + f. */
typedef struct dpl_affine {
    double a, b, c, d, e, f;
} dpl_affine;

/** RGB pixels to look up; rows of stride bytes. Nothing outside the w x h pixels is read. */
typedef struct dpl_view {
    const uint8_t *px;
    size_t stride;
    int w, h;
} dpl_view;

/** out [height][width][3], packed, sides 1..8192: every pixel from where the map says that it was, or
 *  fill, as Pillow's Image.transform((width, height), AFFINE): dpl_nearest_rgb() of affine.h, and
 *  these, which blend the four nearest pixels. No overlap. */
typedef void dpl_map_fn(uint8_t *out, int width, int height, const dpl_view *in,
                        const dpl_affine *m, const uint8_t fill[3]);
dpl_map_fn dpl_bilinear_rgb_c, dpl_bilinear_rgb_avx2;
/** The map that rotation by this angle looks pixels up with. */
dpl_affine dpl_rotate_inverse(int width, int height, double degrees);
/** Rotation by a given way to look pixels up. */
void dpl_rotate_with(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                     dpl_map_fn *map, const uint8_t fill[3]);

#ifdef __cplusplus
}
#endif
#endif
