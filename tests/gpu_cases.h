/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of GPU kernels share: one GPU (the fake one, or a card), the kernels of the plug-in beside
 * the test, and device memory with canaries. */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H

#include "trainer/cuda/gpu_kernels.h"

#include <stddef.h>
#include <stdint.h>

/* cudaErrorInvalidValue */
enum { GPU_BAD_ARGUMENT = 1 };

/** Group fixtures. Where there is no GPU, or no plug-in, every test that calls gpu_kernels() skips. */
int gpu_open(void **state);
int gpu_close(void **state);

/** The kernels; skips the test where there are none. */
const dpt_gpu_kernels *gpu_kernels(void);
/** The stream that kernels run on: a cudaStream_t. */
void *gpu_stream(void);

/** Device memory of that size with canaries on both sides, `off` bytes behind a multiple of 64, holding
 *  what host holds (NULL: 0xA5). Test fixtures free it: gpu_free_all(). */
void *gpu_put_off(const void *host, size_t bytes, size_t off);
void *gpu_put(const void *host, size_t bytes);
void *gpu_new(size_t bytes);
/** Wait for the stream and fetch all of what gpu_put() or gpu_new() gave; fails the test when
 *  something was written outside of it. free() it. */
void *gpu_get(const void *device);
/** Frees all device memory. As a test's teardown. */
int gpu_free_all(void **state);

/* --- numbers --- */

/** Bytes of one number. */
size_t gpu_size(dpt_gpu_type type);
/** Of a type to float, and the float's nearest number of the type, as kernels/convert.h rounds. */
float gpu_float(const void *v, size_t i, dpt_gpu_type type);
void gpu_store(void *v, size_t i, dpt_gpu_type type, float x);
/** Fails the test when the first n numbers differ in any bit. */
void gpu_same_numbers(const void *got, const void *want, size_t n, dpt_gpu_type type,
                      const char *what);

/** n normal floats, times `scale`; a function of seed. free() it. */
float *gpu_normals(size_t n, float scale, uint64_t seed);

/* Types and names for loops over them. */
enum { GPU_TYPES = 3 };
const char *gpu_type_name(dpt_gpu_type type);

#endif
