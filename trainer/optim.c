/* SPDX-License-Identifier: Apache-2.0 */
/* SGD in PyTorch's order of operations; see optim.h. Each product and each sum is rounded to fp32 on
 * its own (no fused multiply-add), so that every machine gets the same bits. PyTorch's portable CPU
 * kernels round the same way; its AVX2 and CUDA kernels fuse, and differ in the last bits. */
#include "trainer/optim.h"

static void update_plain(const dpt_sgd *s, float *p, const float *g, size_t n)
{
    const float decay = (float)s->weight_decay, rate = (float)-s->lr;

    for (size_t i = 0; i < n; i++) {
        const float d = s->weight_decay != 0 ? g[i] + decay * p[i] : g[i];
        p[i] += rate * d;
    }
}

void dpt_sgd_update(const dpt_sgd *s, float *p, float *v, const float *g, size_t n)
{
    const float decay = (float)s->weight_decay, rate = (float)-s->lr;
    const float momentum = (float)s->momentum;

    if (s->momentum == 0) {
        update_plain(s, p, g, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float d = s->weight_decay != 0 ? g[i] + decay * p[i] : g[i];
        const float m = s->first ? d : momentum * v[i] + d;

        v[i] = m;
        p[i] += rate * (s->nesterov ? d + momentum * m : m);
    }
}
