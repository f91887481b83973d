/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets of this processor, as kernels choose by them. */
#ifndef DPL_BASE_CPU_H
#define DPL_BASE_CPU_H

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_CPU_C = 0, DPL_CPU_AVX2 = 1, DPL_CPU_AVX512 = 2, DPL_CPU_NEON = 4, DPL_CPU_VBMI = 8 };

/** Bits of DPL_CPU_*. AVX2 means AVX2 + FMA + BMI2 + F16C with OS support; AVX512 means F, BW, DQ, VL;
 *  VBMI means these with VBMI and VNNI (Ice Lake, Zen 4 and later).
 *  On aarch64 NEON is always there.
 *  The environment variable DPL_CPU = c | avx2 | avx512 | avx512vbmi masks what is above the named level. */
unsigned dpl_cpu_flags(void);

/** "c", "avx2", "avx512", "avx512vbmi", "neon": the highest level in flags. */
const char *dpl_cpu_name(unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
