/* SPDX-License-Identifier: Apache-2.0 */
/* For arithmetic that kernels and C references share: the same source, the same bits. Products and sums
 * are rounded one by one on both sides (nvcc -fmad=false, gcc -ffp-contract=off); write fmaf() where
 * one rounding is wanted. */
#ifndef DPT_TRAINER_CUDA_GPU_MATH_H
#define DPT_TRAINER_CUDA_GPU_MATH_H

#ifdef __CUDACC__
#    define DPT_SHARED static inline __host__ __device__
#else
#    define DPT_SHARED static inline
#endif

#endif
