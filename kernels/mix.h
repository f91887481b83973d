/* SPDX-License-Identifier: Apache-2.0 */
/* Two finished pictures into one: the blend of mixup and the pasted box of cutmix. */
#ifndef DPL_KERNELS_MIX_H
#define DPL_KERNELS_MIX_H

#include "kernels/erase.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The weight 1. Weights are multiples of 2^-15, so that a weight and what is left of 1 are exact as
 *  integers and as floats. */
enum { DPL_MIX_ONE = 1 << 15 };

/** a = weight * a + (1 - weight) * b, to the nearest level, halves up. weight 0..DPL_MIX_ONE; no
 *  overlap; n may be 0. Variants match. */
typedef void dpl_blend_u8_fn(uint8_t *a, const uint8_t *b, size_t n, int weight);
dpl_blend_u8_fn dpl_blend_u8_c, dpl_blend_u8_avx2, dpl_blend_u8_neon;

/** The same for floats, rounded after each product and after the sum, as torch does it. Variants
 *  match bit for bit. */
typedef void dpl_blend_f32_fn(float *a, const float *b, size_t n, int weight);
dpl_blend_f32_fn dpl_blend_f32_c, dpl_blend_f32_avx2, dpl_blend_f32_neon;

/** The same for bfloat16 and IEEE half: as floats, and the result rounded to the nearest, ties to even.
 *  Variants match bit for bit. */
typedef void dpl_blend16_fn(uint16_t *a, const uint16_t *b, size_t n, int weight);
dpl_blend16_fn dpl_blend_bfloat_c, dpl_blend_bfloat_avx2, dpl_blend_bfloat_neon;
dpl_blend16_fn dpl_blend_half_c, dpl_blend_half_avx2, dpl_blend_half_neon;

/** Pictures of any layout and type: [planes][height][width] pixels of `pixel` bytes. */
typedef struct dpl_mix_shape {
    size_t pixel;
    int planes, width, height;
} dpl_mix_shape;

/** Copy the pixels of r, which lies inside, from b to a; r->w or r->h 0 = nothing. */
void dpl_paste(void *a, const void *b, const dpl_mix_shape *shape, const dpl_rect *r);

#ifdef __cplusplus
}
#endif
#endif
