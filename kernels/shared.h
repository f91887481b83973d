/* SPDX-License-Identifier: Apache-2.0 */
/* For arithmetic that CUDA kernels and C references share (the *_math.h): the same source, the same
 * bits. Products and sums are rounded one by one on both sides (nvcc -fmad=false, gcc
 * -ffp-contract=off); write fmaf() where one rounding is wanted. */
#ifndef DPL_KERNELS_SHARED_H
#define DPL_KERNELS_SHARED_H

#include <stdint.h>

#ifdef __CUDACC__
#    define DPL_SHARED static inline __host__ __device__
#else
#    define DPL_SHARED static inline
#endif

#endif
