/* SPDX-License-Identifier: Apache-2.0 */
/* Makes C++ of a .cu file: g++ -x c++ -include this one. Kernels then run on the CPU, on the threads of
 * the fake runtime's streams (cuda_shim_block.h). Conversions and vector types are the real headers'. */
#ifndef TESTS_FAKE_CUDA_CUDA_SHIM_HPP
#define TESTS_FAKE_CUDA_CUDA_SHIM_HPP

#include "tests/fake/cuda/cuda_shim_block.h"
#include "tests/fake/cuda/fake_register.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include <utility>
#include <vector_functions.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__    static
#define __forceinline__ inline
#define __launch_bounds__(...)
/* One section for all of a module, so that every block finds it fresh; cuda_shim.ld names its ends. */
#define __shared__ static __attribute__((section(".shim_shared")))

#define threadIdx       (shim_here.thread)
#define blockIdx        (shim_here.block)
#define blockDim        (shim_here.block_dim)
#define gridDim         (shim_here.grid_dim)
#define warpSize        32
#define __syncthreads() shim_barrier(__FILE__, __LINE__)
#define DPT_BLOCKS      ((size_t)2) /* gpu_device.cuh */

extern "C" {
extern char shim_shared_begin[] __attribute__((visibility("hidden")));
extern char shim_shared_end[] __attribute__((visibility("hidden")));
}

namespace shim
{
template <auto Kernel> struct kernel;

template <typename... P, void (*Kernel)(P...)> struct kernel<Kernel> {
    using args = std::tuple<P...>;

    static void thread(const void *a)
    {
        std::apply(Kernel, *static_cast<const args *>(a));
    }
    static void *copy(P... p)
    {
        void *a = malloc(sizeof(args));

        return a ? new (a) args(p...) : nullptr;
    }
    template <size_t... I> static void *unpack_each(void **a, std::index_sequence<I...>)
    {
        return copy(*static_cast<P *>(a[I])...);
    }
    static void *unpack(void **a)
    {
        return unpack_each(a, std::index_sequence_for<P...>());
    }
    static shim_launch prepare(const char *name)
    {
        shim_launch l = {};

        l.kernel = name;
        l.shared_begin = shim_shared_begin;
        l.shared_end = shim_shared_end;
        l.thread = thread;
        l.drop = free;
        return l;
    }
    static int launch(const char *name, dim3 grid, dim3 block, size_t shared, void *stream, P... p)
    {
        shim_launch l = prepare(name);

        (void)&listed; /* makes it be there */
        l.grid = grid;
        l.block = block;
        l.shared = shared;
        l.args = copy(p...);
        if (!l.args) return cudaErrorMemoryAllocation;
        return shim_enqueue(&l, static_cast<cudaStream_t>(stream));
    }
    static int list()
    {
        const shim_launch l = prepare(nullptr);

        return fake_twin_add(reinterpret_cast<void (*)(void)>(Kernel), &l, unpack);
    }
    static const int listed;
};

template <typename... P, void (*Kernel)(P...)>
const int kernel<Kernel>::listed = kernel<Kernel>::list();
} // namespace shim

#define DPT_LAUNCH(k, grid, block, shared, stream, ...)                                            \
    shim::kernel<k>::launch(#k, (grid), (block), (shared), (stream), ##__VA_ARGS__)
#define DPT_SHARED_DYNAMIC(type, name)                                                             \
    type *const name = reinterpret_cast<type *>(shim_dynamic_shared())

#include "tests/fake/cuda/cuda_shim_device.hpp"

#endif
