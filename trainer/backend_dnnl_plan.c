/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a graph with oneDNN; see backend_dnnl_plan.h. */
#include "trainer/backend_dnnl_plan.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdio.h>
#include <stdlib.h>

static dnnl_memory_desc_t describe_md(dpt_dnnl_plan *p, int dims, const int64_t *size,
                                      dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md = { 0 };

    if (!p->prog.err) {
        dpt_dnnl_check(&p->prog, dnnl_memory_desc_init_by_tag(&md, dims, size, dnnl_f32, tag),
                       "describing a tensor");
    }
    return md;
}

dnnl_memory_desc_t dpt_dnnl_tensor_md(dpt_dnnl_plan *p, int tensor, dnnl_format_tag_t tag)
{
    const dpt_shape s = p->g->tensor[tensor];
    const int64_t size[4] = { p->n, s.c, s.h, s.w };

    return describe_md(p, tag == dnnl_nc ? 2 : 4, size, tag);
}

dnnl_memory_desc_t dpt_dnnl_weights_md(dpt_dnnl_plan *p, int node, dnnl_format_tag_t tag)
{
    const dpt_node *n = &p->g->node[node];
    const dpt_shape s = p->g->tensor[n->in];
    const int conv = n->op == DPT_CONV;
    const int64_t size[4] = { n->channels, s.c, conv ? n->k : s.h, conv ? n->k : s.w };

    return describe_md(p, 4, size, tag);
}

int dpt_dnnl_weights(dpt_dnnl_plan *p, int node, dpt_dnnl_place place)
{
    dpt_dnnl_layer *l = &p->layer[node];
    const dnnl_memory_desc_t md = dpt_dnnl_weights_md(p, node, dnnl_oihw);
    const size_t offset = p->g->param[p->g->node[node].param].offset;

    if (place != DPT_AT_PARAMS) return dpt_dnnl_mem_new(&p->prog, &md, place, offset);
    if (l->weights < 0) l->weights = dpt_dnnl_mem_new(&p->prog, &md, place, offset);
    return l->weights; /* one memory, so that its reordered copies are found again */
}

dnnl_memory_desc_t dpt_dnnl_vector_md(dpt_dnnl_plan *p, int param)
{
    return describe_md(p, 1, p->g->param[param].shape, dnnl_x);
}

int dpt_dnnl_vector(dpt_dnnl_plan *p, int param, dpt_dnnl_place place)
{
    const dnnl_memory_desc_t md = dpt_dnnl_vector_md(p, param);

    return dpt_dnnl_mem_new(&p->prog, &md, place, p->g->param[param].offset);
}

int dpt_dnnl_padded(const dnnl_memory_desc_t *md)
{
    for (int i = 0; i < md->ndims; i++) {
        if (md->padded_dims[i] != md->dims[i]) return 1;
    }
    return 0;
}

const dnnl_memory_desc_t *dpt_dnnl_wants(const_dnnl_primitive_desc_t pd, int arg)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

dnnl_primitive_desc_t dpt_dnnl_choose(dpt_dnnl_plan *p, const_dnnl_op_desc_t desc,
                                      const_dnnl_primitive_attr_t attr,
                                      const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;

    if (p->prog.err) return NULL;
    dpt_dnnl_check(&p->prog, dnnl_primitive_desc_create(&pd, desc, attr, p->prog.engine, hint),
                   "choosing an implementation");
    return p->prog.err ? NULL : pd;
}

void dpt_dnnl_note_impl(dpt_dnnl_plan *p, int node, int pass, const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog, dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name),
                   "asking for its implementation");
    snprintf(p->layer[node].impl[pass], sizeof p->layer[node].impl[pass], "%s", name ? name : "?");
}

static int allocate(dpt_dnnl_plan *p)
{
    const size_t tensors = (size_t)p->g->tensors;

    p->value = dpl_calloc(tensors, sizeof *p->value);
    p->grad = dpl_calloc(tensors, sizeof *p->grad);
    p->uses = dpl_calloc(tensors, sizeof *p->uses);
    p->layer = dpl_calloc((size_t)p->g->nodes, sizeof *p->layer);
    if (!p->value || !p->grad || !p->uses || !p->layer) return DPL_ENOMEM;
    for (size_t i = 0; i < tensors; i++) p->grad[i] = -1;
    for (int i = 0; i < p->g->nodes; i++) {
        const dpt_node *n = &p->g->node[i];

        p->layer[i].workspace = p->layer[i].weights = -1;
        p->layer[i].mean = p->layer[i].var = -1;
        p->uses[n->in]++;
        if (n->in2 >= 0) p->uses[n->in2]++;
    }
    return DPL_OK;
}

/* A ReLU behind a batch norm or an addition, and only there, is computed by it. */
static void find_fusions(dpt_dnnl_plan *p)
{
    for (int i = 0; i + 1 < p->g->nodes; i++) {
        const dpt_node *n = &p->g->node[i], *next = n + 1;

        if (n->op != DPT_BN && n->op != DPT_ADD) continue;
        if (next->op != DPT_RELU || next->in != n->out || p->uses[n->out] != 1) continue;
        p->layer[i].relu = 1;
        p->layer[i + 1].done_before = 1;
    }
}

static void compile(dpt_dnnl_plan *p)
{
    const int nodes = p->g->nodes, last = p->g->node[nodes - 1].out;
    dnnl_memory_desc_t md = dpt_dnnl_tensor_md(p, 0, dnnl_nchw);

    p->value[0] = dpt_dnnl_mem_new(&p->prog, &md, DPT_AT_PIXELS, 0);
    for (int i = 0; i < nodes; i++) {
        p->prog.node = i;
        if (!p->layer[i].done_before) dpt_dnnl_forward(p, i);
    }
    p->logits = p->value[last];
    p->forward_ops = p->prog.ops;
    dpt_dnnl_touch(&p->prog, p->logits);
    if (!p->train) return;
    md = dpt_dnnl_tensor_md(p, last, dnnl_nc);
    p->logits_grad = p->grad[last] = dpt_dnnl_mem_new(&p->prog, &md, DPT_AT_ARENA, 0);
    dpt_dnnl_touch(&p->prog, p->logits_grad);
    for (int i = nodes; i-- > 0;) {
        p->prog.node = i;
        if (!p->layer[i].done_before) dpt_dnnl_backward(p, i);
    }
    for (int i = 0; i < nodes; i++) { /* the host reads these when all is done */
        if (p->layer[i].mean >= 0) dpt_dnnl_touch(&p->prog, p->layer[i].mean);
        if (p->layer[i].var >= 0) dpt_dnnl_touch(&p->prog, p->layer[i].var);
    }
}

static void free_hints(dpt_dnnl_plan *p)
{
    for (int i = 0; p->layer && i < p->g->nodes; i++) {
        if (p->layer[i].fwd) dnnl_primitive_desc_destroy(p->layer[i].fwd);
        p->layer[i].fwd = NULL;
    }
}

int dpt_dnnl_plan_create(dpt_dnnl_plan **out, const dpt_graph *g, int n, int train,
                         dnnl_engine_t engine, dnnl_stream_t stream, dpl_text *why)
{
    dpt_dnnl_plan *p;
    int err;

    *out = NULL;
    if (!(p = dpl_calloc(1, sizeof *p))) return dpl_fail(why, DPL_ENOMEM, "oneDNN: out of memory");
    p->g = g;
    p->n = n;
    p->train = train;
    dpt_dnnl_prog_init(&p->prog, g, engine, stream, why);
    if ((err = allocate(p))) {
        dpl_fail(why, err, "oneDNN: out of memory");
        goto done;
    }
    find_fusions(p);
    compile(p);
    if ((err = dpt_dnnl_prog_seal(&p->prog))) goto done;
    free_hints(p);
    *out = p;
    p = NULL;
done:
    if (p) dpt_dnnl_plan_destroy(&p);
    return err;
}

void dpt_dnnl_plan_destroy(dpt_dnnl_plan **p)
{
    if (!*p) return;
    free_hints(*p);
    dpt_dnnl_prog_fini(&(*p)->prog);
    free((*p)->value);
    free((*p)->grad);
    free((*p)->uses);
    free((*p)->layer);
    free(*p);
    *p = NULL;
}
