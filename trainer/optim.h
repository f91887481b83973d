/* SPDX-License-Identifier: Apache-2.0 */
/* The update rule and the learning rate, as pure functions of their arguments. */
#ifndef DPT_TRAINER_OPTIM_H
#define DPT_TRAINER_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** PyTorch's SGD: g += wd * p; v = first ? g : momentum * v + g; p -= lr * (nesterov ? g + momentum *
 *  v : v). In place over n floats; v is not read on the first step. */
typedef struct dpt_sgd {
    double lr, momentum, weight_decay;
    int nesterov;
    int first; /* 1 = momentum buffers are empty */
} dpt_sgd;
void dpt_sgd_update(const dpt_sgd *s, float *p, float *v, const float *g, size_t n);

typedef enum dpt_schedule_kind {
    DPT_SCHED_STEP = 0,
    DPT_SCHED_COSINE = 1,
    DPT_SCHED_CONST = 2
} dpt_schedule_kind;

typedef struct dpt_schedule {
    dpt_schedule_kind kind;
    double lr;               /* base */
    double epochs;           /* whole run, warm-up included */
    double step_size, gamma; /* STEP: lr * gamma ^ floor(epoch / step_size), as StepLR */
    double warmup;           /* epochs of linear warm-up from warmup_start * lr, per step */
    double warmup_start;     /* share of lr [0.01] */
    double min_lr;           /* COSINE: end value */
} dpt_schedule;

/** Learning rate of the step that starts at `epoch` (whole epochs done) and `fraction` of the next
 *  one. STEP changes at whole epochs; COSINE is per step: min + (lr - min) / 2 * (1 + cos(pi * t)),
 *  t = (epoch + fraction - warmup) / (epochs - warmup). */
double dpt_schedule_lr(const dpt_schedule *s, int64_t epoch, double fraction);

#ifdef __cplusplus
}
#endif
#endif
