/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules over an array; see optim.h and optim_math.h. PyTorch's portable CPU kernels round
 * the same way; its AVX2 and CUDA kernels fuse, and differ in the last bits. */
#include "trainer/optim.h"

#include "trainer/optim_math.h"

const char *dpt_rule_name(dpt_rule rule)
{
    static const char *const name[] = { "SGD", "AdamW", "LARS" };

    return name[rule];
}

int dpt_rule_decays(dpt_rule rule, int decay, int dims)
{
    return decay && (rule != DPT_RULE_LARS || dims > 1);
}

void dpt_sgd_update(const dpt_update *u, float *p, float *v, const float *g, size_t n)
{
    const dpt_sgd_terms t =
        dpt_sgd_terms_of(u->lr, u->momentum, u->weight_decay, u->nesterov, u->first);

    if (u->momentum == 0) {
        for (size_t i = 0; i < n; i++) p[i] = dpt_sgd_plain(&t, p[i], g[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) p[i] = dpt_sgd_moved(&t, p[i], &v[i], g[i]);
}

void dpt_adamw_update(const dpt_update *u, int64_t step, float *p, float *m, float *v,
                      const float *g, size_t n)
{
    const dpt_adamw_terms t =
        dpt_adamw_terms_of(u->lr, u->weight_decay, u->beta1, u->beta2, u->eps, (double)step);

    for (size_t i = 0; i < n; i++) p[i] = dpt_adamw(&t, 1, p[i], &m[i], &v[i], g[i]);
}

float dpt_lars_rate(const dpt_update *u, double weights_squared, double grads_squared)
{
    return dpt_lars_ratio(u->trust, u->weight_decay, u->eps, sqrt(weights_squared),
                          sqrt(grads_squared));
}

void dpt_lars_update(const dpt_update *u, float rate, float *p, float *v, const float *g, size_t n)
{
    const dpt_sgd_terms t = dpt_sgd_terms_of(u->lr, u->momentum, 0, u->nesterov, u->first);
    const float decay = (float)u->weight_decay;

    for (size_t i = 0; i < n; i++) {
        const float scaled = dpt_lars_gradient(rate, decay, p[i], g[i]);

        p[i] = u->momentum == 0 ? dpt_sgd_plain(&t, p[i], scaled)
                                : dpt_sgd_moved(&t, p[i], &v[i], scaled);
    }
}
