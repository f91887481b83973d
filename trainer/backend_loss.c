/* SPDX-License-Identifier: Apache-2.0 */
/* Around the network; see backend_loss.h. */
#include "trainer/backend_loss.h"

#include "dpload.h"
#include "trainer/loss_math.h"

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
    for (int j = 0; j < classes; j++) rank += dpt_ranks_before(x[j], j, x[label], label);
    return rank;
}

static dpt_target target_of(const dpt_step *s, int i)
{
    if (!s->labels2) return dpt_target_of(s->labels[i], s->labels[i], 1);
    return dpt_target_of(s->labels[i], s->labels2[i], (double)s->mix[i]);
}

static double row(const float *x, int classes, const dpt_target *t, double grad_scale, float *grad)
{
    double max = -INFINITY, sum = 0, log_sum, loss;

    for (int j = 0; j < classes; j++) max = x[j] > max ? x[j] : max;
    for (int j = 0; j < classes; j++) sum += exp(x[j] - max);
    log_sum = max + log(sum);
    loss = dpt_target_loss(t, log_sum, x[t->label[0]], x[t->label[1]]); /* grad may lie over x */
    for (int j = 0; grad && j < classes; j++)
        grad[j] = dpt_target_gradient(t, j, exp(x[j] - log_sum), grad_scale);
    return loss;
}

void dpt_loss(const float *logits, dpt_step *s, int classes, float *grad)
{
    s->sums = (dpt_sums){ .n = s->n };
    for (int i = 0; i < s->n; i++) {
        const size_t at = (size_t)i * (size_t)classes;
        const dpt_target t = target_of(s, i);
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
    uint32_t bits[BLOCK], bad = 0;

    for (size_t at = 0; at < n && !bad; at += BLOCK) {
        const size_t len = n - at < BLOCK ? n - at : BLOCK;

        memset(bits, 0, sizeof bits);
        memcpy(bits, v + at, len * sizeof *v);
        for (int i = 0; i < BLOCK; i++) bad |= (uint32_t)dpt_bits_not_finite(bits[i]);
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
