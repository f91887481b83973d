/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the tests: plants.h says what each does. */
#include "tests/fake/cuda/plants.h"

#include "trainer/cuda/gpu_launch.h"

enum { WARP = 32, WARPS = 8 };

static __global__ void place(int *out)
{
    const unsigned in_grid = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * (size_t)blockIdx.z);
    const unsigned in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned i = in_grid * blockDim.x * blockDim.y * blockDim.z + in_block;

    out[2 * i] = (int)(blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z);
    out[2 * i + 1] = (int)(threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z);
}

static __global__ void reverse(int *values, int barrier)
{
    __shared__ int part[1024];
    int *const mine = values + blockIdx.x * blockDim.x;

    part[threadIdx.x] = mine[threadIdx.x];
    if (barrier) __syncthreads();
    mine[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

/* Values go to the neighbour and back. */
static __global__ void swap_twice(int *values, int between)
{
    __shared__ int part[WARP * 2];

    part[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    const int v = part[threadIdx.x ^ 1];
    if (between) __syncthreads();
    part[threadIdx.x] = v + 100;
    __syncthreads();
    values[threadIdx.x] = part[threadIdx.x ^ 1];
}

static __global__ void reverse_dynamic(double *values)
{
    DPT_SHARED_DYNAMIC(double, part);
    double *const mine = values + blockIdx.x * blockDim.x;

    part[threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    mine[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

static __device__ float warp_sum(float v)
{
    for (int by = WARP / 2; by; by /= 2) v += __shfl_down_sync(0xFFFFFFFFu, v, by);
    return v;
}

static __global__ void sum(float *out, const float *in, size_t n)
{
    __shared__ float warps[WARPS];
    const size_t step = (size_t)gridDim.x * blockDim.x;
    float v = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step)
        v += __ldg(&in[i]);
    v = warp_sum(v);
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = v;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    v = warp_sum(threadIdx.x < WARPS ? warps[threadIdx.x] : 0);
    if (!threadIdx.x) out[blockIdx.x] = v;
}

static __global__ void diverge(int *out, int after, plants_way way)
{
    if ((int)threadIdx.x >= after) {
        if (way == PLANTS_OTHER_BARRIER) __syncthreads();
        if (way == PLANTS_WARP) __syncwarp();
        return;
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void copy_floats(float *out, const float *in, size_t n)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n) out[i] = in[i];
}

static __global__ void copy_shared(int *out, int at)
{
    __shared__ int part[WARP];
    int *volatile const all = part; /* so that the compiler does not know its size */

    part[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    if (!threadIdx.x) all[at] = 1;
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x];
}

static __global__ void warp(unsigned *out, unsigned mask)
{
    const unsigned lane = threadIdx.x;

    if (!(mask >> lane & 1)) return;
    out[lane] = __shfl_sync(mask, lane, 3);
    out[32 + lane] = __shfl_sync(mask, lane, 1, 8);
    out[64 + lane] = __shfl_down_sync(mask, lane, 2, 16);
    out[96 + lane] = __shfl_up_sync(mask, lane, 2);
    out[128 + lane] = __shfl_xor_sync(mask, lane, 1);
    out[160 + lane] = __ballot_sync(mask, lane % 3 == 0);
    out[192 + lane] = (unsigned)__any_sync(mask, lane == 2) + 2 * !!__all_sync(mask, lane < 31);
}

static __global__ void warp_order(int *out, int barrier)
{
    __shared__ int part[WARP];

    for (int i = 0; i < 3; i++) {
        part[threadIdx.x] = (int)threadIdx.x + i;
        if (barrier) __syncwarp();
        out[WARP * i + threadIdx.x] = part[threadIdx.x ^ 1];
        if (barrier == 1) __syncwarp();
    }
}

static __global__ void atomics(int *out, int n, int atomic)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i >= n) return;
    if (atomic) {
        atomicAdd(&out[0], 1);
        atomicMax(&out[1], i);
        atomicOr((unsigned *)&out[2], 1u << (i % 32));
    } else {
        out[0] += 1;
    }
}

static __global__ void bits(plants_bits *all, int n)
{
    plants_bits *const b = &all[threadIdx.x];

    if ((int)threadIdx.x >= n) return;
    b->as_int = __float_as_int(b->value);
    b->ones = __popc(__float_as_uint(b->value));
    b->zeros = __clz(b->as_int);
    b->first = __ffs(b->as_int);
    b->bfloat = __bfloat162float(__float2bfloat16(b->value));
    b->half = __half2float(__float2half(b->value));
}

static __global__ void uninitialised(float *out)
{
    __shared__ float part[WARP];

    if (out == nullptr) part[threadIdx.x] = 0; /* never; keeps the compiler from knowing */
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = part[threadIdx.x];
    __syncthreads();
    part[threadIdx.x] = 1; /* the next block must not see this */
}

static __global__ void vectors(float4 *out, const float4 *in, int n)
{
    const int i = (int)threadIdx.x;

    if (i >= n) return;
    const float4 v = in[i];
    out[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

template <typename T> static __global__ void fill(T *out, T v, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < n) out[i] = v;
}

/* --- launchers --- */

static int run_place(int *out, const unsigned g[3], const unsigned b[3], size_t shared,
                     void *stream)
{
    return DPT_LAUNCH(place, dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2]), shared, stream, out);
}

static int run_reverse(int *values, int blocks, int block, int barrier, void *stream)
{
    return DPT_LAUNCH(reverse, blocks, block, 0, stream, values, barrier);
}

static int run_swap_twice(int *values, int between, void *stream)
{
    return DPT_LAUNCH(swap_twice, 1, WARP * 2, 0, stream, values, between);
}

static int run_reverse_dynamic(double *values, int blocks, int block, size_t shared, void *stream)
{
    return DPT_LAUNCH(reverse_dynamic, blocks, block, shared, stream, values);
}

static int run_sum(float *out, const float *in, size_t n, int blocks, void *stream)
{
    return DPT_LAUNCH(sum, blocks, WARP * WARPS, 0, stream, out, in, n);
}

static int run_diverge(int *out, int block, int after, plants_way way, void *stream)
{
    return DPT_LAUNCH(diverge, 1, block, 0, stream, out, after, way);
}

static int run_copy(float *out, const float *in, size_t n, size_t over, void *stream)
{
    return DPT_LAUNCH(copy_floats, (unsigned)((n + over + 63) / 64), 64, 0, stream, out, in,
                      n + over);
}

static int run_copy_shared(int *out, int at, void *stream)
{
    return DPT_LAUNCH(copy_shared, 1, WARP, 0, stream, out, at);
}

static int run_warp(unsigned *out, unsigned mask, void *stream)
{
    return DPT_LAUNCH(warp, 1, WARP, 0, stream, out, mask);
}

static int run_warp_order(int *out, int barrier, void *stream)
{
    return DPT_LAUNCH(warp_order, 1, WARP, 0, stream, out, barrier);
}

static int run_atomics(int *out, int n, int atomic, void *stream)
{
    return DPT_LAUNCH(atomics, (n + 63) / 64, 64, 0, stream, out, n, atomic);
}

static int run_bits(plants_bits *all, int n, void *stream)
{
    return DPT_LAUNCH(bits, 1, n, 0, stream, all, n);
}

static int run_uninitialised(float *out, int n, void *stream)
{
    return DPT_LAUNCH(uninitialised, n / WARP, WARP, 0, stream, out);
}

static int run_vectors(float *out, const float *in, int n, void *stream)
{
    return DPT_LAUNCH(vectors, 1, n / 4, 0, stream, (float4 *)out, (const float4 *)in, n / 4);
}

static int run_fill_float(float *out, float v, int n, void *stream)
{
    return DPT_LAUNCH((fill<float>), (n + 255) / 256, 256, 0, stream, out, v, n);
}

static int run_fill_int(int *out, int v, int n, void *stream)
{
    return DPT_LAUNCH((fill<int>), (n + 255) / 256, 256, 0, stream, out, v, n);
}

/* --- CUDA's own --- */

static int stream_create(void **stream)
{
    return cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking);
}

static int stream_destroy(void *stream)
{
    return cudaStreamDestroy((cudaStream_t)stream);
}

static int sync(void *stream)
{
    return cudaStreamSynchronize((cudaStream_t)stream);
}

static int get(void **p, size_t bytes)
{
    return cudaMalloc(p, bytes);
}

static int put(void *p)
{
    return cudaFree(p);
}

static int copy_and_wait(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                         void *stream)
{
    const int e = cudaMemcpyAsync(dst, src, bytes, kind, (cudaStream_t)stream);

    return e ? e : sync(stream);
}

static int upload(void *dst, const void *src, size_t bytes, void *stream)
{
    return copy_and_wait(dst, src, bytes, cudaMemcpyHostToDevice, stream);
}

static int download(void *dst, const void *src, size_t bytes, void *stream)
{
    return copy_and_wait(dst, src, bytes, cudaMemcpyDeviceToHost, stream);
}

extern "C" __attribute__((visibility("default"))) const plants *plants_table(void);

const plants *plants_table(void)
{
    static const plants table = {
        stream_create,
        stream_destroy,
        sync,
        get,
        put,
        upload,
        download,
        run_place,
        run_reverse,
        run_swap_twice,
        run_reverse_dynamic,
        run_sum,
        run_diverge,
        run_copy,
        run_copy_shared,
        run_warp,
        run_warp_order,
        run_atomics,
        run_bits,
        run_uninitialised,
        run_vectors,
        run_fill_float,
        run_fill_int,
    };

    return &table;
}
