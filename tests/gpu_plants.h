/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of libgpuplants.so, on a stream of their own. */
#ifndef TESTS_GPU_PLANTS_H
#define TESTS_GPU_PLANTS_H

#include "tests/fake/cuda/plants.h"

typedef struct test_gpu {
    const plants *k;
    void *stream;
} test_gpu;

/** Of the library beside the running program; skips the test where there is none. */
void test_gpu_open(test_gpu *g);
void test_gpu_close(test_gpu *g);
/** Memory of the GPU with these bytes. */
void *test_gpu_put(test_gpu *g, const void *from, size_t bytes);
/** Fetch bytes when all that was queued is done, and free p. */
void test_gpu_take(test_gpu *g, void *to, void *p, size_t bytes);

#endif
