/* SPDX-License-Identifier: Apache-2.0 */
/* See linear_backend.h. */
#include "tests/fake/linear_backend.h"

#include "dpload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dpt_exec {
    pthread_t owner;
    const int *cancel;
    char line[64];
};

void fake_linear_graph(dpt_graph *g, int classes)
{
    static dpt_param param[] = {
        { .name = (char *)"w",
          .dims = 1,
          .shape = { FAKE_PIXELS },
          .count = FAKE_PIXELS,
          .decay = 1 },
        { .name = (char *)"b", .dims = 1, .shape = { 1 }, .offset = FAKE_PIXELS, .count = 1 },
    };

    *g = (dpt_graph){ .arch = (char *)"linear",
                      .classes = classes,
                      .param = param,
                      .params = 2,
                      .param_floats = FAKE_PARAMS,
                      .buffer_floats = FAKE_BUFFERS };
}

static int create(dpt_exec **out, const dpt_graph *g, const dpt_exec_options *opt, dpl_text *why)
{
    *out = NULL;
    if (g->classes == FAKE_CLASSES_NOT_CREATED) return dpl_fail(why, DPL_ENOTSUP, "not this one");
    if (!(*out = calloc(1, sizeof **out))) return DPL_ENOMEM;
    (*out)->owner = pthread_self();
    (*out)->cancel = opt->cancel;
    snprintf((*out)->line, sizeof(*out)->line, "up to %d by %d", opt->max_n, opt->threads);
    return DPL_OK;
}

static int check(const dpt_exec *e, const dpt_step *s, dpl_text *why)
{
    if (!pthread_equal(e->owner, pthread_self())) return dpl_fail(why, DPL_EINTERNAL, "thread");
    if (dpt_canceled(e->cancel)) return dpl_fail(why, DPL_ECANCELED, "all");
    for (int k = 0; k < s->n; k++) {
        if (s->labels[k] == FAKE_LABEL_CANCELS) return dpl_fail(why, DPL_ECANCELED, "this one");
        if (s->labels[k] == FAKE_LABEL_FAILS) return dpl_fail(why, DPL_EDEVICE, "sample %d", k);
    }
    return DPL_OK;
}

static double residual(const dpt_step *s, int k)
{
    double y = s->params[FAKE_PIXELS] - s->labels[k];

    for (int i = 0; i < FAKE_PIXELS; i++) {
        y += (double)s->params[i] * (double)s->pixels[(size_t)k * FAKE_PIXELS + (size_t)i];
    }
    return y;
}

static int evaluate(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    const int err = check(e, s, why);

    s->sums = (dpt_sums){ .n = s->n };
    for (int k = 0; !err && k < s->n; k++) {
        const double d = residual(s, k);
        s->sums.loss += d * d / 2;
        s->sums.top1 += d * d < 1;
        s->sums.top5 += d * d < 25;
    }
    return err;
}

static int train(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    const int err = evaluate(e, s, why);
    double mean = 0, var = 0;

    memset(s->grads, 0, FAKE_PARAMS * sizeof *s->grads);
    for (int k = 0; !err && k < s->n; k++) {
        const float *x = s->pixels + (size_t)k * FAKE_PIXELS;
        const double d = residual(s, k) * s->grad_scale;
        for (int i = 0; i < FAKE_PIXELS; i++) s->grads[i] += (float)(d * (double)x[i]);
        s->grads[FAKE_PIXELS] += (float)d;
        mean += (double)x[0] / s->n;
    }
    for (int k = 0; !err && k < s->n; k++) {
        const double d = (double)s->pixels[(size_t)k * FAKE_PIXELS] - mean;
        var += d * d / (s->n > 1 ? s->n - 1 : 1);
    }
    s->batch_stats[0] = (float)mean;
    s->batch_stats[1] = (float)var;
    return err;
}

static int logits(dpt_exec *e, dpt_step *s, float *out, dpl_text *why)
{
    const int err = check(e, s, why);

    for (int k = 0; !err && k < s->n; k++) out[k] = (float)(residual(s, k) + s->labels[k]);
    return err;
}

static const char *describe(dpt_exec *e, int i, int *fallback)
{
    *fallback = i == 1;
    return i == 0 ? e->line : i == 1 ? "slow" : NULL;
}

static void destroy(dpt_exec **e)
{
    if (!pthread_equal((*e)->owner, pthread_self())) abort();
    free(*e);
    *e = NULL;
}

const dpt_backend fake_linear_backend = { "linear", create,   train,  evaluate,
                                          logits,   describe, destroy };
