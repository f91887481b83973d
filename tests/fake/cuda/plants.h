/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the tests, in libgpuplants.so beside them: one per thing that the shim does, with results
 * that have a closed form, and the same with a planted bug. */
#ifndef TESTS_FAKE_CUDA_PLANTS_H
#define TESTS_FAKE_CUDA_PLANTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plants_bits {
    float value;
    int as_int, ones, zeros, first;
    float bfloat, half; /* of value, there and back */
} plants_bits;

typedef enum plants_way { PLANTS_LEAVE, PLANTS_OTHER_BARRIER, PLANTS_WARP } plants_way;

/* Each kernel is queued on a stream of the current GPU. @return a cudaError_t as int */
typedef struct plants {
    /* CUDA's own: a stream, memory of the GPU, copies that are waited for. */
    int (*stream_create)(void **stream);
    int (*stream_destroy)(void *stream);
    int (*sync)(void *stream);
    int (*get)(void **p, size_t bytes);
    int (*put)(void *p);
    int (*upload)(void *dst, const void *src, size_t bytes, void *stream);
    int (*download)(void *dst, const void *src, size_t bytes, void *stream);

    /* out[2 i] = block of the i-th thread, out[2 i + 1] = its place there, as x + 100 y + 10000 z */
    int (*place)(int *out, const unsigned grid[3], const unsigned block[3], size_t shared,
                 void *stream);
    /* Reverse each run of `block` values through static shared memory. barrier: 0 = planted bug */
    int (*reverse)(int *values, int blocks, int block, int barrier, void *stream);
    /* values[64] += 100, by way of the neighbour; between: 0 = one barrier is missing */
    int (*swap_twice)(int *values, int between, void *stream);
    /* As reverse, through dynamic shared memory. */
    int (*reverse_dynamic)(double *values, int blocks, int block, size_t shared, void *stream);
    /* out[block] = sum of the block's values: warps by shuffles, then over warps. */
    int (*sum)(float *out, const float *in, size_t n, int blocks, void *stream);
    /* out[thread] = 1 behind a barrier; threads from `after` on do something else */
    int (*diverge)(int *out, int block, int after, plants_way way, void *stream);
    /* out[i] = in[i] for i < n + over: over > 0 is out of bounds. */
    int (*copy)(float *out, const float *in, size_t n, size_t over, void *stream);
    /* Writes element `at` of 32 in shared memory. */
    int (*copy_shared)(int *out, int at, void *stream);
    /* out[32 * k + lane], k = 0..6: seven operations of one warp; lanes not in mask leave */
    int (*warp)(unsigned *out, unsigned mask, void *stream);
    /* out[32 * k + lane] = k + the neighbour's lane, k = 0..2; barrier: 0 = no __syncwarp(), 2 = one too few */
    int (*warp_order)(int *out, int barrier, void *stream);
    /* out[0] += 1, out[1] = max of i, out[2] |= 1 << i % 32, by n threads in blocks of 64; atomic:
       0 = only the first, as a program without atomics would */
    int (*atomics)(int *out, int n, int atomic, void *stream);
    int (*bits)(plants_bits *bits, int n, void *stream);
    /* out[i] = first values of the block's shared memory, never written */
    int (*uninitialised)(float *out, int n, void *stream);
    int (*vectors)(float *out, const float *in, int n, void *stream); /* float4, out = 2 in */
    int (*fill_float)(float *out, float v, int n, void *stream);      /* a template, twice */
    int (*fill_int)(int *out, int v, int n, void *stream);
} plants;

typedef const plants *plants_entry(void);

#ifdef __cplusplus
}
#endif
#endif
