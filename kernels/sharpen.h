/* SPDX-License-Identifier: Apache-2.0 */
/* Sharpness of 8-bit RGB, as Pillow's ImageEnhance.Sharpness, bit for bit. */
#ifndef DPL_KERNELS_SHARPEN_H
#define DPL_KERNELS_SHARPEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** From the picture smoothed by 3 x 3 (factor 0: all 1 with 5 in the middle, over 13) to the picture
 *  (1) and beyond; pixels of the border stay. in, out: [height][width][3] packed, no overlap; sides
 *  >= 1; factor >= 0. */
typedef void dpl_sharpen_fn(uint8_t *out, const uint8_t *in, int width, int height, double factor);
dpl_sharpen_fn dpl_sharpen_c, dpl_sharpen_avx2;

/** One row of it: n bytes of out from the rows above, at and below; each is read from 3 bytes before
 *  its pointer to 3 bytes after its n-th. */
typedef void dpl_sharpen_row_fn(uint8_t *out, const uint8_t *above, const uint8_t *at,
                                const uint8_t *below, size_t n, float factor);
/** The whole of it with a given way to do a row. */
void dpl_sharpen_with(uint8_t *out, const uint8_t *in, int width, int height, double factor,
                      dpl_sharpen_row_fn *row);
dpl_sharpen_row_fn dpl_sharpen_row_c;

#ifdef __cplusplus
}
#endif
#endif
