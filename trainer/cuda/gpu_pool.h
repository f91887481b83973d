/* SPDX-License-Identifier: Apache-2.0 */
/* Two reductions that the network needs beside cuDNN, by the rules of gpu_kernels.h. */
#ifndef DPT_TRAINER_CUDA_GPU_POOL_H
#define DPT_TRAINER_CUDA_GPU_POOL_H

#include "kernels/shared.h"
#include "trainer/cuda/gpu_exec.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows are cut into that many parts whatever the grid is, so that sums have the same bits. */
enum { DPT_GPU_COLUMN_PARTS = 128 };

/* Sums over the rows of a matrix: the gradient of a bias. cuDNN's reduction has no engine that promises
 * the same bits on every run. */
typedef struct dpt_gpu_columns {
    const void *x; /* [rows][stride] of type */
    dpt_gpu_type type;
    size_t rows;
    int stride, columns; /* columns <= stride; the rest is padding */
    float *sums;         /* out [columns], aligned as floats are */
    float *parts;        /* scratch [DPT_GPU_COLUMN_PARTS * columns] */
} dpt_gpu_columns;
int dpt_gpu_columns_run(const dpt_gpu_columns *c, void *stream);

/* Mean and unbiased variance of a batch, from what normalised it. */
typedef struct dpt_gpu_batch_stats {
    const float *mean, *inverse; /* [channels] inverse: 1 / sqrt(biased variance + epsilon) */
    int channels;
    double count;              /* values per channel */
    double epsilon;            /* of the normalisation */
    float *out_mean, *out_var; /* [channels], aligned as floats are */
} dpt_gpu_batch_stats;
int dpt_gpu_batch_stats_run(const dpt_gpu_batch_stats *b, void *stream);

/** The variance is exact to some 1e-7 of (variance + epsilon), the rounding of `inverse`. A channel of
 *  one value has none. NaN stays NaN. */
DPL_SHARED float dpt_batch_variance(float inverse, double count, double epsilon)
{
    const double i = (double)inverse, biased = 1 / (i * i) - epsilon;

    if (count < 2) return 0;
    return biased < 0 ? 0 : (float)(biased * count / (count - 1));
}

#ifdef __cplusplus
}
#endif
#endif
