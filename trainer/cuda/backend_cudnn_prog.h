/* SPDX-License-Identifier: Apache-2.0 */
/* A network as cuDNN runs it: operations in order over numbered tensors, each operation a small graph of
 * primitives that becomes one plan. Knows neither cuDNN nor CUDA, so that tests can run a program on
 * the host and build its plans without a GPU. Adding calls return a number; the first failure sticks
 * in prog->err and turns later calls into no-ops. */
#ifndef DPT_TRAINER_CUDA_BACKEND_CUDNN_PROG_H
#define DPT_TRAINER_CUDA_BACKEND_CUDNN_PROG_H

#include "base/text.h"
#include "trainer/cuda/gpu_exec.h"
#include "trainer/graph.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpt_cu_elem {
    DPT_CU_T,    /* the type of activations */
    DPT_CU_F32,  /* statistics, and parameters read where they lie */
    DPT_CU_BOOL, /* masks. A whole byte each is allocated: enough however cuDNN packs them */
    DPT_CU_INT8  /* places of maxima */
} dpt_cu_elem;

/* Where a tensor lies. */
typedef enum dpt_cu_place {
    DPT_CU_ARENA,   /* activations and their gradients, placed by their lives */
    DPT_CU_WEIGHTS, /* weights of the activations' type, KRSC, padded */
    DPT_CU_DWEIGHTS,
    DPT_CU_PARAMS, /* these four are the caller's, of each step */
    DPT_CU_GRADS,
    DPT_CU_BUFFERS,
    DPT_CU_STATS,
    DPT_CU_PLACES,
    DPT_CU_VIRTUAL, /* inside one operation only */
    DPT_CU_SCALAR   /* a constant */
} dpt_cu_place;

typedef struct dpt_cu_tensor {
    int n, c, h, w; /* c with its padding, innermost in memory: NHWC; of weights: K, C, R, S */
    dpt_cu_elem elem;
    dpt_cu_place at;
    size_t offset, bytes;
    float value;     /* DPT_CU_SCALAR */
    int first, last; /* operations that use it, both included; -1 = none */
} dpt_cu_tensor;

/* in[] and out[] of each, in this order. */
typedef enum dpt_cu_kind {
    DPT_CU_CONV,         /* x, w -> y */
    DPT_CU_DGRAD,        /* dy, w -> dx */
    DPT_CU_WGRAD,        /* x, dy -> dw */
    DPT_CU_ADD,          /* a, b -> y; b may be one value per channel, as in the next two */
    DPT_CU_SUB,          /* a, b -> a - b */
    DPT_CU_MUL,          /* a, b -> y; b may be a mask */
    DPT_CU_RSQRT,        /* a -> 1 / sqrt(a) */
    DPT_CU_RELU,         /* a -> y */
    DPT_CU_POSITIVE,     /* a, zero -> mask of a > 0 */
    DPT_CU_RELU_BACK,    /* dy, y -> dx */
    DPT_CU_BN,           /* x, scale, bias, epsilon -> y, mean, inverse deviation */
    DPT_CU_BN_BACK,      /* dy, x, mean, inverse deviation, scale -> dx, dscale, dbias */
    DPT_CU_MAXPOOL,      /* x -> y, places */
    DPT_CU_MAXPOOL_BACK, /* dy, places -> dx */
    DPT_CU_AVGPOOL,      /* x -> y, over the whole map */
    DPT_CU_AVGPOOL_BACK  /* dy -> dx */
} dpt_cu_kind;

enum { DPT_CU_IN = 5, DPT_CU_OUT = 3, DPT_CU_PRIMS = 8 };

typedef struct dpt_cu_prim {
    dpt_cu_kind kind;
    int in[DPT_CU_IN], out[DPT_CU_OUT]; /* tensor numbers, -1 = none */
    int k, stride, pad;                 /* convolutions and pools */
} dpt_cu_prim;

typedef enum dpt_cu_what {
    DPT_CU_GRAPH,   /* prim[0 .. prims): one plan */
    DPT_CU_LOSS,    /* logits in in[0], their gradient out[0] (-1 when evaluating) */
    DPT_CU_COLUMNS, /* in[0] summed over all but channels into floats out[0]: a bias' gradient.
                       cuDNN's reduction has no engine that promises the same bits */
    DPT_CU_STATS_OF, /* in[0] mean, in[1] inverse deviation -> out[0] mean, out[1] unbiased variance of
                        the batch. From what normalised the batch, because cuDNN's documents do not
                        say which variance its running update takes */
    DPT_CU_READY     /* gradients from float `from` on are complete: typed ones become flat */
} dpt_cu_what;

typedef struct dpt_cu_op {
    dpt_cu_what what;
    int node;         /* of the graph, for messages; -1 = none */
    const char *pass; /* "forward", "backward data" … */
    dpt_cu_prim prim[DPT_CU_PRIMS];
    int prims;
    int in[2], out[2];
    int count;           /* STATS_OF: values per channel. COLUMNS: channels without padding */
    size_t from;         /* READY */
    int weight, weights; /* READY: prog->weight[weight .. weight + weights) become flat */
} dpt_cu_op;

/* A parameter that convolutions read in the activations' type. */
typedef struct dpt_cu_weight {
    int param;           /* index in graph->param */
    int tensor, dtensor; /* dtensor -1 = its gradient does not come typed */
    int k, c, r, s, k_padded, c_padded;
} dpt_cu_weight;

typedef struct dpt_cu_prog {
    const dpt_graph *g;
    dpt_gpu_type type;
    int n, train;
    int err;
    dpt_cu_tensor *tensor;
    size_t tensors, tensor_cap;
    dpt_cu_op *op;
    size_t ops, op_cap;
    dpt_cu_weight *weight; /* in the graph's order */
    size_t weights, weight_cap;
    int input, logits;           /* tensors */
    size_t bytes[DPT_CU_PLACES]; /* of the blocks ARENA, WEIGHTS and DWEIGHTS */
} dpt_cu_prog;

/** Lower a graph for n samples. Whatever cannot be fused runs as operations of its own.
 *  @return DPL_OK, DPL_ENOMEM (also: sizes overflow); why */
int dpt_cu_prog_build(dpt_cu_prog *p, const dpt_graph *g, dpt_gpu_type type, int n, int train,
                      dpl_text *why);
void dpt_cu_prog_fini(dpt_cu_prog *p);

/** Place p's tensors as those of `like`, the same program for more samples, so that both can use one
 *  block of memory. */
void dpt_cu_prog_place_as(dpt_cu_prog *p, const dpt_cu_prog *like);

/** Channels as cuDNN wants them: a multiple of 8, or it pads by copies of whole tensors. */
int dpt_cu_padded(int channels);
size_t dpt_cu_elem_size(dpt_gpu_type type, dpt_cu_elem e);

/** What the plan of operation `op` depends on, as text; equal keys share a plan. Tensors are numbered
 *  by first use: local[i] is the program's tensor behind number i. @return how many, -1 = no room */
enum { DPT_CU_KEY = 1024, DPT_CU_LOCAL = 32 };
int dpt_cu_key(const dpt_cu_prog *p, size_t op, char key[DPT_CU_KEY], int local[DPT_CU_LOCAL]);

/** "layer1.0.conv1 forward" @return buf */
const char *dpt_cu_op_name(const dpt_cu_prog *p, size_t op, char *buf, size_t len);

/* --- for the lowering --- */

int dpt_cu_tensor_new(dpt_cu_prog *p, const dpt_cu_tensor *t);
int dpt_cu_virtual(dpt_cu_prog *p, int like, dpt_cu_elem e);
int dpt_cu_arena(dpt_cu_prog *p, int like, dpt_cu_elem e);
int dpt_cu_vector(dpt_cu_prog *p, int c, dpt_cu_place at, size_t floats);
int dpt_cu_scalar(dpt_cu_prog *p, float value);
/** A new operation; its primitives follow. NULL after a failure. Valid until the next one. */
dpt_cu_op *dpt_cu_op_new(dpt_cu_prog *p, dpt_cu_what what, int node, const char *pass);
/** A primitive of the last operation. in and out: numbers, the rest is -1. */
dpt_cu_prim *dpt_cu_prim_new(dpt_cu_prog *p, dpt_cu_kind kind, const int in[DPT_CU_IN],
                             const int out[DPT_CU_OUT]);

#ifdef __cplusplus
}
#endif
#endif
