/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as chosen once for a processor: one table, no `if` in a loop. */
#ifndef DPL_KERNELS_KERNELS_H
#define DPL_KERNELS_KERNELS_H

#include "kernels/affine.h"
#include "kernels/blur.h"
#include "kernels/color.h"
#include "kernels/convert.h"
#include "kernels/erase.h"
#include "kernels/mix.h"
#include "kernels/resample.h"
#include "kernels/rotate.h"
#include "kernels/sharpen.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_kernels {
    dpl_resample_rows_fn *rows, *rows_fast;
    dpl_resample_cols_fn *cols, *cols_fast;
    dpl_rotate_fn *rotate;
    dpl_map_fn *bilinear;
    dpl_saturate_fn *saturate;
    dpl_hue_fn *hue;
    dpl_sharpen_fn *sharpen;
    dpl_normalize16_fn *bfloat_nchw, *bfloat_nhwc, *half_nchw, *half_nhwc;
    dpl_blur_fn *blur;
    dpl_normalize_fn *normalize_nchw, *normalize_nhwc;
    dpl_blend_u8_fn *blend_u8;
    dpl_blend_f32_fn *blend_f32;
    dpl_blend16_fn *blend_bfloat, *blend_half;
} dpl_kernels;

/** cpu: bits of dpl_cpu_flags(). */
void dpl_kernels_select(dpl_kernels *k, unsigned cpu);

#ifdef __cplusplus
}
#endif
#endif
