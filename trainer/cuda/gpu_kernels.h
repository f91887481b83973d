/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels of a training step, as C functions that queue them on a stream of the current GPU.
 * Pointers are device memory, 16-byte aligned unless they say otherwise; a stream is a cudaStream_t.
 * Every call returns a cudaError_t as int and never waits: 0; cudaErrorInvalidValue (1) for arguments
 * that cannot be, with nothing queued; what the launch said. Without elements (n = 0) nothing is
 * queued. Results have the same bits on every run: nothing is summed by atomics, and no sum depends
 * on the grid. The arithmetic of each is in a *_math.h that the C reference shares, so that the two
 * can be compared bit by bit. */
#ifndef DPT_TRAINER_CUDA_GPU_KERNELS_H
#define DPT_TRAINER_CUDA_GPU_KERNELS_H

#include "trainer/cuda/gpu_exec.h"
#include "trainer/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pictures as they come -> what the first convolution reads. Floats are finished: they can be
 * flipped, and change layout and type; no box, no color, no normalising. */
typedef struct dpt_gpu_input {
    const void *src; /* bytes [n][src_h][src_w][3], or floats [n][3][h][w]: pixels says which */
    dpt_gpu_pixels pixels;
    int n;
    int src_h, src_w; /* of bytes */
    int h, w;         /* of the output */
    /* [n][4] x, y, width, height in source pixels, sampled bilinearly, antialiased when larger than
     * the output; pixels outside the source do not count. NULL = the whole source */
    const float *box;
    const uint8_t *flip; /* [n] 1 = mirrored left to right, or NULL */
    /* [n][12] rows of a 3 x 4 matrix on RGB in 0..255, clamped after it; or NULL */
    const float *color;
    float mean[3], std[3];
    void *dst;
    dpt_gpu_type type;
    int nchw;     /* 0 = NHWC */
    int channels; /* 3, or (NHWC only) 8: five zeros behind RGB, what tensor cores want */
} dpt_gpu_input;
/** Without box and color, and of the size of the source: bit-equal to kernels/convert.h. Scaled: the
 *  filter of kernels/resample.h in floats, not rounded to bytes between; within 0.01 levels of exact
 *  arithmetic for sources of up to 8,192 pixels a side. */
int dpt_gpu_input_run(const dpt_gpu_input *in, void *stream);

/* Mixup and CutMix on a finished batch, bit-equal to kernels/mix.h. A pixel is the partner's inside the
 * box, else the blend. */
typedef struct dpt_gpu_mix {
    const void *src; /* [n][h][w][channels] or [n][channels][h][w] */
    void *dst;       /* another batch of that form, not src */
    dpt_gpu_type type;
    int n, h, w, channels, nchw;
    const int32_t *partner; /* [n] index of the other picture, 0 .. n - 1 */
    const float *weight;    /* [n] of the own picture: mixup; or NULL */
    const int32_t *box;     /* [n][4] x, y, width, height taken from the partner: CutMix; or NULL */
} dpt_gpu_mix;
int dpt_gpu_mix_run(const dpt_gpu_mix *m, void *stream);

/* Softmax, cross-entropy, counts and the gradient, by the rules of dpt_loss(). Counts are equal to
 * its; exp() and log() differ between libraries by some 1e-16, so that losses are within 1e-12 of it
 * (relative), gradients within one unit in the last place of their type. */
typedef struct dpt_gpu_xent {
    const void *logits; /* [n][stride], of type; columns from classes on are padding */
    dpt_gpu_type type;
    int n, classes, stride;
    const int32_t *labels, *labels2; /* one out of range gives NaN as loss and gradient */
    const float *mix;                /* with labels2 */
    double grad_scale;
    const float *scale; /* the loss scale, which grad_scale is multiplied by, or NULL = 1 */
    void *grad;         /* out [n][stride] of type, padding is zero; may be logits; or NULL */
    double *rows;       /* scratch [n][3] */
    double *sums;       /* out [DPT_GPU_SUMS]; losses are not multiplied by anything */
} dpt_gpu_xent;
int dpt_gpu_xent_run(const dpt_gpu_xent *x, void *stream);

/* Weights between the flat fp32 arrays and what convolutions read: a table of tensors, one launch. */
typedef struct dpt_gpu_tensor {
    size_t flat;    /* floats from the start of the flat array; there [k][c][r][s] */
    void *typed;    /* [k_padded][r][s][c_padded] of type (KRSC); padding is zero */
    int k, c, r, s; /* a vector is k x 1 x 1 x 1 */
    int k_padded, c_padded;
} dpt_gpu_tensor;
/** table: [tensors] in device memory, tensors <= 65535. elements: of all typed tensors together,
 *  padding included (it sizes the grid). Rounded to the nearest, ties to even. */
int dpt_gpu_weights_to_typed(const dpt_gpu_tensor *table, int tensors, size_t elements,
                             dpt_gpu_type type, const float *flat, void *stream);
/** The other way; flat[i] = typed value. Padding is left out. */
int dpt_gpu_weights_to_flat(const dpt_gpu_tensor *table, int tensors, size_t elements,
                            dpt_gpu_type type, float *flat, void *stream);

/* Segments of the flat array: buckets and rules of the optimizer. At most 65535, none overlap. */
typedef struct dpt_gpu_segment {
    size_t at, count; /* floats */
    int decay;        /* 1 = weight decay applies, with LARS the adapted rate too */
} dpt_gpu_segment;
/** Copy segments of flat one behind the other into packed, each at the next multiple of 16 bytes, or
 *  back. floats: of all segments together (it sizes the grid). Gaps are left alone. */
int dpt_gpu_pack(const dpt_gpu_segment *table, int segments, size_t floats, const float *flat,
                 float *packed, void *stream);
int dpt_gpu_unpack(const dpt_gpu_segment *table, int segments, size_t floats, const float *packed,
                   float *flat, void *stream);

enum { DPT_GPU_NORM_PARTS = 32 };

/* One optimizer step over all parameters of the segments: one launch, LARS three. */
typedef struct dpt_gpu_update {
    dpt_rule rule;
    const dpt_gpu_segment *table; /* [segments] in device memory, in order of `at` */
    int segments;
    size_t floats; /* of the flat arrays */
    float *params;
    const float *grads;
    float *momentum; /* SGD, LARS: velocity, NULL when beta1 is 0; ADAMW: first moment */
    float *second;   /* ADAMW: zero before the first step, as is its momentum */
    double lr, weight_decay;
    double beta1, beta2, eps; /* beta1 is the momentum of SGD and LARS */
    double trust;             /* LARS coefficient */
    int nesterov;
    int first; /* SGD, LARS: momentum is not read. Where steps may be skipped: 0, and momentum zero */
    int64_t step; /* ADAMW: 1, 2, … */
    /* ADAMW, where steps may be skipped: device memory, the number of this step as
     * dpt_gpu_count_update() left it: step, or step - 1 when the one before it was skipped and nobody
     * knew that yet. NULL = step */
    const int64_t *done;
    /* Gradients are multiplied by planned / sums[DPT_GPU_N], and by 1 / *scale. NULL = not. Where
     * sums[DPT_GPU_N] is 0, everything is left as it is. */
    double planned;
    const double *sums;
    const float *scale;
    const int32_t *skip; /* device flag: not 0 = leave everything as it is. NULL = never */
    double *norms;       /* scratch, LARS: [segments * (2 * DPT_GPU_NORM_PARTS + 1)] */
} dpt_gpu_update;
/** SGD, ADAMW: bit-equal to dpt_sgd_update(), dpt_adamw_update(). LARS: a segment is a tensor; as
 *  dpt_lars_update(), with sums of squares in an order of its own. */
int dpt_gpu_update_run(const dpt_gpu_update *u, void *stream);
/** ++*done, unless the update with the same sums and skip leaves everything as it is. */
int dpt_gpu_count_update(int64_t *done, const double *sums, const int32_t *skip, void *stream);

/* v, average, running, stats: aligned as floats are. */

/** *flag = 1 when one of the values is infinite or NaN, else it is left alone. */
int dpt_gpu_check_finite(const float *v, size_t n, int32_t *flag, void *stream);
/** Dynamic loss scale, PyTorch's GradScaler: times backoff when *flag, times growth after `interval` good
 *  steps, unless that is infinite; good: steps since the last change. */
int dpt_gpu_scale_update(float *scale, int32_t *good, const int32_t *flag, double growth,
                         double backoff, int interval, void *stream);
/** average = decay * average + (1 - decay) * v; factors and results rounded to fp32 one by one */
int dpt_gpu_ema(float *average, const float *v, size_t n, double decay, void *stream);
/* Running statistics: running = keep * running + (1 - keep) * stats * planned / sums[DPT_GPU_N], in
 * double; as dpt_reduce_slice() for one part of share 1. sums NULL = without that factor; no samples
 * (0): as before. */
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
/** v *= (float)factor */
int dpt_gpu_scale(float *v, size_t n, double factor, void *stream);

struct dpt_gpu_columns;
struct dpt_gpu_batch_stats;

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
    int (*count_update)(int64_t *done, const double *sums, const int32_t *skip, void *stream);
    int (*check_finite)(const float *v, size_t n, int32_t *flag, void *stream);
    int (*scale_update)(float *scale, int32_t *good, const int32_t *flag, double growth,
                        double backoff, int interval, void *stream);
    int (*ema)(float *average, const float *v, size_t n, double decay, void *stream);
    int (*running)(const dpt_gpu_running *r, void *stream);
    int (*scale)(float *v, size_t n, double factor, void *stream);
    int (*columns)(const struct dpt_gpu_columns *c, void *stream); /* these: gpu_pool.h */
    int (*batch_stats)(const struct dpt_gpu_batch_stats *b, void *stream);
} dpt_gpu_kernels;

extern const dpt_gpu_kernels dpt_gpu_kernels_table;

#ifdef __cplusplus
}
#endif
#endif
