/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a finished 8-bit picture, as a list: each entry says everything there is to know,
 * so that applying it draws nothing. */
#ifndef DPL_AUGMENT_OPS_H
#define DPL_AUGMENT_OPS_H

#include "kernels/kernels.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** torchvision's functions of these names; what `value` means to each. */
typedef enum dpl_op_kind {
    DPL_OP_BRIGHTNESS,   /* factor */
    DPL_OP_CONTRAST,     /* factor */
    DPL_OP_SATURATION,   /* factor */
    DPL_OP_HUE,          /* -0.5..0.5 of the circle */
    DPL_OP_SHARPNESS,    /* factor */
    DPL_OP_GRAYSCALE,    /* - */
    DPL_OP_INVERT,       /* - */
    DPL_OP_POSTERIZE,    /* bits kept, 0..8 */
    DPL_OP_SOLARIZE,     /* threshold */
    DPL_OP_AUTOCONTRAST, /* - */
    DPL_OP_EQUALIZE,     /* - */
    DPL_OP_BLUR,         /* sigma > 0; `radius` */
    DPL_OP_ROTATE,       /* degrees counter-clockwise */
    DPL_OP_AFFINE        /* `map` */
} dpl_op_kind;

typedef struct dpl_op {
    dpl_op_kind kind;
    int radius; /* blur: 0..DPL_BLUR_RADIUS_MAX */
    double value;
    dpl_affine map; /* affine: from output to input pixels */
} dpl_op;

enum { DPL_OPS_MAX = 32 };

typedef struct dpl_ops {
    int n;
    dpl_op op[DPL_OPS_MAX];
} dpl_ops;

/** A new last entry with this value, or with none; it is the caller's to complete. */
dpl_op *dpl_ops_add(dpl_ops *ops, dpl_op_kind kind, double value);

/** How rotation and affine maps look pixels up. */
typedef struct dpl_op_style {
    int bilinear; /* 0 = nearest */
    uint8_t fill[3];
} dpl_op_style;

/** Does the operation write to the second picture instead of changing the first in place? */
int dpl_op_moves(const dpl_op *op);

/** Floats of scratch for the list. */
size_t dpl_ops_scratch(const dpl_ops *ops, int width);

/** Apply the list to px [height][width][3]; spare is as large. The result is in px when an even number
 *  of the operations move the picture, else in spare. */
void dpl_ops_apply(const dpl_ops *ops, uint8_t *px, uint8_t *spare, int width, int height,
                   const dpl_op_style *style, const dpl_kernels *k, float *scratch);

#ifdef __cplusplus
}
#endif
#endif
