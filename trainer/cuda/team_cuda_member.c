/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU's share of a team: its streams, memory and executor, made and given back in its thread. */
#include "base/thread.h"
#include "dpload.h"
#include "trainer/cuda/team_cuda.h"

#include <stdio.h>
#include <string.h>

static const size_t workspace_cap = (size_t)256 << 20;

/* --- the GPU --- */

static int open_gpu(dpt_cuda_member *m, dpl_text *why)
{
    int major = 0, minor = 0;
    cudaError_t e = cudaSetDevice(m->gpu); /* the thread's, for good */

    if (e == cudaSuccess) e = cudaFree(NULL); /* older runtimes start at the first real call */
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, m->gpu);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, m->gpu);
    if (e != cudaSuccess) return dpt_cuda_check(e, "the GPU does not start", why);
    m->opened = 1;
    m->capability = 10 * major + minor;
    return DPL_OK;
}

int dpt_cuda_order_open(void *arg, int index, dpl_text *why)
{
    dpt_cuda_member *m = &((dpt_cuda_call *)arg)->team->member[index];
    const int err = open_gpu(m, why);

    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

/* --- streams and events --- */

static int make_streams(dpt_cuda_member *m, dpl_text *why)
{
    int least, greatest; /* priority */
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest);

    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&m->compute, cudaStreamNonBlocking, least);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&m->talk, cudaStreamNonBlocking, greatest);
    return dpt_cuda_check(e, "making streams", why);
}

static int make_events(dpt_cuda_member *m, dpl_text *why)
{
    const unsigned plain = cudaEventDisableTiming | cudaEventBlockingSync;
    cudaError_t e = cudaEventCreateWithFlags(&m->written, plain);

    if (e == cudaSuccess) e = cudaEventCreateWithFlags(&m->summed, plain);
    for (int i = 0; i < DPT_CUDA_SLOTS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&m->done[i], plain);
    for (int i = 0; i < DPT_CUDA_DEPTH && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&m->begun[i], cudaEventDefault);
        if (e == cudaSuccess) e = cudaEventCreateWithFlags(&m->ended[i], cudaEventDefault);
    }
    return dpt_cuda_check(e, "making events", why);
}

static void drop_event(cudaEvent_t *e)
{
    if (*e) cudaEventDestroy(*e);
    *e = NULL;
}

static void drop_streams(dpt_cuda_member *m)
{
    drop_event(&m->written);
    drop_event(&m->summed);
    for (int i = 0; i < DPT_CUDA_SLOTS; i++) drop_event(&m->done[i]);
    for (int i = 0; i < DPT_CUDA_DEPTH; i++) {
        drop_event(&m->begun[i]);
        drop_event(&m->ended[i]);
    }
    if (m->talk) cudaStreamDestroy(m->talk);
    if (m->compute) cudaStreamDestroy(m->compute);
    m->talk = m->compute = NULL;
}

/* --- memory --- */

enum { PIECES = 13 };

typedef struct piece {
    void **p;
    size_t bytes;
} piece;

static void list_memory(dpt_cuda_member *m, piece out[PIECES])
{
    const dpt_graph *g = m->team->opt.graph;
    const size_t params = g->param_floats * sizeof(float);
    const size_t buffers = g->buffer_floats * sizeof(float);
    const size_t n = (size_t)m->max_n, segments = (size_t)m->team->segments;
    const dpt_rule rule = m->team->opt.rule;
    const size_t norms = segments * (2 * DPT_GPU_NORM_PARTS + 1) * sizeof *m->norms;
    const piece list[PIECES] = {
        { (void **)&m->params, params },
        { (void **)&m->momentum, params },
        { (void **)&m->second, rule == DPT_RULE_ADAMW ? params : 0 },
        { (void **)&m->updates, sizeof *m->updates },
        { (void **)&m->norms, rule == DPT_RULE_LARS ? norms : 0 },
        { (void **)&m->grads, params },
        { (void **)&m->buffers, buffers },
        { (void **)&m->batch_stats, buffers },
        { (void **)&m->labels, n * sizeof *m->labels },
        { (void **)&m->labels2, n * sizeof *m->labels2 },
        { (void **)&m->mix, n * sizeof *m->mix },
        { (void **)&m->result, sizeof *m->result },
        { (void **)&m->segment, segments * sizeof *m->segment },
    };

    memcpy(out, list, sizeof list);
}

/* "8.0 GiB" */
static const char *in_words(size_t bytes, char *buf, size_t len)
{
    static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB" };
    double x = (double)bytes;
    int u = 0;

    for (; x >= 1024 && u < 3; u++) x /= 1024;
    snprintf(buf, len, u ? "%.1f %s" : "%.0f %s", x, unit[u]);
    return buf;
}

int dpt_cuda_no_memory(dpl_text *why, const char *advice)
{
    const dpl_text said = *why;
    char f[32], a[32];
    size_t all = 0, available = 0;

    if (cudaMemGetInfo(&available, &all) != cudaSuccess) cudaGetLastError();
    return dpl_fail(why, DPL_ENOMEM, "%s (%s of %s are free now): %s", said.s,
                    in_words(available, f, sizeof f), in_words(all, a, sizeof a), advice);
}

static int make_memory(dpt_cuda_member *m, dpl_text *why)
{
    const char *const advice = "end what else uses the GPU, or take a smaller network";
    cudaError_t e = cudaSuccess;
    piece list[PIECES];
    char b[32];

    list_memory(m, list);
    for (int i = 0; i < PIECES; i++) m->bytes += list[i].bytes;
    for (int i = 0; i < PIECES && e == cudaSuccess; i++) {
        if (list[i].bytes) e = cudaMalloc(list[i].p, list[i].bytes);
    }
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        dpl_fail(why, DPL_ENOMEM, "out of GPU memory: weights, %s and gradients of %s need %s",
                 m->team->opt.rule == DPT_RULE_ADAMW ? "moments" : "momentum",
                 m->team->opt.graph->arch, in_words(m->bytes, b, sizeof b));
        return dpt_cuda_no_memory(why, advice);
    }
    if (e == cudaSuccess)
        e = cudaHostAlloc((void **)&m->host, sizeof *m->host, cudaHostAllocDefault);
    return dpt_cuda_check(e, "getting memory", why);
}

static void drop_memory(dpt_cuda_member *m)
{
    piece list[PIECES];

    list_memory(m, list);
    for (int i = 0; i < PIECES; i++) {
        if (*list[i].p) cudaFree(*list[i].p);
        *list[i].p = NULL;
    }
    if (m->host) cudaFreeHost(m->host);
    m->host = NULL;
}

/* --- executor --- */

static int make_exec(dpt_cuda_member *m, const dpt_team_options *opt, dpl_text *why)
{
    dpt_gpu_exec_options o = { .graph = opt->graph,
                               .gpu = m->gpu,
                               .stream = m->compute,
                               .max_n = m->max_n,
                               .type = m->team->type,
                               .pixels =
                                   opt->bytes ? DPT_GPU_PIXELS_U8_NHWC : DPT_GPU_PIXELS_F32_NCHW,
                               .cache = opt->cache,
                               .workspace_cap = workspace_cap,
                               .threads = 1 + (dpl_cpus_usable(NULL) - 1) / m->team->opt.replicas,
                               .cancel = opt->cancel };
    int err;

    memcpy(o.mean, opt->mean, sizeof o.mean);
    memcpy(o.std, opt->std, sizeof o.std);
    err = dpt_gpu_exec_linked()->create(&m->exec, &o, why);
    return err == DPL_ENOMEM ? dpt_cuda_no_memory(why, "take a smaller --batch, or more GPUs")
                             : err;
}

static int build(dpt_cuda_member *m, const dpt_team_options *opt, dpl_text *why)
{
    int err;

    if ((err = make_streams(m, why)) || (err = make_events(m, why))) return err;
    if ((err = make_memory(m, why))) return err;
    if ((err = dpt_cuda_upload(m, m->segment, m->team->segment,
                               (size_t)m->team->segments * sizeof *m->segment, why)))
        return err;
    return make_exec(m, opt, why);
}

int dpt_cuda_order_build(void *arg, int index, dpl_text *why)
{
    const dpt_cuda_call *c = arg;
    dpt_cuda_member *m = &c->team->member[index];
    const int err = build(m, c->opt, why);

    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

/* --- the end --- */

/* A GPU that does not come to an end would block whoever frees its memory: then all is left to the
 * system, which takes it back when the process ends. */
int dpt_cuda_order_close(void *arg, int index, dpl_text *why)
{
    enum { CLOSE_MS = 10000 };
    const dpt_cuda_team *t = ((dpt_cuda_call *)arg)->team;
    dpt_cuda_member *m = &t->member[index];
    const int ms = t->opt.timeout_ms < CLOSE_MS ? t->opt.timeout_ms : CLOSE_MS;

    (void)why; /* closing has no error */
    if (!m->opened) return DPL_OK;
    if (m->written && !dpt_cuda_drained(m, ms)) {
        if (m->comm) dpt_comm_abort(m->comm);
        if (!dpt_cuda_drained(m, ms)) return DPL_OK;
    }
    dpt_comm_destroy(&m->comm);
    if (m->exec) dpt_gpu_exec_linked()->destroy(&m->exec);
    drop_streams(m);
    drop_memory(m);
    cudaGetLastError();
    return DPL_OK;
}
