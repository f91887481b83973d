/* SPDX-License-Identifier: Apache-2.0 */
/* A plan seen along one axis: what drawing, region and applying must agree on. */
#ifndef DPL_AUGMENT_GEOMETRY_H
#define DPL_AUGMENT_GEOMETRY_H

#include "kernels/resample.h"

#ifdef __cplusplus
extern "C" {
#endif

/** n pixels from `at` on. */
typedef struct dpl_span {
    int at, n;
} dpl_span;

/** The resampling of one axis of a picture scaled by 1/denominator: box in the unscaled picture,
 *  resized to `resized` pixels, of which the window of n from `win` on is wanted; outputs outside
 *  the resized picture are left out (count may be 0). The coordinates of the axis start at pixel
 *  *origin of the scaled picture. */
dpl_axis dpl_plan_axis(const dpl_span *box, int resized, int win, int n, int filter,
                       int denominator, int *origin);

/** The pixels of the box that the window of n from `win` on covers when the box is resized to
 *  `resized`: widened to whole ones, all of the box when the window is; n 0 = none. */
dpl_span dpl_plan_window(const dpl_span *box, int resized, int win, int n);

#ifdef __cplusplus
}
#endif
#endif
