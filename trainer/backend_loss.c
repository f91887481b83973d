/* SPDX-License-Identifier: Apache-2.0 */
/* Around the network; see backend_loss.h. */
#include "trainer/backend_loss.h"

#include "dpload.h"

#include <limits.h>
#include <math.h>
#include <string.h>

int dpt_loss_check(const int32_t *labels, int n, int max_n, int classes, dpl_text *why)
{
    if (n < 0 || n > max_n) {
        return dpl_fail(why, DPL_EINVAL, "%d samples in a call; this exec was made for 0 to %d", n,
                        max_n);
    }
    for (int i = 0; labels && i < n; i++) {
        if (labels[i] < 0 || labels[i] >= classes) {
            return dpl_fail(why, DPL_EINVAL,
                            "sample %d of the batch has label %d; the network has classes 0 to %d",
                            i, (int)labels[i], classes - 1);
        }
    }
    return DPL_OK;
}

int dpt_loss_check_step(const dpt_step *s, int max_n, int classes, dpl_text *why)
{
    int err = dpt_loss_check(s->labels, s->n, max_n, classes, why);

    if (!err) err = dpt_loss_check(s->labels2, s->n, max_n, classes, why);
    for (int i = 0; !err && s->labels2 && i < s->n; i++) {
        if (!(s->mix[i] >= 0 && s->mix[i] <= 1)) {
            err = dpl_fail(why, DPL_EINVAL,
                           "sample %d of the batch has label weight %g; expected 0 to 1", i,
                           (double)s->mix[i]);
        }
    }
    return err;
}

/* Position of the label among the logits, largest first, equal ones by index. */
static int rank_of(const float *x, int classes, int label)
{
    int rank = 0;

    if (isnan(x[label])) return INT_MAX;
    for (int j = 0; j < classes; j++) {
        rank += !(x[j] <= x[label]) || (x[j] == x[label] && j < label);
    }
    return rank;
}

/* What one sample should be: weight[k] of class label[k], the larger weight first. */
typedef struct target {
    int label[2];
    double weight[2]; /* they add up to 1 */
} target;

static target target_of(const dpt_step *s, int i)
{
    const double mix = s->labels2 ? (double)s->mix[i] : 1;

    if (mix == 1 || s->labels2[i] == s->labels[i])
        return (target){ { s->labels[i], s->labels[i] }, { 1, 0 } };
    if (mix >= 0.5) return (target){ { s->labels[i], s->labels2[i] }, { mix, 1 - mix } };
    return (target){ { s->labels2[i], s->labels[i] }, { 1 - mix, mix } };
}

static double row(const float *x, int classes, const target *t, double grad_scale, float *grad)
{
    double max = -INFINITY, sum = 0, log_sum, loss;

    for (int j = 0; j < classes; j++) max = x[j] > max ? x[j] : max;
    for (int j = 0; j < classes; j++) sum += exp(x[j] - max);
    log_sum = max + log(sum);
    loss = t->weight[0] * (log_sum - x[t->label[0]]); /* before grad, which may lie over x */
    if (t->weight[1] > 0) loss += t->weight[1] * (log_sum - x[t->label[1]]);
    for (int j = 0; grad && j < classes; j++) {
        const double want =
            (j == t->label[0] ? t->weight[0] : 0) + (j == t->label[1] ? t->weight[1] : 0);
        grad[j] = (float)(grad_scale * (exp(x[j] - log_sum) - want));
    }
    return loss;
}

void dpt_loss(const float *logits, dpt_step *s, int classes, float *grad)
{
    s->sums = (dpt_sums){ .n = s->n };
    for (int i = 0; i < s->n; i++) {
        const size_t at = (size_t)i * (size_t)classes;
        const target t = target_of(s, i);
        const int rank = rank_of(logits + at, classes, t.label[0]);

        s->sums.top1 += rank < 1;
        s->sums.top5 += rank < 5;
        s->sums.loss += row(logits + at, classes, &t, s->grad_scale, grad ? grad + at : NULL);
    }
}

/* Exponent bits all set: infinite or NaN. Blocks of a fixed length, so that compilers vectorise. */
int dpt_loss_all_finite(const float *v, size_t n)
{
    enum { BLOCK = 256 };
    const uint32_t mask = 0x7f800000u;
    uint32_t bits[BLOCK], bad = 0;

    for (size_t at = 0; at < n && !bad; at += BLOCK) {
        const size_t len = n - at < BLOCK ? n - at : BLOCK;

        memset(bits, 0, sizeof bits);
        memcpy(bits, v + at, len * sizeof *v);
        for (int i = 0; i < BLOCK; i++) bad |= (bits[i] & mask) == mask;
    }
    return !bad;
}

void dpt_loss_nothing(const dpt_graph *g, dpt_step *s)
{
    memset(s->grads, 0, g->param_floats * sizeof *s->grads);
    memset(s->batch_stats, 0, g->buffer_floats * sizeof *s->batch_stats);
    s->sums = (dpt_sums){ .n = 0 };
}

void dpt_loss_unbias(float *var, dpt_shape shape, int n)
{
    const double count = (double)n * shape.h * shape.w;
    const double factor = count > 1 ? count / (count - 1) : 1;

    for (int c = 0; c < shape.c; c++) var[c] = (float)(var[c] * factor);
}
