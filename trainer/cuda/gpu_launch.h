/* SPDX-License-Identifier: Apache-2.0 */
/* One way to launch a kernel, for nvcc and for the CPU shim of the tests, which compiles the same .cu
 * files as C++ and comes in by -include. Kernels use threadIdx, blockIdx, blockDim, gridDim,
 * __shared__, __syncthreads() and __shfl_down_sync(); no inline PTX, no launches of their own. */
#ifndef DPT_TRAINER_CUDA_GPU_LAUNCH_H
#define DPT_TRAINER_CUDA_GPU_LAUNCH_H

#ifdef __CUDACC__
#    include <cuda_bf16.h>
#    include <cuda_fp16.h>
#    include <cuda_runtime.h>
/* @return a cudaError_t as int */
#    define DPT_LAUNCH(kernel, grid, block, shared, stream, ...)                                   \
        (kernel<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__),               \
         (int)cudaGetLastError())
#endif

#endif
