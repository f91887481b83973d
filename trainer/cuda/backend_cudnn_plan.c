/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing one plan: cuDNN's heuristics propose engines, best first; notes and workspace decide; see
 * backend_cudnn_plan.h. */
#include "trainer/cuda/backend_cudnn_plan.h"

#include "base/alloc.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_desc.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIGS = 64, NOTES = 16 };

int dpt_cu_version(dpl_text *why)
{
    const size_t v = cudnnGetVersion();

    if (v >= DPT_CU_OLDEST) return DPL_OK;
    return dpl_fail(why, DPL_ENOTSUP,
                    "cuDNN %zu.%zu.%zu is too old: 9.8 or newer is needed; install it, or put its "
                    "folder into LD_LIBRARY_PATH",
                    v / 10000, v / 100 % 100, v % 100);
}

cudnnStatus_t dpt_cu_device_open(const char *json, cudnnBackendDescriptor_t *out)
{
    dpt_cu_descs l = { .n = 0 };
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(&l, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

    *out = NULL;
    dpt_cu_desc_set(&l, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                    (int64_t)strlen(json) + 1, json);
    dpt_cu_desc_done(&l, d, "describe the device");
    if (l.status) {
        dpt_cu_descs_free(&l);
    } else {
        *out = d;
    }
    return l.status;
}

int dpt_cu_device_json(int gpu, char **json, dpl_text *why)
{
    dpt_cu_descs l = { .n = 0 };
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(&l, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const int32_t id = gpu;
    int64_t len = 0;
    int err = DPL_OK;

    *json = NULL;
    dpt_cu_desc_set(&l, d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
    dpt_cu_desc_done(&l, d, "ask for the GPU's properties");
    if (!l.status) {
        l.status = cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                            CUDNN_TYPE_CHAR, 0, &len, NULL);
        l.what = "read the GPU's properties";
    }
    if (l.status) {
        err = dpt_cu_fail(l.status, l.what, why);
    } else if (!(*json = dpl_calloc((size_t)len + 1, 1))) {
        err = dpl_fail(why, DPL_ENOMEM, "out of memory");
    } else if ((l.status = cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                    CUDNN_TYPE_CHAR, len, &len, *json))) {
        err = dpt_cu_fail(l.status, l.what, why);
    }
    dpt_cu_descs_free(&l);
    return err;
}

/* What an engine says of itself. */
static void read_notes(cudnnBackendDescriptor_t config, dpt_cu_plan *p)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t note[NOTES];
    cudnnBackendBehaviorNote_t behavior[NOTES];
    int64_t n = 0;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)) return;
    cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                             &n, &engine);
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                             &p->engine);
    n = 0;
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             NOTES, &n, note);
    p->tensor_core = p->nondeterministic = p->compiled = 0;
    for (int64_t i = 0; i < n && i < NOTES; i++) {
        p->tensor_core |= note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        p->nondeterministic |= note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    n = 0;
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                             NOTES, &n, behavior);
    for (int64_t i = 0; i < n && i < NOTES; i++) {
        p->compiled |= behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    cudnnBackendDestroyDescriptor(engine);
}

/* Scratch beyond which an engine is not just splitting sums but copying whole tensors into another
 * layout: half the smallest feature map, but never less than what sums may take. */
static size_t workspace_limit(const dpt_cu_prog *p, const dpt_cu_op *o, size_t cap)
{
    const size_t sums = (size_t)64 << 20;
    size_t least = SIZE_MAX;

    for (int i = 0; i < o->prims; i++) {
        const dpt_cu_prim *q = &o->prim[i];
        const int map[2] = { q->in[0], q->kind == DPT_CU_WGRAD ? q->in[1] : q->out[0] };

        for (int k = 0; k < 2; k++) {
            const size_t bytes = p->tensor[map[k]].bytes;
            if (bytes < least) least = bytes;
        }
    }
    least /= 2;
    if (least < sums) least = sums;
    return least < cap ? least : cap;
}

static int convolves(const dpt_cu_op *o)
{
    for (int i = 0; i < o->prims; i++) {
        if (o->prim[i].kind <= DPT_CU_WGRAD) return 1;
    }
    return 0;
}

/* What an engine must be, in two rounds. fp32 means fp32: no tensor cores, which would round. */
static int wanted(const dpt_cu_plan *e, const dpt_cu_prog *p, int strict)
{
    if (e->nondeterministic) return 0;
    if (!e->convolution) return 1;
    if (p->type == DPT_GPU_FP32) return !e->tensor_core;
    return e->tensor_core || !strict;
}

static int try_config(dpt_cu_plan *out, cudnnBackendDescriptor_t config,
                      cudnnBackendDescriptor_t dev, size_t limit, cudnnStatus_t *last)
{
    cudnnBackendDescriptor_t d = NULL;
    int64_t n = 0, workspace = 0;
    cudnnStatus_t s = cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &d);

    if (!s) {
        s = cudnnBackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    }
    if (!s) {
        s = cudnnBackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dev);
    }
    if (!s) s = cudnnBackendFinalize(d);
    if (!s) {
        s = cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                     1, &n, &workspace);
    }
    if (s || workspace < 0 || (uint64_t)workspace > limit) {
        if (s) *last = s;
        if (d) cudnnBackendDestroyDescriptor(d);
        return 0;
    }
    out->d = d;
    out->workspace = workspace;
    return 1;
}

/* One list of proposals. */
typedef struct proposals {
    cudnnBackendDescriptor_t config[CONFIGS];
    int64_t n;
} proposals;

static void ask(proposals *a, dpt_cu_descs *l, cudnnBackendDescriptor_t graph,
                cudnnBackendDescriptor_t dev, cudnnBackendHeurMode_t mode)
{
    cudnnBackendDescriptor_t h = dpt_cu_desc_new(l, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);

    a->n = 0;
    dpt_cu_desc_link(l, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    dpt_cu_desc_link(l, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, dev);
    dpt_cu_desc_set(l, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    dpt_cu_desc_done(l, h, "ask the heuristics");
    for (int i = 0; i < CONFIGS && !l->status; i++) {
        a->config[i] = NULL;
        l->status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &a->config[i]);
        if (!l->status) a->n = i + 1;
    }
}

static int64_t fetch(proposals *a, dpt_cu_descs *l)
{
    int64_t got = 0;

    if (l->status) return 0;
    l->status = cudnnBackendGetAttribute(l->d[l->n - 1], CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, a->n, &got, a->config);
    return l->status ? 0 : got < a->n ? got : a->n;
}

static int choose(dpt_cu_plan *out, const dpt_cu_prog *p, size_t limit,
                  cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t dev, int strict,
                  cudnnStatus_t *last, int64_t *proposed)
{
    static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
    int found = 0;

    for (int m = 0; m < 2 && !found; m++) {
        dpt_cu_descs l = { .n = 0 };
        proposals a;
        int64_t got;

        ask(&a, &l, graph, dev, modes[m]);
        got = fetch(&a, &l);
        *proposed += got;
        if (l.status) *last = l.status;
        for (int64_t i = 0; i < got && !found; i++) {
            read_notes(a.config[i], out);
            found = wanted(out, p, strict) && try_config(out, a.config[i], dev, limit, last);
        }
        while (a.n > 0) cudnnBackendDestroyDescriptor(a.config[--a.n]);
        dpt_cu_descs_free(&l);
    }
    return found;
}

int dpt_cu_plan_make(dpt_cu_plan *out, const dpt_cu_prog *p, size_t op,
                     const dpt_cu_plan_options *o, cudnnBackendDescriptor_t dev, dpl_text *why)
{
    char key[DPT_CU_KEY];
    int local[DPT_CU_LOCAL], err = DPL_OK;
    const int locals = dpt_cu_key(p, op, key, local);
    const size_t limit = workspace_limit(p, &p->op[op], o->workspace_cap);
    dpt_cu_descs l = { .n = 0 };
    cudnnStatus_t last = CUDNN_STATUS_SUCCESS;
    int64_t proposed = 0;
    cudnnBackendDescriptor_t graph;

    if (locals < 0) return dpl_fail(why, DPL_EINTERNAL, "the operation has too many tensors");
    out->convolution = convolves(&p->op[op]);
    if (dpt_cu_cache_load(out, o, dev)) return DPL_OK;
    graph = dpt_cu_desc_graph(&l, p, op, local, locals);
    if (!graph) {
        err = dpt_cu_fail(l.status, l.what, why);
    } else if (!choose(out, p, limit, graph, dev, 1, &last, &proposed) &&
               !choose(out, p, limit, graph, dev, 0, &last, &proposed)) {
        err = last ? dpt_cu_fail(last, "no engine can run it", why)
              : !proposed
                  ? dpl_fail(why, DPL_ENOTSUP, "cuDNN has no engine for it on this GPU")
                  : dpl_fail(why, DPL_ENOTSUP,
                             "none of cuDNN's engines for it is deterministic and takes at most "
                             "%zu bytes of scratch",
                             limit);
    }
    dpt_cu_descs_free(&l);
    if (!err) {
        dpt_cu_cache_save(out, o);
        return DPL_OK;
    }
    dpl_text_prefix(why, "%s", key);
    return err;
}
