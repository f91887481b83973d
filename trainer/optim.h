/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules and the learning rate, as pure functions of their arguments. */
#ifndef DPT_TRAINER_OPTIM_H
#define DPT_TRAINER_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpt_rule { DPT_RULE_SGD = 0, DPT_RULE_ADAMW = 1, DPT_RULE_LARS = 2 } dpt_rule;

/* One optimizer step. */
typedef struct dpt_update {
    dpt_rule rule;
    double lr, weight_decay;
    double momentum;          /* SGD, LARS */
    int nesterov;             /* the same */
    int first;                /* the same: 1 = momentum buffers are empty, they are not read */
    double beta1, beta2, eps; /* ADAMW; LARS has eps too */
    double trust;             /* LARS */
} dpt_update;

/** "SGD", "AdamW", "LARS" */
const char *dpt_rule_name(dpt_rule rule);

/** 1 when weight decay applies to a parameter whose own flag is `decay`, and with LARS the adapted
 *  rate too. LARS leaves out what has one dimension (biases, weights of norms), as timm does: its
 *  Lars adapts where there is weight decay, and its groups of parameters exempt these from that. */
int dpt_rule_decays(dpt_rule rule, int decay, int dims);

/* In place over n floats. p: parameters, g: gradients. */

/** PyTorch's SGD: g += wd * p; v = first ? g : momentum * v + g; p -= lr * (nesterov ? g + momentum *
 *  v : v). v is not read on the first step, nor without momentum: NULL is fine then. */
void dpt_sgd_update(const dpt_update *u, float *p, float *v, const float *g, size_t n);

/** PyTorch's AdamW (torch.optim.AdamW): p *= 1 - lr * wd; m = beta1 * m + (1 - beta1) * g;
 *  v = beta2 * v + (1 - beta2) * g * g; p -= lr / (1 - beta1^step) * m / (sqrt(v) /
 *  sqrt(1 - beta2^step) + eps). m, v: zero before the first step. step: 1, 2, … */
void dpt_adamw_update(const dpt_update *u, int64_t step, float *p, float *m, float *v,
                      const float *g, size_t n);

/** LARS: what multiplies the gradient of a tensor: trust * |p| / (|g| + wd * |p| + eps) from the sums
 *  of squares over the whole tensor; 0 where one of them is 0: leave it as it is. */
float dpt_lars_rate(const dpt_update *u, double weights_squared, double grads_squared);
/** g = rate ? (g + wd * p) * rate : g; then SGD with momentum, without weight decay. */
void dpt_lars_update(const dpt_update *u, float rate, float *p, float *v, const float *g, size_t n);

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
