/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that only the kernels have (C references: kernels/convert_math.h, trainer/optim_math.h,
 * trainer/loss_math.h), in plain C. */
#ifndef DPT_TRAINER_CUDA_GPU_MATH_H
#define DPT_TRAINER_CUDA_GPU_MATH_H

#include "kernels/shared.h"

#include <math.h>

/* The source pixels of one output pixel along one axis, and their weights: a triangle as wide as the
 * output's distance, at least 1, as in kernels/resample.h. */
typedef struct dpt_span {
    float centre, slope;
    int lo, hi; /* pixels [lo, hi), inside the source whatever the box is */
} dpt_span;

/** Output i of out_n over [from, from + length) of in_n pixels. */
DPL_SHARED dpt_span dpt_span_of(float from, float length, int out_n, int i, int in_n)
{
    const float scale = length / (float)out_n, reach = fmaxf(scale, 1);
    dpt_span s;

    s.centre = from + ((float)i + 0.5f) * scale;
    s.slope = 1 / reach;
    s.lo = (int)fminf(fmaxf(s.centre - reach + 0.5f, 0), (float)in_n);
    s.hi = (int)fminf(fmaxf(s.centre + reach + 0.5f, 0), (float)in_n);
    return s;
}

/** Not normalised: they add up to something else than 1. */
DPL_SHARED float dpt_span_weight(const dpt_span *s, int x)
{
    return fmaxf(1 - fabsf(((float)x - s->centre + 0.5f) * s->slope), 0);
}

/** A row (m[0] .. m[3]) of the color matrix. */
DPL_SHARED float dpt_color_row(const float *m, float r, float g, float b)
{
    return fminf(fmaxf(m[0] * r + m[1] * g + m[2] * b + m[3], 0), 255);
}

/** What gradients are multiplied by: see dpt_gpu_update. n: of samples, not 0. */
DPL_SHARED float dpt_gradient_factor(double planned, double n, double scale)
{
    return (float)(planned / n / scale);
}

/** Dynamic loss scale: PyTorch's _amp_update_scale_. */
DPL_SHARED void dpt_scale_step(float *scale, int *good, int bad, double growth, double backoff,
                               int interval)
{
    if (bad) {
        *scale = (float)((double)*scale * backoff);
        *good = 0;
    } else if (*good + 1 < interval) {
        *good += 1;
    } else {
        const float grown = (float)((double)*scale * growth);

        if (grown <= 3.402823466e38f) *scale = grown;
        *good = 0;
    }
}

DPL_SHARED float dpt_ema(float average, float v, float decay, float rest)
{
    return decay * average + rest * v;
}

DPL_SHARED float dpt_running(float running, double mean, double keep)
{
    return (float)(keep * (double)running + (1 - keep) * mean);
}

#endif
