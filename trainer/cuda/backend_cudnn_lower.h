/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph's nodes to the operations of a program: what is fused, and where gradients come from. */
#ifndef DPT_TRAINER_CUDA_BACKEND_CUDNN_LOWER_H
#define DPT_TRAINER_CUDA_BACKEND_CUDNN_LOWER_H

#include "trainer/cuda/backend_cudnn_prog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a node and what its backward pass needs. Tensors are numbers of the program. */
typedef struct dpt_cu_layer {
    int fused_into; /* the node whose operation computes this one too; its own number = none */
    int relu, add;  /* of a convolution with bias or a batch norm: nodes fused into it, -1 = none */
    int x, y;       /* read, and what comes out behind everything that is fused */
    int other;      /* graph tensor that the fused add brings in, -1 = none */
    int mask, mean, inverse, places, weight;
} dpt_cu_layer;

typedef struct dpt_cu_lowering {
    dpt_cu_prog *p;
    dpt_cu_layer *layer; /* [nodes] */
    int *value;     /* [graph tensors] program tensor that holds it, -1 = inside an operation */
    int *users;     /* [graph tensors] nodes that read it */
    int *reader;    /* [graph tensors] the last of them */
    int (*part)[2]; /* [graph tensors] its gradient is the sum of these, -1 = none */
    char *done;     /* [params] its gradient is complete */
    size_t from;    /* gradients from here on have been announced */
} dpt_cu_lowering;

void dpt_cu_forward(dpt_cu_lowering *l);
/** The loss and everything behind it. */
void dpt_cu_backward(dpt_cu_lowering *l);

#ifdef __cplusplus
}
#endif
#endif
