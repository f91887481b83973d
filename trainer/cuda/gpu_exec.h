/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU's network: what turns device memory into gradients. The team (team_cuda.h) knows nothing of
 * cuDNN, and an executor knows nothing of other GPUs, so that the team's host code also runs over an
 * executor that computes on the host (tests/fake/). Every call queues work on the executor's stream
 * and returns; none waits for the GPU. One executor belongs to one thread. Pointers of a step are
 * device memory unless they say otherwise, and must stay as they are until the stream is past them. */
#ifndef DPT_TRAINER_CUDA_GPU_EXEC_H
#define DPT_TRAINER_CUDA_GPU_EXEC_H

#include "base/text.h"
#include "trainer/graph.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of activations and of the weights that convolutions read. Parameters, gradients,
 * statistics and sums are fp32 (sums: double) whatever it is. */
typedef enum dpt_gpu_type { DPT_GPU_FP32 = 0, DPT_GPU_BF16 = 1, DPT_GPU_FP16 = 2 } dpt_gpu_type;

/** "fp32", "bf16", "fp16" */
static inline const char *dpt_gpu_type_name(dpt_gpu_type t)
{
    return t == DPT_GPU_BF16 ? "bf16" : t == DPT_GPU_FP16 ? "fp16" : "fp32";
}

/* How a batch's pictures arrive. */
typedef enum dpt_gpu_pixels {
    DPT_GPU_PIXELS_U8_NHWC = 0, /* bytes, [n][h][w][3], not normalised yet */
    DPT_GPU_PIXELS_F32_NCHW = 1 /* floats, [n][3][h][w], finished */
} dpt_gpu_pixels;

typedef struct dpt_gpu_exec dpt_gpu_exec;

typedef struct dpt_gpu_exec_options {
    const dpt_graph *graph; /* outlives the executor */
    int gpu;                /* CUDA ordinal of the visible GPUs; the calling thread's current one */
    void *stream;           /* cudaStream_t that all work is queued on */
    int max_n;              /* largest number of samples per call */
    dpt_gpu_type type;
    dpt_gpu_pixels pixels;
    float mean[3], std[3]; /* (value / 255 - mean) / std, for bytes */
    const char *cache;     /* folder for what is slow to build (plans), or NULL = none */
    size_t workspace_cap;  /* bytes of scratch that one operation may ask for [256 MiB] */
    int threads;           /* of the host that build [usable processors] */
    const int *cancel;     /* as in dpt_exec_options: looked at while building, or NULL */
} dpt_gpu_exec_options;

enum { DPT_GPU_LOSS = 0, DPT_GPU_TOP1 = 1, DPT_GPU_TOP5 = 2, DPT_GPU_N = 3, DPT_GPU_SUMS = 4 };

/** One call's inputs and outputs; the meaning is that of dpt_step. n >= 1. */
typedef struct dpt_gpu_step {
    const void *pixels;     /* dpt_gpu_exec_options.pixels */
    const int32_t *labels;  /* [n] */
    const int32_t *labels2; /* [n] or NULL, with mix */
    const float *mix;       /* [n] or NULL */
    int n;
    const float *params;  /* [graph->param_floats] in the graph's layout, fp32 */
    const float *buffers; /* [graph->buffer_floats], read by evaluate only */
    double grad_scale;    /* gradients are of grad_scale * sum of losses */
    float *grads;         /* out [param_floats], train only */
    float *batch_stats;   /* out [buffer_floats], train only */
    double *sums;         /* out [DPT_GPU_SUMS] */
    /** Train only, called in the calling thread while the backward pass is being queued: once the
     *  stream has got here, grads[from .. param_floats) are final. from falls from call to call and
     *  ends at 0. NULL = nobody asks. A failure (a DPL_ status) ends the call with that status. */
    int (*ready)(void *arg, size_t from);
    void *arg;
} dpt_gpu_step;

typedef struct dpt_gpu_exec_ops {
    const char *name; /* "cudnn", "ref" (of the tests) */
    /** Build everything: memory, plans. Blocks. @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ENOTSUP
     *  (the GPU cannot do this type), DPL_ECANCELED; why names the layer and what was asked for */
    int (*create)(dpt_gpu_exec **out, const dpt_gpu_exec_options *opt, dpl_text *why);
    /** @return DPL_OK, DPL_EDEVICE, what ready() returned; why names the layer */
    int (*train)(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why);
    int (*evaluate)(dpt_gpu_exec *e, const dpt_gpu_step *s, dpl_text *why);
    /** As dpt_backend.describe: line i of what a user should know, or NULL past the end. */
    const char *(*describe)(dpt_gpu_exec *e, int i, int *fallback);
    size_t (*memory)(const dpt_gpu_exec *e); /* bytes of device memory it holds */
    void (*destroy)(dpt_gpu_exec **e);       /* its stream has been waited for */
} dpt_gpu_exec_ops;

/** The executor that this plug-in was linked with: cuDNN's, or in tests one on the host. */
const dpt_gpu_exec_ops *dpt_gpu_exec_linked(void);

#ifdef __cplusplus
}
#endif
#endif
