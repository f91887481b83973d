/* SPDX-License-Identifier: Apache-2.0 */
/* Networks with weights and pictures made by a formula, and what PyTorch computes with them
 * (tests/data/model_*.txt, written by tests/scripts/make_model_vectors.py). */
#ifndef TESTS_BACKEND_CASES_H
#define TESTS_BACKEND_CASES_H

#include "trainer/backend.h"

/* Under the thread sanitizer only what concerns threads runs, with small networks: it makes the
 * reference backend 20 times slower, and it does not know the OpenMP library's own waiting. */
#if defined(__SANITIZE_THREAD__)
#    define TEST_UNDER_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define TEST_UNDER_TSAN 1
#    endif
#endif
#ifndef TEST_UNDER_TSAN
#    define TEST_UNDER_TSAN 0
#endif

typedef struct test_case {
    dpt_graph *g;
    float *params, *grads, *buffers, *stats, *pixels;
    int32_t *labels;
    dpt_step step; /* points at the above; grad_scale 1 / 16 */
} test_case;

/** Everything by formula; gradients and statistics filled with NaN. */
void test_case_make(test_case *c, const char *arch, int classes, int height, int width, int n);
/** The same for a graph made by other means; it becomes the case's. */
void test_case_fill(test_case *c, dpt_graph *g, int n);
void test_case_free(test_case *c);

dpt_exec *test_exec(const dpt_backend *b, const dpt_graph *g, int max_n, int threads);

/** A canceled call ends between two layers, forward or backward, and spoils nothing for the next. */
void test_canceled_calls(const dpt_backend *b);

/** Run the case in tests/data/model_<arch>_<mode>.txt ("train", "eval") and compare: norms, samples
 *  and logits within tolerance, relative to the norm (or to the largest logit). */
void test_against_pytorch(const dpt_backend *b, const char *arch, const char *mode,
                          double tolerance);

/** Per parameter: largest |a - b| over norm(b) must stay within tolerance. */
void test_same_gradients(const dpt_graph *g, const float *a, const float *b, double tolerance);

#endif
