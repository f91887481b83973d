/* SPDX-License-Identifier: Apache-2.0 */
/* A backend compiles a graph for one device and runs training steps on it. Parameters and gradients
 * stay in the graph's flat fp32 layout, owned by the caller, so that optimizer, reduction and
 * checkpoints know no backend. One dpt_exec belongs to one thread. */
#ifndef DPT_TRAINER_BACKEND_H
#define DPT_TRAINER_BACKEND_H

#include "base/text.h"
#include "trainer/graph.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_exec dpt_exec;

typedef struct dpt_exec_options {
    int max_n;   /* largest number of samples per call */
    int threads; /* compute threads of this exec, >= 1; "ref" computes on one and says so */
    /* Read with __atomic_load_n() before every layer, forward and backward: when it is not 0, the
     * call ends with DPL_ECANCELED. NULL = never. */
    const int *cancel;
} dpt_exec_options;

/** 1 when the work is to end. For backends. */
static inline int dpt_canceled(const int *cancel)
{
    return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0;
}

/** Sums over the n samples of a call; the caller adds them over devices and divides. */
typedef struct dpt_sums {
    double loss;        /* sum of cross-entropies; NaN also when gradients (train) or weights
                           (evaluate) are not finite, whether or not the logits show it */
    int64_t top1, top5; /* samples whose label is among the 1 / 5 largest logits (ties: lower index
                           ranks first). Of soft labels the one with the larger weight counts, as in
                           torchvision's training script; labels, when they are equal */
    int64_t n;
} dpt_sums;

/** One call's inputs and outputs. n may be 0: then gradients, batch_stats and sums are set to zero. */
typedef struct dpt_step {
    const float *pixels;    /* [n][3][h][w], normalised */
    const int32_t *labels;  /* [n], 0 .. classes - 1 */
    const int32_t *labels2; /* [n] the second class of soft labels, or NULL: labels alone count */
    const float *mix; /* [n] weight of labels, 0 .. 1; the rest of 1 is the weight of labels2 */
    int n;
    const float *params;  /* [graph->param_floats] */
    const float *buffers; /* [graph->buffer_floats]; read by evaluate only */
    double grad_scale;    /* gradients are of grad_scale * sum of losses: 1 / global batch */
    float *grads;         /* out [graph->param_floats], train only */
    float *batch_stats;   /* out [graph->buffer_floats], train only: batch mean and unbiased batch
                              variance in the places of running_mean and running_var. A channel of
                              one single value (n = 1 and a 1 x 1 map) has variance 0 */
    dpt_sums sums;        /* out */
} dpt_step;

typedef struct dpt_backend {
    const char *name; /* "ref", "dnnl" */
    /** @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ENOTSUP; why */
    int (*create)(dpt_exec **out, const dpt_graph *g, const dpt_exec_options *opt, dpl_text *why);
    /** Forward (batch statistics), loss, backward. @return DPL_OK, DPL_EINVAL (a label or n is out of
     *  range; nothing was computed), DPL_ENOMEM, DPL_EDEVICE; DPL_ECANCELED (outputs hold anything;
     *  the next call is as good as ever); why names the layer */
    int (*train)(dpt_exec *e, dpt_step *s, dpl_text *why);
    /** Forward with running statistics and the loss. What a sample contributes does not depend on
     *  how many others are in the call, but for rounding. @return as train */
    int (*evaluate)(dpt_exec *e, dpt_step *s, dpl_text *why);
    /** The same forward, logits out [n][classes] (labels unused). */
    int (*logits)(dpt_exec *e, dpt_step *s, float *out, dpl_text *why);
    /** One line per thing a user should know ("conv layer1.0.conv1: forward jit:avx512_core, …"), or
     *  NULL past the end. fallback is set to 1 when line i tells of a convolution that runs on a
     *  reference implementation, else left alone. */
    const char *(*describe)(dpt_exec *e, int i, int *fallback);
    void (*destroy)(dpt_exec **e);
} dpt_backend;

/** "auto" (dnnl when built in, else ref), "ref", "dnnl".
 *  @return NULL when unknown or not built in; why says which and what there is */
const dpt_backend *dpt_backend_find(const char *name, dpl_text *why);

extern const dpt_backend dpt_backend_ref;
#ifdef DPT_HAVE_DNNL
extern const dpt_backend dpt_backend_dnnl;
#endif

#ifdef __cplusplus
}
#endif
#endif
