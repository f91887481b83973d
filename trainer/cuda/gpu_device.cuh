/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels share: the three types, 16-byte accesses, blocks and grids. */
#ifndef DPT_TRAINER_CUDA_GPU_DEVICE_CUH
#define DPT_TRAINER_CUDA_GPU_DEVICE_CUH

#include "trainer/cuda/gpu_kernels.h"
#include "trainer/cuda/gpu_launch.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

static const unsigned DPT_THREADS = 256; /* of every block */

/* The most blocks along one side of a grid; who has more to do goes round. The tests' shim says fewer, so
 * that every loop does. */
#ifndef DPT_BLOCKS
#    define DPT_BLOCKS ((size_t)4096)
#endif

/* --- types --- */

static __device__ inline float dpt_to_float(float v)
{
    return v;
}
static __device__ inline float dpt_to_float(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
static __device__ inline float dpt_to_float(__half v)
{
    return __half2float(v);
}

/* Rounded to the nearest, ties to even. */
template <class T> static __device__ inline T dpt_of_float(float v);
template <> __device__ inline float dpt_of_float<float>(float v)
{
    return v;
}
template <> __device__ inline __nv_bfloat16 dpt_of_float<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}
template <> __device__ inline __half dpt_of_float<__half>(float v)
{
    return __float2half_rn(v);
}

/* Calls f<T>(...) for a dpt_gpu_type. */
#define DPT_BY_TYPE(type, f, ...)                                                                  \
    ((type) == DPT_GPU_FP32   ? f<float>(__VA_ARGS__)                                              \
     : (type) == DPT_GPU_BF16 ? f<__nv_bfloat16>(__VA_ARGS__)                                      \
                              : f<__half>(__VA_ARGS__))

static inline int dpt_type_known(dpt_gpu_type type)
{
    return type == DPT_GPU_FP32 || type == DPT_GPU_BF16 || type == DPT_GPU_FP16;
}

/* --- 16 bytes --- */

template <class T> struct alignas(16) dpt_vec {
    T at[16 / sizeof(T)];
};

/* 16 bytes at a multiple of 16 as one access. Stores by an intrinsic, because nvcc makes four of one
 * that has single stores in the branch beside it; C++ by memcpy(), because other types lie there. */
static __device__ inline uint4 dpt_get16(const void *p)
{
#ifdef __CUDACC__
    return *(const uint4 *)p;
#else
    uint4 bits;

    memcpy(&bits, __builtin_assume_aligned(p, 16), sizeof bits);
    return bits;
#endif
}

/* p: not of shared memory. */
static __device__ inline void dpt_put16(void *p, uint4 bits)
{
#ifdef __CUDACC__
    __stwb((uint4 *)p, bits);
#else
    memcpy(__builtin_assume_aligned(p, 16), &bits, sizeof bits);
#endif
}

template <class T> static __device__ inline dpt_vec<T> dpt_load16(const T *p)
{
    const uint4 bits = dpt_get16(p);
    dpt_vec<T> v;

    memcpy((void *)&v, &bits, sizeof v);
    return v;
}

template <class T> static __device__ inline void dpt_store16(T *p, const dpt_vec<T> &v)
{
    uint4 bits;

    memcpy(&bits, (const void *)&v, sizeof v);
    dpt_put16(p, bits);
}

/* Floats between p and the multiple of 16 bytes before it. */
static __host__ __device__ inline unsigned dpt_lead(const float *p)
{
    return (unsigned)((uintptr_t)p / sizeof *p % 4);
}

static __host__ __device__ inline int dpt_aligned16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* An array of n floats that begins anywhere, as groups that lie on 16 bytes: the first and the last
 * may be part of one. Group q is [from, to). */
struct dpt_four {
    size_t from, to;
    bool whole;
};

static __host__ __device__ inline size_t dpt_fours(size_t n, unsigned lead)
{
    return (n + lead + 3) / 4;
}

static __device__ inline dpt_four dpt_four_at(size_t q, size_t n, unsigned lead)
{
    dpt_four f;

    f.from = q ? 4 * q - lead : 0;
    f.to = 4 * q + 4 - lead < n ? 4 * q + 4 - lead : n;
    f.whole = f.to - f.from == 4;
    return f;
}

/* --- grids and blocks --- */

static inline unsigned dpt_grid(size_t items, size_t per_block, size_t most)
{
    const size_t blocks = (items + per_block - 1) / per_block;

    return (unsigned)(blocks > most ? most : blocks);
}

static __device__ inline size_t dpt_thread(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline size_t dpt_stride(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

struct dpt_add {
    template <class V> static __device__ V of(V a, V b)
    {
        return a + b;
    }
};

/* NaN counts as smaller than every number. */
struct dpt_larger {
    static __device__ double of(double a, double b)
    {
        return b > a ? b : a;
    }
};

/* v of all DPT_THREADS threads, joined in a fixed order: 16 rows of 16, then those 16. Every thread gets
 * it. shared: [DPT_THREADS]. All threads of the block must come. */
template <class OP, class V> static __device__ inline V dpt_block_join(V v, V *shared)
{
    const unsigned side = 16, me = threadIdx.x;
    V joined = v;

    static_assert(DPT_THREADS == side * side, "rows and columns");
    shared[me] = v;
    __syncthreads();
    if (me < side) {
        for (unsigned k = 1; k < side; k++) joined = OP::of(joined, shared[me + k * side]);
        shared[me] = joined;
    }
    __syncthreads();
    joined = shared[0];
    for (unsigned k = 1; k < side; k++) joined = OP::of(joined, shared[k]);
    __syncthreads(); /* shared may be used again */
    return joined;
}

#endif
