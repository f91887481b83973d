/* SPDX-License-Identifier: Apache-2.0 */
/* Sum and update of one slice; see parallel_reduce.h. */
#include "trainer/parallel_reduce.h"

enum {
    LINE = 16,   /* floats of a cache line */
    BLOCK = 4096 /* floats that stay in the first-level cache between sum and update */
};

size_t dpt_reduce_padded(size_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* First float of slice k of n of an array of that many floats. */
static size_t slice_begin(size_t floats, int k, int n)
{
    const size_t lines = dpt_reduce_padded(floats) / LINE;

    return smaller(floats, lines / (size_t)n * (size_t)k * LINE +
                               smaller(lines % (size_t)n, (size_t)k) * LINE);
}

static void add(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

static void add_parts(const dpt_reduce *r, size_t at, size_t n)
{
    for (int i = 1; i < r->parts; i++) add(r->part[0].grads + at, r->part[i].grads + at, n);
}

/* --- norms: each block has two sums of squares, of weights and of gradients --- */

static size_t blocks_of(const dpt_param *p)
{
    return (p->count + BLOCK - 1) / BLOCK;
}

size_t dpt_reduce_norm_count(const dpt_graph *g)
{
    size_t blocks = 0;

    for (int i = 0; i < g->params; i++) blocks += blocks_of(&g->param[i]);
    return 2 * blocks;
}

static double sum_of_squares(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

void dpt_reduce_norms(const dpt_reduce *r, int k, int n)
{
    const size_t blocks = dpt_reduce_norm_count(r->graph) / 2;
    const size_t from = blocks * (size_t)k / (size_t)n, to = blocks * (size_t)(k + 1) / (size_t)n;
    size_t first = 0; /* block of the tensor */

    for (int i = 0; i < r->graph->params; first += blocks_of(&r->graph->param[i++])) {
        const dpt_param *p = &r->graph->param[i];

        for (size_t b = first < from ? from : first; b < smaller(first + blocks_of(p), to); b++) {
            const size_t at = p->offset + (b - first) * BLOCK;
            const size_t count = smaller(BLOCK, p->offset + p->count - at);

            add_parts(r, at, count);
            r->norms[2 * b] = sum_of_squares(r->params + at, count);
            r->norms[2 * b + 1] = sum_of_squares(r->part[0].grads + at, count);
        }
    }
}

/* norms: of the tensor's first block */
static float rate_of(const dpt_update *u, const dpt_param *p, const double *norms)
{
    double weights = 0, grads = 0;

    for (size_t b = 0; b < blocks_of(p); b++) {
        weights += norms[2 * b];
        grads += norms[2 * b + 1];
    }
    return dpt_lars_rate(u, weights, grads);
}

/* --- update --- */

/* floats [from, to) all belong to one parameter; rate: LARS */
static void update(const dpt_reduce *r, const dpt_update *u, float rate, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += BLOCK) {
        const size_t n = smaller(BLOCK, to - at);
        float *p = r->params + at, *m = r->momentum ? r->momentum + at : NULL;
        const float *sum = r->part[0].grads + at;

        switch (u->rule) {
        case DPT_RULE_SGD:
            add_parts(r, at, n);
            dpt_sgd_update(u, p, m, sum, n);
            break;
        case DPT_RULE_ADAMW:
            add_parts(r, at, n);
            dpt_adamw_update(u, r->step, p, m, r->second + at, sum, n);
            break;
        case DPT_RULE_LARS: dpt_lars_update(u, rate, p, m, sum, n); break; /* summed before */
        }
    }
}

static void update_params(const dpt_reduce *r, size_t from, size_t to)
{
    size_t block = 0; /* the first of the parameter */

    for (int i = 0; i < r->graph->params; block += blocks_of(&r->graph->param[i++])) {
        const dpt_param *p = &r->graph->param[i];
        const size_t begin = p->offset < from ? from : p->offset;
        const size_t end = smaller(p->offset + p->count, to);
        const int decays = dpt_rule_decays(r->update.rule, p->decay, p->dims);
        dpt_update u = r->update;
        float rate = 0;

        if (begin >= end) continue;
        if (!decays) u.weight_decay = 0;
        if (decays && u.rule == DPT_RULE_LARS) rate = rate_of(&u, p, r->norms + 2 * block);
        update(r, &u, rate, begin, end);
    }
}

static void update_buffers(const dpt_reduce *r, size_t from, size_t to)
{
    for (size_t k = from; k < to; k++) {
        double mean = 0;

        for (int i = 0; i < r->parts; i++) {
            mean += r->part[i].share * (double)r->part[i].batch_stats[k];
        }
        r->buffers[k] = (float)(DPT_BN_KEEP * (double)r->buffers[k] + (1 - DPT_BN_KEEP) * mean);
    }
}

void dpt_reduce_slice(const dpt_reduce *r, int k, int n)
{
    const size_t params = r->graph->param_floats, buffers = r->graph->buffer_floats;

    update_params(r, slice_begin(params, k, n), slice_begin(params, k + 1, n));
    update_buffers(r, slice_begin(buffers, k, n), slice_begin(buffers, k + 1, n));
}
