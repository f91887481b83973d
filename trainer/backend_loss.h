/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends that compute on the host share around the network: argument checks, softmax
 * cross-entropy with the top-1 / top-5 counts, and the form of the batch statistics. */
#ifndef DPT_TRAINER_BACKEND_LOSS_H
#define DPT_TRAINER_BACKEND_LOSS_H

#include "base/text.h"
#include "trainer/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Checks what every call to a backend has in common: 0 <= n <= max_n and, unless labels is NULL,
 *  every label within 0 .. classes - 1. @return DPL_OK or DPL_EINVAL; why names the sample */
int dpt_loss_check(const int32_t *labels, int n, int max_n, int classes, dpl_text *why);

/** The same for all labels of a step, soft ones included, and their weights. */
int dpt_loss_check_step(const dpt_step *s, int max_n, int classes, dpl_text *why);

/** s->sums over s->n rows of logits [n][classes], and their gradient grad_scale * (softmax - labels)
 *  into grad [n][classes] when it is not NULL (grad may be logits). Labels have been checked; a soft
 *  one is mix of labels and 1 - mix of labels2. A NaN among a row's logits makes its loss and gradient
 *  NaN, and counts as larger than every number. */
void dpt_loss(const float *logits, dpt_step *s, int classes, float *grad);

/** 1 when no value is infinite or NaN. */
int dpt_loss_all_finite(const float *v, size_t n);

/** What training on no sample gives: gradients, batch statistics and sums of zero. */
void dpt_loss_nothing(const dpt_graph *g, dpt_step *s);

/** Turn biased variances var [shape.c], taken over n samples of shape, into unbiased ones. */
void dpt_loss_unbias(float *var, dpt_shape shape, int n);

#ifdef __cplusplus
}
#endif
#endif
