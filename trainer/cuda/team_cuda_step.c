/* SPDX-License-Identifier: Apache-2.0 */
/* What one GPU queues for a step, and how its results come back. Nothing here waits for the GPU but
 * collecting and evaluating. */
#include "trainer/cuda/team_cuda.h"

#include "device/cuda/device_cuda.h"
#include "dpload.h"

static const double keep = 0.9; /* of running statistics: 1 - PyTorch's momentum 0.1 */

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

static int queue_gradients(dpt_cuda_member *m, const dpt_cuda_call *c, dpl_text *why)
{
    const dpt_team_part *p = &c->part[m->index];
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

static int queue_update(dpt_cuda_member *m, const dpt_cuda_call *c, dpl_text *why)
{
    const dpt_cuda_team *t = m->team;
    const dpt_graph *g = t->opt.graph;
    const dpt_sgd *sgd = &c->step->sgd;
    const dpt_gpu_update u = { .rule = DPT_GPU_SGD,
                               .table = m->segment,
                               .segments = t->segments,
                               .floats = g->param_floats,
                               .params = m->params,
                               .grads = m->grads,
                               .momentum = m->momentum,
                               .lr = sgd->lr,
                               .weight_decay = sgd->weight_decay,
                               .beta1 = sgd->momentum,
                               .nesterov = sgd->nesterov,
                               .first = sgd->first,
                               .planned = c->step->planned / t->scale[c->slot],
                               .sums = m->result->sums,
                               .skip = &m->result->bad };
    const dpt_gpu_running r = { .running = m->buffers,
                                .stats = m->batch_stats,
                                .n = g->buffer_floats,
                                .keep = keep,
                                .planned = c->step->planned,
                                .sums = m->result->sums,
                                .skip = &m->result->bad };
    int e = dpt_gpu_check_finite(m->grads, g->param_floats, &m->result->bad, m->compute);

    if (!e) e = dpt_gpu_update_run(&u, m->compute);
    if (!e && g->buffer_floats) e = dpt_gpu_running_run(&r, m->compute);
    return dpt_cuda_check((cudaError_t)e, "the update", why);
}

static int queue_result(dpt_cuda_member *m, int slot, dpl_text *why)
{
    cudaError_t e = cudaMemcpyAsync(&m->host->result[slot], m->result, sizeof *m->result,
                                    cudaMemcpyDeviceToHost, m->compute);

    if (e == cudaSuccess) e = cudaEventRecord(m->done[slot], m->compute);
    return dpt_cuda_check(e, "queueing the result", why);
}

static int queue_step(dpt_cuda_member *m, const dpt_cuda_call *c, dpl_text *why)
{
    const dpt_team_part *p = &c->part[m->index];
    double *const stop = &m->host->stop[c->slot];
    int err;

    *stop = m->index == 0 && c->step->stop;
    if ((err = dpt_cuda_check(cudaEventRecord(m->begun[c->slot], m->compute), "the step", why)) ||
        (err = queue_labels(m, p, why)) ||
        (err = dpt_cuda_check(copy_in(m, &m->result->sums[DPT_CUDA_STOP], stop, sizeof *stop),
                              "the step", why)) ||
        (err = queue_gradients(m, c, why)) ||
        (err = queue_tail_sums(m, (double)p->n / c->step->planned, why)) ||
        (err = queue_update(m, c, why)) ||
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
    err = queue_step(m, c, why);
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
