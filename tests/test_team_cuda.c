/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of GPUs against the same steps on the host: losses, weights, momentum, running statistics. */
#include "dpload.h"
#include "tests/gpu_team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4 };

/* Step k of both: sums must agree. */
static void collect_one(test_gpus *g, test_twin *t, int k)
{
    const dpt_update sgd = test_gpus_sgd(k);
    dpt_team_result r;
    dpt_sums want;
    dpl_text why = { "" };

    if (dpt_team_collect(g->team, &r, &why)) fail_msg("step %d: %s", k, why.s);
    test_twin_step(t, k, &sgd, &want);
    test_twin_compare_sums(&r.sums, &want, test_format("step %d", k));
    assert_int_equal(r.stop, 0);
    assert_true(r.busy_s >= 0);
}

static void evaluate_both(test_gpus *g, test_twin *t, int k)
{
    dpt_team_part part[TEST_GPUS];
    dpt_sums got, want;
    dpl_text why = { "" };

    if (dpt_team_evaluate(g->team, test_gpus_feed(g, k, part), &got, &why)) fail_msg("%s", why.s);
    test_gpus_release(g, k);
    test_twin_evaluate(t, k, &want);
    test_twin_compare_sums(&got, &want, "evaluation");
}

/* Steps with as many under way as there may be, then an evaluation, then what fetch brings. */
static void train_on(const test_gpu_case *c, int from, int to)
{
    test_gpus g;
    test_twin t;
    dpl_text why = { "" };
    int collected = from;

    if (!test_gpus_there(c->gpus)) skip();
    test_gpus_open(&g, c);
    test_twin_open(&t, c);
    if (test_gpus_start(&g, &why)) fail_msg("%s", why.s);
    for (int k = from; k < to; k++) {
        const dpt_update sgd = test_gpus_sgd(k);

        if (k - collected == dpt_team_depth(g.team)) collect_one(&g, &t, collected++);
        if (test_gpus_submit(&g, k, &sgd, &why)) fail_msg("step %d: %s", k, why.s);
    }
    while (collected < to) collect_one(&g, &t, collected++);
    evaluate_both(&g, &t, to);
    if (dpt_team_fetch(g.team, &why)) fail_msg("%s", why.s);
    test_twin_compare(&t, &g);
    test_twin_close(&t);
    test_gpus_close(&g);
}

static void train_like_the_host(const test_gpu_case *c, int steps)
{
    train_on(c, 0, steps);
}

/* --- the splits --- */

static const int splits[][4] = {
    { 1, 4 }, { 2, 2, 2 }, { 2, 3, 1 }, { 3, 5, 2, 1 }, { 3, 0, 4, 2 }, { 2, 3, 0 },
};
enum { SPLITS = sizeof splits / sizeof *splits };

static test_gpu_case split_case(const char *arch, int k)
{
    test_gpu_case c = { .arch = arch, .size = 8, .amp = DPT_AMP_OFF, .gpus = splits[k][0] };

    memcpy(c.n, splits[k] + 1, sizeof splits[k] - sizeof *splits[k]);
    return c;
}

static void each_split_trains_like_the_host(void **state)
{
    (void)state;
    for (int k = 0; k < SPLITS; k++) {
        test_gpu_case c = split_case("slimnet", k);

        c.bytes = k % 2;
        train_like_the_host(&c, STEPS);
    }
}

/* No batch norm: any split of a batch is the same step. */
static void a_tinynet_trains_like_the_host(void **state)
{
    const test_gpu_case c = split_case("tinynet", 3);

    (void)state;
    if (test_gpus_slow()) skip(); /* too many kernels' threads */
    train_like_the_host(&c, 2);
}

static void a_resnet_trains_like_the_host(void **state)
{
    const test_gpu_case c = {
        .arch = "resnet18", .size = 64, .gpus = 2, .n = { 1, 1 }, .amp = DPT_AMP_OFF
    };

    (void)state;
    if (test_gpus_slow()) skip();
    train_like_the_host(&c, 1);
}

static void refused_samples_leave_an_exact_step(void **state)
{
    (void)state;
    for (int k = 0; k < SPLITS; k++) {
        test_gpu_case c = split_case("slimnet", k);

        c.refused = 1 + k;
        train_like_the_host(&c, 3);
    }
}

static void soft_labels_and_bytes_reach_every_gpu(void **state)
{
    test_gpu_case c = split_case("slimnet", 3);

    (void)state;
    c.soft = c.bytes = 1;
    train_like_the_host(&c, STEPS);
}

/* The first step of a run ignores what lies in momentum; one that goes on takes it over. */
static void a_run_that_goes_on_takes_momentum_over(void **state)
{
    const test_gpu_case c = split_case("slimnet", 2);

    (void)state;
    train_on(&c, 1, 4);
}

static void a_step_without_any_sample_changes_nothing(void **state)
{
    test_gpu_case c = { .arch = "slimnet", .size = 8, .gpus = 2, .refused = 4 };

    (void)state;
    train_like_the_host(&c, 2);
}

/* --- how it is called --- */

static void words_to_stop_reach_the_result(void **state)
{
    const test_gpu_case c = split_case("slimnet", 1);
    dpt_team_part part[TEST_GPUS];
    dpt_team_result r;
    test_gpus g;

    (void)state;
    if (!test_gpus_there(c.gpus)) skip();
    test_gpus_open(&g, &c);
    assert_int_equal(test_gpus_start(&g, NULL), DPL_OK);
    for (int k = 0; k < 3; k++) {
        const dpt_team_step s = { .part = test_gpus_feed(&g, k, part),
                                  .update = test_gpus_sgd(k),
                                  .planned = 4,
                                  .stop = k == 1 };

        assert_int_equal(dpt_team_submit(g.team, &s, NULL), DPL_OK);
        test_gpus_release(&g, k);
        assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
        assert_int_equal(r.stop, k == 1);
    }
    assert_int_equal(dpt_team_threads(g.team, 0), 0);
    test_gpus_close(&g);
}

static void two_runs_have_the_same_bits(void **state)
{
    const test_gpu_case c = split_case("slimnet", 3);
    float *params[2];
    size_t bytes = 0;

    (void)state;
    if (!test_gpus_there(c.gpus)) skip();
    for (int run = 0; run < 2; run++) {
        test_gpus g;
        dpt_team_result r;

        test_gpus_open(&g, &c);
        assert_int_equal(test_gpus_start(&g, NULL), DPL_OK);
        for (int k = 0; k < 3; k++) {
            const dpt_update sgd = test_gpus_sgd(k);

            assert_int_equal(test_gpus_submit(&g, k, &sgd, NULL), DPL_OK);
            assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
        }
        assert_int_equal(dpt_team_fetch(g.team, NULL), DPL_OK);
        bytes = g.graph->param_floats * sizeof(float);
        assert_non_null(params[run] = malloc(bytes));
        memcpy(params[run], g.params, bytes);
        test_gpus_close(&g);
    }
    assert_memory_equal(params[0], params[1], bytes);
    free(params[0]);
    free(params[1]);
}

static const char *first_line(const test_gpu_case *c)
{
    const char *line;
    int fallback;
    test_gpus g;

    test_gpus_open(&g, c);
    assert_int_equal(test_gpus_start(&g, NULL), DPL_OK);
    line = test_format("%s", dpt_team_describe(g.team, 0, &fallback));
    assert_non_null(dpt_team_describe(g.team, 1, &fallback));
    test_gpus_close(&g);
    return line;
}

static void the_type_follows_from_the_gpus(void **state)
{
    test_gpu_case c = { .arch = "tinynet", .size = 8, .gpus = 2, .n = { 1, 1 } };
    test_gpus g;
    dpl_text why = { "" };

    (void)state;
    if (!test_fake_cuda()) skip();
    setenv("FAKE_CUDA_NAMES", "H100/80/9.0,T4/16/7.5,A100/40/8.0", 1);
    assert_non_null(strstr(first_line(&c), "fp16")); /* the T4 has no bf16 */
    c.gpus = 1;
    assert_non_null(strstr(first_line(&c), "bf16"));
    c.amp = DPT_AMP_OFF;
    assert_non_null(strstr(first_line(&c), "fp32"));
    c.gpus = 2;
    c.amp = DPT_AMP_BF16;
    test_gpus_open(&g, &c);
    assert_int_equal(test_gpus_start(&g, &why), DPL_ENOTSUP);
    assert_string_equal(why.s, "GPU 1 (cuda:1): bf16 needs compute capability 8.0, it has 7.5; "
                               "take fp16, or fp32");
    test_gpus_close(&g);
    unsetenv("FAKE_CUDA_NAMES");
}

/* --- fp16 --- */

/* The executor of the tests lets gradients above 65504 overflow, as fp16 does. With a gradient of the
 * mean loss near 1 the first scale, 65536, is too much now and then. */
static void steps_that_overflow_fp16_are_skipped_by_all(void **state)
{
    test_gpu_case c = split_case("slimnet", 2);
    const dpt_update sgd = { .lr = 0 };
    const char *line;
    int fallback, scale, skipped;
    dpt_team_result r;
    test_gpus g;
    float before;

    (void)state;
    if (!test_gpus_there(c.gpus) || !test_fake_cuda()) skip();
    c.amp = DPT_AMP_FP16;
    test_gpus_open(&g, &c);
    g.params[g.graph->param[g.graph->params - 2].offset] = 60; /* fc: large activations below it */
    before = g.params[0];
    assert_int_equal(test_gpus_start(&g, NULL), DPL_OK);
    for (int k = 0; k < 12; k++) {
        assert_int_equal(test_gpus_submit(&g, k, &sgd, NULL), DPL_OK);
        assert_int_equal(dpt_team_collect(g.team, &r, NULL), DPL_OK);
        assert_true(isfinite(r.sums.loss));
    }
    line = dpt_team_describe(g.team, 0, &fallback);
    assert_non_null(line = strstr(line, "loss scale "));
    assert_int_equal(sscanf(line, "loss scale %d (%d steps", &scale, &skipped), 2);
    assert_true(skipped > 0 && scale < 65536);
    assert_int_equal(dpt_team_fetch(g.team, NULL), DPL_OK);
    assert_true(g.params[0] == before);
    test_gpus_close(&g);
}

static void fp16_trains_like_the_host(void **state)
{
    test_gpu_case c = split_case("slimnet", 2);

    (void)state;
    c.amp = DPT_AMP_FP16;
    if (!test_fake_cuda()) skip(); /* whose numbers are fp32 */
    train_like_the_host(&c, STEPS);
}

/* --- what cannot be --- */

static void a_gpu_named_twice_is_refused(void **state)
{
    const test_gpu_case c = split_case("slimnet", 1);
    test_gpus g;
    dpl_text why = { "" };

    (void)state;
    if (!test_gpus_there(c.gpus)) skip();
    test_gpus_open(&g, &c);
    g.gpu[1] = 0;
    assert_int_equal(test_gpus_start(&g, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "cuda:0 is named twice"));
    assert_null(g.team);
    test_gpus_close(&g);
}

static void a_canceled_creation_says_so(void **state)
{
    int word = 1;
    test_gpu_case c = split_case("slimnet", 1);
    test_gpus g;
    dpl_text why = { "" };

    (void)state;
    if (!test_gpus_there(c.gpus)) skip();
    c.cancel = &word;
    test_gpus_open(&g, &c);
    assert_int_equal(test_gpus_start(&g, &why), DPL_ECANCELED);
    assert_null(g.team);
    test_gpus_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_split_trains_like_the_host),
        cmocka_unit_test(a_tinynet_trains_like_the_host),
        cmocka_unit_test(a_resnet_trains_like_the_host),
        cmocka_unit_test(refused_samples_leave_an_exact_step),
        cmocka_unit_test(soft_labels_and_bytes_reach_every_gpu),
        cmocka_unit_test(a_run_that_goes_on_takes_momentum_over),
        cmocka_unit_test(a_step_without_any_sample_changes_nothing),
        cmocka_unit_test(words_to_stop_reach_the_result),
        cmocka_unit_test(two_runs_have_the_same_bits),
        cmocka_unit_test(the_type_follows_from_the_gpus),
        cmocka_unit_test(steps_that_overflow_fp16_are_skipped_by_all),
        cmocka_unit_test(fp16_trains_like_the_host),
        cmocka_unit_test(a_gpu_named_twice_is_refused),
        cmocka_unit_test(a_canceled_creation_says_so),
    };

    setenv("FAKE_CUDA_DEVICES", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
