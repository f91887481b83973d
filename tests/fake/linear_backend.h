/* SPDX-License-Identifier: Apache-2.0 */
/* A dpt_backend whose gradients are a closed form: y = w . x + b, loss (y - label)^2 / 2 for the
 * graph of fake_linear_graph(). Small whole pixels and dyadic weights make all sums exact, whatever
 * their order. It checks that one thread alone uses an exec. */
#ifndef TESTS_FAKE_LINEAR_BACKEND_H
#define TESTS_FAKE_LINEAR_BACKEND_H

#include "trainer/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FAKE_PIXELS = 3 * 10 * 9,       /* of a sample */
    FAKE_PARAMS = FAKE_PIXELS + 1,  /* w with weight decay, b without */
    FAKE_BUFFERS = 2,               /* mean of the first pixel, and its unbiased variance */
    FAKE_LABEL_FAILS = -7,          /* train and evaluate: DPL_EDEVICE */
    FAKE_LABEL_CANCELS = -8,        /* train and evaluate: DPL_ECANCELED, in this replica alone */
    FAKE_CLASSES_NOT_CREATED = 666, /* create: DPL_ENOTSUP */
    FAKE_LINES = 2                  /* of describe(), the second one is a fallback */
};

extern const dpt_backend fake_linear_backend;

/** Static; classes is for FAKE_CLASSES_NOT_CREATED. */
void fake_linear_graph(dpt_graph *g, int classes);

#ifdef __cplusplus
}
#endif
#endif
