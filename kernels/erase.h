/* SPDX-License-Identifier: Apache-2.0 */
/* One value over a part of a picture, whatever its layout. */
#ifndef DPL_KERNELS_ERASE_H
#define DPL_KERNELS_ERASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A part of a picture, in pixels. */
typedef struct dpl_rect {
    int x, y, w, h;
} dpl_rect;

/** Set the pixels of r, which lies inside; r->w or r->h 0 = nothing. */
void dpl_erase_u8(uint8_t *px, int width, const dpl_rect *r,
                  const uint8_t value[3]); /**< [h][w][3] */
void dpl_erase_nhwc(float *px, int width, const dpl_rect *r,
                    const float value[3]); /**< [h][w][3] */
void dpl_erase_nchw(float *px, int width, int height, const dpl_rect *r,
                    const float value[3]); /**< [3][height][width] */
/** The same two for numbers of 16 bits. */
void dpl_erase_nhwc16(uint16_t *px, int width, const dpl_rect *r, const uint16_t value[3]);
void dpl_erase_nchw16(uint16_t *px, int width, int height, const dpl_rect *r,
                      const uint16_t value[3]);

#ifdef __cplusplus
}
#endif
#endif
