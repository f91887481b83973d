/* SPDX-License-Identifier: Apache-2.0 */
/* One way to launch a kernel, for nvcc and for the CPU shim of the tests, which compiles the same .cu
 * files as C++ and comes in by -include. Kernels are static functions, named where they are launched
 * (a template as (name<type>)); use threadIdx, blockIdx, blockDim, gridDim, __shared__,
 * __syncthreads() and what tests/fake/cuda/cuda_shim_device.hpp has; no inline PTX, no launches of their
 * own. __shared__ is declared in functions that are no templates: in those, g++ ignores where the shim
 * wants it to lie, and a block would find there what another one left. */
#ifndef DPT_TRAINER_CUDA_GPU_LAUNCH_H
#define DPT_TRAINER_CUDA_GPU_LAUNCH_H

#include <stddef.h>

#ifdef __CUDACC__
#    include <cuda_bf16.h>
#    include <cuda_fp16.h>
#    include <cuda_runtime.h>
/* What an earlier call of somebody else left is cleared first. @return a cudaError_t as int */
#    define DPT_LAUNCH(kernel, grid, block, shared, stream, ...)                                   \
        ((void)cudaGetLastError(),                                                                 \
         kernel<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__),               \
         (int)cudaGetLastError())
/* type *name: the block's dynamic shared memory, as many bytes as the launch says. */
#    define DPT_SHARED_DYNAMIC(type, name)                                                         \
        extern __shared__ __align__(16) unsigned char dpt_dynamic_shared[];                        \
        type *const name = reinterpret_cast<type *>(dpt_dynamic_shared)
#endif

#endif
