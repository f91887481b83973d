/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets; see cpu.h. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#    include <cpuid.h>
#endif

#if defined(__x86_64__) || defined(__i386__)
/* Of the builtin below not every compiler knows this name. */
static int has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

/* __builtin_cpu_supports() also asks XGETBV, that is, whether the system saves the wide registers. */
static unsigned detect(void)
{
    unsigned flags = DPL_CPU_C;

#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2") && has_f16c()) {
        flags |= DPL_CPU_AVX2;
    }
    if (flags && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        flags |= DPL_CPU_AVX512;
    }
    if (flags & DPL_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vnni")) {
        flags |= DPL_CPU_VBMI;
    }
#elif defined(__aarch64__)
    flags |= DPL_CPU_NEON; /* part of the base architecture */
#endif
    return flags;
}

unsigned dpl_cpu_flags(void)
{
    const char *level = getenv("DPL_CPU");
    unsigned mask = ~0U;

    if (level && !strcmp(level, "c")) mask = DPL_CPU_C;
    if (level && !strcmp(level, "avx2")) mask = ~(unsigned)(DPL_CPU_AVX512 | DPL_CPU_VBMI);
    if (level && !strcmp(level, "avx512")) mask = ~(unsigned)DPL_CPU_VBMI;
    return detect() & mask;
}

const char *dpl_cpu_name(unsigned flags)
{
    if (flags & DPL_CPU_VBMI) return "avx512vbmi";
    if (flags & DPL_CPU_AVX512) return "avx512";
    if (flags & DPL_CPU_AVX2) return "avx2";
    if (flags & DPL_CPU_NEON) return "neon";
    return "c";
}
