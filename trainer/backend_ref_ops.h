/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of the reference backend: plain functions on NCHW floats. What they compute is what
 * every other backend has to compute. Sums are kept in double. */
#ifndef DPT_TRAINER_BACKEND_REF_OPS_H
#define DPT_TRAINER_BACKEND_REF_OPS_H

#include "trainer/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** in [n][in.c][in.h][in.w], out [n][out.c][out.h][out.w]; k x k windows. */
typedef struct dpt_ref_window {
    int n, k, stride, pad;
    dpt_shape in, out;
} dpt_ref_window;

/** y = conv(x, w) + b; b may be NULL. acc: scratch, out.h * out.w values. */
void dpt_ref_conv(const dpt_ref_window *s, const float *x, const float *w, const float *b, float *y,
                  double *acc);
/** dx += the gradient with respect to x. acc: scratch, in.h * in.w values. */
void dpt_ref_conv_dx(const dpt_ref_window *s, const float *dy, const float *w, float *dx,
                     double *acc);
/** dw, db (may be NULL) = the gradients with respect to the parameters. */
void dpt_ref_conv_dw(const dpt_ref_window *s, const float *x, const float *dy, float *dw,
                     float *db);

/** The first largest value of each window; NaN counts as largest. */
void dpt_ref_maxpool(const dpt_ref_window *s, const float *x, float *y);
/** dx += dy at the places the windows took their values from. */
void dpt_ref_maxpool_dx(const dpt_ref_window *s, const float *x, const float *dy, float *dx);

/** x, y [n][shape]; per channel: weight, bias, mean, var. */
typedef struct dpt_ref_bn {
    int n;
    dpt_shape shape;
    const float *weight, *bias;
    float *mean, *var; /* biased variance */
} dpt_ref_bn;

/** Set mean and var to those of x. */
void dpt_ref_bn_stats(const dpt_ref_bn *s, const float *x);
/** y = (x - mean) / sqrt(var + 1e-5) * weight + bias. */
void dpt_ref_bn_apply(const dpt_ref_bn *s, const float *x, float *y);
/** Gradients where mean and var are functions of x: dx +=, dweight =, dbias =. */
void dpt_ref_bn_back(const dpt_ref_bn *s, const float *x, const float *dy, float *dx,
                     float *dweight, float *dbias);

/** y [n][outputs] = x [n][inputs] * w [outputs][inputs] + b. */
void dpt_ref_linear(int n, int inputs, int outputs, const float *x, const float *w, const float *b,
                    float *y);
/** dx +=, dw =, db =. */
void dpt_ref_linear_back(int n, int inputs, int outputs, const float *x, const float *w,
                         const float *dy, float *dx, float *dw, float *db);

#ifdef __cplusplus
}
#endif
#endif
