/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend: one thread, plain C, every tensor kept. It is the specification the other
 * backends are tested against, and trains where oneDNN is not there, slowly. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/backend.h"
#include "trainer/backend_loss.h"
#include "trainer/backend_ref_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dpt_exec {
    const dpt_graph *g;
    int max_n;
    const int *cancel;     /* the caller's */
    float **value, **grad; /* [tensors][max_n][shape]; value[0] and grad[0] are NULL: the input is
                              read where it lies and gets no gradient */
    float *stats;          /* [buffer_floats] mean and biased variance of the step under way */
    double *acc;           /* one plane of the largest tensor */
};

static size_t tensor_floats(dpt_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

static void destroy(dpt_exec **e)
{
    if (!*e) return;
    for (int i = 0; i < (*e)->g->tensors; i++) {
        if ((*e)->value) free((*e)->value[i]);
        if ((*e)->grad) free((*e)->grad[i]);
    }
    free((*e)->value);
    free((*e)->grad);
    free((*e)->stats);
    free((*e)->acc);
    free(*e);
    *e = NULL;
}

static int create(dpt_exec **out, const dpt_graph *g, const dpt_exec_options *opt, dpl_text *why)
{
    size_t plane = 0;
    int err = DPL_ENOMEM;
    dpt_exec *e;

    *out = NULL;
    if (opt->max_n < 1 || opt->threads < 1) {
        return dpl_fail(why, DPL_EINVAL, "ref: max_n %d and threads %d must be at least 1",
                        opt->max_n, opt->threads);
    }
    if (!(e = dpl_calloc(1, sizeof *e))) goto done;
    e->g = g;
    e->max_n = opt->max_n;
    e->cancel = opt->cancel;
    e->value = dpl_calloc((size_t)g->tensors, sizeof *e->value);
    e->grad = dpl_calloc((size_t)g->tensors, sizeof *e->grad);
    e->stats = dpl_calloc(g->buffer_floats, sizeof *e->stats);
    if (!e->value || !e->grad || !e->stats) goto done;
    for (int i = 0; i < g->tensors; i++) {
        const dpt_shape s = g->tensor[i];
        const size_t size = (size_t)s.h * (size_t)s.w;

        if (size > plane) plane = size;
        if (i == 0) continue;
        e->value[i] = dpl_calloc((size_t)e->max_n, tensor_floats(s) * sizeof(float));
        e->grad[i] = dpl_calloc((size_t)e->max_n, tensor_floats(s) * sizeof(float));
        if (!e->value[i] || !e->grad[i]) goto done;
    }
    if (!(e->acc = dpl_calloc(plane, sizeof *e->acc))) goto done;
    *out = e;
    e = NULL;
    err = DPL_OK;
done:
    if (e) destroy(&e);
    return err ? dpl_fail(why, err, "ref: out of memory for %d samples of %s", opt->max_n, g->arch)
               : DPL_OK;
}

/* One node of one call, everything looked up. */
typedef struct layer {
    dpt_node node;
    dpt_ref_window win; /* also n and the shapes */
    dpt_ref_bn bn;
    const float *x, *x2, *w, *b; /* inputs and parameters */
    float *y;
    float *dx, *dx2, *dy, *dw, *db; /* dx is NULL for the input picture */
    size_t out_floats;              /* over all samples */
} layer;

static const float *value_of(const dpt_exec *e, const dpt_step *s, int tensor)
{
    return tensor == 0 ? s->pixels : e->value[tensor];
}

static layer layer_of(const dpt_exec *e, const dpt_step *s, int i, float *stats)
{
    const dpt_graph *g = e->g;
    const dpt_node *n = &g->node[i];
    layer l = { .node = *n };

    l.win = (dpt_ref_window){ .n = s->n,
                              .k = n->k,
                              .stride = n->stride,
                              .pad = n->pad,
                              .in = g->tensor[n->in],
                              .out = g->tensor[n->out] };
    l.x = value_of(e, s, n->in);
    l.x2 = n->in2 >= 0 ? value_of(e, s, n->in2) : NULL;
    l.y = e->value[n->out];
    l.dx = e->grad[n->in];
    l.dx2 = n->in2 >= 0 ? e->grad[n->in2] : NULL;
    l.dy = e->grad[n->out];
    l.out_floats = (size_t)s->n * tensor_floats(l.win.out);
    if (n->param >= 0) {
        const size_t w = g->param[n->param].offset;
        const size_t b = n->bias ? g->param[n->param + 1].offset : 0;

        l.w = s->params + w;
        l.b = n->bias ? s->params + b : NULL;
        l.dw = s->grads ? s->grads + w : NULL;
        l.db = n->bias && s->grads ? s->grads + b : NULL;
    }
    if (n->op == DPT_BN) {
        l.bn = (dpt_ref_bn){ .n = s->n, .shape = l.win.in, .weight = l.w, .bias = l.b };
        l.bn.mean = stats + g->buffer[n->buffer].offset;
        l.bn.var = stats + g->buffer[n->buffer + 1].offset;
    }
    return l;
}

static void avgpool(const dpt_ref_window *s, const float *x, float *y)
{
    const int size = s->in.h * s->in.w;

    for (int p = 0; p < s->n * s->in.c; p++) {
        double sum = 0;
        for (int i = 0; i < size; i++) sum += *x++;
        *y++ = (float)(sum / size);
    }
}

static void avgpool_dx(const dpt_ref_window *s, const float *dy, float *dx)
{
    const int size = s->in.h * s->in.w;

    for (int p = 0; p < s->n * s->in.c; p++, dy++) {
        for (int i = 0; i < size; i++) *dx++ += *dy / (float)size;
    }
}

static void forward(dpt_exec *e, const layer *l, int train)
{
    switch (l->node.op) {
    case DPT_CONV: dpt_ref_conv(&l->win, l->x, l->w, l->b, l->y, e->acc); break;
    case DPT_BN:
        if (train) dpt_ref_bn_stats(&l->bn, l->x);
        dpt_ref_bn_apply(&l->bn, l->x, l->y);
        break;
    case DPT_RELU: /* written so that NaN stays NaN */
        for (size_t i = 0; i < l->out_floats; i++) l->y[i] = l->x[i] < 0 ? 0 : l->x[i];
        break;
    case DPT_ADD:
        for (size_t i = 0; i < l->out_floats; i++) l->y[i] = l->x[i] + l->x2[i];
        break;
    case DPT_MAXPOOL: dpt_ref_maxpool(&l->win, l->x, l->y); break;
    case DPT_AVGPOOL: avgpool(&l->win, l->x, l->y); break;
    case DPT_LINEAR:
        dpt_ref_linear(l->win.n, (int)tensor_floats(l->win.in), l->node.channels, l->x, l->w, l->b,
                       l->y);
        break;
    }
}

static void backward(dpt_exec *e, const layer *l)
{
    switch (l->node.op) {
    case DPT_CONV:
        dpt_ref_conv_dw(&l->win, l->x, l->dy, l->dw, l->db);
        if (l->dx) dpt_ref_conv_dx(&l->win, l->dy, l->w, l->dx, e->acc);
        break;
    case DPT_BN: dpt_ref_bn_back(&l->bn, l->x, l->dy, l->dx, l->dw, l->db); break;
    case DPT_RELU:
        for (size_t i = 0; i < l->out_floats; i++) l->dx[i] += l->y[i] > 0 ? l->dy[i] : 0;
        break;
    case DPT_ADD:
        for (size_t i = 0; i < l->out_floats; i++) l->dx[i] += l->dy[i];
        for (size_t i = 0; i < l->out_floats; i++) l->dx2[i] += l->dy[i];
        break;
    case DPT_MAXPOOL: dpt_ref_maxpool_dx(&l->win, l->x, l->dy, l->dx); break;
    case DPT_AVGPOOL: avgpool_dx(&l->win, l->dy, l->dx); break;
    case DPT_LINEAR:
        dpt_ref_linear_back(l->win.n, (int)tensor_floats(l->win.in), l->node.channels, l->x, l->w,
                            l->dy, l->dx, l->dw, l->db);
        break;
    }
}

static void unbiased_stats(const dpt_exec *e, const dpt_step *s)
{
    const dpt_graph *g = e->g;

    memcpy(s->batch_stats, e->stats, g->buffer_floats * sizeof *e->stats);
    for (int i = 0; i < g->nodes; i++) {
        const dpt_node *n = &g->node[i];
        if (n->op != DPT_BN) continue;
        dpt_loss_unbias(s->batch_stats + g->buffer[n->buffer + 1].offset, g->tensor[n->in], s->n);
    }
}

static int canceled(dpl_text *why)
{
    return dpl_fail(why, DPL_ECANCELED, "ref: canceled");
}

static int train(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    const dpt_graph *g = e->g;
    const int logits = g->node[g->nodes - 1].out;
    const int err = dpt_loss_check_step(s, e->max_n, g->classes, why);

    if (err) return err;
    if (s->n == 0) {
        dpt_loss_nothing(g, s);
        return DPL_OK;
    }
    for (int i = 1; i < g->tensors; i++) {
        memset(e->grad[i], 0, (size_t)s->n * tensor_floats(g->tensor[i]) * sizeof(float));
    }
    for (int i = 0; i < g->nodes; i++) {
        const layer l = layer_of(e, s, i, e->stats);
        if (dpt_canceled(e->cancel)) return canceled(why);
        forward(e, &l, 1);
    }
    dpt_loss(e->value[logits], s, g->classes, e->grad[logits]);
    for (int i = g->nodes; i-- > 0;) {
        const layer l = layer_of(e, s, i, e->stats);
        if (dpt_canceled(e->cancel)) return canceled(why);
        backward(e, &l);
    }
    unbiased_stats(e, s);
    if (!dpt_loss_all_finite(s->grads, g->param_floats)) s->sums.loss = NAN;
    return DPL_OK;
}

static int infer(dpt_exec *e, dpt_step *s, const float **logits, dpl_text *why)
{
    /* Running statistics are read through the same struct that training writes to. */
    memcpy(e->stats, s->buffers, e->g->buffer_floats * sizeof *e->stats);
    for (int i = 0; i < e->g->nodes; i++) {
        const layer l = layer_of(e, s, i, e->stats);
        if (dpt_canceled(e->cancel)) return canceled(why);
        forward(e, &l, 0);
    }
    *logits = e->value[e->g->node[e->g->nodes - 1].out];
    return DPL_OK;
}

static int evaluate(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    const float *logits;
    int err = dpt_loss_check_step(s, e->max_n, e->g->classes, why);

    if (err || (err = infer(e, s, &logits, why))) return err;
    dpt_loss(logits, s, e->g->classes, NULL);
    if (!dpt_loss_all_finite(s->params, e->g->param_floats)) s->sums.loss = NAN;
    return DPL_OK;
}

static int logits_of(dpt_exec *e, dpt_step *s, float *out, dpl_text *why)
{
    const float *logits;
    int err = dpt_loss_check(NULL, s->n, e->max_n, e->g->classes, why);

    if (err || (err = infer(e, s, &logits, why))) return err;
    memcpy(out, logits, (size_t)s->n * (size_t)e->g->classes * sizeof *out);
    return DPL_OK;
}

static const char *describe(dpt_exec *e, int i, int *fallback)
{
    (void)e;
    if (i != 0) return NULL;
    *fallback = 1;
    return "every layer runs on the reference implementation: plain C, one thread, slow";
}

const dpt_backend dpt_backend_ref = { .name = "ref",
                                      .create = create,
                                      .train = train,
                                      .evaluate = evaluate,
                                      .logits = logits_of,
                                      .describe = describe,
                                      .destroy = destroy };
