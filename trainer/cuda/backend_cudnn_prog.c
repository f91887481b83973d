/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: tensors, operations, where tensors lie; see backend_cudnn_prog.h. */
#include "trainer/cuda/backend_cudnn_prog.h"

#include "base/alloc.h"
#include "dpload.h"
#include "trainer/backend_arena.h"
#include "trainer/cuda/backend_cudnn_lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

int dpt_cu_padded(int channels)
{
    return (channels + 7) / 8 * 8;
}

size_t dpt_cu_elem_size(dpt_gpu_type type, dpt_cu_elem e)
{
    if (e == DPT_CU_T) return type == DPT_GPU_FP32 ? 4 : 2;
    return e == DPT_CU_F32 ? 4 : 1;
}

static int grow(dpt_cu_prog *p, void *list, size_t *cap, size_t have, size_t size)
{
    void *at;

    memcpy(&at, list, sizeof at); /* list is the address of a pointer of any type */
    if (!p->err) p->err = dpl_grow(&at, cap, have + 1, size);
    memcpy(list, &at, sizeof at);
    return p->err;
}

int dpt_cu_tensor_new(dpt_cu_prog *p, const dpt_cu_tensor *t)
{
    dpt_cu_tensor *d;
    size_t bytes = dpt_cu_elem_size(p->type, t->elem);

    if (grow(p, &p->tensor, &p->tensor_cap, p->tensors, sizeof *p->tensor)) return 0;
    if (dpl_mul(bytes, (size_t)t->n, &bytes) || dpl_mul(bytes, (size_t)t->c, &bytes) ||
        dpl_mul(bytes, (size_t)t->h, &bytes) || dpl_mul(bytes, (size_t)t->w, &bytes)) {
        p->err = DPL_ENOMEM;
        return 0;
    }
    d = &p->tensor[p->tensors];
    *d = *t;
    d->bytes = bytes;
    d->first = d->last = -1;
    return (int)p->tensors++;
}

static int alike(dpt_cu_prog *p, int like, dpt_cu_elem e, dpt_cu_place at)
{
    dpt_cu_tensor t;

    if (p->err) return 0;
    t = p->tensor[like];
    t.elem = e;
    t.at = at;
    t.offset = 0;
    return dpt_cu_tensor_new(p, &t);
}

int dpt_cu_virtual(dpt_cu_prog *p, int like, dpt_cu_elem e)
{
    return alike(p, like, e, DPT_CU_VIRTUAL);
}

int dpt_cu_arena(dpt_cu_prog *p, int like, dpt_cu_elem e)
{
    return alike(p, like, e, DPT_CU_ARENA);
}

int dpt_cu_vector(dpt_cu_prog *p, int c, dpt_cu_place at, size_t floats)
{
    const dpt_cu_tensor t = { .n = 1,
                              .c = c,
                              .h = 1,
                              .w = 1,
                              .elem = DPT_CU_F32,
                              .at = at,
                              .offset = floats * sizeof(float) };

    return dpt_cu_tensor_new(p, &t);
}

int dpt_cu_scalar(dpt_cu_prog *p, float value)
{
    const dpt_cu_tensor t = {
        .n = 1, .c = 1, .h = 1, .w = 1, .elem = DPT_CU_F32, .at = DPT_CU_SCALAR, .value = value
    };

    return dpt_cu_tensor_new(p, &t);
}

dpt_cu_op *dpt_cu_op_new(dpt_cu_prog *p, dpt_cu_what what, int node, const char *pass)
{
    dpt_cu_op *o;

    if (grow(p, &p->op, &p->op_cap, p->ops, sizeof *p->op)) return NULL;
    o = &p->op[p->ops++];
    *o = (dpt_cu_op){
        .what = what, .node = node, .pass = pass, .in = { -1, -1 }, .out = { -1, -1 }
    };
    return o;
}

dpt_cu_prim *dpt_cu_prim_new(dpt_cu_prog *p, dpt_cu_kind kind, const int in[DPT_CU_IN],
                             const int out[DPT_CU_OUT])
{
    dpt_cu_op *o;
    dpt_cu_prim *q;

    if (p->err) return NULL;
    o = &p->op[p->ops - 1];
    if (o->prims == DPT_CU_PRIMS) {
        p->err = DPL_EINTERNAL;
        return NULL;
    }
    q = &o->prim[o->prims++];
    *q = (dpt_cu_prim){ .kind = kind };
    memcpy(q->in, in, sizeof q->in);
    memcpy(q->out, out, sizeof q->out);
    return q;
}

static void use(dpt_cu_prog *p, int tensor, size_t op)
{
    dpt_cu_tensor *t;

    if (tensor < 0) return;
    t = &p->tensor[tensor];
    if (t->first < 0) t->first = (int)op;
    t->last = (int)op;
}

static void lives(dpt_cu_prog *p)
{
    use(p, p->input, 0); /* filled before the first operation */
    for (size_t i = 0; i < p->ops; i++) {
        const dpt_cu_op *o = &p->op[i];

        for (int k = 0; k < 2; k++) {
            use(p, o->in[k], i);
            use(p, o->out[k], i);
        }
        for (int k = 0; k < o->prims; k++) {
            for (int j = 0; j < DPT_CU_IN; j++) use(p, o->prim[k].in[j], i);
            for (int j = 0; j < DPT_CU_OUT; j++) use(p, o->prim[k].out[j], i);
        }
    }
    if (!p->train) use(p, p->logits, p->ops - 1);
}

static int place_arena(dpt_cu_prog *p)
{
    dpt_arena_buf *buf = dpl_calloc(p->tensors, sizeof *buf);
    int err = buf ? DPL_OK : DPL_ENOMEM;

    for (size_t i = 0; buf && i < p->tensors; i++) {
        const dpt_cu_tensor *t = &p->tensor[i];

        buf[i] = (dpt_arena_buf){ .bytes = t->bytes, .first = t->first, .last = t->last };
        if (t->at != DPT_CU_ARENA) buf[i].first = -1;
    }
    if (!err) err = dpt_arena_place(buf, p->tensors, &p->bytes[DPT_CU_ARENA]);
    for (size_t i = 0; !err && i < p->tensors; i++) {
        if (p->tensor[i].at == DPT_CU_ARENA) p->tensor[i].offset = buf[i].offset;
    }
    free(buf);
    return err;
}

/* Weights lie one behind the other, and stay. */
static int place_weights(dpt_cu_prog *p, dpt_cu_place at)
{
    size_t used = 0;

    for (size_t i = 0; i < p->tensors; i++) {
        dpt_cu_tensor *t = &p->tensor[i];

        if (t->at != at) continue;
        t->offset = used;
        if (t->bytes > SIZE_MAX - ALIGN - used) return DPL_ENOMEM;
        used = (used + t->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    p->bytes[at] = used;
    return DPL_OK;
}

void dpt_cu_prog_place_as(dpt_cu_prog *p, const dpt_cu_prog *like)
{
    for (size_t i = 0; i < p->tensors; i++) p->tensor[i].offset = like->tensor[i].offset;
    memcpy(p->bytes, like->bytes, sizeof p->bytes);
}

static int lowering_init(dpt_cu_lowering *l, dpt_cu_prog *p)
{
    const dpt_graph *g = p->g;

    *l = (dpt_cu_lowering){ .p = p };
    l->layer = dpl_calloc((size_t)g->nodes, sizeof *l->layer);
    l->value = dpl_calloc((size_t)g->tensors, sizeof *l->value);
    l->users = dpl_calloc((size_t)g->tensors, sizeof *l->users);
    l->reader = dpl_calloc((size_t)g->tensors, sizeof *l->reader);
    l->part = dpl_calloc((size_t)g->tensors, sizeof *l->part);
    l->done = dpl_calloc((size_t)g->params, sizeof *l->done);
    l->from = g->param_floats;
    if (!l->layer || !l->value || !l->users || !l->reader || !l->part || !l->done) {
        return DPL_ENOMEM;
    }
    for (int i = 0; i < g->tensors; i++) {
        l->value[i] = l->reader[i] = l->part[i][0] = l->part[i][1] = -1;
    }
    for (int i = 0; i < g->nodes; i++) {
        const dpt_node *n = &g->node[i];

        l->users[n->in]++;
        l->reader[n->in] = i;
        if (n->in2 < 0) continue;
        l->users[n->in2]++;
        l->reader[n->in2] = i;
    }
    return DPL_OK;
}

static void lowering_fini(dpt_cu_lowering *l)
{
    free(l->layer);
    free(l->value);
    free(l->users);
    free(l->reader);
    free(l->part);
    free(l->done);
}

int dpt_cu_prog_build(dpt_cu_prog *p, const dpt_graph *g, dpt_gpu_type type, int n, int train,
                      dpl_text *why)
{
    dpt_cu_lowering l;

    *p = (dpt_cu_prog){ .g = g, .type = type, .n = n, .train = train };
    p->err = lowering_init(&l, p);
    if (!p->err) dpt_cu_forward(&l);
    if (!p->err && train) dpt_cu_backward(&l);
    lowering_fini(&l);
    if (!p->err) {
        lives(p);
        p->err = place_arena(p);
    }
    if (!p->err) p->err = place_weights(p, DPT_CU_WEIGHTS);
    if (!p->err) p->err = place_weights(p, DPT_CU_DWEIGHTS);
    if (!p->err) return DPL_OK;
    return dpl_fail(why, p->err, "%s for %d samples: %s", g->arch, n,
                    p->err == DPL_ENOMEM ? "out of memory, or a tensor is too large"
                                         : "an operation has too many parts");
}

void dpt_cu_prog_fini(dpt_cu_prog *p)
{
    free(p->tensor);
    free(p->op);
    free(p->weight);
    *p = (dpt_cu_prog){ .err = DPL_OK };
}

const char *dpt_cu_op_name(const dpt_cu_prog *p, size_t op, char *buf, size_t len)
{
    const dpt_cu_op *o = &p->op[op];
    char node[128] = "step";

    if (o->node >= 0) dpt_graph_node_name(p->g, o->node, node, sizeof node);
    snprintf(buf, len, "%s %s", node, o->pass);
    return buf;
}
