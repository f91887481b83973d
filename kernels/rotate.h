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
 *  bilinear = 0: nearest (16.16 fixed point); 1: bilinear in double, truncated. Bit-equal to Pillow. */
void dpl_rotate_rgb(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                    int bilinear, const uint8_t fill[3]);

#ifdef __cplusplus
}
#endif
#endif
