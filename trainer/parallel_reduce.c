/* SPDX-License-Identifier: Apache-2.0 */
/* Sum and update of one slice; see parallel_reduce.h. */
#include "trainer/parallel_reduce.h"

enum {
    LINE = 16,   /* floats of a cache line */
    BLOCK = 4096 /* floats that stay in the first-level cache between sum and update */
};

static const double keep =
    0.9; /* share of the old running statistics: 1 - PyTorch's momentum 0.1 */

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

/* floats [from, to) all belong to one parameter, or to several with one rule of weight decay */
static void update(const dpt_reduce *r, const dpt_sgd *sgd, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += BLOCK) {
        const size_t n = smaller(BLOCK, to - at);
        float *sum = r->part[0].grads + at;

        for (int i = 1; i < r->parts; i++) add(sum, r->part[i].grads + at, n);
        dpt_sgd_update(sgd, r->params + at, r->momentum ? r->momentum + at : NULL, sum, n);
    }
}

static void update_params(const dpt_reduce *r, size_t from, size_t to)
{
    for (int i = 0; i < r->graph->params; i++) {
        const dpt_param *p = &r->graph->param[i];
        const size_t begin = p->offset < from ? from : p->offset;
        const size_t end = smaller(p->offset + p->count, to);
        dpt_sgd sgd = r->sgd;

        if (begin >= end) continue;
        if (!p->decay) sgd.weight_decay = 0;
        update(r, &sgd, begin, end);
    }
}

static void update_buffers(const dpt_reduce *r, size_t from, size_t to)
{
    for (size_t k = from; k < to; k++) {
        double mean = 0;

        for (int i = 0; i < r->parts; i++) {
            mean += r->part[i].share * (double)r->part[i].batch_stats[k];
        }
        r->buffers[k] = (float)(keep * (double)r->buffers[k] + (1 - keep) * mean);
    }
}

void dpt_reduce_slice(const dpt_reduce *r, int k, int n)
{
    const size_t params = r->graph->param_floats, buffers = r->graph->buffer_floats;

    update_params(r, slice_begin(params, k, n), slice_begin(params, k + 1, n));
    update_buffers(r, slice_begin(buffers, k, n), slice_begin(buffers, k + 1, n));
}
