/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass: the forward operations in reverse. Gradients that meet at a tensor stay two parts
 * for as long as the next operation can add them itself. */
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_lower.h"

#define IN(...)  ((const int[DPT_CU_IN]){ __VA_ARGS__ })
#define OUT(...) ((const int[DPT_CU_OUT]){ __VA_ARGS__ })

enum { READY_FLOATS = 1 << 18 }; /* gradients are announced in pieces of at least 1 MiB */

static int add_op(dpt_cu_lowering *l, int node, int a, int b)
{
    dpt_cu_prog *p = l->p;
    const int sum = dpt_cu_arena(p, a, DPT_CU_T);

    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, node, "backward sum")) return 0;
    dpt_cu_prim_new(p, DPT_CU_ADD, IN(a, b, -1, -1, -1), OUT(sum, -1, -1));
    return sum;
}

static void push(dpt_cu_lowering *l, int node, int tensor, int grad)
{
    int *part = l->part[tensor];

    if (tensor == 0) return; /* nobody asks for the pictures' */
    if (part[0] < 0) {
        part[0] = grad;
    } else if (part[1] < 0) {
        part[1] = grad;
    } else {
        part[1] = add_op(l, node, part[1], grad);
    }
}

/* The gradient of a graph tensor as one tensor. */
static int total(dpt_cu_lowering *l, int node, int tensor)
{
    const int *part = l->part[tensor];

    return part[1] < 0 ? part[0] : add_op(l, node, part[0], part[1]);
}

static void conv(dpt_cu_lowering *l, int i, int out)
{
    dpt_cu_prog *p = l->p;
    const dpt_node *n = &p->g->node[i];
    const dpt_cu_layer *y = &l->layer[i];
    const int linear = n->op == DPT_LINEAR, k = linear ? p->g->tensor[n->in].h : n->k;
    const int stride = linear ? 1 : n->stride;
    int dy = total(l, i, out);
    dpt_cu_prim *q;
    dpt_cu_op *o;

    if (y->relu >= 0) {
        const int d = dpt_cu_arena(p, y->y, DPT_CU_T);

        if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "backward relu")) return;
        dpt_cu_prim_new(p, DPT_CU_RELU_BACK, IN(dy, y->y, -1, -1, -1), OUT(d, -1, -1));
        dy = d;
    }
    if (n->bias) {
        const size_t at = p->g->param[n->param + 1].offset;
        const int db = dpt_cu_vector(p, n->channels, DPT_CU_GRADS, at);

        if (!(o = dpt_cu_op_new(p, DPT_CU_COLUMNS, i, "backward bias"))) return;
        o->in[0] = dy;
        o->out[0] = db;
        o->count = n->channels;
    }
    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "backward weights")) return;
    q = dpt_cu_prim_new(p, DPT_CU_WGRAD, IN(y->x, dy, -1, -1, -1),
                        OUT(p->weight[y->weight].dtensor, -1, -1));
    if (!q) return;
    q->k = k;
    q->stride = stride;
    q->pad = n->pad;
    if (n->in == 0) return;
    {
        const int dx = dpt_cu_arena(p, y->x, DPT_CU_T);

        if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "backward data")) return;
        q = dpt_cu_prim_new(p, DPT_CU_DGRAD, IN(dy, p->weight[y->weight].tensor, -1, -1, -1),
                            OUT(dx, -1, -1));
        if (!q) return;
        q->k = k;
        q->stride = stride;
        q->pad = n->pad;
        push(l, i, n->in, dx);
    }
}

/* The gradient in front of the ReLU, by primitives of the operation that has been begun. With an add,
 * it is the other side's gradient too and has to be written. */
static int masked(dpt_cu_lowering *l, const dpt_cu_layer *y, const int part[2])
{
    dpt_cu_prog *p = l->p;
    int dy = part[0];
    const int d = y->other >= 0 ? dpt_cu_arena(p, y->y, DPT_CU_T)
                                : dpt_cu_virtual(p, y->y, DPT_CU_T); /* fp32 has no engine */

    if (part[1] >= 0) {
        const int sum = dpt_cu_virtual(p, y->y, DPT_CU_F32);

        dpt_cu_prim_new(p, DPT_CU_ADD, IN(dy, part[1], -1, -1, -1), OUT(sum, -1, -1));
        dy = sum;
    }
    dpt_cu_prim_new(p, DPT_CU_MUL, IN(dy, y->mask, -1, -1, -1), OUT(d, -1, -1));
    return d;
}

static void bn(dpt_cu_lowering *l, int i, int out)
{
    dpt_cu_prog *p = l->p;
    const dpt_graph *g = p->g;
    const dpt_node *n = &g->node[i];
    const dpt_cu_layer *y = &l->layer[i];
    const int c = g->tensor[n->in].c;
    const size_t at = g->param[n->param].offset, bias_at = g->param[n->param + 1].offset;
    const int scale = dpt_cu_vector(p, c, DPT_CU_PARAMS, at);
    const int dscale = dpt_cu_vector(p, c, DPT_CU_GRADS, at);
    const int dbias = dpt_cu_vector(p, c, DPT_CU_GRADS, bias_at);
    const int dx = dpt_cu_arena(p, y->x, DPT_CU_T);
    int dy = y->relu < 0 ? total(l, i, out) : -1;

    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "backward")) return;
    if (y->relu >= 0) dy = masked(l, y, l->part[out]);
    dpt_cu_prim_new(p, DPT_CU_BN_BACK, IN(dy, y->x, y->mean, y->inverse, scale),
                    OUT(dx, dscale, dbias));
    push(l, i, n->in, dx);
    if (y->other >= 0) push(l, i, y->other, dy);
}

static void plain(dpt_cu_lowering *l, int i, int out)
{
    dpt_cu_prog *p = l->p;
    const dpt_node *n = &p->g->node[i];
    const dpt_cu_layer *y = &l->layer[i];
    const dpt_cu_kind kind = n->op == DPT_RELU      ? DPT_CU_RELU_BACK
                             : n->op == DPT_MAXPOOL ? DPT_CU_MAXPOOL_BACK
                                                    : DPT_CU_AVGPOOL_BACK;
    const int second = n->op == DPT_RELU ? y->y : n->op == DPT_MAXPOOL ? y->places : -1;
    const int dy = total(l, i, out);
    dpt_cu_prim *q;
    int dx;

    if (n->op == DPT_ADD) {
        push(l, i, n->in, dy);
        push(l, i, n->in2, dy);
        return;
    }
    if (y->y == y->x) { /* an average of one value */
        push(l, i, n->in, dy);
        return;
    }
    dx = dpt_cu_arena(p, y->x, DPT_CU_T);
    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "backward")) return;
    q = dpt_cu_prim_new(p, kind, IN(dy, second, -1, -1, -1), OUT(dx, -1, -1));
    if (q && n->op == DPT_MAXPOOL) {
        q->k = n->k;
        q->stride = n->stride;
        q->pad = n->pad;
    }
    push(l, i, n->in, dx);
}

/* Parameters of node i are complete: announce what now is, from the end of the flat array. */
static void ready(dpt_cu_lowering *l, int i, int last)
{
    dpt_cu_prog *p = l->p;
    const dpt_graph *g = p->g;
    const dpt_node *n = &g->node[i];
    size_t from = l->from;
    dpt_cu_op *o;
    int first, k;

    for (int j = 0; n->param >= 0 && j <= n->bias; j++) l->done[n->param + j] = 1;
    for (k = g->params; k > 0 && l->done[k - 1]; k--) from = g->param[k - 1].offset;
    if (from == l->from || (!last && l->from - from < READY_FLOATS)) return;
    if (!(o = dpt_cu_op_new(p, DPT_CU_READY, -1, "gradients"))) return;
    for (first = 0; (size_t)first < p->weights; first++) {
        if (g->param[p->weight[first].param].offset >= from) break;
    }
    o->from = from;
    o->weight = first;
    for (size_t w = (size_t)first; w < p->weights; w++) {
        if (g->param[p->weight[w].param].offset < l->from) o->weights++;
    }
    l->from = from;
}

/* The graph tensor behind everything that was fused into node i. */
static int output_of(const dpt_cu_lowering *l, int i)
{
    const dpt_cu_layer *y = &l->layer[i];

    return l->p->g->node[y->relu >= 0 ? y->relu : y->add >= 0 ? y->add : i].out;
}

void dpt_cu_backward(dpt_cu_lowering *l)
{
    dpt_cu_prog *p = l->p;
    const dpt_graph *g = p->g;
    dpt_cu_op *o;
    int grad = dpt_cu_arena(p, p->logits, DPT_CU_T);

    if (!(o = dpt_cu_op_new(p, DPT_CU_LOSS, -1, "loss"))) return;
    o->in[0] = p->logits;
    o->out[0] = grad;
    push(l, g->nodes - 1, g->node[g->nodes - 1].out, grad);
    for (int i = g->nodes; i-- > 0 && !p->err;) {
        const int out = output_of(l, i);

        if (l->layer[i].fused_into != i) continue;
        if (l->part[out][0] >= 0) {
            switch (g->node[i].op) {
            case DPT_CONV:
            case DPT_LINEAR: conv(l, i, out); break;
            case DPT_BN: bn(l, i, out); break;
            default: plain(l, i, out);
            }
        }
        ready(l, i, i == 0);
    }
}
