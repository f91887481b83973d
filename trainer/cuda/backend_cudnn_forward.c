/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass: which nodes become one operation. Fused are the forms for which cuDNN has engines
 * (tests/data/cudnn/plans.tsv): convolution + bias + ReLU, and batch norm + add + ReLU + mask. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_lower.h"

#include <string.h>

#define IN(...)  ((const int[DPT_CU_IN]){ __VA_ARGS__ })
#define OUT(...) ((const int[DPT_CU_OUT]){ __VA_ARGS__ })

static int feature_map(dpt_cu_prog *p, dpt_shape s)
{
    const dpt_cu_tensor t = {
        .n = p->n, .c = dpt_cu_padded(s.c), .h = s.h, .w = s.w, .elem = DPT_CU_T, .at = DPT_CU_ARENA
    };

    return dpt_cu_tensor_new(p, &t);
}

/* @return its number */
static int add_weight(dpt_cu_prog *p, const dpt_cu_weight *w)
{
    void *list = p->weight;

    if (!p->err) p->err = dpl_grow(&list, &p->weight_cap, p->weights + 1, sizeof *w);
    p->weight = list;
    if (p->err) return 0;
    p->weight[p->weights] = *w;
    return (int)p->weights++;
}

/* A typed copy of a parameter. A linear layer's weight is a convolution's over the whole map. */
static int typed(dpt_cu_prog *p, int param, int k, dpt_shape in, int size, int grad)
{
    dpt_cu_weight w = { .param = param, .dtensor = -1, .k = k, .c = in.c, .r = size, .s = size };
    dpt_cu_tensor t = { .elem = DPT_CU_T, .at = DPT_CU_WEIGHTS };

    if (size == 0) { /* linear */
        w.r = in.h;
        w.s = in.w;
    }
    w.k_padded = dpt_cu_padded(k);
    w.c_padded = dpt_cu_padded(in.c);
    t.n = w.k_padded;
    t.c = w.c_padded;
    t.h = w.r;
    t.w = w.s;
    w.tensor = dpt_cu_tensor_new(p, &t);
    t.at = DPT_CU_DWEIGHTS;
    if (grad) w.dtensor = dpt_cu_tensor_new(p, &t);
    return add_weight(p, &w);
}

static int typed_bias(dpt_cu_prog *p, int param, int k)
{
    dpt_cu_weight w = { .param = param, .dtensor = -1, .k = k, .c = 1, .r = 1, .s = 1 };
    const dpt_cu_tensor t = {
        .n = 1, .c = dpt_cu_padded(k), .h = 1, .w = 1, .elem = DPT_CU_T, .at = DPT_CU_WEIGHTS
    };

    w.k_padded = dpt_cu_padded(k);
    w.c_padded = 1;
    w.tensor = dpt_cu_tensor_new(p, &t);
    add_weight(p, &w);
    return w.tensor;
}

/* The node that alone reads what node i makes, if it is of that kind, else -1. */
static int only_reader(const dpt_cu_lowering *l, int i, dpt_op op)
{
    const dpt_graph *g = l->p->g;
    const int out = g->node[i].out, r = l->reader[out];

    return l->users[out] == 1 && g->node[r].op == op ? r : -1;
}

/* Nodes `relu` and `add` are computed with node i, which then makes their output. */
static void fuse(dpt_cu_lowering *l, int i)
{
    const dpt_graph *g = l->p->g;
    dpt_cu_layer *y = &l->layer[i];
    int last = i;

    if (y->add >= 0) l->layer[last = y->add].fused_into = i;
    if (y->relu >= 0) l->layer[last = y->relu].fused_into = i;
    l->value[g->node[last].out] = y->y;
}

static void conv(dpt_cu_lowering *l, int i)
{
    dpt_cu_prog *p = l->p;
    const dpt_node *n = &p->g->node[i];
    const dpt_shape in = p->g->tensor[n->in];
    const int linear = n->op == DPT_LINEAR;
    dpt_cu_layer *y = &l->layer[i];
    dpt_cu_prim *q;
    int sum, made;

    y->weight = typed(p, n->param, n->channels, in, linear ? 0 : n->k, p->train);
    y->y = made = feature_map(p, p->g->tensor[n->out]);
    if (n->bias) y->relu = only_reader(l, i, DPT_RELU);
    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "forward")) return;
    if (n->bias) made = dpt_cu_virtual(p, y->y, DPT_CU_F32);
    q = dpt_cu_prim_new(p, DPT_CU_CONV, IN(y->x, p->weight[y->weight].tensor, -1, -1, -1),
                        OUT(made, -1, -1));
    if (!q) return;
    q->k = linear ? in.h : n->k; /* only for the key: the window is the weight's */
    q->stride = linear ? 1 : n->stride;
    q->pad = n->pad;
    if (n->bias) {
        const int bias = typed_bias(p, n->param + 1, n->channels);

        sum = y->relu >= 0 ? dpt_cu_virtual(p, y->y, DPT_CU_F32) : y->y;
        dpt_cu_prim_new(p, DPT_CU_ADD, IN(made, bias, -1, -1, -1), OUT(sum, -1, -1));
        if (y->relu >= 0) {
            dpt_cu_prim_new(p, DPT_CU_RELU, IN(sum, -1, -1, -1, -1), OUT(y->y, -1, -1));
        }
    }
    fuse(l, i);
}

/* Which nodes behind batch norm i run with it. The add's other side must be there already. */
static void bn_fusion(dpt_cu_lowering *l, int i)
{
    const dpt_graph *g = l->p->g;
    dpt_cu_layer *y = &l->layer[i];
    const int add = only_reader(l, i, DPT_ADD);

    if (add < 0) {
        y->relu = only_reader(l, i, DPT_RELU);
        return;
    }
    y->other = g->node[add].in == g->node[i].out ? g->node[add].in2 : g->node[add].in;
    y->relu = only_reader(l, add, DPT_RELU);
    if (l->value[y->other] >= 0 && y->relu >= 0) {
        y->add = add;
    } else {
        y->other = y->relu = -1;
    }
}

/* Add and ReLU behind `value`, the last primitive's output. @return tensor before the ReLU */
static void bn_tail(dpt_cu_lowering *l, const dpt_cu_layer *y, int value)
{
    dpt_cu_prog *p = l->p;

    if (y->other >= 0) {
        const int sum = dpt_cu_virtual(p, y->y, DPT_CU_F32);

        dpt_cu_prim_new(p, DPT_CU_ADD, IN(value, l->value[y->other], -1, -1, -1), OUT(sum, -1, -1));
        value = sum;
    }
    if (y->relu >= 0) {
        dpt_cu_prim_new(p, DPT_CU_RELU, IN(value, -1, -1, -1, -1), OUT(y->y, -1, -1));
    }
}

static void bn_train(dpt_cu_lowering *l, int i)
{
    dpt_cu_prog *p = l->p;
    const dpt_node *n = &p->g->node[i];
    const dpt_shape s = p->g->tensor[n->in];
    dpt_cu_layer *y = &l->layer[i];
    const int scale = dpt_cu_vector(p, s.c, DPT_CU_PARAMS, p->g->param[n->param].offset);
    const int bias = dpt_cu_vector(p, s.c, DPT_CU_PARAMS, p->g->param[n->param + 1].offset);
    const int mean = dpt_cu_vector(p, s.c, DPT_CU_STATS, p->g->buffer[n->buffer].offset);
    const int var = dpt_cu_vector(p, s.c, DPT_CU_STATS, p->g->buffer[n->buffer + 1].offset);
    dpt_cu_op *o;
    int value;

    y->mean = dpt_cu_vector(p, s.c, DPT_CU_ARENA, 0);
    y->inverse = dpt_cu_vector(p, s.c, DPT_CU_ARENA, 0);
    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "forward")) return;
    value = y->relu >= 0 ? dpt_cu_virtual(p, y->y, DPT_CU_F32) : y->y;
    dpt_cu_prim_new(p, DPT_CU_BN,
                    IN(y->x, scale, bias, dpt_cu_scalar(p, (float)DPT_BN_EPSILON), -1),
                    OUT(value, y->mean, y->inverse));
    bn_tail(l, y, value);
    if (y->relu >= 0) { /* of the ReLU's output: a mask of its input has no engine */
        y->mask = dpt_cu_arena(p, y->y, DPT_CU_BOOL);
        dpt_cu_prim_new(p, DPT_CU_POSITIVE, IN(y->y, dpt_cu_scalar(p, 0), -1, -1, -1),
                        OUT(y->mask, -1, -1));
    }
    if (!(o = dpt_cu_op_new(p, DPT_CU_STATS_OF, i, "statistics"))) return;
    o->in[0] = y->mean;
    o->in[1] = y->inverse;
    o->out[0] = mean;
    o->out[1] = var;
    o->count = p->n * s.h * s.w;
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias from running statistics, as one graph. */
static void bn_evaluate(dpt_cu_lowering *l, int i)
{
    dpt_cu_prog *p = l->p;
    const dpt_graph *g = p->g;
    const dpt_node *n = &g->node[i];
    const int c = g->tensor[n->in].c;
    dpt_cu_layer *y = &l->layer[i];
    const int scale = dpt_cu_vector(p, c, DPT_CU_PARAMS, g->param[n->param].offset);
    const int bias = dpt_cu_vector(p, c, DPT_CU_PARAMS, g->param[n->param + 1].offset);
    const int mean = dpt_cu_vector(p, c, DPT_CU_BUFFERS, g->buffer[n->buffer].offset);
    const int var = dpt_cu_vector(p, c, DPT_CU_BUFFERS, g->buffer[n->buffer + 1].offset);
    const int safe = dpt_cu_virtual(p, var, DPT_CU_F32), inv = dpt_cu_virtual(p, var, DPT_CU_F32);
    const int centred = dpt_cu_virtual(p, y->x, DPT_CU_F32);
    const int unit = dpt_cu_virtual(p, y->x, DPT_CU_F32);
    const int scaled = dpt_cu_virtual(p, y->x, DPT_CU_F32);
    const int value = y->relu >= 0 ? dpt_cu_virtual(p, y->x, DPT_CU_F32) : y->y;
    const int eps = dpt_cu_scalar(p, (float)DPT_BN_EPSILON);

    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "evaluation")) return;
    dpt_cu_prim_new(p, DPT_CU_ADD, IN(var, eps, -1, -1, -1), OUT(safe, -1, -1));
    dpt_cu_prim_new(p, DPT_CU_RSQRT, IN(safe, -1, -1, -1, -1), OUT(inv, -1, -1));
    dpt_cu_prim_new(p, DPT_CU_SUB, IN(y->x, mean, -1, -1, -1), OUT(centred, -1, -1));
    dpt_cu_prim_new(p, DPT_CU_MUL, IN(centred, inv, -1, -1, -1), OUT(unit, -1, -1));
    dpt_cu_prim_new(p, DPT_CU_MUL, IN(unit, scale, -1, -1, -1), OUT(scaled, -1, -1));
    dpt_cu_prim_new(p, DPT_CU_ADD, IN(scaled, bias, -1, -1, -1), OUT(value, -1, -1));
    bn_tail(l, y, value);
}

static void bn(dpt_cu_lowering *l, int i)
{
    dpt_cu_layer *y = &l->layer[i];

    bn_fusion(l, i);
    y->y = feature_map(l->p, l->p->g->tensor[l->p->g->node[i].out]);
    if (l->p->train) {
        bn_train(l, i);
    } else {
        bn_evaluate(l, i);
    }
    fuse(l, i);
}

/* The mean of one value is that value; cuDNN fails to compile it. */
static int is_identity(const dpt_graph *g, const dpt_node *n)
{
    return n->op == DPT_AVGPOOL && g->tensor[n->in].h == 1 && g->tensor[n->in].w == 1;
}

static void plain(dpt_cu_lowering *l, int i)
{
    dpt_cu_prog *p = l->p;
    const dpt_node *n = &p->g->node[i];
    dpt_cu_layer *y = &l->layer[i];
    const int x2 = n->in2 >= 0 ? l->value[n->in2] : -1;
    const dpt_cu_kind kind = n->op == DPT_RELU      ? DPT_CU_RELU
                             : n->op == DPT_ADD     ? DPT_CU_ADD
                             : n->op == DPT_MAXPOOL ? DPT_CU_MAXPOOL
                                                    : DPT_CU_AVGPOOL;
    dpt_cu_prim *q;

    if (is_identity(p->g, n)) {
        y->y = y->x;
        fuse(l, i);
        return;
    }
    y->y = feature_map(p, p->g->tensor[n->out]);
    if (n->op == DPT_MAXPOOL && p->train) y->places = dpt_cu_arena(p, y->y, DPT_CU_INT8);
    if (!dpt_cu_op_new(p, DPT_CU_GRAPH, i, "forward")) return;
    q = dpt_cu_prim_new(p, kind, IN(y->x, x2, -1, -1, -1), OUT(y->y, y->places, -1));
    if (q && n->op == DPT_MAXPOOL) {
        q->k = n->k;
        q->stride = n->stride;
        q->pad = n->pad;
    }
    fuse(l, i);
}

void dpt_cu_forward(dpt_cu_lowering *l)
{
    dpt_cu_prog *p = l->p;
    const dpt_graph *g = p->g;

    for (int i = 0; i < g->nodes; i++) {
        l->layer[i] = (dpt_cu_layer){ i, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
    }
    p->input = l->value[0] = feature_map(p, g->tensor[0]);
    for (int i = 0; i < g->nodes && !p->err; i++) {
        if (l->layer[i].fused_into != i) continue;
        l->layer[i].x = l->value[g->node[i].in];
        switch (g->node[i].op) {
        case DPT_CONV:
        case DPT_LINEAR: conv(l, i); break;
        case DPT_BN: bn(l, i); break;
        default: plain(l, i);
        }
    }
    p->logits = l->value[g->node[g->nodes - 1].out];
}
