/* SPDX-License-Identifier: Apache-2.0 */
/* What one GPU queues for a step, and how its results come back. Nothing here waits for the GPU but
 * collecting and evaluating. */
#include "trainer/cuda/team_cuda.h"

#include "base/alloc.h"
#include "device/cuda/device_cuda.h"
#include "dpload.h"

#include <stdlib.h>

/* --- to the GPU --- */

static cudaError_t copy_in(dpt_cuda_member *m, void *dst, const void *src, size_t bytes)
{
    return cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, m->compute);
}

static int queue_labels(dpt_cuda_member *m, const dpt_team_part *p, dpl_text *why)
{
    const size_t n = (size_t)p->n;
    cudaError_t e = cudaMemsetAsync(m->result, 0, sizeof *m->result, m->compute);

    if (e == cudaSuccess && n) e = copy_in(m, m->labels, p->labels, n * sizeof *m->labels);
    if (e == cudaSuccess && n && p->labels2)
        e = copy_in(m, m->labels2, p->labels2, n * sizeof *m->labels2);
    if (e == cudaSuccess && n && p->mix) e = copy_in(m, m->mix, p->mix, n * sizeof *m->mix);
    return dpt_cuda_check(e, "queueing labels", why);
}

static dpt_gpu_step exec_step(dpt_cuda_member *m, const dpt_team_part *p)
{
    return (dpt_gpu_step){ .pixels = p->pixels,
                           .labels = m->labels,
                           .labels2 = p->labels2 ? m->labels2 : NULL,
                           .mix = p->mix ? m->mix : NULL,
                           .n = p->n,
                           .params = m->params,
                           .buffers = m->buffers,
                           .grads = m->grads,
                           .batch_stats = m->batch_stats,
                           .sums = m->result->sums };
}

/* --- sums over all GPUs --- */

/* Let the talk stream begin behind what compute has queued so far. */
static int hand_over(dpt_cuda_member *m, dpl_text *why)
{
    cudaError_t e = cudaEventRecord(m->written, m->compute);

    if (e == cudaSuccess) e = cudaStreamWaitEvent(m->talk, m->written, 0);
    return dpt_cuda_check(e, "handing over gradients", why);
}

/* Let compute go on behind what the talk stream has queued so far. */
static int take_over(dpt_cuda_member *m, dpl_text *why)
{
    cudaError_t e = cudaEventRecord(m->summed, m->talk);

    if (e == cudaSuccess) e = cudaStreamWaitEvent(m->compute, m->summed, 0);
    return dpt_cuda_check(e, "taking over sums", why);
}

/* What ready() works with. */
typedef struct backward {
    dpt_cuda_member *m;
    dpl_text *why; /* of ready(): the executor has a text of its own */
    int err;
} backward;

static int send_buckets(dpt_cuda_member *m, size_t from, dpl_text *why)
{
    const dpt_cuda_team *t = m->team;
    int err = DPL_OK;

    if (m->sent == t->buckets || t->bucket[m->sent].from < from) return DPL_OK;
    err = hand_over(m, why);
    while (!err && m->sent < t->buckets && t->bucket[m->sent].from >= from) {
        const dpt_bucket b = t->bucket[m->sent++];

        err = dpt_comm_sum_float(m->comm, m->grads + b.from, b.to - b.from, m->talk, why);
    }
    return err;
}

static int gradients_ready(void *arg, size_t from)
{
    backward *b = arg;

    return b->err = send_buckets(b->m, from, b->why);
}

/* Statistics are weighted by the share of the batch; the update puts right what planned is too much. */
static int queue_tail_sums(dpt_cuda_member *m, double share, dpl_text *why)
{
    const size_t stats = m->team->opt.graph->buffer_floats;
    int err = DPL_OK;

    if (stats)
        err = dpt_cuda_check((cudaError_t)dpt_gpu_scale(m->batch_stats, stats, share, m->compute),
                             "weighting batch statistics", why);
    if (err || !m->comm) return err;
    if ((err = hand_over(m, why))) return err;
    if (stats && (err = dpt_comm_sum_float(m->comm, m->batch_stats, stats, m->talk, why)))
        return err;
    if ((err = dpt_comm_sum_double(m->comm, m->result->sums, DPT_CUDA_SUMS, m->talk, why)))
        return err;
    return take_over(m, why);
}

/* --- a training step --- */

static int queue_nothing(dpt_cuda_member *m, dpl_text *why)
{
    const dpt_graph *g = m->team->opt.graph;
    cudaError_t e = cudaMemsetAsync(m->grads, 0, g->param_floats * sizeof(float), m->compute);

    if (e == cudaSuccess && g->buffer_floats)
        e = cudaMemsetAsync(m->batch_stats, 0, g->buffer_floats * sizeof(float), m->compute);
    if (e != cudaSuccess) return dpt_cuda_check(e, "clearing gradients", why);
    return m->comm ? send_buckets(m, 0, why) : DPL_OK;
}

static int queue_gradients(dpt_cuda_member *m, const dpt_cuda_call *c, const dpt_team_part *p,
                           dpl_text *why)
{
    dpt_gpu_step s = exec_step(m, p);
    dpl_text ready_why = { "" };
    backward b = { .m = m, .why = &ready_why };
    int err;

    m->sent = 0;
    if (!p->n) return queue_nothing(m, why);
    s.grad_scale = m->team->scale[c->slot] / c->step->planned;
    if (m->comm) {
        s.ready = gradients_ready;
        s.arg = &b;
    }
    err = dpt_gpu_exec_linked()->train(m->exec, &s, why);
    if (b.err) *why = ready_why;
    return err;
}

/* All but the rule's own numbers. */
static dpt_gpu_update update_of(const dpt_cuda_member *m, const dpt_cuda_call *c)
{
    const dpt_cuda_team *t = m->team;

    return (dpt_gpu_update){ .rule = t->opt.rule,
                             .table = m->segment,
                             .segments = t->segments,
                             .floats = t->opt.graph->param_floats,
                             .params = m->params,
                             .grads = m->grads,
                             .momentum = m->momentum,
                             .second = m->second,
                             .norms = m->norms,
                             .planned = c->step->planned / t->scale[c->slot],
                             .sums = m->result->sums,
                             .skip = &m->result->bad };
}

static int queue_update(dpt_cuda_member *m, const dpt_cuda_call *c, dpl_text *why)
{
    const dpt_update *const rule = &c->step->update;
    dpt_gpu_update u = update_of(m, c);
    int e = dpt_gpu_check_finite(m->grads, u.floats, &m->result->bad, m->compute);

    u.lr = rule->lr;
    u.weight_decay = rule->weight_decay;
    u.beta1 = u.rule == DPT_RULE_ADAMW ? rule->beta1 : rule->momentum;
    u.beta2 = rule->beta2;
    u.eps = rule->eps;
    u.trust = rule->trust;
    u.nesterov = rule->nesterov;
    u.first = rule->first;
    u.step = c->update;
    u.done = m->updates;
    if (!e) e = dpt_gpu_count_update(m->updates, u.sums, u.skip, m->compute);
    if (!e) e = dpt_gpu_update_run(&u, m->compute);
    return dpt_cuda_check((cudaError_t)e, "the update", why);
}

static int queue_running(dpt_cuda_member *m, const dpt_cuda_call *c, dpl_text *why)
{
    const dpt_gpu_running r = { .running = m->buffers,
                                .stats = m->batch_stats,
                                .n = m->team->opt.graph->buffer_floats,
                                .keep = DPT_BN_KEEP,
                                .planned = c->step->planned,
                                .sums = m->result->sums,
                                .skip = &m->result->bad };

    if (!r.n) return DPL_OK;
    return dpt_cuda_check((cudaError_t)dpt_gpu_running_run(&r, m->compute),
                          "updating running statistics", why);
}

static int queue_result(dpt_cuda_member *m, int slot, dpl_text *why)
{
    cudaError_t e = cudaMemcpyAsync(&m->host->result[slot], m->result, sizeof *m->result,
                                    cudaMemcpyDeviceToHost, m->compute);

    if (e == cudaSuccess) e = cudaEventRecord(m->done[slot], m->compute);
    return dpt_cuda_check(e, "queueing the result", why);
}

/* A kernel is loaded when it is launched for the first time, and loading waits until the GPU is
 * idle. In a sum that would be until a peer has come, and what that needs of this context or process
 * has to wait for the loading. So loading is kept apart from sums: the first kernels come with
 * warm_up(), and those of another number of samples when the steps before are over. */
static int keep_apart(dpt_cuda_member *m, int n, dpl_text *why)
{
    int err;

    if (!m->comm || !n || n == m->last_n) return DPL_OK;
    m->last_n = n;
    err = dpt_cuda_check(cudaEventRecord(m->written, m->compute), "the step", why);
    return err ? err : dpt_cuda_wait(m, m->written, "the steps before one of another size", why);
}

static int queue_step(dpt_cuda_member *m, const dpt_cuda_call *c, const dpt_team_part *p,
                      dpl_text *why)
{
    double *const stop = &m->host->stop[c->slot];
    int err;

    *stop = m->index == 0 && c->step->stop;
    if ((err = keep_apart(m, p->n, why)) ||
        (err = dpt_cuda_check(cudaEventRecord(m->begun[c->slot], m->compute), "the step", why)) ||
        (err = queue_labels(m, p, why)) ||
        (err = dpt_cuda_check(copy_in(m, &m->result->sums[DPT_CUDA_STOP], stop, sizeof *stop),
                              "the step", why)) ||
        (err = queue_gradients(m, c, p, why)) ||
        (err = queue_tail_sums(m, (double)p->n / c->step->planned, why)) ||
        (err = queue_update(m, c, why)) || (err = queue_running(m, c, why)) ||
        (err = dpt_cuda_check(cudaEventRecord(m->ended[c->slot], m->compute), "the step", why)))
        return err;
    return queue_result(m, c->slot, why);
}

/* What shows ranges to a profiler, which then knows the kernels that were queued in them. */
static const dpl_trace *profiler(void)
{
#if DPL_CUDA_HAS_TRACE
    return &dpl_cuda_trace;
#else
    return NULL;
#endif
}

int dpt_cuda_order_step(void *arg, int index, dpl_text *why)
{
    const dpt_cuda_call *c = arg;
    dpt_cuda_member *m = &c->team->member[index];
    int err;

    dpl_trace_push(profiler(), "step", c->number);
    err = queue_step(m, c, &c->part[index], why);
    dpl_trace_pop(profiler());
    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

int dpt_cuda_order_collect(void *arg, int index, dpl_text *why)
{
    const dpt_cuda_call *c = arg;
    dpt_cuda_member *m = &c->team->member[index];
    int err = dpt_cuda_wait(m, m->done[c->slot], "a training step", why);
    float ms = 0;

    if (!err)
        err = dpt_cuda_check(cudaEventElapsedTime(&ms, m->begun[c->slot], m->ended[c->slot]),
                             "timing a step", why);
    m->busy_s = ms / 1e3;
    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

/* --- evaluation --- */

static int evaluate(dpt_cuda_member *m, const dpt_team_part *p, dpl_text *why)
{
    const dpt_graph *g = m->team->opt.graph;
    const dpt_gpu_step s = exec_step(m, p);
    int err;

    if ((err = queue_labels(m, p, why))) return err;
    if (p->n && (err = dpt_gpu_exec_linked()->evaluate(m->exec, &s, why))) return err;
    if (m->comm &&
        ((err = hand_over(m, why)) ||
         (err = dpt_comm_sum_double(m->comm, m->result->sums, DPT_CUDA_SUMS, m->talk, why)) ||
         (err = take_over(m, why))))
        return err;
    if ((err = dpt_cuda_check((cudaError_t)dpt_gpu_check_finite(m->params, g->param_floats,
                                                                &m->result->bad, m->compute),
                              "looking at the weights", why)) ||
        (err = queue_result(m, DPT_CUDA_EVAL, why)))
        return err;
    return dpt_cuda_wait(m, m->done[DPT_CUDA_EVAL], "an evaluation", why);
}

int dpt_cuda_order_evaluate(void *arg, int index, dpl_text *why)
{
    const dpt_cuda_call *c = arg;
    dpt_cuda_member *m = &c->team->member[index];
    const int err = evaluate(m, &c->part[index], why);

    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

/* --- before all --- */

/* A step and an evaluation of zeros, without peers: see keep_apart(). What they leave in weights and
 * statistics is overwritten when the GPUs join. */
static int warm_up(dpt_cuda_member *m, const dpt_team_part *p, size_t bytes, dpl_text *why)
{
    const dpt_graph *g = m->team->opt.graph;
    dpt_team_step step = { .update = { .rule = m->team->opt.rule, .momentum = 0.5, .eps = 1 },
                           .planned = p->n };
    const dpt_cuda_call c = { .team = m->team, .step = &step, .update = 1 };
    const struct {
        void *p;
        size_t bytes;
    } zero[] = { { (void *)(uintptr_t)p->pixels, bytes },
                 { m->params, g->param_floats * sizeof(float) },
                 { m->momentum, g->param_floats * sizeof(float) },
                 { m->second, m->second ? g->param_floats * sizeof(float) : 0 },
                 { m->updates, sizeof *m->updates },
                 { m->buffers, g->buffer_floats * sizeof(float) } };
    cudaError_t e = cudaSuccess;
    int err;

    for (size_t i = 0; i < sizeof zero / sizeof *zero && e == cudaSuccess; i++) {
        if (zero[i].bytes) e = cudaMemsetAsync(zero[i].p, 0, zero[i].bytes, m->compute);
    }
    if ((err = dpt_cuda_check(e, "a first step", why)) || (err = queue_step(m, &c, p, why)) ||
        (err = dpt_cuda_wait(m, m->done[c.slot], "a first step", why)))
        return err;
    step.update.momentum = 0; /* which has a kernel of its own */
    if ((err = queue_update(m, &c, why))) return err;
    return evaluate(m, p, why);
}

static int get_pixels(void **out, size_t bytes, dpl_text *why)
{
    const cudaError_t e = cudaMalloc(out, bytes);

    if (e != cudaErrorMemoryAllocation) return dpt_cuda_check(e, "getting memory", why);
    cudaGetLastError();
    dpl_fail(why, DPL_ENOMEM, "out of GPU memory: no %zu MiB for pictures", bytes >> 20);
    return dpt_cuda_no_memory(why, "take a smaller --batch, or more GPUs");
}

int dpt_cuda_order_warm_up(void *arg, int index, dpl_text *why)
{
    enum { END_MS = 10000 };
    dpt_cuda_member *m = &((const dpt_cuda_call *)arg)->team->member[index];
    const dpt_shape in = m->team->opt.graph->tensor[0];
    const size_t values = (size_t)m->max_n * (size_t)in.c * (size_t)in.h * (size_t)in.w;
    const size_t bytes = m->team->opt.bytes ? values : values * sizeof(float);
    int32_t *const labels = dpl_calloc((size_t)m->max_n, sizeof *labels);
    void *pixels = NULL;
    int err = labels ? get_pixels(&pixels, bytes, why) : dpl_fail(why, DPL_ENOMEM, "out of memory");

    if (!err) {
        const dpt_team_part p = { .pixels = pixels, .labels = labels, .n = m->max_n };

        err = warm_up(m, &p, bytes, why);
    }
    m->last_n = m->max_n;
    if (!err || dpt_cuda_drained(m, END_MS)) cudaFree(pixels); /* it would wait for ever */
    free(labels);
    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}
