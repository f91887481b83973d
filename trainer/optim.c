/* SPDX-License-Identifier: Apache-2.0 */
/* SGD in PyTorch's order of operations; see optim.h and optim_math.h. PyTorch's portable CPU kernels
 * round the same way; its AVX2 and CUDA kernels fuse, and differ in the last bits. */
#include "trainer/optim.h"

#include "trainer/optim_math.h"

void dpt_sgd_update(const dpt_sgd *s, float *p, float *v, const float *g, size_t n)
{
    const dpt_sgd_terms t = dpt_sgd_terms_of(s);

    if (s->momentum == 0) {
        for (size_t i = 0; i < n; i++) p[i] = dpt_sgd_plain(&t, p[i], g[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) p[i] = dpt_sgd_moved(&t, p[i], &v[i], g[i]);
}
