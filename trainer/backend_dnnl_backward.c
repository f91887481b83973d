/* SPDX-License-Identifier: Apache-2.0 */
/* Backward passes of the layers. The nodes come in reverse order, so that a tensor's gradient is
 * complete when the node that made the tensor is reached. */
#include "trainer/backend_dnnl_plan.h"

#include <stddef.h>

static const dnnl_memory_desc_t *md_of(const dpt_dnnl_plan *p, int tensor)
{
    return &p->prog.mem[p->value[tensor]].md;
}

/* The gradient of what the node computes, its fused ReLU included. */
static int output_grad(const dpt_dnnl_plan *p, int node)
{
    return p->grad[p->g->node[node + p->layer[node].relu].out];
}

static int new_like(dpt_dnnl_plan *p, const dnnl_memory_desc_t *md)
{
    return dpt_dnnl_mem_new(&p->prog, md, DPT_AT_ARENA, 0);
}

/* to = a + b; `to` may be a or b. All have the same layout. */
static void append_sum(dpt_dnnl_plan *p, int a, int b, int to)
{
    const dpt_dnnl_arg arg[] = { { DNNL_ARG_SRC_0, a },
                                 { DNNL_ARG_SRC_1, b },
                                 { DNNL_ARG_DST, to } };
    dnnl_binary_desc_t d;
    dnnl_primitive_desc_t pd;
    const dnnl_memory_desc_t *md;

    if (p->prog.err) return;
    md = &p->prog.mem[to].md;
    dpt_dnnl_check(&p->prog, dnnl_binary_desc_init(&d, dnnl_binary_add, md, md, md),
                   "describing the sum of gradients");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, NULL))) return;
    dpt_dnnl_append(&p->prog, pd, arg, 3);
    dnnl_primitive_desc_destroy(pd);
}

/* One reader's share of a tensor's gradient. own = 1: no other tensor's gradient is this memory, so
 * that the sum may be written over it. */
static void add_grad(dpt_dnnl_plan *p, int tensor, int mem, int own)
{
    const int have = p->grad[tensor];
    int share;

    if (p->prog.err) return;
    share = dpt_dnnl_in_layout(&p->prog, mem, md_of(p, tensor));
    if (have < 0) {
        p->grad[tensor] = share;
    } else {
        if (dpt_dnnl_padded(md_of(p, tensor))) own = 0;
        p->grad[tensor] = own ? share : new_like(p, md_of(p, tensor));
        append_sum(p, share, have, p->grad[tensor]);
    }
}

/* Weight gradients in the primitive's layout, brought to PyTorch's where the caller wants them. */
typedef struct weight_grad {
    int made, wanted;
} weight_grad;

static weight_grad weight_grad_of(dpt_dnnl_plan *p, int node, const dnnl_memory_desc_t *made)
{
    weight_grad w;

    w.wanted = w.made = dpt_dnnl_weights(p, node, DPT_AT_GRADS);
    if (!p->prog.err && !dnnl_memory_desc_equal(&p->prog.mem[w.wanted].md, made)) {
        w.made = new_like(p, made);
    }
    return w;
}

static void bring_weight_grad(dpt_dnnl_plan *p, weight_grad w)
{
    const dpt_dnnl_arg arg[] = { { DNNL_ARG_FROM, w.made }, { DNNL_ARG_TO, w.wanted } };
    dnnl_primitive_desc_t pd = NULL;

    if (p->prog.err || w.made == w.wanted) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_reorder_primitive_desc_create(&pd, &p->prog.mem[w.made].md, p->prog.engine,
                                                      &p->prog.mem[w.wanted].md, p->prog.engine,
                                                      p->prog.attr),
                   "choosing a reorder");
    dpt_dnnl_append(&p->prog, pd, arg, 2);
    if (pd) dnnl_primitive_desc_destroy(pd);
}

/* The part of a weight gradient that convolutions and linear layers share. */
static void append_weight_grad(dpt_dnnl_plan *p, int node, const_dnnl_primitive_desc_t pd)
{
    const dpt_node *n = &p->g->node[node];
    dpt_dnnl_arg arg[4];
    int args = 3;
    weight_grad w;

    w = weight_grad_of(p, node, dpt_dnnl_wants(pd, DNNL_ARG_DIFF_WEIGHTS));
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, dpt_dnnl_in_layout(&p->prog, p->value[n->in],
                                                              dpt_dnnl_wants(pd, DNNL_ARG_SRC)) };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_DST,
                             dpt_dnnl_in_layout(&p->prog, output_grad(p, node),
                                                dpt_dnnl_wants(pd, DNNL_ARG_DIFF_DST)) };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_WEIGHTS, w.made };
    if (n->bias) {
        arg[args++] =
            (dpt_dnnl_arg){ DNNL_ARG_DIFF_BIAS, dpt_dnnl_vector(p, n->param + 1, DPT_AT_GRADS) };
    }
    dpt_dnnl_append(&p->prog, pd, arg, args);
    bring_weight_grad(p, w);
}

static void append_data_grad(dpt_dnnl_plan *p, int node, const_dnnl_primitive_desc_t pd)
{
    const dpt_node *n = &p->g->node[node];
    const int made = new_like(p, dpt_dnnl_wants(pd, DNNL_ARG_DIFF_SRC));
    const dpt_dnnl_arg arg[] = {
        { DNNL_ARG_DIFF_DST, dpt_dnnl_in_layout(&p->prog, output_grad(p, node),
                                                dpt_dnnl_wants(pd, DNNL_ARG_DIFF_DST)) },
        { DNNL_ARG_WEIGHTS, dpt_dnnl_in_layout(&p->prog, dpt_dnnl_weights(p, node, DPT_AT_PARAMS),
                                               dpt_dnnl_wants(pd, DNNL_ARG_WEIGHTS)) },
        { DNNL_ARG_DIFF_SRC, made }
    };

    dpt_dnnl_append(&p->prog, pd, arg, 3);
    add_grad(p, n->in, made, 1);
}

static void conv_weights(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dnnl_memory_desc_t src = dpt_dnnl_tensor_md(p, n->in, dnnl_format_tag_any);
    const dnnl_memory_desc_t dst = dpt_dnnl_tensor_md(p, n->out, dnnl_format_tag_any);
    const dnnl_memory_desc_t w = dpt_dnnl_weights_md(p, node, dnnl_format_tag_any);
    const dnnl_dims_t stride = { n->stride, n->stride }, pad = { n->pad, n->pad };
    dnnl_memory_desc_t b;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd;

    if (n->bias) b = dpt_dnnl_vector_md(p, n->param + 1);
    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &src,
                                                               &w, n->bias ? &b : NULL, &dst,
                                                               stride, pad, pad),
                   "describing its weight gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, p->layer[node].fwd))) return;
    dpt_dnnl_note_impl(p, node, DPT_DNNL_BACKWARD_WEIGHTS, pd);
    append_weight_grad(p, node, pd);
    dnnl_primitive_desc_destroy(pd);
}

static void conv_data(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dnnl_memory_desc_t src = dpt_dnnl_tensor_md(p, n->in, dnnl_format_tag_any);
    const dnnl_memory_desc_t dst = dpt_dnnl_tensor_md(p, n->out, dnnl_format_tag_any);
    const dnnl_memory_desc_t w = dpt_dnnl_weights_md(p, node, dnnl_format_tag_any);
    const dnnl_dims_t stride = { n->stride, n->stride }, pad = { n->pad, n->pad };
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd;

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &src, &w,
                                                            &dst, stride, pad, pad),
                   "describing its input gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, p->layer[node].fwd))) return;
    dpt_dnnl_note_impl(p, node, DPT_DNNL_BACKWARD_DATA, pd);
    append_data_grad(p, node, pd);
    dnnl_primitive_desc_destroy(pd);
}

static void batch_norm(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dpt_dnnl_layer *l = &p->layer[node];
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_batch_normalization_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[DPT_DNNL_ARGS];
    int args = 9, made;

    if (p->prog.err) return;
    if (l->relu) flags |= dnnl_fuse_norm_relu;
    dpt_dnnl_check(&p->prog,
                   dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, md_of(p, n->in),
                                                               md_of(p, n->in),
                                                               (float)DPT_BN_EPSILON, flags),
                   "describing its gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, l->fwd))) return;
    made = new_like(p, md_of(p, n->in));
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_SRC, p->value[n->in] };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_MEAN, l->mean };
    arg[2] = (dpt_dnnl_arg){ DNNL_ARG_VARIANCE, l->var };
    arg[3] = (dpt_dnnl_arg){ DNNL_ARG_SCALE, dpt_dnnl_vector(p, n->param, DPT_AT_PARAMS) };
    arg[4] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_DST, output_grad(p, node) };
    arg[5] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_SRC, made };
    arg[6] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_SCALE, dpt_dnnl_vector(p, n->param, DPT_AT_GRADS) };
    arg[7] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_SHIFT, dpt_dnnl_vector(p, n->param + 1, DPT_AT_GRADS) };
    /* not read, but oneDNN 2.6 refuses to run without it */
    arg[8] = (dpt_dnnl_arg){ DNNL_ARG_SHIFT, dpt_dnnl_vector(p, n->param + 1, DPT_AT_PARAMS) };
    if (l->workspace >= 0) arg[args++] = (dpt_dnnl_arg){ DNNL_ARG_WORKSPACE, l->workspace };
    dpt_dnnl_append(&p->prog, pd, arg, args);
    add_grad(p, n->in, made, 1);
    dnnl_primitive_desc_destroy(pd);
}

/* The gradient of what goes into a ReLU, from its output (a tensor) and that one's gradient.
 * @return a memory of its own */
static int relu_grad(dpt_dnnl_plan *p, int tensor, int grad)
{
    dnnl_eltwise_desc_t f, d;
    dnnl_primitive_desc_t hint, pd;
    dpt_dnnl_arg arg[3];
    const dnnl_memory_desc_t *md;

    if (p->prog.err) return grad;
    md = md_of(p, tensor);
    dpt_dnnl_check(&p->prog,
                   dnnl_eltwise_forward_desc_init(&f, dnnl_forward_training,
                                                  dnnl_eltwise_relu_use_dst_for_bwd, md, 0, 0),
                   "describing its ReLU");
    dpt_dnnl_check(
        &p->prog,
        dnnl_eltwise_backward_desc_init(&d, dnnl_eltwise_relu_use_dst_for_bwd, md, md, 0, 0),
        "describing its ReLU's gradient");
    if (!(hint = dpt_dnnl_choose(p, &f, p->prog.attr, NULL))) return grad;
    if ((pd = dpt_dnnl_choose(p, &d, p->prog.attr, hint))) {
        arg[0] = (dpt_dnnl_arg){ DNNL_ARG_DST, p->value[tensor] };
        arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_DST, grad };
        arg[2] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_SRC, grad = new_like(p, md) };
        dpt_dnnl_append(&p->prog, pd, arg, 3);
        dnnl_primitive_desc_destroy(pd);
    }
    dnnl_primitive_desc_destroy(hint);
    return grad;
}

static void add(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    int grad = output_grad(p, node);

    if (p->layer[node].relu) grad = relu_grad(p, n[1].out, grad);
    add_grad(p, n->in, grad, 0);
    add_grad(p, n->in2, grad, 0);
}

static void pool(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];
    const dpt_shape s = p->g->tensor[n->in];
    const int global = n->op == DPT_AVGPOOL;
    const dnnl_dims_t kernel = { global ? s.h : n->k, global ? s.w : n->k };
    const dnnl_dims_t stride = { global ? 1 : n->stride, global ? 1 : n->stride };
    const dnnl_dims_t pad = { n->pad, n->pad };
    dnnl_pooling_desc_t d;
    dnnl_primitive_desc_t pd;
    dpt_dnnl_arg arg[3];
    int args = 2, made;

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog,
                   dnnl_pooling_backward_desc_init(
                       &d, global ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max,
                       md_of(p, n->in), md_of(p, n->out), stride, kernel, pad, pad),
                   "describing its gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, p->layer[node].fwd))) return;
    made = new_like(p, md_of(p, n->in));
    arg[0] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_DST, output_grad(p, node) };
    arg[1] = (dpt_dnnl_arg){ DNNL_ARG_DIFF_SRC, made };
    if (p->layer[node].workspace >= 0) {
        arg[args++] = (dpt_dnnl_arg){ DNNL_ARG_WORKSPACE, p->layer[node].workspace };
    }
    dpt_dnnl_append(&p->prog, pd, arg, args);
    add_grad(p, n->in, made, 1);
    dnnl_primitive_desc_destroy(pd);
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

    if (p->prog.err) return;
    dpt_dnnl_check(&p->prog, dnnl_inner_product_backward_weights_desc_init(&d, &src, &w, &b, &dst),
                   "describing its weight gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, p->layer[node].fwd))) return;
    append_weight_grad(p, node, pd);
    dnnl_primitive_desc_destroy(pd);
    if (n->in == 0 || p->prog.err) return;
    dpt_dnnl_check(&p->prog, dnnl_inner_product_backward_data_desc_init(&d, &src, &w, &dst),
                   "describing its input gradient");
    if (!(pd = dpt_dnnl_choose(p, &d, p->prog.attr, p->layer[node].fwd))) return;
    append_data_grad(p, node, pd);
    dnnl_primitive_desc_destroy(pd);
}

void dpt_dnnl_backward(dpt_dnnl_plan *p, int node)
{
    const dpt_node *n = &p->g->node[node];

    switch (n->op) {
    case DPT_CONV:
        conv_weights(p, node);
        if (n->in != 0) conv_data(p, node); /* nobody asks for the picture's gradient */
        break;
    case DPT_BN: batch_norm(p, node); break;
    case DPT_RELU: add_grad(p, n->in, relu_grad(p, n->out, output_grad(p, node)), 1); break;
    case DPT_ADD: add(p, node); break;
    case DPT_MAXPOOL:
    case DPT_AVGPOOL: pool(p, node); break;
    case DPT_LINEAR: linear(p, node); break;
    }
}
