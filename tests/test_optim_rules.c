/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW against PyTorch's, LARS against timm's rule, and that neither depends on how the arrays are cut
 * into slices. */
#include "dpload.h"
#include "tests/data/optim_adamw.h"
#include "tests/data/optim_lars.h"
#include "tests/testutil.h"
#include "trainer/parallel_reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void adamw_equals_torch_bit_for_bit(void **state)
{
    (void)state;
    for (int k = 0; k < ADAMW_CASES; k++) {
        const double *c = adamw_case[k];
        const dpt_update u = { .rule = DPT_RULE_ADAMW,
                               .lr = c[0],
                               .beta1 = c[1],
                               .beta2 = c[2],
                               .eps = c[3],
                               .weight_decay = c[4] };
        float p[ADAMW_N], m[ADAMW_N] = { 0 }, v[ADAMW_N] = { 0 };

        memcpy(p, adamw_start[0], sizeof p);
        for (int i = 0; i < ADAMW_STEPS; i++)
            dpt_adamw_update(&u, i + 1, p, m, v, adamw_grads[i], ADAMW_N);
        assert_memory_equal(p, adamw_last[k], sizeof p);
        assert_memory_equal(m, adamw_first_moment[k], sizeof m);
        assert_memory_equal(v, adamw_second_moment[k], sizeof v);
    }
}

/* The three tensors of the data: the second has one dimension. */
static void lars_graph(dpt_graph *g, dpt_param param[3])
{
    static const dpt_param init[3] = {
        { .dims = 2, .shape = { 4, 6 }, .offset = 0, .count = 24, .decay = 1 },
        { .dims = 1, .shape = { 6 }, .offset = 24, .count = 6, .decay = 1 },
        { .dims = 3, .shape = { 5, 2, 3 }, .offset = 30, .count = 30, .decay = 1 },
    };

    memcpy(param, init, sizeof init);
    *g = (dpt_graph){ .param = param, .params = 3, .param_floats = LARS_N };
}

static void lars_equals_timms_rule(void **state)
{
    dpt_param param[3];
    dpt_graph g;
    double norms[6];
    float p[LARS_N], v[LARS_N], grads[LARS_N];
    dpt_reduce_part part = { .grads = grads, .share = 1 };
    dpt_reduce r = {
        .graph = &g, .part = &part, .parts = 1, .params = p, .momentum = v, .norms = norms
    };

    (void)state;
    lars_graph(&g, param);
    assert_int_equal(dpt_reduce_norm_count(&g), 6);
    for (int k = 0; k < LARS_CASES; k++) {
        for (int i = 0; i < LARS_N; i++) p[i] = (float)lars_start[0][i], v[i] = NAN;
        for (int step = 0; step < LARS_STEPS; step++) {
            for (int i = 0; i < LARS_N; i++) grads[i] = (float)lars_grads[step][i];
            r.update = lars_case[k];
            r.update.first = step == 0;
            dpt_reduce_norms(&r, 0, 1);
            dpt_reduce_slice(&r, 0, 1);
        }
        for (int i = 0; i < LARS_N; i++) {
            /* some six roundings a step of numbers below 8 */
            if (!(fabs((double)p[i] - lars_last[k][i]) < LARS_STEPS * 6 * 0x1p-22))
                fail_msg("case %d, %d: %.9g, not %.9g", k, i, (double)p[i], lars_last[k][i]);
        }
    }
}

static void lars_leaves_tensors_without_a_norm_to_sgd(void **state)
{
    const dpt_update u = { .lr = 0.5, .weight_decay = 0.25, .trust = 0.01 };
    float p[2] = { 1, 2 };
    const float g[2] = { 2, -4 };

    (void)state;
    assert_true(dpt_lars_rate(&u, 0, 1) == 0);
    assert_true(dpt_lars_rate(&u, 1, 0) == 0);
    assert_true(dpt_lars_rate(&u, 4, 9) == (float)(0.01 * 2 / (3 + 0.25 * 2)));
    dpt_lars_update(&u, 0, p, NULL, g, 2);
    assert_true(p[0] == 0 && p[1] == 4);
}

static void only_lars_tells_dimensions_apart(void **state)
{
    (void)state;
    for (int rule = DPT_RULE_SGD; rule <= DPT_RULE_LARS; rule++) {
        assert_int_equal(dpt_rule_decays((dpt_rule)rule, 1, 1), rule != DPT_RULE_LARS);
        assert_int_equal(dpt_rule_decays((dpt_rule)rule, 1, 4), 1);
        assert_int_equal(dpt_rule_decays((dpt_rule)rule, 0, 4), 0);
    }
}

/* --- slices --- */

typedef struct state {
    float *p, *m, *v;
} state;

static float *numbers(size_t n, uint32_t x, double lift)
{
    float *a = malloc(n * sizeof *a);

    assert_non_null(a);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        a[i] = (float)((double)(x >> 8) / (1 << 24) - 0.5 + lift);
    }
    return a;
}

/* Two steps over two parts, each cut into so many slices, the last one first. */
static state two_steps(const dpt_graph *g, dpt_rule rule, int slices)
{
    const size_t n = g->param_floats, bytes = n * sizeof(float);
    state s = { numbers(n, 1, 0), numbers(n, 2, 0), numbers(n, 3, 0.5) };
    float *one = numbers(n, 4, 0), *two = numbers(n, 5, 0), *sum = malloc(bytes);
    dpt_reduce_part part[] = { { .grads = sum, .share = 0.5 }, { .grads = two, .share = 0.5 } };
    dpt_reduce r = { .graph = g,
                     .part = part,
                     .parts = 2,
                     .update = { .rule = rule,
                                 .lr = 0.1,
                                 .weight_decay = 0.01,
                                 .momentum = 0.9,
                                 .beta1 = 0.9,
                                 .beta2 = 0.99,
                                 .eps = 1e-8,
                                 .trust = 0.01 },
                     .params = s.p,
                     .momentum = s.m,
                     .second = s.v,
                     .norms = calloc(dpt_reduce_norm_count(g), sizeof(double)) };

    assert_true(sum && r.norms);
    for (r.step = 1; r.step <= 2; r.step++) {
        memcpy(sum, one, bytes);
        for (int k = slices; rule == DPT_RULE_LARS && k-- > 0;) dpt_reduce_norms(&r, k, slices);
        for (int k = slices; k-- > 0;) dpt_reduce_slice(&r, k, slices);
    }
    free(r.norms);
    free(one);
    free(two);
    free(sum);
    return s;
}

static void free_state(state *s)
{
    free(s->p);
    free(s->m);
    free(s->v);
}

static void slices_do_not_show_in_the_result(void **unused)
{
    static const int slices[] = { 2, 3, 7, 64 };
    dpt_graph *g;
    size_t bytes;

    (void)unused;
    assert_int_equal(dpt_graph_build(&g, "tinynet", 5, 32, 32, NULL), DPL_OK);
    assert_true(dpt_reduce_norm_count(g) > 4 * (size_t)g->params); /* tensors of several blocks */
    bytes = g->param_floats * sizeof(float);
    for (int rule = DPT_RULE_SGD; rule <= DPT_RULE_LARS; rule++) {
        state want = two_steps(g, (dpt_rule)rule, 1);

        for (int k = 0; k < 4; k++) {
            state got = two_steps(g, (dpt_rule)rule, slices[k]);

            assert_memory_equal(got.p, want.p, bytes);
            assert_memory_equal(got.m, want.m, bytes);
            assert_memory_equal(got.v, want.v, bytes);
            free_state(&got);
        }
        free_state(&want);
    }
    dpt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_equals_torch_bit_for_bit),
        cmocka_unit_test(lars_equals_timms_rule),
        cmocka_unit_test(lars_leaves_tensors_without_a_norm_to_sgd),
        cmocka_unit_test(only_lars_tells_dimensions_apart),
        cmocka_unit_test(slices_do_not_show_in_the_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
