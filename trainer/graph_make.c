/* SPDX-License-Identifier: Apache-2.0 */
/* Appending layers to a graph; see graph_make.h. */
#include "trainer/graph_make.h"

#include "base/alloc.h"
#include "dpload.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 96 };

static int grow(dpt_maker *m, void *list, size_t *cap, int have, size_t size)
{
    void *p;

    if (m->err) return m->err;
    memcpy(&p, list, sizeof p); /* list is the address of a pointer of any type */
    m->err = dpl_grow(&p, cap, (size_t)have + 1, size);
    memcpy(list, &p, sizeof p);
    return m->err;
}

static int new_tensor(dpt_maker *m, int c, int h, int w)
{
    dpt_graph *g = m->g;

    if (grow(m, &g->tensor, &m->tensor_cap, g->tensors, sizeof *g->tensor)) return 0;
    g->tensor[g->tensors] = (dpt_shape){ c, h, w };
    return g->tensors++;
}

static dpt_node *new_node(dpt_maker *m, dpt_op op, int in, dpt_shape out)
{
    dpt_graph *g = m->g;
    const int tensor = new_tensor(m, out.c, out.h, out.w);
    dpt_node *n;

    if (grow(m, &g->node, &m->node_cap, g->nodes, sizeof *g->node)) return NULL;
    n = &g->node[g->nodes++];
    *n = (dpt_node){ .op = op, .in = in, .in2 = -1, .out = tensor, .param = -1, .buffer = -1 };
    return n;
}

/* Appends layer.suffix to a list that lies in one flat array of *floats floats. */
static int append(dpt_maker *m, dpt_param **list, int *count, size_t *cap, size_t *floats,
                  const dpt_param *what, const char *layer, const char *suffix)
{
    char name[NAME_MAX_LEN];
    dpt_param *p;

    if (grow(m, list, cap, *count, sizeof **list)) return -1;
    p = &(*list)[*count];
    *p = *what;
    snprintf(name, sizeof name, "%s.%s", layer, suffix);
    if (!(p->name = dpl_strdup(name))) {
        m->err = DPL_ENOMEM;
        return -1;
    }
    p->offset = *floats;
    p->count = 1;
    for (int d = 0; d < p->dims; d++) p->count *= (size_t)p->shape[d];
    p->decay = 1;
    *floats += p->count;
    return (*count)++;
}

static int new_param(dpt_maker *m, const dpt_param *what, const char *layer, const char *suffix)
{
    dpt_graph *g = m->g;

    return append(m, &g->param, &g->params, &m->param_cap, &g->param_floats, what, layer, suffix);
}

static int new_buffer(dpt_maker *m, const dpt_param *what, const char *layer, const char *suffix)
{
    dpt_graph *g = m->g;

    return append(m, &g->buffer, &g->buffers, &m->buffer_cap, &g->buffer_floats, what, layer,
                  suffix);
}

static dpt_param vector(int n, dpt_init init, double arg)
{
    return (dpt_param){ .dims = 1, .shape = { n }, .init = init, .init_arg = arg };
}

static int window_out(int size, int k, int stride, int pad)
{
    return (size + 2 * pad - k) / stride + 1;
}

int dpt_make_conv(dpt_maker *m, int in, const char *name, const dpt_conv_spec *spec)
{
    const int k = spec->k;
    dpt_shape s;
    dpt_node *n;
    dpt_param w, b;

    if (m->err) return 0;
    s = m->g->tensor[in];
    n = new_node(m, DPT_CONV, in,
                 (dpt_shape){ spec->channels, window_out(s.h, k, spec->stride, spec->pad),
                              window_out(s.w, k, spec->stride, spec->pad) });
    if (!n) return 0;
    n->k = k;
    n->stride = spec->stride;
    n->pad = spec->pad;
    n->channels = spec->channels;
    n->bias = spec->bias;
    w = (dpt_param){ .dims = 4, .shape = { spec->channels, s.c, k, k }, .init = DPT_INIT_NORMAL };
    w.init_arg = sqrt(2.0 / ((spec->by_inputs ? s.c : spec->channels) * k * k));
    n->param = new_param(m, &w, name, "weight");
    b = vector(spec->channels, DPT_INIT_ZERO, 0);
    if (spec->bias) new_param(m, &b, name, "bias");
    return n->out;
}

int dpt_make_bn(dpt_maker *m, int in, const char *name)
{
    dpt_param zero, one;
    dpt_node *n;

    if (m->err || !(n = new_node(m, DPT_BN, in, m->g->tensor[in]))) return 0;
    zero = vector(m->g->tensor[in].c, DPT_INIT_ZERO, 0);
    one = vector(m->g->tensor[in].c, DPT_INIT_ONE, 0);
    n->bias = 1;
    n->param = new_param(m, &one, name, "weight");
    new_param(m, &zero, name, "bias");
    n->buffer = new_buffer(m, &zero, name, "running_mean");
    new_buffer(m, &one, name, "running_var");
    return n->out;
}

int dpt_make_relu(dpt_maker *m, int in)
{
    dpt_node *n = m->err ? NULL : new_node(m, DPT_RELU, in, m->g->tensor[in]);

    return n ? n->out : 0;
}

int dpt_make_add(dpt_maker *m, int in, int in2)
{
    dpt_node *n = m->err ? NULL : new_node(m, DPT_ADD, in, m->g->tensor[in]);

    if (!n) return 0;
    n->in2 = in2;
    return n->out;
}

int dpt_make_maxpool(dpt_maker *m, int in, int k, int stride, int pad)
{
    dpt_shape s;
    dpt_node *n;

    if (m->err) return 0;
    s = m->g->tensor[in];
    n = new_node(
        m, DPT_MAXPOOL, in,
        (dpt_shape){ s.c, window_out(s.h, k, stride, pad), window_out(s.w, k, stride, pad) });
    if (!n) return 0;
    n->k = k;
    n->stride = stride;
    n->pad = pad;
    return n->out;
}

int dpt_make_avgpool(dpt_maker *m, int in)
{
    dpt_node *n =
        m->err ? NULL : new_node(m, DPT_AVGPOOL, in, (dpt_shape){ m->g->tensor[in].c, 1, 1 });

    return n ? n->out : 0;
}

int dpt_make_linear(dpt_maker *m, int in, const char *name, int outputs)
{
    dpt_shape s;
    dpt_node *n;
    dpt_param w, b;
    int inputs;

    if (m->err || !(n = new_node(m, DPT_LINEAR, in, (dpt_shape){ outputs, 1, 1 }))) return 0;
    s = m->g->tensor[in];
    inputs = s.c * s.h * s.w;
    n->channels = outputs;
    n->bias = 1;
    w = (dpt_param){ .dims = 2, .shape = { outputs, inputs }, .init = DPT_INIT_UNIFORM };
    w.init_arg = 1 / sqrt(inputs);
    n->param = new_param(m, &w, name, "weight");
    b = vector(outputs, DPT_INIT_UNIFORM, w.init_arg);
    new_param(m, &b, name, "bias");
    return n->out;
}
