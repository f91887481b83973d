/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of the layers. A layer writes over its input where nobody needs it later: in
 * training the output of a convolution, batch norm or pooling, but not of a ReLU (its gradient is
 * computed from its output) nor what a convolution or batch norm reads (theirs from their input). */
#include "trainer/backend_dnnl_plan.h"

static dnnl_prop_kind_t forward_kind(const dpt_dnnl_plan *p)
{
    return p->train ? dnnl_forward_training : dnnl_forward_inference;
}

static const dnnl_memory_desc_t *md_of(const dpt_dnnl_plan *p, int tensor)
{
    return &p->prog.mem[p->value[tensor]].md;
}

/* A memory for the node's output; with a fused ReLU that is the ReLU's output as well. */
static void set_output(dpt_dnnl_plan *p, int node, int mem)
{
    p->value[p->g->node[node].out] = mem;
    if (p->layer[node].relu) p->value[p->g->node[node + 1].out] = mem;
}

static int new_output(dpt_dnnl_plan *p, int node, const dnnl_memory_desc_t *md)
{
    const int mem = dpt_dnnl_mem_new(&p->prog, md, DPT_AT_ARENA, 0);

    set_output(p, node, mem);
    return mem;
}

/* May the only reader of this tensor write over it? */
static int may_overwrite(const dpt_dnnl_plan *p, int tensor)
{
    if (tensor == 0 || p->uses[tensor] != 1) return 0;
    if (!p->train) return 1;
    for (int i = 0; i < p->g->nodes; i++) {
        const dpt_node *n = &p->g->node[i];
        if (n->out == tensor) return n->op != DPT_RELU;
    }
    return 0;
}

static void conv(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dnnl_memory_desc_t src = dpt_dnnl_tensor_md(p, n->in, dnnl_format_tag_any);
    const dnnl_memory_desc_t dst = dpt_dnnl_tensor_md(p, n->out, dnnl_format_tag_any);
    const dnnl_memory_desc_t w = dpt_dnnl_weights_md(p, node, dnnl_format_tag_any);
    const dnnl_dims_t stride = { n->stride, n->stride }, pad = { n->pad, n->pad };
    dnnl_memory_desc_t b;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[4];
    int args = 3;

    if (n->bias) b = dpt_dnnl_vector_md(p, n->param + 1);
    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_convolution_forward_desc_init(&d, forward_kind(p), dnnl_convolution_direct,
                                                      &src, &w, n->bias ? &b : NULL, &dst, stride,
                                                      pad, pad),
                   "describing it");
    if (!(pd = p->layer[node].fwd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    dpt_dnnl_note_impl(p, node, DPT_DNNL_FORWARD, pd);
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, dpt_dnnl_in_layout(&p->prog, p->value[n->in],
                                                              dpt_dnnl_wants(pd, DNNL_ARG_SRC)) };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_WEIGHTS,
                             dpt_dnnl_in_layout(&p->prog, dpt_dnnl_weights(p, node, DPT_AT_PARAMS),
                                                dpt_dnnl_wants(pd, DNNL_ARG_WEIGHTS)) };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_DST, new_output(p, node, dpt_dnnl_wants(pd, DNNL_ARG_DST)) };
    if (n->bias) {
        arg[args++] =
            (dpt_dnnl_arg){ DNNL_ARG_BIAS, dpt_dnnl_vector(p, n->param + 1, DPT_AT_PARAMS) };
    }
    dpt_dnnl_append(&p->prog, pd, arg, args);
}

/* Mean and variance: those of the batch come into the arena, running ones are the caller's. */
static int statistic(dpt_dnnl_plan *p, const dpt_node *n, int which)
{
    const dnnl_memory_desc_t md = dpt_dnnl_vector_md(p, n->param);

    return p->train ? dpt_dnnl_mem_new(&p->prog, &md, DPT_AT_ARENA, 0)
                    : dpt_dnnl_mem_new(&p->prog, &md, DPT_AT_BUFFERS,
                                       p->g->buffer[n->buffer + which].offset);
}

static void batch_norm(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    dpt_dnnl_layer *l = &p->layer[node];
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_batch_normalization_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[7];
    int args = 6, in, out;

    if (p->prog.err) return;
    if (!p->train) flags |= dnnl_use_global_stats;
    if (l->relu) flags |= dnnl_fuse_norm_relu;
    dpt_dnnl_check(&p->prog,
                   dnnl_batch_normalization_forward_desc_init(&d, forward_kind(p), md_of(p, n->in),
                                                              (float)DPT_BN_EPSILON, flags),
                   "describing it");
    if (!(pd = l->fwd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    in = p->value[n->in];
    if (!p->train && may_overwrite(p, n->in)) {
        set_output(p, node, out = in);
    } else {
        out = new_output(p, node, &p->prog.mem[in].md);
    }
    l->mean = statistic(p, n, 0);
    l->var = statistic(p, n, 1);
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, in };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DST, out };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_MEAN, l->mean };
    arg[3] = (dpt_dnnl_arg){ DNNL_ARG_VARIANCE, l->var };
    arg[4] = (dpt_dnnl_arg){ DNNL_ARG_SCALE, dpt_dnnl_vector(p, n->param, DPT_AT_PARAMS) };
    arg[5] = (dpt_dnnl_arg){ DNNL_ARG_SHIFT, dpt_dnnl_vector(p, n->param + 1, DPT_AT_PARAMS) };
    if (l->relu && p->train) {
        l->workspace =
            dpt_dnnl_mem_new(&p->prog, dpt_dnnl_wants(pd, DNNL_ARG_WORKSPACE), DPT_AT_ARENA, 0);
        arg[args++] = (dpt_dnnl_arg){ DNNL_ARG_WORKSPACE, l->workspace };
    }
    dpt_dnnl_append(&p->prog, pd, arg, args);
}

static void relu(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    dnnl_eltwise_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[2];

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_eltwise_forward_desc_init(&d, forward_kind(p),
                                                  dnnl_eltwise_relu_use_dst_for_bwd,
                                                  md_of(p, n->in), 0, 0),
                   "describing it");
    if (!(pd = p->layer[node].fwd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, p->value[n->in] };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DST, p->value[n->in] };
    if (may_overwrite(p, n->in)) {
        set_output(p, node, p->value[n->in]);
    } else {
        arg[1].mem = new_output(p, node, md_of(p, n->in));
    }
    dpt_dnnl_append(&p->prog, pd, arg, 2);
}

static void add(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    dnnl_binary_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[3];

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_binary_desc_init(&d, dnnl_binary_add, md_of(p, n->in), md_of(p, n->in),
                                         md_of(p, n->in)),
                   "describing it");
    pd = dpt_dnnl_choose(p, &d, p->layer[node].relu ? p->prog.attr_relu : p->prog.attr, NULL);
    if (!pd) return;
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC_0, p->value[n->in] };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_SRC_1,
                             dpt_dnnl_in_layout(&p->prog, p->value[n->in2], md_of(p, n->in)) };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_DST, p->value[n->in] };
    if (may_overwrite(p, n->in) && !dpt_dnnl_padded(md_of(p, n->in))) {
        set_output(p, node, p->value[n->in]);
    } else {
        arg[2].mem = new_output(p, node, md_of(p, n->in));
    }
    dpt_dnnl_append(&p->prog, pd, arg, 3);
    dnnl_primitive_desc_destroy(pd);
}

static void pool(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dpt_shape s = p->g->tensor[n->in];
    const int global = n->op == DPT_AVGPOOL;
    const dnnl_memory_desc_t dst = dpt_dnnl_tensor_md(p, n->out, dnnl_format_tag_any);
    const dnnl_dims_t kernel = { global ? s.h : n->k, global ? s.w : n->k };
    const dnnl_dims_t stride = { global ? 1 : n->stride, global ? 1 : n->stride };
    const dnnl_dims_t pad = { n->pad, n->pad }; /* 0 when global */
    dpt_dnnl_layer *l = &p->layer[node];
    const dnnl_memory_desc_t *ws;
    dnnl_pooling_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[3];
    int args = 2;

    if (p->prog.err) return;
    dpt_dnnl_check(
        &p->prog,
        dnnl_pooling_forward_desc_init(&d, forward_kind(p),
                                       global ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max,
                                       md_of(p, n->in), &dst, stride, kernel, pad, pad),
        "describing it");
    if (!(pd = l->fwd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, p->value[n->in] };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DST, new_output(p, node, dpt_dnnl_wants(pd, DNNL_ARG_DST)) };
    ws = dpt_dnnl_wants(pd, DNNL_ARG_WORKSPACE);
    if (ws && dnnl_memory_desc_get_size(ws) > 0) {
        l->workspace = dpt_dnnl_mem_new(&p->prog, ws, DPT_AT_ARENA, 0);
        arg[args++] = (dpt_dnnl_arg){ DNNL_ARG_WORKSPACE, l->workspace };
    }
    dpt_dnnl_append(&p->prog, pd, arg, args);
}

static void linear(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dnnl_memory_desc_t src = dpt_dnnl_tensor_md(p, n->in, dnnl_format_tag_any);
    const dnnl_memory_desc_t dst = dpt_dnnl_tensor_md(p, n->out, dnnl_nc);
    const dnnl_memory_desc_t w = dpt_dnnl_weights_md(p, node, dnnl_format_tag_any);
    const dnnl_memory_desc_t b = dpt_dnnl_vector_md(p, n->param + 1);
    dnnl_inner_product_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[4];

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_inner_product_forward_desc_init(&d, forward_kind(p), &src, &w, &b, &dst),
                   "describing it");
    if (!(pd = p->layer[node].fwd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, dpt_dnnl_in_layout(&p->prog, p->value[n->in],
                                                              dpt_dnnl_wants(pd, DNNL_ARG_SRC)) };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_WEIGHTS,
                             dpt_dnnl_in_layout(&p->prog, dpt_dnnl_weights(p, node, DPT_AT_PARAMS),
                                                dpt_dnnl_wants(pd, DNNL_ARG_WEIGHTS)) };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_BIAS, dpt_dnnl_vector(p, n->param + 1, DPT_AT_PARAMS) };
    arg[3] = (dpt_dnnl_arg){ DNNL_ARG_DST, new_output(p, node, &dst) };
    dpt_dnnl_append(&p->prog, pd, arg, 4);
}

void dpt_dnnl_forward(dpt_dnnl_plan *p, int node)
{
    switch (p->g->node[node].op) {
    case DPT_CONV: conv(p, node); break;
    case DPT_BN: batch_norm(p, node); break;
    case DPT_RELU: relu(p, node); break;
    case DPT_ADD: add(p, node); break;
    case DPT_MAXPOOL:
    case DPT_AVGPOOL: pool(p, node); break;
    case DPT_LINEAR: linear(p, node); break;
    }
}
