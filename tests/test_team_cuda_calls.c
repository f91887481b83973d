/* SPDX-License-Identifier: Apache-2.0 */
/* What calls of a team of GPUs promise beside results: nothing is allocated after creation, queueing
 * waits for nothing, and memory that does not fit is told in bytes. */
#include "dpload.h"
#include "tests/gpu_team.h"

#include <stdlib.h>
#include <string.h>

static const test_gpu_case two = { .arch = "slimnet", .size = 8, .gpus = 2, .n = { 2, 1 } };

static void submit_one(test_gpus *g, int k)
{
    dpt_team_part part[TEST_GPUS];
    const dpt_team_step s = { .part = test_gpus_parts(g, k, part),
                              .update = test_gpus_sgd(k),
                              .planned = test_gpus_planned(&g->c) };
    dpl_text why = { "" };

    if (dpt_team_submit(g->team, &s, &why)) fail_msg("step %d: %s", k, why.s);
}

static void collect_one(test_gpus *g, int64_t n)
{
    dpt_team_result r;
    dpl_text why = { "" };

    if (dpt_team_collect(g->team, &r, &why)) fail_msg("%s", why.s);
    assert_int_equal(r.sums.n, n);
}

static void open_started(test_gpus *g)
{
    dpt_team_part part[TEST_GPUS];
    dpl_text why = { "" };

    test_gpus_open(g, &two);
    for (int k = 0; k < TEST_SLOTS; k++) test_gpus_feed(g, k, part);
    for (int p = 0; p < two.gpus; p++) assert_int_equal(dpl_stream_sync(g->copy[p]), DPL_OK);
    if (test_gpus_start(g, &why)) fail_msg("%s", why.s);
}

static void nothing_is_allocated_after_creation(void **state)
{
    static const fake_cuda_call calls[] = { FAKE_ALLOC, FAKE_HOST_ALLOC, FAKE_STREAM, FAKE_EVENT };
    enum { CALLS = sizeof calls / sizeof *calls };
    const fake_cuda *fake = test_fake_cuda();
    dpt_team_part part[TEST_GPUS];
    int before[CALLS];
    dpt_sums sums;
    test_gpus g;

    (void)state;
    if (!fake || !test_gpus_there(2)) skip();
    open_started(&g);
    for (int i = 0; i < CALLS; i++) before[i] = fake->count(calls[i]);
    for (int k = 0; k < 3; k++) {
        submit_one(&g, k);
        collect_one(&g, 3);
    }
    assert_int_equal(dpt_team_evaluate(g.team, test_gpus_parts(&g, 0, part), &sums, NULL), DPL_OK);
    assert_int_equal(dpt_team_fetch(g.team, NULL), DPL_OK);
    for (int i = 0; i < CALLS; i++) assert_int_equal(fake->count(calls[i]), before[i]);
    test_gpus_close(&g);
}

/* No stream moves, and yet as many steps as may be under way are taken. */
static void submitting_waits_for_nothing(void **state)
{
    const fake_cuda *fake = test_fake_cuda();
    test_gpus g;

    (void)state;
    if (!fake || !test_gpus_there(2)) skip();
    open_started(&g);
    assert_int_equal(dpt_team_depth(g.team), 2);
    fake->hold(1);
    submit_one(&g, 0);
    submit_one(&g, 1);
    fake->hold(0);
    collect_one(&g, 3);
    collect_one(&g, 3);
    test_gpus_close(&g);
}

/* Steps under way when the team goes are finished: their memory is in use. */
static void a_team_may_go_with_steps_under_way(void **state)
{
    const fake_cuda *fake = test_fake_cuda();
    int before;
    test_gpus g;

    (void)state;
    if (!fake || !test_gpus_there(2)) skip();
    before = fake->alive();
    open_started(&g);
    submit_one(&g, 0);
    submit_one(&g, 1);
    test_gpus_close(&g);
    assert_int_equal(fake->alive(), before);
    assert_string_equal(fake->fault(), "");
}

/* resnet18: 11.2 million parameters, three arrays of them are 128 MiB. */
static void memory_that_does_not_fit_is_told_in_bytes(void **state)
{
    const test_gpu_case c = { .arch = "resnet18", .size = 32, .gpus = 1, .n = { 1 } };
    test_gpus g;
    dpl_text why = { "" };

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(1)) skip();
    setenv("FAKE_CUDA_NAMES", "Tiny/0.1", 1);
    test_gpus_open(&g, &c);
    assert_int_equal(test_gpus_start(&g, &why), DPL_ENOMEM);
    assert_non_null(strstr(why.s, "GPU 0 (cuda:0): out of GPU memory: weights, momentum and "
                                  "gradients of resnet18 need 128.0 MiB ("));
    assert_non_null(strstr(why.s, " of 102.4 MiB are free now): "));
    test_gpus_close(&g);
    unsetenv("FAKE_CUDA_NAMES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_after_creation),
        cmocka_unit_test(submitting_waits_for_nothing),
        cmocka_unit_test(a_team_may_go_with_steps_under_way),
        cmocka_unit_test(memory_that_does_not_fit_is_told_in_bytes),
    };

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
