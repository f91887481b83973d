/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels of a training step, as C functions that queue them on a stream of the current GPU.
 * Pointers are device memory, 16-byte aligned unless they say otherwise; a stream is a cudaStream_t.
 * Every call returns a cudaError_t as int (0 = success) and never waits. Results have the same bits
 * on every run: nothing is summed by atomics. The arithmetic of each is in a *_math.h that the C
 * reference shares, so that the two can be compared bit by bit. */
#ifndef DPT_TRAINER_CUDA_GPU_KERNELS_H
#define DPT_TRAINER_CUDA_GPU_KERNELS_H

#include "trainer/cuda/gpu_exec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pictures as they come -> what the first convolution reads. */
typedef struct dpt_gpu_input {
    const void
        *src; /* bytes [n][src_h][src_w][3], or floats [n][3][h][w] (pixels says; then no box) */
    dpt_gpu_pixels pixels;
    int n, src_h, src_w;
    int h, w; /* of the output */
    const float
        *box; /* [n][4] x, y, width, height in source pixels, sampled bilinearly, antialiased
                           when larger than the output; NULL = the whole source */
    const uint8_t *flip; /* [n] 1 = mirrored left to right, or NULL */
    const float
        *color; /* [n][12] rows of a 3 x 4 matrix on RGB in 0..255, clamped after it; or NULL */
    float mean[3], std[3];
    void *dst;
    dpt_gpu_type type;
    int nchw;     /* 0 = NHWC */
    int channels; /* 3, or (NHWC only) 8: five zeros behind RGB, what tensor cores want */
} dpt_gpu_input;
int dpt_gpu_input_run(const dpt_gpu_input *in, void *stream);

/* Mixup and CutMix on a finished batch; the rules of dpl_options' mixing (kernels/mix.h). */
typedef struct dpt_gpu_mix {
    const void *src; /* [n][h][w][channels] or [n][channels][h][w] */
    void *dst;       /* another batch of that form */
    dpt_gpu_type type;
    int n, h, w, channels, nchw;
    const int32_t *partner; /* [n] index of the other picture */
    const float *weight;    /* [n] of the own picture: mixup; or NULL */
    const int32_t *box;     /* [n][4] x, y, width, height taken from the partner: CutMix; or NULL */
} dpt_gpu_mix;
int dpt_gpu_mix_run(const dpt_gpu_mix *m, void *stream);

/* Softmax, cross-entropy, counts and the gradient, as dpt_loss(). */
typedef struct dpt_gpu_xent {
    const void *logits; /* [n][stride], of type; columns from classes on are padding */
    dpt_gpu_type type;
    int n, classes, stride;
    const int32_t *labels, *labels2;
    const float *mix;
    double grad_scale;
    void *grad;   /* out [n][stride] of type, padding is zero; may be logits; or NULL */
    double *rows; /* scratch [n][3] */
    double *sums; /* out [DPT_GPU_SUMS] */
} dpt_gpu_xent;
int dpt_gpu_xent_run(const dpt_gpu_xent *x, void *stream);

/* Weights between the flat fp32 arrays and what convolutions read: a table of tensors, one launch. */
typedef struct dpt_gpu_tensor {
    size_t flat;    /* floats from the start of the flat array; there [k][c][r][s] */
    void *typed;    /* [k_padded][r][s][c_padded] of type (KRSC); padding is zero */
    int k, c, r, s; /* a vector is k x 1 x 1 x 1 */
    int k_padded, c_padded;
} dpt_gpu_tensor;
/** table: [tensors] in device memory. elements: of all typed tensors together, padding included. */
int dpt_gpu_weights_to_typed(const dpt_gpu_tensor *table, int tensors, size_t elements,
                             dpt_gpu_type type, const float *flat, void *stream);
/** The other way; flat[i] = typed value. Padding is left out. */
int dpt_gpu_weights_to_flat(const dpt_gpu_tensor *table, int tensors, size_t elements,
                            dpt_gpu_type type, float *flat, void *stream);

/* Segments of the flat array: buckets and rules of the optimizer. */
typedef struct dpt_gpu_segment {
    size_t at, count; /* floats */
    int decay;        /* 1 = weight decay applies */
} dpt_gpu_segment;
/** Copy segments of flat one behind the other into packed (16-byte aligned each), or back. */
int dpt_gpu_pack(const dpt_gpu_segment *table, int segments, size_t floats, const float *flat,
                 float *packed, void *stream);
int dpt_gpu_unpack(const dpt_gpu_segment *table, int segments, size_t floats, const float *packed,
                   float *flat, void *stream);

typedef enum dpt_gpu_rule { DPT_GPU_SGD, DPT_GPU_ADAMW, DPT_GPU_LARS } dpt_gpu_rule;

/* One optimizer step over all parameters. */
typedef struct dpt_gpu_update {
    dpt_gpu_rule rule;
    const dpt_gpu_segment *table; /* [segments] in device memory, in order of `at` */
    int segments;
    size_t floats; /* of the flat arrays */
    float *params, *grads;
    float *momentum; /* SGD, LARS: velocity; ADAMW: first moment */
    float *second;   /* ADAMW */
    double lr, weight_decay;
    double beta1, beta2, eps; /* beta1 is the momentum of SGD and LARS */
    double trust;             /* LARS coefficient */
    int nesterov, first;
    int64_t step; /* ADAMW: 1, 2, … */
    /* Gradients are multiplied by planned / sums[DPT_GPU_N], and by 1 / *scale. NULL = not. No samples
     * (sums[DPT_GPU_N] is 0): everything stays as it is. */
    double planned;
    const double *sums;
    const float *scale;
    const int32_t *skip; /* device flag: not 0 = leave everything as it is. NULL = never */
    float *norms;        /* scratch, LARS: [2 * segments] */
} dpt_gpu_update;
int dpt_gpu_update_run(const dpt_gpu_update *u, void *stream);

/** *flag |= 1 when one of the values is infinite or NaN. */
int dpt_gpu_check_finite(const float *v, size_t n, int32_t *flag, void *stream);
/** Dynamic loss scale, PyTorch's GradScaler: halved (backoff) when *flag, doubled after `interval` good
 *  steps; good: steps since the last change. */
int dpt_gpu_scale_update(float *scale, int32_t *good, const int32_t *flag, double growth,
                         double backoff, int interval, void *stream);
/** average = decay * average + (1 - decay) * v */
int dpt_gpu_ema(float *average, const float *v, size_t n, double decay, void *stream);
/* Running statistics: running = keep * running + (1 - keep) * stats * planned / sums[DPT_GPU_N]; as
 * dpt_reduce_slice() for one part of share 1. sums NULL = without that factor; no samples (0): as
 * before. */
typedef struct dpt_gpu_running {
    float *running;
    const float *stats;
    size_t n;
    double keep;
    double planned; /* what stats are weighted by, until the real number of samples is known */
    const double *sums;
    const int32_t *skip; /* as in dpt_gpu_update */
} dpt_gpu_running;
int dpt_gpu_running_run(const dpt_gpu_running *r, void *stream);
/** v *= factor */
int dpt_gpu_scale(float *v, size_t n, double factor, void *stream);

/* The same functions, for who opens the plug-in. */
typedef struct dpt_gpu_kernels {
    int (*input)(const dpt_gpu_input *in, void *stream);
    int (*mix)(const dpt_gpu_mix *m, void *stream);
    int (*xent)(const dpt_gpu_xent *x, void *stream);
    int (*weights_to_typed)(const dpt_gpu_tensor *table, int tensors, size_t elements,
                            dpt_gpu_type type, const float *flat, void *stream);
    int (*weights_to_flat)(const dpt_gpu_tensor *table, int tensors, size_t elements,
                           dpt_gpu_type type, float *flat, void *stream);
    int (*pack)(const dpt_gpu_segment *table, int segments, size_t floats, const float *flat,
                float *packed, void *stream);
    int (*unpack)(const dpt_gpu_segment *table, int segments, size_t floats, const float *packed,
                  float *flat, void *stream);
    int (*update)(const dpt_gpu_update *u, void *stream);
    int (*check_finite)(const float *v, size_t n, int32_t *flag, void *stream);
    int (*scale_update)(float *scale, int32_t *good, const int32_t *flag, double growth,
                        double backoff, int interval, void *stream);
    int (*ema)(float *average, const float *v, size_t n, double decay, void *stream);
    int (*running)(const dpt_gpu_running *r, void *stream);
    int (*scale)(float *v, size_t n, double factor, void *stream);
} dpt_gpu_kernels;

extern const dpt_gpu_kernels dpt_gpu_kernels_table;

#ifdef __cplusplus
}
#endif
#endif
