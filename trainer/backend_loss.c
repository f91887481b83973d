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

static double row(const float *x, int classes, int label, double grad_scale, float *grad)
{
    double max = -INFINITY, sum = 0, log_sum;

    for (int j = 0; j < classes; j++) max = x[j] > max ? x[j] : max;
    for (int j = 0; j < classes; j++) sum += exp(x[j] - max);
    log_sum = max + log(sum);
    const double loss = log_sum - x[label]; /* before grad, which may lie over x */
    for (int j = 0; grad && j < classes; j++) {
        grad[j] = (float)(grad_scale * (exp(x[j] - log_sum) - (j == label)));
    }
    return loss;
}

void dpt_loss(const float *logits, const int32_t *labels, int n, int classes, double grad_scale,
              float *grad, dpt_sums *sums)
{
    *sums = (dpt_sums){ .n = n };
    for (int i = 0; i < n; i++) {
        const float *x = logits + (size_t)i * (size_t)classes;
        const int rank = rank_of(x, classes, labels[i]);

        sums->top1 += rank < 1;
        sums->top5 += rank < 5;
        sums->loss += row(x, classes, labels[i], grad_scale,
                          grad ? grad + (size_t)i * (size_t)classes : NULL);
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
