/* SPDX-License-Identifier: Apache-2.0 */
/* A graph compiled by oneDNN for one number of samples: training (forward, backward) or forward with
 * running statistics. Tensors have whatever layout the convolution that makes them prefers; a
 * gradient has the layout of its tensor. */
#ifndef DPT_TRAINER_BACKEND_DNNL_PLAN_H
#define DPT_TRAINER_BACKEND_DNNL_PLAN_H

#include "trainer/backend_dnnl_prog.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DPT_DNNL_FORWARD, DPT_DNNL_BACKWARD_DATA, DPT_DNNL_BACKWARD_WEIGHTS, DPT_DNNL_PASSES };

/** What the backward pass of a node needs from its forward pass. Memory numbers, -1 = none. */
typedef struct dpt_dnnl_layer {
    dnnl_primitive_desc_t fwd;
    int workspace;
    int mean, var;
    int weights;     /* in PyTorch's layout */
    int relu;        /* 1 = the ReLU that follows is computed here; that node itself does nothing */
    int done_before; /* 1 = this is such a ReLU */
    char impl[DPT_DNNL_PASSES][40]; /* convolutions: the implementation oneDNN chose, "" = none */
} dpt_dnnl_layer;

typedef struct dpt_dnnl_plan {
    dpt_dnnl_prog prog;
    const dpt_graph *g;
    int n, train;
    int *value, *grad;       /* [tensors] memory numbers; grad: -1 = none yet */
    int *uses;               /* [tensors] how many nodes read it */
    dpt_dnnl_layer *layer;   /* [nodes] */
    int logits, logits_grad; /* memory numbers, [n][classes] */
    size_t forward_ops;      /* the loss comes after these */
} dpt_dnnl_plan;

/** Compile. @return DPL_OK, DPL_ENOMEM, DPL_ENOTSUP, DPL_EDEVICE; why names the layer */
int dpt_dnnl_plan_create(dpt_dnnl_plan **out, const dpt_graph *g, int n, int train,
                         dnnl_engine_t engine, dnnl_stream_t stream, dpl_text *why);
void dpt_dnnl_plan_destroy(dpt_dnnl_plan **p);

/** For dpt_dnnl_plan_create: append one node's forward or backward pass. */
void dpt_dnnl_forward(dpt_dnnl_plan *p, int node);
void dpt_dnnl_backward(dpt_dnnl_plan *p, int node);

/** Building blocks of both. md: dims of a tensor with n samples in the given layout. */
dnnl_memory_desc_t dpt_dnnl_tensor_md(dpt_dnnl_plan *p, int tensor, dnnl_format_tag_t tag);
/** The node's weights as [out][in][h][w] (a linear layer: c, h, w of its input). */
dnnl_memory_desc_t dpt_dnnl_weights_md(dpt_dnnl_plan *p, int node, dnnl_format_tag_t tag);
/** The same where the caller has them, in PyTorch's layout (place: DPT_AT_PARAMS or _GRADS). */
int dpt_dnnl_weights(dpt_dnnl_plan *p, int node, dpt_dnnl_place place);
/** A parameter with one dimension, likewise. */
dnnl_memory_desc_t dpt_dnnl_vector_md(dpt_dnnl_plan *p, int param);
int dpt_dnnl_vector(dpt_dnnl_plan *p, int param, dpt_dnnl_place place);
/** 1 when the layout rounds a dimension up. oneDNN 2.6 then computes a binary operation that writes
 *  over an operand wrongly, if a ReLU follows in it. */
int dpt_dnnl_padded(const dnnl_memory_desc_t *md);
/** The layout a primitive wants for its argument DNNL_ARG_*. */
const dnnl_memory_desc_t *dpt_dnnl_wants(const_dnnl_primitive_desc_t pd, int arg);
/** Choose an implementation. @return NULL after noting a failure */
dnnl_primitive_desc_t dpt_dnnl_choose(dpt_dnnl_plan *p, const_dnnl_op_desc_t desc,
                                      const_dnnl_primitive_attr_t attr,
                                      const_dnnl_primitive_desc_t hint);
/** Note a convolution's implementation for describe(). */
void dpt_dnnl_note_impl(dpt_dnnl_plan *p, int node, int pass, const_dnnl_primitive_desc_t pd);

#ifdef __cplusplus
}
#endif
#endif
