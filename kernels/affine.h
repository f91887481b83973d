/* SPDX-License-Identifier: Apache-2.0 */
/* Affine maps of 8-bit RGB pictures, as Pillow's Image.transform(AFFINE) (Geometry.c), bit
 * for bit, and the matrices that torchvision gives it. */
#ifndef DPL_KERNELS_AFFINE_H
#define DPL_KERNELS_AFFINE_H

#include "kernels/rotate.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is done to the picture, as the arguments of torchvision's affine(): about the point (cx, cy) it is
 *  sheared, scaled and turned, then moved by (tx, ty) pixels. Angles in degrees, clockwise. */
typedef struct dpl_affine_params {
    double angle, tx, ty, scale; /* scale > 0 */
    double shear_x, shear_y;     /* within (-90, 90) */
    double cx, cy;
} dpl_affine_params;

/** The map from output to input pixels that does it: torchvision's _get_inverse_affine_matrix(). */
dpl_affine dpl_affine_inverse(const dpl_affine_params *p);

/** First `inner`, then `outer`: outer(inner(x, y)). */
dpl_affine dpl_affine_chain(const dpl_affine *outer, const dpl_affine *inner);

/** Every output pixel takes the input pixel that the map names, or fill when there is none. Arithmetic as Pillow's: accumulated doubles
 *  for a map without rotation and shear, else 16.16 fixed point where it is wide enough. */
dpl_map_fn dpl_nearest_rgb;

#ifdef __cplusplus
}
#endif
#endif
