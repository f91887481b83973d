/* SPDX-License-Identifier: Apache-2.0 */
/* See buckets.h. */
#include "trainer/cuda/buckets.h"

int dpt_buckets_cut(const dpt_graph *g, size_t first, size_t bytes, dpt_bucket *out)
{
    size_t to = g->param_floats;
    int n = 0;

    for (int i = g->params - 1; i >= 0; i--) {
        const size_t from = g->param[i].offset;

        if (i > 0 && (to - from) * sizeof(float) < (n ? bytes : first)) continue;
        out[n++] = (dpt_bucket){ .from = from, .to = to };
        to = from;
    }
    return n;
}
