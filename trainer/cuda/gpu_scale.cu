/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over flat arrays that may begin anywhere: in 16 bytes where all arrays lie alike. */
#include "trainer/cuda/gpu_device.cuh"

#include "trainer/cuda/gpu_math.h"
#include "trainer/loss_math.h"

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    finite_kernel(const float *v, size_t n, int32_t *flag)
{
    __shared__ int shared[DPT_THREADS];
    const unsigned lead = dpt_lead(v);
    int bad = 0;

    for (size_t q = dpt_thread(); q < dpt_fours(n, lead); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, lead);

        if (f.whole) {
            const dpt_vec<float> x = dpt_load16(v + f.from);

            for (int k = 0; k < 4; k++) bad |= dpt_bits_not_finite(__float_as_uint(x.at[k]));
        } else {
            for (size_t i = f.from; i < f.to; i++)
                bad |= dpt_bits_not_finite(__float_as_uint(v[i]));
        }
    }
    bad = dpt_block_join<dpt_add>(bad, shared);
    if (bad && threadIdx.x == 0) atomicOr(flag, 1); /* other blocks may, too */
}

static __global__ void scale_update_kernel(float *scale, int32_t *good, const int32_t *flag,
                                           double growth, double backoff, int interval)
{
    dpt_scale_step(scale, good, *flag != 0, growth, backoff, interval);
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    ema_kernel(float *average, const float *v, size_t n, float decay, float rest)
{
    const unsigned lead = dpt_lead(average);
    const bool alike = lead == dpt_lead(v);

    for (size_t q = dpt_thread(); q < dpt_fours(n, lead); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, lead);

        if (f.whole && alike) {
            const dpt_vec<float> x = dpt_load16(v + f.from);
            dpt_vec<float> a = dpt_load16(average + f.from);

            for (int k = 0; k < 4; k++) a.at[k] = dpt_ema(a.at[k], x.at[k], decay, rest);
            dpt_store16(average + f.from, a);
        } else {
            for (size_t i = f.from; i < f.to; i++)
                average[i] = dpt_ema(average[i], v[i], decay, rest);
        }
    }
}

/* Some ten thousand numbers, in double: nothing to be gained by wide accesses. */
static __global__ void __launch_bounds__(DPT_THREADS, 4) running_kernel(const dpt_gpu_running r)
{
    const double n = r.sums ? r.sums[DPT_GPU_N] : 1, share = r.sums ? r.planned / n : 1;

    if ((r.skip && *r.skip) || n == 0) return;
    for (size_t i = dpt_thread(); i < r.n; i += dpt_stride())
        r.running[i] = dpt_running(r.running[i], share * (double)r.stats[i], r.keep);
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    scale_kernel(float *v, size_t n, float factor)
{
    const unsigned lead = dpt_lead(v);

    for (size_t q = dpt_thread(); q < dpt_fours(n, lead); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, lead);

        if (f.whole) {
            dpt_vec<float> x = dpt_load16(v + f.from);

            for (int k = 0; k < 4; k++) x.at[k] *= factor;
            dpt_store16(v + f.from, x);
        } else {
            for (size_t i = f.from; i < f.to; i++) v[i] *= factor;
        }
    }
}

/* Blocks for n floats, of which the first and last group may be part of four. */
static unsigned grid_of(size_t n)
{
    return dpt_grid(n + 6, DPT_THREADS * 4, DPT_BLOCKS);
}

int dpt_gpu_check_finite(const float *v, size_t n, int32_t *flag, void *stream)
{
    if (!v || !flag) return cudaErrorInvalidValue;
    if (!n) return cudaSuccess;
    return DPT_LAUNCH(finite_kernel, grid_of(n), DPT_THREADS, 0, stream, v, n, flag);
}

int dpt_gpu_scale_update(float *scale, int32_t *good, const int32_t *flag, double growth,
                         double backoff, int interval, void *stream)
{
    if (!scale || !good || !flag || !(growth >= 1) || !(backoff > 0 && backoff <= 1) ||
        interval < 1)
        return cudaErrorInvalidValue;
    return DPT_LAUNCH(scale_update_kernel, 1, 1, 0, stream, scale, good, flag, growth, backoff,
                      interval);
}

int dpt_gpu_ema(float *average, const float *v, size_t n, double decay, void *stream)
{
    if (!average || !v || !(decay >= 0 && decay <= 1)) return cudaErrorInvalidValue;
    if (!n) return cudaSuccess;
    return DPT_LAUNCH(ema_kernel, grid_of(n), DPT_THREADS, 0, stream, average, v, n, (float)decay,
                      (float)(1 - decay));
}

int dpt_gpu_running_run(const dpt_gpu_running *r, void *stream)
{
    if (!r || !r->running || !r->stats || !(r->keep >= 0 && r->keep <= 1) ||
        (r->sums && !(r->planned > 0)))
        return cudaErrorInvalidValue;
    if (!r->n) return cudaSuccess;
    return DPT_LAUNCH(running_kernel, dpt_grid(r->n, DPT_THREADS, DPT_BLOCKS), DPT_THREADS, 0,
                      stream, *r);
}

int dpt_gpu_scale(float *v, size_t n, double factor, void *stream)
{
    if (!v) return cudaErrorInvalidValue;
    if (!n) return cudaSuccess;
    return DPT_LAUNCH(scale_kernel, grid_of(n), DPT_THREADS, 0, stream, v, n, (float)factor);
}
