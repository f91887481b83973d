/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of trainer/cuda/backend_cudnn_prog.h on the host, primitive by primitive, in fp32, in one
 * block of memory placed as the GPU's is: so what was fused, the order, and which tensors share memory
 * are checked without a GPU. What a primitive means is written down here once more, in plain loops. */
#ifndef TESTS_CUDNN_INTERPRETER_H
#define TESTS_CUDNN_INTERPRETER_H

#include "trainer/backend.h"
#include "trainer/cuda/backend_cudnn_prog.h"

/* How READY operations came. */
typedef struct test_ready {
    size_t from[512];
    int n;
} test_ready;

/** One step of p: as dpt_backend.train or .evaluate. Memory that holds nothing yet, or no more, is NaN. */
void test_interpret(const dpt_cu_prog *p, dpt_step *s, test_ready *ready);

#endif
