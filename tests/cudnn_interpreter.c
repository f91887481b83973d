/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the host; see cudnn_interpreter.h. Tensors are NHWC, weights KRSC, all of floats. */
#include "tests/cudnn_interpreter.h"

#include "tests/testutil.h"
#include "trainer/backend_loss.h"
#include "trainer/cuda/gpu_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct machine {
    const dpt_cu_prog *p;
    dpt_step *s;
    char *block[DPT_CU_PLACES]; /* the caller's arrays too */
    float **inside;             /* [tensors] of virtual ones, while their operation runs */
} machine;

static size_t count(const dpt_cu_tensor *t)
{
    return (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
}

/* Masks and places are floats here too, in an arena made that much larger: see blocks(). */
static float *data(machine *m, int tensor)
{
    const dpt_cu_tensor *t = &m->p->tensor[tensor];

    if (t->at == DPT_CU_VIRTUAL || t->at == DPT_CU_SCALAR) return m->inside[tensor];
    return (float *)(void *)(m->block[t->at] + (t->at == DPT_CU_ARENA ? 4 : 1) * t->offset);
}

static size_t nhwc(const dpt_cu_tensor *t, int n, int c, int h, int w)
{
    return (((size_t)n * (size_t)t->h + (size_t)h) * (size_t)t->w + (size_t)w) * (size_t)t->c +
           (size_t)c;
}

/* The products of one output with the inputs of all channels, which lie side by side. */
static void products(dpt_cu_kind kind, int channels, const float *x, size_t a, const float *w,
                     size_t b, double dy, double *y, double *sum)
{
    for (int c = 0; c < channels && kind == DPT_CU_CONV; c++) {
        *y += (double)x[a + (size_t)c] * (double)w[b + (size_t)c];
    }
    for (int c = 0; c < channels && kind == DPT_CU_DGRAD; c++) {
        sum[a + (size_t)c] += dy * (double)w[b + (size_t)c];
    }
    for (int c = 0; c < channels && kind == DPT_CU_WGRAD; c++) {
        sum[b + (size_t)c] += dy * (double)x[a + (size_t)c];
    }
}

/* The three directions are one sum over the same products: kind says which side is written. */
static void convolve(machine *m, const dpt_cu_prim *q)
{
    const int out = q->out[0];
    const int xi = q->kind == DPT_CU_DGRAD ? out : q->in[0];
    const int wi = q->kind == DPT_CU_WGRAD ? out : q->in[1];
    const int yi = q->kind == DPT_CU_CONV ? out : q->kind == DPT_CU_DGRAD ? q->in[0] : q->in[1];
    const dpt_cu_tensor *x = &m->p->tensor[xi], *w = &m->p->tensor[wi], *y = &m->p->tensor[yi];
    float *xd = data(m, xi), *wd = data(m, wi), *yd = data(m, yi);
    double *sum = calloc(count(&m->p->tensor[out]), sizeof *sum);

    assert_non_null(sum);
    for (int n = 0; n < y->n; n++)
        for (int oh = 0; oh < y->h; oh++)
            for (int ow = 0; ow < y->w; ow++)
                for (int r = 0; r < w->h; r++)
                    for (int t = 0; t < w->w; t++) {
                        const int ih = oh * q->stride - q->pad + r,
                                  iw = ow * q->stride - q->pad + t;

                        if (ih < 0 || ih >= x->h || iw < 0 || iw >= x->w) continue;
                        for (int k = 0; k < y->c; k++) {
                            const size_t d = nhwc(y, n, k, oh, ow);

                            products(q->kind, x->c, xd, nhwc(x, n, 0, ih, iw), wd,
                                     nhwc(w, k, 0, r, t), (double)yd[d],
                                     q->kind == DPT_CU_CONV ? &sum[d] : NULL, sum);
                        }
                    }
    for (size_t i = 0; i < count(&m->p->tensor[out]); i++) data(m, out)[i] = (float)sum[i];
    free(sum);
}

/* The second operand may be one number, or one per channel. */
static float other(machine *m, const dpt_cu_prim *q, size_t i)
{
    const dpt_cu_tensor *b = &m->p->tensor[q->in[1]], *y = &m->p->tensor[q->out[0]];
    const size_t n = count(b);

    return data(m, q->in[1])[n == count(y) ? i : n == 1 ? 0 : i % (size_t)y->c];
}

static void pointwise(machine *m, const dpt_cu_prim *q)
{
    const float *a = data(m, q->in[0]);
    float *y = data(m, q->out[0]);

    for (size_t i = 0; i < count(&m->p->tensor[q->out[0]]); i++) {
        switch (q->kind) {
        case DPT_CU_ADD: y[i] = a[i] + other(m, q, i); break;
        case DPT_CU_SUB: y[i] = a[i] - other(m, q, i); break;
        case DPT_CU_MUL: y[i] = a[i] * other(m, q, i); break;
        case DPT_CU_RSQRT: y[i] = 1 / sqrtf(a[i]); break;
        case DPT_CU_RELU: y[i] = a[i] < 0 ? 0 : a[i]; break;
        case DPT_CU_POSITIVE: y[i] = a[i] > other(m, q, i); break;
        default: y[i] = other(m, q, i) > 0 ? a[i] : 0; /* RELU_BACK */
        }
    }
}

static void norm(machine *m, const dpt_cu_prim *q)
{
    const dpt_cu_tensor *t = &m->p->tensor[q->in[0]];
    const size_t all = count(t), c = (size_t)t->c;
    const float *x = data(m, q->in[0]), *scale = data(m, q->in[1]), *bias = data(m, q->in[2]);

    for (size_t k = 0; k < c; k++) {
        double mean = 0, var = 0, inverse;

        for (size_t i = k; i < all; i += c) mean += x[i];
        mean /= (double)(all / c);
        for (size_t i = k; i < all; i += c) var += (x[i] - mean) * (x[i] - mean);
        inverse = 1 / sqrt(var / (double)(all / c) + (double)*data(m, q->in[3]));
        for (size_t i = k; i < all; i += c) {
            data(m, q->out[0])[i] = (float)((x[i] - mean) * inverse * scale[k] + bias[k]);
        }
        data(m, q->out[1])[k] = (float)mean;
        data(m, q->out[2])[k] = (float)inverse;
    }
}

static void norm_back(machine *m, const dpt_cu_prim *q)
{
    const dpt_cu_tensor *t = &m->p->tensor[q->in[1]];
    const size_t all = count(t), c = (size_t)t->c;
    const float *dy = data(m, q->in[0]), *x = data(m, q->in[1]), *scale = data(m, q->in[4]);

    for (size_t k = 0; k < c; k++) {
        const double mean = data(m, q->in[2])[k], inverse = data(m, q->in[3])[k];
        const double n = (double)(all / c);
        double sum = 0, dot = 0;

        for (size_t i = k; i < all; i += c) {
            sum += dy[i];
            dot += dy[i] * (x[i] - mean) * inverse;
        }
        for (size_t i = k; i < all; i += c) {
            const double unit = (x[i] - mean) * inverse;

            data(m, q->out[0])[i] =
                (float)(scale[k] * inverse * (dy[i] - sum / n - unit * dot / n));
        }
        data(m, q->out[1])[k] = (float)dot;
        data(m, q->out[2])[k] = (float)sum;
    }
}

/* Where output (n, c, h, w) finds its maximum, as an index into x. */
static size_t largest(const dpt_cu_prim *q, const dpt_cu_tensor *x, const float *xd, int n, int c,
                      int h, int w)
{
    size_t best = SIZE_MAX;

    for (int i = 0; i < q->k * q->k; i++) {
        const int ih = h * q->stride - q->pad + i / q->k, iw = w * q->stride - q->pad + i % q->k;
        size_t at;

        if (ih < 0 || ih >= x->h || iw < 0 || iw >= x->w) continue;
        at = nhwc(x, n, c, ih, iw);
        if (best == SIZE_MAX || xd[at] > xd[best]) best = at;
    }
    return best;
}

static void maxpool(machine *m, const dpt_cu_prim *q)
{
    const dpt_cu_tensor *x = &m->p->tensor[q->in[0]], *y = &m->p->tensor[q->out[0]];
    const float *xd = data(m, q->in[0]);

    for (int n = 0; n < y->n; n++)
        for (int h = 0; h < y->h; h++)
            for (int w = 0; w < y->w; w++)
                for (int c = 0; c < y->c; c++) {
                    const size_t at = largest(q, x, xd, n, c, h, w), o = nhwc(y, n, c, h, w);

                    data(m, q->out[0])[o] = xd[at];
                    if (q->out[1] >= 0) data(m, q->out[1])[o] = (float)at; /* < 2^24 here */
                }
}

static void maxpool_back(machine *m, const dpt_cu_prim *q)
{
    const dpt_cu_tensor *y = &m->p->tensor[q->in[0]];
    float *dx = data(m, q->out[0]);

    memset(dx, 0, count(&m->p->tensor[q->out[0]]) * sizeof *dx);
    for (size_t i = 0; i < count(y); i++) {
        dx[(size_t)data(m, q->in[1])[i]] += data(m, q->in[0])[i];
    }
}

static void average(machine *m, const dpt_cu_prim *q)
{
    const int back = q->kind == DPT_CU_AVGPOOL_BACK;
    const int xi = back ? q->out[0] : q->in[0], yi = back ? q->in[0] : q->out[0];
    const dpt_cu_tensor *x = &m->p->tensor[xi];
    const int size = x->h * x->w;

    for (int n = 0; n < x->n; n++)
        for (int c = 0; c < x->c; c++) {
            const size_t o = (size_t)n * (size_t)x->c + (size_t)c;
            double sum = 0;

            for (int i = 0; i < size; i++) {
                float *v = &data(m, xi)[nhwc(x, n, c, i / x->w, i % x->w)];

                sum += *v;
                if (back) *v = data(m, yi)[o] / (float)size;
            }
            if (!back) data(m, yi)[o] = (float)(sum / size);
        }
}

static void primitive(machine *m, const dpt_cu_prim *q)
{
    switch (q->kind) {
    case DPT_CU_CONV:
    case DPT_CU_DGRAD:
    case DPT_CU_WGRAD: convolve(m, q); break;
    case DPT_CU_BN: norm(m, q); break;
    case DPT_CU_BN_BACK: norm_back(m, q); break;
    case DPT_CU_MAXPOOL: maxpool(m, q); break;
    case DPT_CU_MAXPOOL_BACK: maxpool_back(m, q); break;
    case DPT_CU_AVGPOOL:
    case DPT_CU_AVGPOOL_BACK: average(m, q); break;
    default: pointwise(m, q);
    }
}

/* Memory for what is only inside this operation; NaN, as is everything that nobody has written. */
static void open_inside(machine *m, const dpt_cu_op *o)
{
    for (int i = 0; i < o->prims; i++) {
        for (int k = 0; k < DPT_CU_IN + DPT_CU_OUT; k++) {
            const int t = k < DPT_CU_IN ? o->prim[i].in[k] : o->prim[i].out[k - DPT_CU_IN];
            const dpt_cu_tensor *d = t >= 0 ? &m->p->tensor[t] : NULL;

            if (!d || d->at < DPT_CU_PLACES || m->inside[t]) continue;
            m->inside[t] = malloc(count(d) * sizeof(float));
            assert_non_null(m->inside[t]);
            for (size_t j = 0; j < count(d); j++) {
                m->inside[t][j] = d->at == DPT_CU_SCALAR ? d->value : NAN;
            }
        }
    }
}

static void close_inside(machine *m)
{
    for (size_t i = 0; i < m->p->tensors; i++) {
        free(m->inside[i]);
        m->inside[i] = NULL;
    }
}

/* What has had its last use is gone: whoever reads it later reads NaN. */
static void bury(machine *m, size_t op)
{
    for (size_t i = 0; i < m->p->tensors; i++) {
        const dpt_cu_tensor *t = &m->p->tensor[i];

        if (t->at != DPT_CU_ARENA || t->last != (int)op || (int)i == m->p->logits) continue;
        for (size_t k = 0; k < count(t); k++) data(m, (int)i)[k] = NAN;
    }
}

static void loss(machine *m, int grad)
{
    const dpt_cu_tensor *t = &m->p->tensor[m->p->logits];
    const int classes = m->p->g->classes;
    const size_t n = (size_t)t->n * (size_t)classes;
    float *dense = malloc(2 * n * sizeof *dense);

    assert_non_null(dense);
    for (size_t i = 0; i < n; i++) {
        dense[i] = data(m, m->p->logits)[i / (size_t)classes * (size_t)t->c + i % (size_t)classes];
    }
    dpt_loss(dense, m->s, classes, dense + n);
    for (size_t i = 0; grad >= 0 && i < count(t); i++) {
        const size_t row = i / (size_t)t->c, column = i % (size_t)t->c;

        data(m, grad)[i] = column < (size_t)classes ? dense[n + row * (size_t)classes + column] : 0;
    }
    free(dense);
}

static void columns(machine *m, const dpt_cu_op *o)
{
    const dpt_cu_tensor *t = &m->p->tensor[o->in[0]];

    for (int c = 0; c < o->count; c++) {
        double sum = 0;

        for (size_t i = (size_t)c; i < count(t); i += (size_t)t->c) sum += data(m, o->in[0])[i];
        data(m, o->out[0])[c] = (float)sum;
    }
}

static void statistics(machine *m, const dpt_cu_op *o)
{
    for (int c = 0; c < m->p->tensor[o->in[0]].c; c++) {
        data(m, o->out[0])[c] = data(m, o->in[0])[c];
        data(m, o->out[1])[c] = dpt_batch_variance(data(m, o->in[1])[c], o->count, 1e-5);
    }
}

/* Between the flat array and one typed tensor, whose padding is zero. */
static void convert(machine *m, const dpt_cu_weight *w, int tensor, float *flat, int to_flat)
{
    float *typed = data(m, tensor), *at = flat + m->p->g->param[w->param].offset;

    if (!to_flat) memset(typed, 0, m->p->tensor[tensor].bytes);
    for (int k = 0; k < w->k; k++)
        for (int c = 0; c < w->c; c++)
            for (int i = 0; i < w->r * w->s; i++, at++) {
                const size_t size = (size_t)(w->r * w->s);
                float *t = &typed[((size_t)k * size + (size_t)i) * (size_t)w->c_padded + (size_t)c];

                if (to_flat) {
                    *at = *t;
                } else {
                    *t = *at;
                }
            }
}

static void announce(machine *m, const dpt_cu_op *o, test_ready *ready)
{
    for (int i = o->weight; i < o->weight + o->weights; i++) {
        const dpt_cu_weight *w = &m->p->weight[i];

        if (w->dtensor >= 0) convert(m, w, w->dtensor, m->s->grads, 1);
    }
    for (size_t i = o->from; i < m->p->g->param_floats; i++) {
        assert_false(isnan(m->s->grads[i])); /* it is final from here on */
    }
    assert_true(ready->n < (int)(sizeof ready->from / sizeof *ready->from));
    ready->from[ready->n++] = o->from;
}

static void pictures(machine *m)
{
    const dpt_cu_tensor *t = &m->p->tensor[m->p->input];
    const size_t plane = (size_t)t->h * (size_t)t->w;

    for (size_t i = 0; i < count(t); i++) {
        const size_t c = i % (size_t)t->c, at = i / (size_t)t->c;

        data(m, m->p->input)[i] =
            c < 3 ? m->s->pixels[(at / plane * 3 + c) * plane + at % plane] : 0;
    }
}

static void blocks(machine *m)
{
    /* one element of the arena is four bytes for each of the GPU's, so that a mask's floats fit */
    const size_t size[] = { 4 * m->p->bytes[DPT_CU_ARENA], m->p->bytes[DPT_CU_WEIGHTS],
                            m->p->bytes[DPT_CU_DWEIGHTS] };

    for (int i = 0; i < 3; i++) {
        m->block[i] = malloc(size[i] + 1);
        assert_non_null(m->block[i]);
        for (size_t k = 0; k < size[i] / sizeof(float); k++) {
            ((float *)(void *)m->block[i])[k] = NAN;
        }
    }
    m->block[DPT_CU_PARAMS] = (char *)(uintptr_t)m->s->params;
    m->block[DPT_CU_BUFFERS] = (char *)(uintptr_t)m->s->buffers;
    m->block[DPT_CU_GRADS] = (char *)m->s->grads;
    m->block[DPT_CU_STATS] = (char *)m->s->batch_stats;
}

void test_interpret(const dpt_cu_prog *p, dpt_step *s, test_ready *ready)
{
    machine m = { .p = p, .s = s };

    assert_int_equal(p->type, DPT_GPU_FP32);
    m.inside = calloc(p->tensors, sizeof *m.inside);
    assert_non_null(m.inside);
    blocks(&m);
    pictures(&m);
    for (size_t i = 0; i < p->weights; i++) {
        convert(&m, &p->weight[i], p->weight[i].tensor, (float *)(uintptr_t)s->params, 0);
    }
    for (size_t i = 0; i < p->ops; i++) {
        const dpt_cu_op *o = &p->op[i];

        open_inside(&m, o);
        for (int k = 0; k < o->prims; k++) primitive(&m, &o->prim[k]);
        if (o->what == DPT_CU_LOSS) loss(&m, o->out[0]);
        if (o->what == DPT_CU_COLUMNS) columns(&m, o);
        if (o->what == DPT_CU_STATS_OF) statistics(&m, o);
        if (o->what == DPT_CU_READY) announce(&m, o, ready);
        close_inside(&m);
        bury(&m, i);
    }
    if (!p->train) loss(&m, -1);
    free(m.inside);
    for (int i = 0; i < 3; i++) free(m.block[i]);
}
