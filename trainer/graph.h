/* SPDX-License-Identifier: Apache-2.0 */
/* A network as data: a list of operations in execution order over numbered tensors, with parameters
 * and batch-norm buffers laid out in two flat float arrays. Backends compile it; nobody else runs it. */
#ifndef DPT_TRAINER_GRAPH_H
#define DPT_TRAINER_GRAPH_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Batch norm, as PyTorch has it. */
#define DPT_BN_EPSILON 1e-5
#define DPT_BN_KEEP    0.9 /* share of the old running statistics: 1 - momentum */

typedef enum dpt_op {
    DPT_CONV, /* in NCHW, weight [out][in][k][k] (OIHW), bias [out] when `bias` */
    DPT_BN,   /* batch norm over N, H, W; weight, bias [c]; running mean and variance are buffers */
    DPT_RELU,
    DPT_ADD,     /* in + in2 */
    DPT_MAXPOOL, /* k, stride, pad; padding counts as -inf */
    DPT_AVGPOOL, /* global: [c][h][w] -> [c] */
    DPT_LINEAR   /* weight [out][in], bias [out]; input flattened CHW */
} dpt_op;

typedef struct dpt_shape {
    int c, h, w; /* per sample */
} dpt_shape;

typedef struct dpt_node {
    dpt_op op;
    int in, in2; /* tensor numbers; in2 only for DPT_ADD, else -1 */
    int out;     /* tensor number */
    int k, stride, pad;
    int channels; /* outputs of conv and linear */
    int bias;     /* 1 = has a bias parameter */
    int param;    /* index of the weight in graph->param; the bias follows; -1 = none */
    int buffer;   /* DPT_BN: index of the running mean in graph->buffer; the variance follows */
} dpt_node;

typedef enum dpt_init { DPT_INIT_ZERO, DPT_INIT_ONE, DPT_INIT_NORMAL, DPT_INIT_UNIFORM } dpt_init;

typedef struct dpt_param {
    char *name; /* torchvision's: "layer1.0.conv1.weight" */
    int dims;
    int64_t shape[4];
    size_t offset; /* floats from the start of the flat array */
    size_t count;  /* floats */
    dpt_init init;
    double init_arg; /* NORMAL: deviation; UNIFORM: bound */
    int decay;       /* 1 = weight decay applies (all, as in PyTorch) */
} dpt_param;

typedef struct dpt_graph {
    char *arch;
    int classes;
    dpt_shape *tensor; /* [tensors]; tensor 0 is the input, the last node's output the logits */
    int tensors;
    dpt_node *node;
    int nodes;
    dpt_param *param; /* in torchvision's key order */
    int params;
    size_t param_floats;
    dpt_param *buffer; /* running_mean, running_var of each batch norm, in key order */
    int buffers;
    size_t buffer_floats;
} dpt_graph;

/** Build a network for inputs of 3 x height x width.
 *  arch: resnet18 resnet34 resnet50 resnet101 resnet152 (torchvision), tinynet (four 3x3 convolutions
 *  with bias, no batch norm; for tests and demonstrations).
 *  @return DPL_OK, DPL_EINVAL (unknown arch: text lists them; picture too small), DPL_ENOMEM */
int dpt_graph_build(dpt_graph **out, const char *arch, int classes, int height, int width,
                    dpl_text *why);
void dpt_graph_destroy(dpt_graph **g);

/** Names of the architectures, NULL-terminated. */
const char *const *dpt_graph_archs(void);

/** Name of node i for messages: its layer ("layer1.0.conv1"), or kind and number ("maxpool 3").
 *  @return buf */
const char *dpt_graph_node_name(const dpt_graph *g, int i, char *buf, size_t len);

/** Initial weights and buffers, a pure function of (graph, seed): torchvision's distributions. */
void dpt_graph_init(const dpt_graph *g, uint64_t seed, float *params, float *buffers);

#ifdef __cplusplus
}
#endif
#endif
