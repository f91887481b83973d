/* SPDX-License-Identifier: Apache-2.0 */
/* The executor of the tests: stands in for cuDNN's, and lets the reference backend compute on the fake
 * GPU's memory, in the order of its stream. Gradients come group by group, as layers would bring
 * them. It is instrumented by ThreadSanitizer, unlike the fake: a missing wait of the team is a race of
 * what runs here. Numbers are fp32 whatever the type is, but that fp16 overflows. */
#include "tests/fake/cuda/ref_exec.h"

#include "dpload.h"
#include "kernels/convert_math.h"
#include "tests/fake/cuda/fake_cudart.h"
#include "trainer/backend.h"
#include "trainer/cuda/gpu_exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 4 };

struct dpt_gpu_exec {
    const dpt_graph *graph;
    cudaStream_t stream, other; /* other: for late-read */
    cudaEvent_t reached;
    dpt_gpu_type type;
    dpt_gpu_pixels pixels;
    float scale[3], bias[3];
    dpt_exec *exec;         /* used by the stream's thread alone */
    float *picture, *grads; /* device memory: [max_n][3][h][w], [param_floats] */
    size_t bytes;
};

/* What is queued: the network, or a copy of a group's gradients to where they belong. */
typedef struct piece {
    dpt_gpu_exec *e;
    dpt_gpu_step s;
    int train;
    size_t from, to;
} piece;

/* --- on the stream's thread --- */

static void normalise(const dpt_gpu_exec *e, const uint8_t *in, int n)
{
    const dpt_shape in_shape = e->graph->tensor[0];
    const size_t size = (size_t)in_shape.h * (size_t)in_shape.w;

    for (size_t i = 0; i < (size_t)n; i++) {
        for (size_t c = 0; c < 3; c++) {
            const uint8_t *from = in + 3 * i * size + c;
            float *to = e->picture + (3 * i + c) * size;
            for (size_t k = 0; k < size; k++)
                to[k] = dpl_normal((float)from[3 * k], e->scale[c], e->bias[c]);
        }
    }
}

static void run_network(void *arg)
{
    const piece *p = arg;
    dpt_gpu_exec *e = p->e;
    float none; /* a network without batch norm has no statistics */
    dpt_step s = { .pixels = p->s.pixels,
                   .labels = p->s.labels,
                   .labels2 = p->s.labels2,
                   .mix = p->s.mix,
                   .n = p->s.n,
                   .params = p->s.params,
                   .buffers = p->s.buffers ? p->s.buffers : &none,
                   .grad_scale = p->s.grad_scale,
                   .grads = e->grads,
                   .batch_stats = p->s.batch_stats ? p->s.batch_stats : &none };
    dpl_text why = { "" };

    if (e->pixels == DPT_GPU_PIXELS_U8_NHWC) {
        normalise(e, p->s.pixels, s.n);
        s.pixels = e->picture;
    }
    if (p->train ? dpt_backend_ref.train(e->exec, &s, &why)
                 : dpt_backend_ref.evaluate(e->exec, &s, &why))
        fake_die("the network of the tests: %s", why.s);
    p->s.sums[DPT_GPU_LOSS] = s.sums.loss;
    p->s.sums[DPT_GPU_TOP1] = (double)s.sums.top1;
    p->s.sums[DPT_GPU_TOP5] = (double)s.sums.top5;
    p->s.sums[DPT_GPU_N] = (double)s.sums.n;
}

static void run_group(void *arg)
{
    const piece *p = arg;

    for (size_t i = p->from; i < p->to; i++) {
        const float g = p->e->grads[i];
        p->s.grads[i] = p->e->type == DPT_GPU_FP16 && fabsf(g) > 65504 ? copysignf(INFINITY, g) : g;
    }
}

static void read_weights(void *arg)
{
    const piece *p = arg;
    float sum = 0;

    for (size_t i = 0; i < p->e->graph->param_floats; i++) sum += p->s.params[i];
    if (sum == 12345.678f) abort(); /* the reads must not be optimised away */
}

/* --- queueing --- */

static int status(cudaError_t e, const char *what, dpl_text *why)
{
    if (e == cudaSuccess) return DPL_OK;
    cudaGetLastError();
    return dpl_fail(why, DPL_EDEVICE, "%s: %s (CUDA error %d)", what, cudaGetErrorString(e),
                    (int)e);
}

static int queue(cudaStream_t stream, void (*run)(void *), piece what, const char *name,
                 dpl_text *why)
{
    piece *p = malloc(sizeof *p);

    if (!p) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    *p = what;
    return status(fake_kernel(stream, run, free, p), name, why);
}

static void uses(const dpt_gpu_exec *e, const void *p, size_t bytes, int write, const char *what)
{
    if (p && bytes) fake_stream_uses(e->stream, p, bytes, write, what);
}

static int queue_network(dpt_gpu_exec *e, const dpt_gpu_step *s, int train, dpl_text *why)
{
    const dpt_shape in = e->graph->tensor[0];
    const size_t n = (size_t)s->n, values = n * 3 * (size_t)in.h * (size_t)in.w;
    const size_t stats = e->graph->buffer_floats * sizeof(float);
    const int err = queue(e->stream, run_network, (piece){ .e = e, .s = *s, .train = train },
                          "the network", why);

    if (err) return err;
    uses(e, s->pixels, e->pixels == DPT_GPU_PIXELS_U8_NHWC ? values : values * sizeof(float), 0,
         "pixels");
    uses(e, s->labels, n * sizeof *s->labels, 0, "labels");
    uses(e, s->labels2, n * sizeof *s->labels2, 0, "second labels");
    uses(e, s->mix, n * sizeof *s->mix, 0, "mix");
    uses(e, s->params, e->graph->param_floats * sizeof(float), 0, "weights");
    uses(e, train ? s->batch_stats : s->buffers, stats, train, "statistics");
    uses(e, s->sums, DPT_GPU_SUMS * sizeof *s->sums, 1, "sums");
    return DPL_OK;
}

static int queue_group(dpt_gpu_exec *e, const dpt_gpu_step *s, size_t from, size_t to,
                       dpl_text *why)
{
    const int err = queue(e->stream, run_group, (piece){ .e = e, .s = *s, .from = from, .to = to },
                          "gradients", why);

    if (!err) uses(e, s->grads + from, (to - from) * sizeof(float), 1, "gradients");
    return err;
}

/* A bug: nobody waits for this before the weights change. */
static int queue_late_read(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    cudaError_t err = cudaEventRecord(e->reached, e->stream);

    if (err == cudaSuccess) err = cudaStreamWaitEvent(e->other, e->reached, 0);
    if (err != cudaSuccess) return status(err, "late read", why);
    return queue(e->other, read_weights, (piece){ .e = e, .s = *s }, "late read", why);
}

static int train(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    const dpt_graph *g = e->graph;
    const int early = ref_exec_planted("early-ready");
    size_t to = g->param_floats;
    int err;

    if (e->other && (err = queue_late_read(e, s, why))) return err;
    if ((err = queue_network(e, s, 1, why))) return err;
    for (int k = GROUPS - 1; k >= 0; k--) {
        const size_t from = g->param[g->params * k / GROUPS].offset;

        if (early && s->ready && (err = s->ready(s->arg, from))) return err;
        if ((err = queue_group(e, s, from, to, why))) return err;
        if (!early && s->ready && (err = s->ready(s->arg, from))) return err;
        to = from;
    }
    return DPL_OK;
}

static int evaluate(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    return queue_network(e, s, 0, why);
}

/* --- from creation to the end --- */

static void destroy(dpt_gpu_exec **e)
{
    dpt_gpu_exec *x = *e;

    if (!x) return;
    if (x->other) cudaStreamDestroy(x->other);
    if (x->reached) cudaEventDestroy(x->reached);
    if (x->exec) dpt_backend_ref.destroy(&x->exec);
    cudaFree(x->picture);
    cudaFree(x->grads);
    free(x);
    *e = NULL;
}

static int get_memory(dpt_gpu_exec *e, int max_n, dpl_text *why)
{
    const dpt_shape in = e->graph->tensor[0];
    const size_t picture = (size_t)max_n * 3 * (size_t)in.h * (size_t)in.w * sizeof(float);
    const size_t grads = e->graph->param_floats * sizeof(float);
    cudaError_t err = cudaMalloc((void **)&e->picture, picture);

    if (err == cudaSuccess) err = cudaMalloc((void **)&e->grads, grads);
    e->bytes = picture + grads;
    if (err == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return dpl_fail(why, DPL_ENOMEM, "out of GPU memory for %d pictures", max_n);
    }
    return status(err, "cudaMalloc", why);
}

static int create(dpt_gpu_exec **out, const dpt_gpu_exec_options *opt, dpl_text *why)
{
    const dpt_exec_options host = { .max_n = opt->max_n, .threads = 1 };
    dpt_gpu_exec *e = calloc(1, sizeof *e);
    int err;

    *out = NULL;
    if (!e) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    e->graph = opt->graph;
    e->stream = opt->stream;
    e->type = opt->type;
    e->pixels = opt->pixels;
    for (int c = 0; c < 3; c++) {
        e->scale[c] = dpl_normal_scale((double)opt->std[c]);
        e->bias[c] = dpl_normal_bias((double)opt->mean[c], (double)opt->std[c]);
    }
    err = dpt_canceled(opt->cancel) ? dpl_fail(why, DPL_ECANCELED, "canceled") : DPL_OK;
    if (!err) err = get_memory(e, opt->max_n, why);
    if (!err) err = dpt_backend_ref.create(&e->exec, opt->graph, &host, why);
    if (!err && ref_exec_planted("late-read")) {
        err = status(cudaStreamCreateWithFlags(&e->other, cudaStreamNonBlocking), "stream", why);
        if (!err)
            err =
                status(cudaEventCreateWithFlags(&e->reached, cudaEventDisableTiming), "event", why);
    }
    if (err)
        destroy(&e);
    else
        *out = e;
    return err;
}

static const char *describe(dpt_gpu_exec *e, int i, int *fallback)
{
    (void)e, (void)fallback;
    return i ? NULL : "the network is computed by the host: these are tests";
}

static size_t memory(const dpt_gpu_exec *e)
{
    return e->bytes;
}

const dpt_gpu_exec_ops *dpt_gpu_exec_linked(void)
{
    static const dpt_gpu_exec_ops ops = { .name = "ref",
                                          .create = create,
                                          .train = train,
                                          .evaluate = evaluate,
                                          .describe = describe,
                                          .memory = memory,
                                          .destroy = destroy };

    return &ops;
}
