/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels ask of the compiler so that small pieces and vectors stay in registers. */
#ifndef DPL_KERNELS_UNROLL_H
#define DPL_KERNELS_UNROLL_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Vectors stay in registers only where loops over them are unrolled; gcc does so at -O3 only. */
#if defined(__clang__)
#    define UNROLL
#else
#    define UNROLL _Pragma("GCC unroll 8")
#endif

/** Two neighbouring 16-bit weights as one 32-bit number, for multiply-adds of pairs. */
INLINE int32_t dpl_weight_pair(const int16_t *w)
{
    int32_t both;

    memcpy(&both, w, sizeof both);
    return both;
}

#endif
