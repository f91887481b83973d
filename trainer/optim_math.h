/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules for one parameter, in PyTorch's order of operations. Each product and each sum is
 * rounded to fp32 on its own (no fused multiply-add), so that every machine gets the same bits. */
#ifndef DPT_TRAINER_OPTIM_MATH_H
#define DPT_TRAINER_OPTIM_MATH_H

#include "kernels/shared.h"

#include <math.h>

/* SGD's numbers, ready to be used many times. */
typedef struct dpt_sgd_terms {
    float decay, rate, momentum;
    int nesterov, first, use_decay;
} dpt_sgd_terms;

DPL_SHARED dpt_sgd_terms dpt_sgd_terms_of(double lr, double momentum, double weight_decay,
                                          int nesterov, int first)
{
    dpt_sgd_terms t;

    t.decay = (float)weight_decay;
    t.rate = (float)-lr;
    t.momentum = (float)momentum;
    t.nesterov = nesterov;
    t.first = first;
    t.use_decay = weight_decay != 0;
    return t;
}

/** Without momentum; the new parameter. */
DPL_SHARED float dpt_sgd_plain(const dpt_sgd_terms *t, float p, float g)
{
    const float d = t->use_decay ? g + t->decay * p : g;

    return p + t->rate * d;
}

/** With it; *v is not read on the first step. */
DPL_SHARED float dpt_sgd_moved(const dpt_sgd_terms *t, float p, float *v, float g)
{
    const float d = t->use_decay ? g + t->decay * p : g;
    const float m = t->first ? d : t->momentum * *v + d;

    *v = m;
    return p + t->rate * (t->nesterov ? d + t->momentum * m : m);
}

/* torch.optim.AdamW: decay first, then a step along the bias-corrected moments. */
typedef struct dpt_adamw_terms {
    float keep;                        /* 1 - lr * weight decay */
    float beta1, rest1, beta2, rest2;  /* rest = 1 - beta */
    float rate, root_correction2, eps; /* rate = -lr / (1 - beta1 ^ step) */
} dpt_adamw_terms;

DPL_SHARED dpt_adamw_terms dpt_adamw_terms_of(double lr, double weight_decay, double beta1,
                                              double beta2, double eps, double step)
{
    dpt_adamw_terms t;

    t.keep = (float)(1 - lr * weight_decay);
    t.beta1 = (float)beta1;
    t.rest1 = (float)(1 - beta1);
    t.beta2 = (float)beta2;
    t.rest2 = (float)(1 - beta2);
    t.rate = (float)(-(lr / (1 - pow(beta1, step))));
    t.root_correction2 = (float)sqrt(1 - pow(beta2, step));
    t.eps = (float)eps;
    return t;
}

/** The new parameter; first and second moment are updated. Decayed: weight decay applies. */
DPL_SHARED float dpt_adamw(const dpt_adamw_terms *t, int decayed, float p, float *m, float *v,
                           float g)
{
    const float kept = decayed ? p * t->keep : p;
    const float first = *m * t->beta1 + t->rest1 * g;
    const float second = *v * t->beta2 + t->rest2 * g * g;
    const float denominator = sqrtf(second) / t->root_correction2 + t->eps;

    *m = first;
    *v = second;
    return kept + t->rate * first / denominator;
}

/** LARS: what a segment's gradient is multiplied by, from the norms of weights and gradients. 0 =
 *  leave it as it is, without weight decay (a norm is zero, as in apex). */
DPL_SHARED float dpt_lars_ratio(double trust, double weight_decay, double eps, double weights,
                                double grads)
{
    if (!(weights > 0 && grads > 0)) return 0;
    return (float)(trust * weights / (grads + weight_decay * weights + eps));
}

/** The gradient that SGD (without weight decay of its own) then uses. */
DPL_SHARED float dpt_lars_gradient(float ratio, float decay, float p, float g)
{
    return ratio != 0 ? (g + decay * p) * ratio : g;
}

#endif
