/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on cuDNN: making it, and what it tells; see gpu_exec.h. */
#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_desc.h"
#include "trainer/cuda/backend_cudnn_exec.h"
#include "trainer/cuda/gpu_pool.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRAINS = 8 }; /* programs for other numbers of samples that are kept */

static const size_t default_cap = (size_t)256 << 20;

int dpt_cu_alloc(struct dpt_gpu_exec *e, void **out, size_t bytes, const char *what, dpl_text *why)
{
    cudaError_t s;

    if (bytes == 0) return DPL_OK;
    s = cudaMalloc(out, bytes);
    if (s) {
        *out = NULL;
        (void)cudaGetLastError();
        return dpl_fail(why, s == cudaErrorMemoryAllocation ? DPL_ENOMEM : DPL_EDEVICE,
                        "cuda:%d: %zu MiB for %s (%zu MiB are held): %s", e->o.gpu, bytes >> 20,
                        what, e->held >> 20, cudaGetErrorString(s));
    }
    e->held += bytes;
    return DPL_OK;
}

int dpt_cu_workspace(struct dpt_gpu_exec *e, dpl_text *why)
{
    size_t most = 0;
    int err;

    for (size_t i = 0; i < e->plans.plans; i++) {
        const size_t bytes = (size_t)e->plans.plan[i]->workspace;
        if (bytes > most) most = bytes;
    }
    if (most <= e->workspace_bytes) return DPL_OK;
    if (e->workspace) cudaFree(e->workspace); /* waits for what uses it */
    e->held -= e->workspace_bytes;
    e->workspace = NULL;
    e->workspace_bytes = 0;
    memset(e->eval.base, 0, sizeof e->eval.base);
    for (size_t i = 0; i < e->trains; i++) memset(e->train[i].base, 0, sizeof e->train[i].base);
    if ((err = dpt_cu_alloc(e, &e->workspace, most, "scratch", why))) return err;
    e->workspace_bytes = most;
    return DPL_OK;
}

/* A GPU that cannot be chosen any more is lost: what the executor calls next says so. */
static void use_gpu(int gpu)
{
    if (cudaSetDevice(gpu) != cudaSuccess) cudaGetLastError();
}

int dpt_cu_run_build(struct dpt_gpu_exec *e, dpt_cu_run *r, int n, int train, dpl_text *why)
{
    const dpt_cu_plan_options o = { .device = e->device,
                                    .workspace_cap =
                                        e->o.workspace_cap ? e->o.workspace_cap : default_cap,
                                    .cache = e->o.cache,
                                    .threads =
                                        e->o.threads > 0 ? e->o.threads : dpl_cpus_usable(NULL),
                                    .begin = use_gpu,
                                    .gpu = e->o.gpu,
                                    .cancel = e->o.cancel };
    int err;

    *r = (dpt_cu_run){ .which = NULL };
    if ((err = dpt_cu_prog_build(&r->p, e->o.graph, e->o.type, n, train, why))) return err;
    r->which = dpl_calloc(r->p.ops, sizeof *r->which);
    r->pack = dpl_calloc(r->p.ops, sizeof *r->pack);
    if (!r->which || !r->pack) {
        err = dpl_fail(why, DPL_ENOMEM, "out of memory");
    } else {
        err = dpt_cu_plans_add(&e->plans, &r->p, &o, r->which, why);
    }
    if (err) dpt_cu_run_fini(r);
    return err;
}

static dpt_gpu_tensor table_entry(const struct dpt_gpu_exec *e, const dpt_cu_weight *w, int tensor,
                                  void *block)
{
    const dpt_cu_tensor *t = &e->train[0].p.tensor[tensor];

    return (dpt_gpu_tensor){ .flat = e->o.graph->param[w->param].offset,
                             .typed = (char *)block + t->offset,
                             .k = w->k,
                             .c = w->c,
                             .r = w->r,
                             .s = w->s,
                             .k_padded = w->k_padded,
                             .c_padded = w->c_padded };
}

/* Where every typed weight lies, and every typed gradient, for the kernels that convert them. */
static int make_table(struct dpt_gpu_exec *e, dpl_text *why)
{
    const dpt_cu_prog *p = &e->train[0].p;
    dpt_gpu_tensor *host = dpl_calloc(2 * p->weights, sizeof *host);
    int err = DPL_ENOMEM, gradients = 0;
    cudaError_t s;

    e->gradient = dpl_calloc(p->weights + 1, sizeof *e->gradient);
    e->weight_elements = dpl_calloc(p->weights, sizeof *e->weight_elements);
    if (!host || !e->gradient || !e->weight_elements) {
        dpl_fail(why, err, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < p->weights; i++) {
        const dpt_cu_weight *w = &p->weight[i];

        host[i] = table_entry(e, w, w->tensor, e->weights);
        e->weight_elements[i] = p->tensor[w->tensor].bytes / dpt_cu_elem_size(p->type, DPT_CU_T);
        e->gradient[i] = gradients;
        if (w->dtensor >= 0) {
            host[p->weights + (size_t)gradients++] = table_entry(e, w, w->dtensor, e->dweights);
        }
    }
    e->gradient[p->weights] = gradients;
    if ((err = dpt_cu_alloc(e, (void **)&e->table, 2 * p->weights * sizeof *host, "tables", why))) {
        goto done;
    }
    s = cudaMemcpyAsync(e->table, host, 2 * p->weights * sizeof *host, cudaMemcpyHostToDevice,
                        e->o.stream);
    if (!s) s = cudaStreamSynchronize(e->o.stream); /* host goes away */
    if (s) err = dpl_fail(why, DPL_EDEVICE, "tables: %s", cudaGetErrorString(s));
done:
    free(host);
    return err;
}

static int make_memory(struct dpt_gpu_exec *e, dpl_text *why)
{
    const size_t *train = e->train[0].p.bytes, *eval = e->eval.p.bytes;
    const size_t arena =
        train[DPT_CU_ARENA] > eval[DPT_CU_ARENA] ? train[DPT_CU_ARENA] : eval[DPT_CU_ARENA];
    size_t columns = (size_t)e->o.graph->classes;
    int err;

    for (int i = 0; i < e->o.graph->tensors; i++) {
        const size_t c = (size_t)e->o.graph->tensor[i].c;
        if (c > columns) columns = c;
    }
    if ((err = dpt_cu_alloc(e, &e->arena, arena, "activations", why)) ||
        (err = dpt_cu_alloc(e, &e->weights, train[DPT_CU_WEIGHTS], "weights", why)) ||
        (err = dpt_cu_alloc(e, &e->dweights, train[DPT_CU_DWEIGHTS], "gradients", why)) ||
        (err = dpt_cu_alloc(e, (void **)&e->parts,
                            columns * DPT_GPU_COLUMN_PARTS * sizeof *e->parts, "sums", why)) ||
        (err = dpt_cu_alloc(e, (void **)&e->rows, (size_t)e->o.max_n * 3 * sizeof *e->rows,
                            "losses", why))) {
        return err;
    }
    return dpt_cu_workspace(e, why);
}

static void destroy(dpt_gpu_exec **out)
{
    struct dpt_gpu_exec *e = *out;

    if (!e) return;
    dpt_cu_run_fini(&e->eval);
    for (size_t i = 0; i < e->trains; i++) dpt_cu_run_fini(&e->train[i]);
    dpt_cu_plans_fini(&e->plans);
    if (e->handle) cudnnDestroy(e->handle);
    cudaFree(e->arena);
    cudaFree(e->weights);
    cudaFree(e->dweights);
    cudaFree(e->workspace);
    cudaFree(e->table);
    cudaFree(e->parts);
    cudaFree(e->rows);
    free(e->gradient);
    free(e->weight_elements);
    free(e->train);
    free(e->device);
    free(e);
    *out = NULL;
}

static int start_cudnn(struct dpt_gpu_exec *e, dpl_text *why)
{
    cudnnStatus_t s;
    int err = dpt_cu_version(why);

    if (err) return err;
    if ((s = cudnnCreate(&e->handle))) {
        e->handle = NULL;
        return dpt_cu_fail(s, "start cuDNN", why);
    }
    if ((s = cudnnSetStream(e->handle, e->o.stream))) return dpt_cu_fail(s, "give a stream", why);
    return dpt_cu_device_json(e->o.gpu, &e->device, why);
}

static int create(dpt_gpu_exec **out, const dpt_gpu_exec_options *opt, dpl_text *why)
{
    struct dpt_gpu_exec *e = dpl_calloc(1, sizeof *e);
    void *list = NULL;
    int err = DPL_ENOMEM;

    *out = NULL;
    if (!e || dpl_grow(&list, &e->train_cap, MOST_TRAINS, sizeof *e->train)) {
        free(e);
        return dpl_fail(why, err, "cudnn: out of memory");
    }
    e->o = *opt;
    e->train = list;
    if (!(err = start_cudnn(e, why)) &&
        !(err = dpt_cu_run_build(e, &e->train[0], opt->max_n, 1, why))) {
        e->trains = 1;
        err = dpt_cu_run_build(e, &e->eval, opt->max_n, 0, why);
    }
    if (!err && !(err = make_memory(e, why))) err = make_table(e, why);
    if (err) {
        dpl_text_prefix(why, "cuda:%d, %s", opt->gpu, dpt_gpu_type_name(opt->type));
        destroy(&e);
    }
    *out = e;
    return err;
}

/* The program for n samples, built when it is first asked for. */
static int train_run(struct dpt_gpu_exec *e, int n, dpt_cu_run **out, dpl_text *why)
{
    dpt_cu_run r;
    size_t i = 0;
    int err;

    for (; i < e->trains; i++) {
        *out = &e->train[i];
        if (e->train[i].p.n == n) return DPL_OK;
    }
    if ((err = dpt_cu_run_build(e, &r, n, 1, why))) return err;
    dpt_cu_prog_place_as(&r.p, &e->train[0].p);
    if (e->trains == MOST_TRAINS) { /* the oldest but the first gives way */
        dpt_cu_run_fini(&e->train[1]);
        memmove(&e->train[1], &e->train[2], (MOST_TRAINS - 2) * sizeof *e->train);
        e->trains--;
    }
    *out = &e->train[e->trains];
    e->train[e->trains++] = r;
    return dpt_cu_workspace(e, why);
}

static int check(const struct dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    if (s->n >= 1 && s->n <= e->o.max_n) return DPL_OK;
    return dpl_fail(why, DPL_EINVAL, "cudnn: %d samples; 1 to %d are possible", s->n, e->o.max_n);
}

static int train(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    dpt_cu_run *r;
    int err = check(e, s, why);

    if (!err) err = train_run(e, s->n, &r, why);
    return err ? err : dpt_cu_run_step(e, r, s, why);
}

static int evaluate(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why)
{
    const int err = check(e, s, why);

    return err ? err : dpt_cu_run_step(e, &e->eval, s, why);
}

/* Line 0: the whole; then a line per convolution, forward and backward. */
static const char *describe(dpt_gpu_exec *e, int i, int *fallback)
{
    const dpt_cu_run *r = &e->train[0];
    const size_t v = cudnnGetVersion();
    size_t reloaded = 0;
    char name[160];

    for (size_t k = 0; k < e->plans.plans; k++) reloaded += (size_t)e->plans.plan[k]->reloaded;
    if (i == 0) {
        snprintf(e->line, sizeof e->line,
                 "cuDNN %zu.%zu.%zu, %s: %zu plans (%zu from the cache), %zu MiB of device memory, "
                 "%zu MiB of it scratch",
                 v / 10000, v / 100 % 100, v % 100, dpt_gpu_type_name(e->o.type), e->plans.plans,
                 reloaded, e->held >> 20, e->workspace_bytes >> 20);
        return e->line;
    }
    for (size_t op = 0; op < r->p.ops; op++) {
        const dpt_cu_plan *p = r->which[op] >= 0 ? e->plans.plan[r->which[op]] : NULL;

        if (!p || !p->convolution || --i > 0) continue;
        if (!p->tensor_core && e->o.type != DPT_GPU_FP32) *fallback = 1;
        snprintf(e->line, sizeof e->line,
                 "%s: engine %" PRId64 ", %" PRId64 " bytes of scratch, %s",
                 dpt_cu_op_name(&r->p, op, name, sizeof name), p->engine, p->workspace,
                 p->tensor_core ? "tensor cores" : "no tensor cores");
        return e->line;
    }
    return NULL;
}

static size_t memory(const dpt_gpu_exec *e)
{
    return e->held;
}

const dpt_gpu_exec_ops *dpt_gpu_exec_linked(void)
{
    static const dpt_gpu_exec_ops ops = { .name = "cudnn",
                                          .create = create,
                                          .train = train,
                                          .evaluate = evaluate,
                                          .describe = describe,
                                          .memory = memory,
                                          .destroy = destroy };

    return &ops;
}
