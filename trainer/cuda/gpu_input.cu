/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as they come -> what the first convolution reads, in one pass: crop, scale, flip, color,
 * normalise, layout, type. A thread makes one pixel. Three-channel pixels go through shared memory, so
 * that they leave in whole 16 bytes where a picture begins on 16 bytes. */
#include "trainer/cuda/gpu_device.cuh"

#include "kernels/convert_math.h"
#include "trainer/cuda/gpu_math.h"

#include <limits.h>

enum { NHWC3, NHWC8, NCHW };

struct dpt_input_job {
    dpt_gpu_input in;
    float scale[3], bias[3];
    int sampled; /* box or size ask for it */
};

struct dpt_rgb {
    float c[3];
};

static __device__ dpt_rgb sample(const dpt_input_job &job, int picture, int x, int y)
{
    const dpt_gpu_input &in = job.in;
    const uint8_t *src =
        (const uint8_t *)in.src + (size_t)picture * (size_t)in.src_h * (size_t)in.src_w * 3;
    const float *box = in.box ? in.box + 4 * (size_t)picture : nullptr;
    const dpt_span h =
        dpt_span_of(box ? box[0] : 0, box ? box[2] : (float)in.src_w, in.w, x, in.src_w);
    const dpt_span v =
        dpt_span_of(box ? box[1] : 0, box ? box[3] : (float)in.src_h, in.h, y, in.src_h);
    dpt_rgb out = { { 0, 0, 0 } };
    float rows = 0, columns = 0;

    for (int k = h.lo; k < h.hi; k++) columns += dpt_span_weight(&h, k);
    for (int j = v.lo; j < v.hi; j++) {
        const uint8_t *row = src + (size_t)j * (size_t)in.src_w * 3;
        const float weight = dpt_span_weight(&v, j);
        dpt_rgb sum = { { 0, 0, 0 } };

        for (int k = h.lo; k < h.hi; k++) {
            const float w = dpt_span_weight(&h, k);

            for (int c = 0; c < 3; c++) sum.c[c] += w * (float)row[3 * (size_t)k + c];
        }
        for (int c = 0; c < 3; c++) out.c[c] += weight * sum.c[c];
        rows += weight;
    }
    rows = rows * columns > 0 ? 1 / (rows * columns) : 0;
    for (int c = 0; c < 3; c++) out.c[c] *= rows;
    return out;
}

static __device__ dpt_rgb byte_pixel(const dpt_input_job &job, int picture, int x, int y)
{
    const dpt_gpu_input &in = job.in;
    const float *m = in.color ? in.color + 12 * (size_t)picture : nullptr;
    dpt_rgb p;

    if (job.sampled) {
        p = sample(job, picture, x, y);
    } else {
        const size_t row = (size_t)picture * (size_t)in.h + (size_t)y;
        const uint8_t *at = (const uint8_t *)in.src + (row * (size_t)in.w + (size_t)x) * 3;

        for (int c = 0; c < 3; c++) p.c[c] = at[c];
    }
    if (m) {
        const dpt_rgb q = p;

        for (int c = 0; c < 3; c++) p.c[c] = dpt_color_row(m + 4 * c, q.c[0], q.c[1], q.c[2]);
    }
    for (int c = 0; c < 3; c++) p.c[c] = dpl_normal(p.c[c], job.scale[c], job.bias[c]);
    return p;
}

/* Output pixel `at` of a picture. */
static __device__ dpt_rgb pixel(const dpt_input_job &job, int picture, unsigned at)
{
    const dpt_gpu_input &in = job.in;
    const int y = (int)(at / (unsigned)in.w), column = (int)(at % (unsigned)in.w);
    const int x = in.flip && in.flip[picture] ? in.w - 1 - column : column;
    const size_t plane = (size_t)in.h * (size_t)in.w;
    dpt_rgb p;

    if (in.pixels == DPT_GPU_PIXELS_U8_NHWC) return byte_pixel(job, picture, x, y);
    for (int c = 0; c < 3; c++) {
        const size_t first = ((size_t)picture * 3 + c) * plane;

        p.c[c] = ((const float *)in.src)[first + (size_t)y * (size_t)in.w + (size_t)x];
    }
    return p;
}

template <class T> static __device__ void store8(T *dst, const dpt_rgb &p)
{
    enum { PER = 16 / sizeof(T) };

    for (int first = 0; first < 8; first += PER) {
        dpt_vec<T> v;

        for (int k = 0; k < PER; k++)
            v.at[k] = dpt_of_float<T>(first + k < 3 ? p.c[first + k < 3 ? first + k : 0] : 0.f);
        dpt_store16(dst + first, v);
    }
}

/* Shared memory of three floats per thread. Not of T in a template: there g++ would ignore where the
 * tests' shim wants it to lie. */
static __device__ void *stage_of_block(void)
{
    __shared__ __align__(16) unsigned char stage[3 * DPT_THREADS * sizeof(float)];

    return stage;
}

/* The whole block: count elements from shared memory, which is aligned, to dst, which need not be. */
template <class T> static __device__ void store_run(T *dst, const T *stage, unsigned count)
{
    enum { PER = 16 / sizeof(T) };
    const unsigned whole = dpt_aligned16(dst) ? count / PER : 0;

    for (unsigned i = threadIdx.x; i < whole; i += DPT_THREADS)
        dpt_store16(dst + i * PER, dpt_load16(stage + i * PER));
    for (unsigned i = whole * PER + threadIdx.x; i < count; i += DPT_THREADS) dst[i] = stage[i];
}

/* Up to DPT_THREADS pixels of a picture of three channels, from `first` on. */
template <class T, int LAYOUT>
static __device__ void store_tile(const dpt_input_job &job, int picture, unsigned first,
                                  const dpt_rgb &p)
{
    T *const stage = (T *)stage_of_block();
    const unsigned plane = (unsigned)job.in.h * (unsigned)job.in.w, me = threadIdx.x;
    const unsigned count = plane - first < DPT_THREADS ? plane - first : DPT_THREADS;
    T *dst = (T *)job.in.dst + (size_t)picture * 3 * plane;

    for (int c = 0; c < 3; c++)
        stage[LAYOUT == NCHW ? c * DPT_THREADS + me : 3 * me + c] = dpt_of_float<T>(p.c[c]);
    __syncthreads();
    if constexpr (LAYOUT == NHWC3) {
        store_run(dst + 3 * (size_t)first, stage, 3 * count);
    } else {
        for (int c = 0; c < 3; c++)
            store_run(dst + (size_t)c * plane + first, stage + c * DPT_THREADS, count);
    }
    __syncthreads(); /* stage is used again */
}

template <class T, int LAYOUT>
static __global__ void __launch_bounds__(DPT_THREADS, 4) input_kernel(const dpt_input_job job)
{
    const unsigned plane = (unsigned)job.in.h * (unsigned)job.in.w;

    for (int picture = (int)blockIdx.y; picture < job.in.n; picture += (int)gridDim.y) {
        for (unsigned first = blockIdx.x * DPT_THREADS; first < plane;
             first += gridDim.x * DPT_THREADS) {
            const unsigned at = first + threadIdx.x;
            dpt_rgb p = { { 0, 0, 0 } };

            if (at < plane) p = pixel(job, picture, at);
            if constexpr (LAYOUT != NHWC8)
                store_tile<T, LAYOUT>(job, picture, first, p);
            else if (at < plane)
                store8((T *)job.in.dst + ((size_t)picture * plane + at) * 8, p);
        }
    }
}

template <class T> static int launch(const dpt_input_job &job, void *stream)
{
    const unsigned plane = (unsigned)job.in.h * (unsigned)job.in.w;
    const dim3 grid(dpt_grid(plane, DPT_THREADS, DPT_BLOCKS),
                    dpt_grid((size_t)job.in.n, 1, DPT_BLOCKS));

    if (job.in.nchw) return DPT_LAUNCH((input_kernel<T, NCHW>), grid, DPT_THREADS, 0, stream, job);
    if (job.in.channels == 3)
        return DPT_LAUNCH((input_kernel<T, NHWC3>), grid, DPT_THREADS, 0, stream, job);
    return DPT_LAUNCH((input_kernel<T, NHWC8>), grid, DPT_THREADS, 0, stream, job);
}

static int is_valid(const dpt_gpu_input *in)
{
    const int bytes = in->pixels == DPT_GPU_PIXELS_U8_NHWC;

    if (!bytes && in->pixels != DPT_GPU_PIXELS_F32_NCHW) return 0;
    if (!in->src || !in->dst || in->n < 0 || in->h < 1 || in->w < 1 || in->h > INT_MAX / in->w)
        return 0;
    if (bytes ? in->src_h < 1 || in->src_w < 1 : in->box || in->color) return 0;
    if (!dpt_type_known(in->type)) return 0;
    if (in->channels != 3 && (in->channels != 8 || in->nchw)) return 0;
    for (int c = 0; bytes && c < 3; c++)
        if (!(in->std[c] > 0)) return 0;
    return in->channels == 3 || dpt_aligned16(in->dst);
}

int dpt_gpu_input_run(const dpt_gpu_input *in, void *stream)
{
    dpt_input_job job;

    if (!in || !is_valid(in)) return cudaErrorInvalidValue;
    if (!in->n) return cudaSuccess;
    memset(&job, 0, sizeof job);
    job.in = *in;
    job.sampled = in->box || in->src_h != in->h || in->src_w != in->w;
    for (int c = 0; c < 3 && in->pixels == DPT_GPU_PIXELS_U8_NHWC; c++) {
        job.scale[c] = dpl_normal_scale((double)in->std[c]);
        job.bias[c] = dpl_normal_bias((double)in->mean[c], (double)in->std[c]);
    }
    return DPT_BY_TYPE(in->type, launch, job, stream);
}
