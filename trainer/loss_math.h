/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of dpt_loss() (backend_loss.h), for one sample or one logit. */
#ifndef DPT_TRAINER_LOSS_MATH_H
#define DPT_TRAINER_LOSS_MATH_H

#include "kernels/shared.h"

#include <stdint.h>

/* What one sample should be: weight[k] of class label[k], the larger weight first. */
typedef struct dpt_target {
    int label[2];
    double weight[2]; /* they add up to 1 */
} dpt_target;

/** mix: the weight of label; the rest of 1 is that of label2. */
DPL_SHARED dpt_target dpt_target_of(int label, int label2, double mix)
{
    const int hard = mix == 1 || label2 == label, swap = !hard && !(mix >= 0.5);
    dpt_target t;

    t.label[0] = swap ? label2 : label;
    t.label[1] = hard || swap ? label : label2;
    t.weight[0] = hard ? 1 : swap ? 1 - mix : mix;
    t.weight[1] = hard ? 0 : swap ? mix : 1 - mix;
    return t;
}

/** 1 when logit x of class j ranks before logit y of class `label`: it is larger, or no number, or
 *  equal and of a lower index. */
DPL_SHARED int dpt_ranks_before(float x, int j, float y, int label)
{
    return !(x <= y) || (x == y && j < label);
}

/** The loss of a sample; first, second: logits of the target's classes. */
DPL_SHARED double dpt_target_loss(const dpt_target *t, double log_sum, float first, float second)
{
    double loss = t->weight[0] * (log_sum - (double)first);

    if (t->weight[1] > 0) loss += t->weight[1] * (log_sum - (double)second);
    return loss;
}

/** The gradient at class j of probability p. */
DPL_SHARED float dpt_target_gradient(const dpt_target *t, int j, double p, double grad_scale)
{
    const double want =
        (j == t->label[0] ? t->weight[0] : 0) + (j == t->label[1] ? t->weight[1] : 0);

    return (float)(grad_scale * (p - want));
}

/** 1 when v is infinite or no number, from its bits: all of the exponent set. */
DPL_SHARED int dpt_bits_not_finite(uint32_t bits)
{
    return (bits & 0x7f800000u) == 0x7f800000u;
}

#endif
