/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, cross-entropy, counts and gradient: a block per sample, then one block for the sums. Sums
 * are taken in double, per thread and then over the block in a fixed order. The logits of a batch are
 * a few hundred kilobytes in the second-level cache: plain accesses do. */
#include "trainer/cuda/gpu_device.cuh"

#include "trainer/loss_math.h"

#include <math.h>

enum { ROW_LOSS, ROW_TOP1, ROW_TOP5, ROW };

/* What a block shares. */
struct dpt_xent_shared {
    double number[DPT_THREADS];
    int count[DPT_THREADS];
};

/* Outside of templates: see stage_of_block() of gpu_input.cu. */
static __device__ dpt_xent_shared &shared_of_block(void)
{
    __shared__ dpt_xent_shared s;

    return s;
}

/* The target of sample i. @return false when a label is out of range */
static __device__ bool target_of(const dpt_gpu_xent &x, int i, dpt_target *t)
{
    const int label = x.labels[i], label2 = x.labels2 ? x.labels2[i] : label;

    *t = dpt_target_of(label, label2, x.labels2 ? (double)x.mix[i] : 1);
    return label >= 0 && label < x.classes && label2 >= 0 && label2 < x.classes;
}

/* log(sum of exp(logits)) of one sample */
template <class T>
static __device__ double log_sum_of(const T *logits, int classes, dpt_xent_shared &s)
{
    double max = -INFINITY, sum = 0;

    for (int j = (int)threadIdx.x; j < classes; j += (int)DPT_THREADS)
        max = dpt_larger::of(max, (double)dpt_to_float(logits[j]));
    max = dpt_block_join<dpt_larger>(max, s.number);
    for (int j = (int)threadIdx.x; j < classes; j += (int)DPT_THREADS)
        sum += exp((double)dpt_to_float(logits[j]) - max);
    return max + log(dpt_block_join<dpt_add>(sum, s.number));
}

/* Position of the label among the logits, largest first. */
template <class T>
static __device__ int rank_of(const T *logits, int classes, int label, dpt_xent_shared &s)
{
    const float own = dpt_to_float(logits[label]);
    int rank = 0;

    for (int j = (int)threadIdx.x; j < classes; j += (int)DPT_THREADS)
        rank += dpt_ranks_before(dpt_to_float(logits[j]), j, own, label);
    rank = dpt_block_join<dpt_add>(rank, s.count);
    return isnan(own) ? classes + 5 : rank;
}

/* grad may be logits: nobody reads them any more but each thread its own. */
template <class T>
static __device__ void gradient(const dpt_gpu_xent &x, const T *logits, T *grad,
                                const dpt_target &t, double log_sum)
{
    const double scale = x.grad_scale * (x.scale ? (double)*x.scale : 1);

    for (int j = (int)threadIdx.x; j < x.stride; j += (int)DPT_THREADS) {
        float g = 0;

        if (j < x.classes) {
            const double p = exp((double)dpt_to_float(logits[j]) - log_sum);

            g = dpt_target_gradient(&t, j, p, scale);
        }
        grad[j] = dpt_of_float<T>(g);
    }
}

template <class T>
static __global__ void __launch_bounds__(DPT_THREADS, 2) xent_kernel(const dpt_gpu_xent x)
{
    dpt_xent_shared &s = shared_of_block();

    for (int i = (int)blockIdx.x; i < x.n; i += (int)gridDim.x) {
        const T *logits = (const T *)x.logits + (size_t)i * (size_t)x.stride;
        double log_sum = NAN, loss = NAN;
        dpt_target t;
        int rank = 5;

        if (target_of(x, i, &t)) { /* the same for all threads */
            log_sum = log_sum_of(logits, x.classes, s);
            rank = rank_of(logits, x.classes, t.label[0], s);
            loss = dpt_target_loss(&t, log_sum, dpt_to_float(logits[t.label[0]]),
                                   dpt_to_float(logits[t.label[1]]));
        }
        if (threadIdx.x == 0) {
            x.rows[ROW * (size_t)i + ROW_LOSS] = loss;
            x.rows[ROW * (size_t)i + ROW_TOP1] = rank < 1;
            x.rows[ROW * (size_t)i + ROW_TOP5] = rank < 5;
        }
        __syncthreads(); /* grad may lie over the labels' logits */
        if (x.grad) gradient(x, logits, (T *)x.grad + (size_t)i * (size_t)x.stride, t, log_sum);
    }
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    xent_sum_kernel(const double *rows, int n, double *sums)
{
    __shared__ double shared[DPT_THREADS];

    for (int k = 0; k < ROW; k++) {
        double sum = 0;

        for (int i = (int)threadIdx.x; i < n; i += (int)DPT_THREADS)
            sum += rows[ROW * (size_t)i + (size_t)k];
        sum = dpt_block_join<dpt_add>(sum, shared);
        if (threadIdx.x == 0) sums[DPT_GPU_LOSS + k] = sum;
    }
    if (threadIdx.x == 0) sums[DPT_GPU_N] = n;
}

template <class T> static int launch(const dpt_gpu_xent &x, void *stream)
{
    const unsigned grid = dpt_grid((size_t)x.n, 1, DPT_BLOCKS);

    return DPT_LAUNCH((xent_kernel<T>), grid, DPT_THREADS, 0, stream, x);
}

static int is_valid(const dpt_gpu_xent *x)
{
    if (!x->logits || !x->labels || !x->rows || !x->sums || !dpt_type_known(x->type)) return 0;
    if (x->n < 0 || x->classes < 1 || x->stride < x->classes || x->stride > INT32_MAX - 256)
        return 0;
    return !x->labels2 || x->mix;
}

int dpt_gpu_xent_run(const dpt_gpu_xent *x, void *stream)
{
    int err;

    if (!x || !is_valid(x)) return cudaErrorInvalidValue;
    if (!x->n) return cudaSuccess;
    if ((err = DPT_BY_TYPE(x->type, launch, *x, stream))) return err;
    return DPT_LAUNCH(xent_sum_kernel, 1, DPT_THREADS, 0, stream, x->rows, x->n, x->sums);
}
