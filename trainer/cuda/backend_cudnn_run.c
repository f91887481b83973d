/* SPDX-License-Identifier: Apache-2.0 */
/* A step: every operation of a program, queued on the executor's stream. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_desc.h"
#include "trainer/cuda/backend_cudnn_exec.h"
#include "trainer/cuda/gpu_pool.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

static void *at(const dpt_cu_run *r, int tensor)
{
    const dpt_cu_tensor *t = &r->p.tensor[tensor];

    return (char *)r->base[t->at] + t->offset;
}

static int cuda_failed(const dpt_cu_run *r, size_t op, int e, dpl_text *why)
{
    char name[160];

    if (!e) return DPL_OK;
    return dpl_fail(why, DPL_EDEVICE, "%s: %s", dpt_cu_op_name(&r->p, op, name, sizeof name),
                    cudaGetErrorString((cudaError_t)e));
}

static int cudnn_failed(const dpt_cu_run *r, size_t op, cudnnStatus_t s, const char *what,
                        dpl_text *why)
{
    char name[160];
    const int err =
        s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ? DPL_ENOMEM : DPL_EDEVICE;

    dpt_cu_fail(s, what, why);
    dpl_text_prefix(why, "%s", dpt_cu_op_name(&r->p, op, name, sizeof name));
    return err;
}

/* The arguments of operation op's plan: what its tensors' numbers stand for in memory. */
static cudnnStatus_t make_pack(const struct dpt_gpu_exec *e, dpt_cu_run *r, size_t op)
{
    char key[DPT_CU_KEY];
    int local[DPT_CU_LOCAL];
    const int locals = dpt_cu_key(&r->p, op, key, local);
    int64_t uid[DPT_CU_LOCAL], n = 0;
    void *pointer[DPT_CU_LOCAL];
    dpt_cu_descs l = { .n = 0 };
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(&l, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

    for (int i = 0; i < locals; i++) {
        dpt_cu_tensor *t = &r->p.tensor[local[i]];

        if (t->at == DPT_CU_VIRTUAL) continue;
        uid[n] = i + 1;
        pointer[n++] = t->at == DPT_CU_SCALAR ? &t->value : at(r, local[i]);
    }
    dpt_cu_desc_set(&l, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
    dpt_cu_desc_set(&l, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointer);
    dpt_cu_desc_set(&l, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                    &e->workspace);
    dpt_cu_desc_done(&l, d, "describe arguments");
    if (l.status) {
        dpt_cu_descs_free(&l);
    } else {
        r->pack[op] = d;
    }
    return l.status;
}

static void drop_packs(dpt_cu_run *r)
{
    for (size_t i = 0; r->pack && i < r->p.ops; i++) {
        if (r->pack[i]) cudnnBackendDestroyDescriptor(r->pack[i]);
        r->pack[i] = NULL;
    }
}

/* Packs stay from step to step for as long as the memory does that they point into. Who moves the
 * workspace clears base. */
static void bind(const struct dpt_gpu_exec *e, dpt_cu_run *r, const dpt_gpu_step *s)
{
    void *const base[DPT_CU_PLACES] = {
        [DPT_CU_ARENA] = e->arena,       [DPT_CU_WEIGHTS] = e->weights,
        [DPT_CU_DWEIGHTS] = e->dweights, [DPT_CU_PARAMS] = (void *)(uintptr_t)s->params,
        [DPT_CU_GRADS] = s->grads,       [DPT_CU_BUFFERS] = (void *)(uintptr_t)s->buffers,
        [DPT_CU_STATS] = s->batch_stats
    };

    if (memcmp(base, r->base, sizeof base) == 0) return;
    drop_packs(r);
    memcpy(r->base, base, sizeof base);
}

static int graph(struct dpt_gpu_exec *e, dpt_cu_run *r, size_t op, dpl_text *why)
{
    cudnnStatus_t s = r->pack[op] ? CUDNN_STATUS_SUCCESS : make_pack(e, r, op);

    if (s) return cudnn_failed(r, op, s, "describe arguments", why);
    s = cudnnBackendExecute(e->handle, e->plans.plan[r->which[op]]->d, r->pack[op]);
    return s ? cudnn_failed(r, op, s, "run the plan", why) : DPL_OK;
}

static int loss(const struct dpt_gpu_exec *e, const dpt_cu_run *r, int grad, const dpt_gpu_step *s)
{
    const dpt_gpu_xent x = { .logits = at(r, r->p.logits),
                             .type = e->o.type,
                             .n = s->n,
                             .classes = e->o.graph->classes,
                             .stride = r->p.tensor[r->p.logits].c,
                             .labels = s->labels,
                             .labels2 = s->labels2,
                             .mix = s->mix,
                             .grad_scale = s->grad_scale,
                             .grad = grad >= 0 ? at(r, grad) : NULL,
                             .rows = e->rows,
                             .sums = s->sums };

    return dpt_gpu_xent_run(&x, e->o.stream);
}

static int columns(const struct dpt_gpu_exec *e, const dpt_cu_run *r, const dpt_cu_op *o)
{
    const dpt_cu_tensor *t = &r->p.tensor[o->in[0]];
    const dpt_gpu_columns c = { .x = at(r, o->in[0]),
                                .type = e->o.type,
                                .rows = (size_t)t->n * (size_t)t->h * (size_t)t->w,
                                .stride = t->c,
                                .columns = o->count,
                                .sums = at(r, o->out[0]),
                                .parts = e->parts };

    return dpt_gpu_columns_run(&c, e->o.stream);
}

static int statistics(const struct dpt_gpu_exec *e, const dpt_cu_run *r, const dpt_cu_op *o)
{
    const dpt_gpu_batch_stats b = { .mean = at(r, o->in[0]),
                                    .inverse = at(r, o->in[1]),
                                    .channels = r->p.tensor[o->in[0]].c,
                                    .count = o->count,
                                    .epsilon = DPT_BN_EPSILON,
                                    .out_mean = at(r, o->out[0]),
                                    .out_var = at(r, o->out[1]) };

    return dpt_gpu_batch_stats_run(&b, e->o.stream);
}

static int ready(const struct dpt_gpu_exec *e, const dpt_cu_run *r, size_t op,
                 const dpt_gpu_step *s, dpl_text *why)
{
    const dpt_cu_op *o = &r->p.op[op];
    const int first = e->gradient[o->weight], end = e->gradient[o->weight + o->weights];
    size_t elements = 0;
    int err = DPL_OK;

    for (int w = o->weight; w < o->weight + o->weights; w++) {
        if (r->p.weight[w].dtensor >= 0) elements += e->weight_elements[w];
    }
    if (end > first) {
        err = cuda_failed(r, op,
                          dpt_gpu_weights_to_flat(e->table + r->p.weights + first, end - first,
                                                  elements, e->o.type, s->grads, e->o.stream),
                          why);
    }
    if (!err && s->ready && (err = s->ready(s->arg, o->from))) {
        dpl_fail(why, err, "gradients from %zu on could not be passed on", o->from);
    }
    return err;
}

static int operation(struct dpt_gpu_exec *e, dpt_cu_run *r, size_t op, const dpt_gpu_step *s,
                     dpl_text *why)
{
    const dpt_cu_op *o = &r->p.op[op];

    switch (o->what) {
    case DPT_CU_GRAPH: return graph(e, r, op, why);
    case DPT_CU_LOSS: return cuda_failed(r, op, loss(e, r, o->out[0], s), why);
    case DPT_CU_COLUMNS: return cuda_failed(r, op, columns(e, r, o), why);
    case DPT_CU_STATS_OF: return cuda_failed(r, op, statistics(e, r, o), why);
    case DPT_CU_READY: return ready(e, r, op, s, why);
    }
    return DPL_EINTERNAL;
}

/* Pictures and weights in the form in which the first operations read them. */
static int prepare(const struct dpt_gpu_exec *e, const dpt_cu_run *r, const dpt_gpu_step *s)
{
    const dpt_cu_tensor *x = &r->p.tensor[r->p.input];
    dpt_gpu_input in = { .src = s->pixels,
                         .pixels = e->o.pixels,
                         .n = s->n,
                         .src_h = x->h,
                         .src_w = x->w,
                         .h = x->h,
                         .w = x->w,
                         .dst = at(r, r->p.input),
                         .type = e->o.type,
                         .channels = x->c };
    size_t elements = 0;
    int err;

    memcpy(in.mean, e->o.mean, sizeof in.mean);
    memcpy(in.std, e->o.std, sizeof in.std);
    if ((err = dpt_gpu_input_run(&in, e->o.stream))) return err;
    for (size_t w = 0; w < r->p.weights; w++) elements += e->weight_elements[w];
    return dpt_gpu_weights_to_typed(e->table, (int)r->p.weights, elements, e->o.type, s->params,
                                    e->o.stream);
}

int dpt_cu_run_step(struct dpt_gpu_exec *e, dpt_cu_run *r, const dpt_gpu_step *s, dpl_text *why)
{
    int err;

    bind(e, r, s);
    err = prepare(e, r, s);
    if (err) {
        return dpl_fail(why, DPL_EDEVICE, "pictures and weights: %s",
                        cudaGetErrorString((cudaError_t)err));
    }
    for (size_t i = 0; i < r->p.ops && !err; i++) err = operation(e, r, i, s, why);
    if (!err && !r->p.train && (err = loss(e, r, -1, s))) {
        err = dpl_fail(why, DPL_EDEVICE, "loss: %s", cudaGetErrorString((cudaError_t)err));
    }
    return err;
}

void dpt_cu_run_fini(dpt_cu_run *r)
{
    drop_packs(r);
    free(r->pack);
    free(r->which);
    dpt_cu_prog_fini(&r->p);
    *r = (dpt_cu_run){ .which = NULL };
}
