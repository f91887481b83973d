/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's functions of device code, for cuda_shim.hpp: warp operations, atomics, arithmetic. What is not
 * here does not compile: add it with a test in plants.cu. Approximations (__expf and the like)
 * are left out, because no CPU gives their bits. */
#ifndef TESTS_FAKE_CUDA_CUDA_SHIM_DEVICE_HPP
#define TESTS_FAKE_CUDA_CUDA_SHIM_DEVICE_HPP

#include "tests/fake/cuda/cuda_shim_block.h"

#include <math.h>
#include <string.h>

/* --- bits --- */

namespace shim
{
template <typename To, typename From> inline To bits(From v)
{
    To to{};

    static_assert(sizeof to >= sizeof v, "the value must fit");
    memcpy(&to, &v, sizeof v);
    return to;
}
template <typename To> inline To unbits(uint64_t v)
{
    To to;

    memcpy(&to, &v, sizeof to);
    return to;
}
} // namespace shim

static inline int __float_as_int(float v)
{
    return shim::bits<int>(v);
}
static inline unsigned __float_as_uint(float v)
{
    return shim::bits<unsigned>(v);
}
static inline float __int_as_float(int v)
{
    return shim::bits<float>(v);
}
static inline float __uint_as_float(unsigned v)
{
    return shim::bits<float>(v);
}
static inline long long __double_as_longlong(double v)
{
    return shim::bits<long long>(v);
}
static inline double __longlong_as_double(long long v)
{
    return shim::bits<double>(v);
}
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __clz(int v)
{
    return v ? __builtin_clz((unsigned)v) : 32;
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

/* --- arithmetic, rounded to nearest --- */

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __saturatef(float v)
{
    return v > 0 ? v < 1 ? v : 1 : 0; /* NaN gives 0 */
}

/* CUDA has these for mixed arguments of the usual types in the global namespace. */
template <typename A, typename B> static inline auto min(A a, B b) -> decltype(a + b)
{
    return b < a ? b : a;
}
template <typename A, typename B> static inline auto max(A a, B b) -> decltype(a + b)
{
    return a < b ? b : a;
}

template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}

/* --- warps --- */

#define SHIM_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <typename T>
static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32, SHIM_AT)
{
    const unsigned me = shim_lane(), base = me & ~(unsigned)(width - 1);

    return shim::unbits<T>(shim_warp(mask, shim::bits<uint64_t>(v),
                                     base + ((unsigned)from & (unsigned)(width - 1)), file, line)
                               .value);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, SHIM_AT)
{
    const unsigned me = shim_lane(), last = me | (unsigned)(width - 1);

    return shim::unbits<T>(
        shim_warp(mask, shim::bits<uint64_t>(v), me + by > last ? me : me + by, file, line).value);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, SHIM_AT)
{
    const unsigned me = shim_lane(), base = me & ~(unsigned)(width - 1);

    return shim::unbits<T>(
        shim_warp(mask, shim::bits<uint64_t>(v), me < base + by ? me : me - by, file, line).value);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32, SHIM_AT)
{
    const unsigned me = shim_lane(), last = me | (unsigned)(width - 1);
    const unsigned from = me ^ (unsigned)with;

    return shim::unbits<T>(
        shim_warp(mask, shim::bits<uint64_t>(v), from > last ? me : from, file, line).value);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, SHIM_AT)
{
    return shim_warp(mask, predicate != 0, 0, file, line).ballot;
}
static inline int __any_sync(unsigned mask, int predicate, SHIM_AT)
{
    return shim_warp(mask, predicate != 0, 0, file, line).ballot != 0;
}
static inline int __all_sync(unsigned mask, int predicate, SHIM_AT)
{
    return shim_warp(mask, predicate == 0, 0, file, line).ballot == 0;
}
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, SHIM_AT)
{
    shim_warp_barrier(mask, file, line);
}

/* --- atomics: relaxed, as on a card; @return the value before --- */

namespace shim
{
template <typename T, typename Next> inline T atomic(T *at, Next next)
{
    T old, now;

    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do now = next(old);
    while (!__atomic_compare_exchange(at, &old, &now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
} // namespace shim

template <typename T> static inline T atomicAdd(T *at, T v)
{
    return shim::atomic(at, [v](T old) { return (T)(old + v); });
}
template <typename T> static inline T atomicMax(T *at, T v)
{
    return shim::atomic(at, [v](T old) { return old < v ? v : old; });
}
template <typename T> static inline T atomicMin(T *at, T v)
{
    return shim::atomic(at, [v](T old) { return v < old ? v : old; });
}
template <typename T> static inline T atomicOr(T *at, T v)
{
    return shim::atomic(at, [v](T old) { return (T)(old | v); });
}
template <typename T> static inline T atomicExch(T *at, T v)
{
    return shim::atomic(at, [v](T) { return v; });
}
template <typename T> static inline T atomicCAS(T *at, T compare, T v)
{
    return shim::atomic(at, [compare, v](T old) { return old == compare ? v : old; });
}

#endif
