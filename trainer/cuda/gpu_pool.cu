/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows in two steps, and the statistics of a batch; see gpu_pool.h. */
#include "trainer/cuda/gpu_pool.h"

#include "trainer/cuda/gpu_device.cuh"

enum { LANES = 32, WALKERS = 8 }; /* a block: columns side by side, rows one below the other */

/* Outside of templates: gpu_launch.h. */
static __device__ float *shared_of_block(void)
{
    __shared__ float shared[LANES * WALKERS];

    return shared;
}

/* Block (g, p) sums the columns from LANES * g on over part p of the rows. */
template <class T>
static __global__ void __launch_bounds__(LANES *WALKERS, 4)
    column_parts_kernel(const T *x, size_t rows, int stride, int columns, float *parts)
{
    float *const shared = shared_of_block();
    const unsigned lane = threadIdx.x % LANES, walker = threadIdx.x / LANES;
    const size_t column = (size_t)blockIdx.x * LANES + lane;
    const size_t from = rows * blockIdx.y / DPT_GPU_COLUMN_PARTS;
    const size_t to = rows * (blockIdx.y + 1) / DPT_GPU_COLUMN_PARTS;
    float sum = 0;

    if (column < (size_t)columns) {
        for (size_t r = from + walker; r < to; r += WALKERS)
            sum += dpt_to_float(x[r * (size_t)stride + column]);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (walker == 0 && column < (size_t)columns) {
        for (unsigned w = 1; w < WALKERS; w++) sum += shared[w * LANES + lane];
        parts[(size_t)blockIdx.y * (size_t)columns + column] = sum;
    }
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    column_sums_kernel(const float *parts, int columns, float *sums)
{
    const size_t column = dpt_thread();
    double sum = 0;

    if (column >= (size_t)columns) return;
    for (int p = 0; p < DPT_GPU_COLUMN_PARTS; p++)
        sum += (double)parts[(size_t)p * (size_t)columns + column];
    sums[column] = (float)sum;
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    batch_stats_kernel(const dpt_gpu_batch_stats b)
{
    const size_t c = dpt_thread();

    if (c >= (size_t)b.channels) return;
    b.out_mean[c] = b.mean[c];
    b.out_var[c] = dpt_batch_variance(b.inverse[c], b.count, b.epsilon);
}

template <class T> static int column_parts(const dpt_gpu_columns *c, void *stream)
{
    const dim3 grid(dpt_grid((size_t)c->columns, LANES, SIZE_MAX), DPT_GPU_COLUMN_PARTS);

    return DPT_LAUNCH((column_parts_kernel<T>), grid, LANES * WALKERS, 0, stream, (const T *)c->x,
                      c->rows, c->stride, c->columns, c->parts);
}

int dpt_gpu_columns_run(const dpt_gpu_columns *c, void *stream)
{
    int err;

    if (!c || !c->x || !c->sums || !c->parts || !dpt_type_known(c->type) || c->columns < 1 ||
        c->stride < c->columns || c->rows > SIZE_MAX / DPT_GPU_COLUMN_PARTS)
        return cudaErrorInvalidValue;
    err = DPT_BY_TYPE(c->type, column_parts, c, stream);
    if (err) return err;
    return DPT_LAUNCH(column_sums_kernel, dpt_grid((size_t)c->columns, DPT_THREADS, SIZE_MAX),
                      DPT_THREADS, 0, stream, c->parts, c->columns, c->sums);
}

int dpt_gpu_batch_stats_run(const dpt_gpu_batch_stats *b, void *stream)
{
    if (!b || !b->mean || !b->inverse || !b->out_mean || !b->out_var || b->channels < 1 ||
        !(b->count >= 1) || !(b->epsilon > 0))
        return cudaErrorInvalidValue;
    return DPT_LAUNCH(batch_stats_kernel, dpt_grid((size_t)b->channels, DPT_THREADS, SIZE_MAX),
                      DPT_THREADS, 0, stream, *b);
}
