/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of GPUs with AdamW and LARS against the same steps on the host, and AdamW's count of steps where
 * some are empty or skipped. */
#include "dpload.h"
#include "tests/gpu_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dpt_update rule_update(dpt_rule rule, int k)
{
    dpt_update u = test_gpus_sgd(k);

    u.rule = rule;
    u.nesterov = 0;
    u.lr = rule == DPT_RULE_ADAMW ? 0.01 / (k + 1) : 2.0 / (k + 1);
    u.weight_decay = 0.05;
    u.beta1 = 0.8;
    u.beta2 = 0.9;
    u.eps = 1e-8;
    u.trust = 0.02;
    return u;
}

static void collect_one(test_gpus *g, test_twin *t, int k)
{
    const dpt_update u = rule_update(g->c.rule, k);
    dpt_team_result r;
    dpt_sums want;
    dpl_text why = { "" };

    if (dpt_team_collect(g->team, &r, &why)) fail_msg("step %d: %s", k, why.s);
    test_twin_step(t, k, &u, &want);
    test_twin_compare_sums(&r.sums, &want, test_format("step %d", k));
}

/* Steps with as many under way as there may be, then what fetch brings. */
static void train_like_the_host(const test_gpu_case *c, int steps)
{
    test_gpus g;
    test_twin t;
    dpl_text why = { "" };
    int collected = 0;

    if (!test_gpus_there(c->gpus)) skip();
    test_gpus_open(&g, c);
    test_twin_open(&t, c);
    if (test_gpus_start(&g, &why)) fail_msg("%s", why.s);
    for (int k = 0; k < steps; k++) {
        const dpt_update u = rule_update(c->rule, k);

        if (k - collected == dpt_team_depth(g.team)) collect_one(&g, &t, collected++);
        if (test_gpus_submit(&g, k, &u, &why)) fail_msg("step %d: %s", k, why.s);
    }
    while (collected < steps) collect_one(&g, &t, collected++);
    if (dpt_team_fetch(g.team, &why)) fail_msg("%s", why.s);
    test_twin_compare(&t, &g);
    test_twin_close(&t);
    test_gpus_close(&g);
}

static const test_gpu_case cases[] = {
    { .arch = "slimnet", .size = 8, .gpus = 1, .n = { 4 }, .amp = DPT_AMP_OFF },
    { .arch = "slimnet", .size = 8, .gpus = 2, .n = { 3, 1 }, .amp = DPT_AMP_OFF },
    { .arch = "slimnet", .size = 8, .gpus = 2, .n = { 2, 2 }, .amp = DPT_AMP_OFF, .refused = 1 },
};

static void each_rule_trains_like_the_host(void **state)
{
    (void)state;
    for (int rule = DPT_RULE_ADAMW; rule <= DPT_RULE_LARS; rule++) {
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            test_gpu_case c = cases[k];

            c.rule = (dpt_rule)rule;
            train_like_the_host(&c, 5);
        }
    }
}

static void adamw_goes_on_where_it_was(void **state)
{
    test_gpu_case c = cases[1];

    (void)state;
    c.rule = DPT_RULE_ADAMW;
    c.updates = 41;
    train_like_the_host(&c, 3);
}

/* With a scale, the update divides what fp16 multiplied. */
static void fp16_trains_like_the_host(void **state)
{
    test_gpu_case c = cases[1];

    (void)state;
    if (!test_fake_cuda()) skip(); /* whose numbers are fp32 */
    c.amp = DPT_AMP_FP16;
    for (int rule = DPT_RULE_ADAMW; rule <= DPT_RULE_LARS; rule++) {
        c.rule = (dpt_rule)rule;
        train_like_the_host(&c, 4);
    }
}

/* --- steps that do not count --- */

/* A batch whose samples were all refused, at every place among the others: the host leaves it out. */
static void steps_without_samples_do_not_count(void **state)
{
    (void)state;
    if (!test_gpus_there(2)) skip();
    for (int empty = 0; empty < 4; empty++) {
        test_gpu_case c = cases[1];
        dpl_text why = { "" };
        dpt_team_result r;
        test_gpus g;
        test_twin t;
        int collected = 0;

        c.rule = DPT_RULE_ADAMW;
        test_gpus_open(&g, &c);
        test_twin_open(&t, &c);
        if (test_gpus_start(&g, &why)) fail_msg("%s", why.s);
        for (int k = 0; k < 4; k++) {
            dpt_team_part part[TEST_GPUS] = { { 0 } };
            dpt_team_step s = { .part = part,
                                .update = rule_update(c.rule, k),
                                .planned = test_gpus_planned(&c) };
            dpt_sums sums;

            if (k - collected == dpt_team_depth(g.team)) {
                assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
                collected++;
            }
            test_gpus_feed(&g, k, part);
            for (int p = 0; k == empty && p < c.gpus; p++) part[p].n = 0;
            assert_int_equal(dpt_team_submit(g.team, &s, NULL), DPL_OK);
            test_gpus_release(&g, k);
            if (k != empty) test_twin_step(&t, k, &s.update, &sums);
        }
        while (collected++ < 4) assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
        assert_int_equal(dpt_team_fetch(g.team, NULL), DPL_OK);
        assert_int_equal(g.updates, 3);
        test_twin_compare(&t, &g);
        test_twin_close(&t);
        test_gpus_close(&g);
    }
}

/* As in test_team_cuda.c: with these weights the first loss scales are too large. */
static void steps_that_overflow_fp16_do_not_count(void **state)
{
    enum { STEPS = 12 };
    test_gpu_case c = cases[1];
    dpt_update u = rule_update(DPT_RULE_ADAMW, 0);
    dpt_team_result r;
    int fallback, scale, skipped;
    const char *line;
    test_gpus g;

    (void)state;
    if (!test_gpus_there(2) || !test_fake_cuda()) skip();
    c.rule = DPT_RULE_ADAMW;
    c.amp = DPT_AMP_FP16;
    c.updates = 5;
    u.lr = 0;
    test_gpus_open(&g, &c);
    g.params[g.graph->param[g.graph->params - 2].offset] = 60; /* fc: large activations below it */
    assert_int_equal(test_gpus_start(&g, NULL), DPL_OK);
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(test_gpus_submit(&g, k, &u, NULL), DPL_OK);
        assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
    }
    line = dpt_team_describe(g.team, 0, &fallback);
    assert_non_null(line = strstr(line, "loss scale "));
    assert_int_equal(sscanf(line, "loss scale %d (%d steps", &scale, &skipped), 2);
    assert_true(skipped > 0);
    assert_int_equal(dpt_team_fetch(g.team, NULL), DPL_OK);
    assert_int_equal(g.updates, 5 + STEPS - skipped);
    test_gpus_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_trains_like_the_host),
        cmocka_unit_test(adamw_goes_on_where_it_was),
        cmocka_unit_test(fp16_trains_like_the_host),
        cmocka_unit_test(steps_without_samples_do_not_count),
        cmocka_unit_test(steps_that_overflow_fp16_do_not_count),
    };

    setenv("FAKE_CUDA_DEVICES", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
