/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and LARS on the CPU's replicas: together they do what one does with the whole batch, and count
 * the steps they make. */
#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 12, SIZE = 8, PIXELS = 3 * SIZE * SIZE, STEPS = 6, EMPTY = 2 };

static float pixels[BATCH * PIXELS];
static int32_t labels[BATCH];

static void make_data(void)
{
    uint32_t x = 3;

    for (int i = 0; i < BATCH * PIXELS; i++) {
        x = x * 1664525 + 1013904223;
        pixels[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < BATCH; i++) labels[i] = i % 3;
}

typedef struct result {
    float *params, *momentum, *second;
    size_t floats;
    int64_t updates;
    double loss[STEPS];
} result;

static void free_result(result *r)
{
    free(r->params);
    free(r->momentum);
    free(r->second);
}

static void step(dpt_team *t, dpt_rule rule, const int *n, int replicas, int k, result *out)
{
    dpt_team_part part[8];
    const dpt_team_step s = { .part = part,
                              .update = { .rule = rule,
                                          .lr = rule == DPT_RULE_ADAMW ? 2e-3 : 4,
                                          .weight_decay = 0.01,
                                          .momentum = 0.9,
                                          .first = k == 0,
                                          .beta1 = 0.9,
                                          .beta2 = 0.99,
                                          .eps = 1e-3, /* where a gradient is rounding alone */
                                          .trust = 0.002 },
                              .planned = BATCH };
    dpt_team_result r;
    dpl_text why = { "" };

    for (int i = 0, at = 0; i < replicas; at += n[i++])
        part[i] = (dpt_team_part){ .pixels = pixels + at * PIXELS,
                                   .labels = labels + at,
                                   .n = k == EMPTY ? 0 : n[i] };
    if (dpt_team_submit(t, &s, &why) || dpt_team_collect(t, &r, &why)) fail_msg("%s", why.s);
    out->loss[k] = r.sums.loss;
}

/* Six steps of tinynet, the third of them empty; updates: made before. */
static result train(dpt_rule rule, const int *n, int replicas, int64_t updates)
{
    result r = { .updates = updates };
    dpt_team_options o = { .backend = &dpt_backend_ref,
                           .replicas = replicas,
                           .max_n = n,
                           .rule = rule,
                           .updates = &r.updates };
    dpt_graph *g;
    dpt_team *t;
    dpl_text why = { "" };

    if (dpt_graph_build(&g, "tinynet", 3, SIZE, SIZE, &why)) fail_msg("%s", why.s);
    r.floats = g->param_floats;
    assert_non_null(o.params = r.params = calloc(r.floats, sizeof(float)));
    assert_non_null(o.momentum = r.momentum = calloc(r.floats, sizeof(float)));
    assert_non_null(r.second = calloc(r.floats, sizeof(float)));
    o.second = rule == DPT_RULE_ADAMW ? r.second : NULL;
    o.graph = g;
    dpt_graph_init(g, 1, r.params, NULL);
    if (dpt_team_create(&t, &o, &why)) fail_msg("%s", why.s);
    for (int k = 0; k < STEPS; k++) step(t, rule, n, replicas, k, &r);
    dpt_team_destroy(&t);
    dpt_graph_destroy(&g);
    return r;
}

static void compare(const result *got, const result *want, const char *what)
{
    double off = 0, most = 0;

    for (int k = 0; k < STEPS; k++)
        if (!(fabs(got->loss[k] - want->loss[k]) <= 1e-5 * want->loss[k]))
            fail_msg("%s, step %d: loss %.9g, not %.9g", what, k, got->loss[k], want->loss[k]);
    for (size_t i = 0; i < want->floats; i++) {
        const double d = fabs((double)got->params[i] - (double)want->params[i]);
        off = d <= off ? off : d; /* NaN is kept */
        most = fmax(most, fabs((double)want->params[i]));
    }
    if (!(off <= 2e-5 * most)) fail_msg("%s: weights off by %g of %g", what, off, most);
}

static void replicas_train_like_one(void **state)
{
    static const int one[] = { 12 }, three[] = { 5, 4, 3 }, some[] = { 0, 11, 0, 1 };

    (void)state;
    for (int rule = DPT_RULE_ADAMW; rule <= DPT_RULE_LARS; rule++) {
        result want = train((dpt_rule)rule, one, 1, 0);
        result split = train((dpt_rule)rule, three, 3, 0);
        result again = train((dpt_rule)rule, three, 3, 0);
        result uneven = train((dpt_rule)rule, some, 4, 0);

        assert_true(want.loss[STEPS - 1] < 0.99 * want.loss[0]); /* it learns */
        compare(&split, &want, "three replicas");
        compare(&uneven, &want, "two of four");
        assert_memory_equal(again.params, split.params, split.floats * sizeof(float));
        assert_memory_equal(again.momentum, split.momentum, split.floats * sizeof(float));
        assert_memory_equal(again.second, split.second, split.floats * sizeof(float));
        assert_int_equal(split.updates, STEPS - 1); /* one was empty */
        free_result(&want);
        free_result(&split);
        free_result(&again);
        free_result(&uneven);
    }
}

/* The same moments after many steps are worth less: the bias is gone. */
static void the_count_of_steps_is_taken_over(void **state)
{
    static const int two[] = { 6, 6 };
    result begun = train(DPT_RULE_ADAMW, two, 2, 0), later = train(DPT_RULE_ADAMW, two, 2, 1000);

    (void)state;
    assert_int_equal(later.updates, 1000 + STEPS - 1);
    assert_true(later.loss[0] == begun.loss[0]);
    assert_true(later.loss[1] != begun.loss[1]);
    free_result(&begun);
    free_result(&later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_train_like_one),
        cmocka_unit_test(the_count_of_steps_is_taken_over),
    };

    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
