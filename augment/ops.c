/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a list of operations. */
#include "augment/ops.h"

#include <assert.h>

dpl_op *dpl_ops_add(dpl_ops *ops, dpl_op_kind kind, double value)
{
    assert(ops->n < DPL_OPS_MAX);
    ops->op[ops->n] = (dpl_op){ .kind = kind, .value = value };
    return &ops->op[ops->n++];
}

int dpl_op_moves(const dpl_op *op)
{
    return op->kind == DPL_OP_SHARPNESS || op->kind == DPL_OP_ROTATE || op->kind == DPL_OP_AFFINE;
}

size_t dpl_ops_scratch(const dpl_ops *ops, int width)
{
    size_t most = 0;
    for (int i = 0; i < ops->n; i++) {
        if (ops->op[i].kind != DPL_OP_BLUR) continue;
        const size_t n = dpl_blur_scratch(width, ops->op[i].radius);
        if (n > most) most = n;
    }
    return most;
}

static void make_lookup(dpl_lookup *t, const dpl_op *op, const uint8_t *px, size_t n)
{
    dpl_histogram h;
    switch (op->kind) {
    case DPL_OP_BRIGHTNESS: dpl_lookup_brightness(t, op->value); return;
    case DPL_OP_CONTRAST: dpl_lookup_contrast(t, op->value, dpl_gray_mean(px, n)); return;
    case DPL_OP_POSTERIZE: dpl_lookup_posterize(t, (int)op->value); return;
    case DPL_OP_SOLARIZE: dpl_lookup_solarize(t, op->value); return;
    case DPL_OP_INVERT: dpl_lookup_invert(t); return;
    default: break;
    }
    dpl_histogram_make(&h, px, n);
    if (op->kind == DPL_OP_EQUALIZE)
        dpl_lookup_equalize(t, &h);
    else
        dpl_lookup_autocontrast(t, &h);
}

static void change(const dpl_op *op, uint8_t *px, int width, int height, const dpl_kernels *k,
                   float *scratch)
{
    const size_t n = (size_t)width * (size_t)height;
    float half[DPL_BLUR_RADIUS_MAX + 1];
    dpl_lookup table;
    switch (op->kind) {
    case DPL_OP_SATURATION: k->saturate(px, n, op->value); return;
    case DPL_OP_HUE: k->hue(px, n, op->value); return;
    case DPL_OP_GRAYSCALE: dpl_grayscale(px, n); return;
    case DPL_OP_BLUR:
        dpl_blur_weights(half, op->radius, op->value);
        k->blur(px, width, height, half, op->radius, scratch);
        return;
    default: make_lookup(&table, op, px, n); dpl_lookup_apply(px, n, &table);
    }
}

static void move(const dpl_op *op, uint8_t *out, const uint8_t *in, int width, int height,
                 const dpl_op_style *style, const dpl_kernels *k)
{
    const dpl_view view = { in, 3 * (size_t)width, width, height };
    if (op->kind == DPL_OP_SHARPNESS)
        k->sharpen(out, in, width, height, op->value);
    else if (op->kind == DPL_OP_ROTATE)
        k->rotate(out, in, width, height, op->value, style->bilinear, style->fill);
    else
        (style->bilinear ? k->bilinear : dpl_nearest_rgb)(out, width, height, &view, &op->map,
                                                          style->fill);
}

void dpl_ops_apply(const dpl_ops *ops, uint8_t *px, uint8_t *spare, int width, int height,
                   const dpl_op_style *style, const dpl_kernels *k, float *scratch)
{
    for (int i = 0; i < ops->n; i++) {
        const dpl_op *op = &ops->op[i];
        if (dpl_op_moves(op)) {
            uint8_t *moved = spare;
            move(op, moved, px, width, height, style, k);
            spare = px;
            px = moved;
        } else {
            change(op, px, width, height, k, scratch);
        }
    }
}
