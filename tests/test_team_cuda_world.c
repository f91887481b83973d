/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of GPUs of two processes, which meet at an address: two threads stand for the processes. */
#include "base/clock.h"
#include "dpload.h"
#include "tests/gpu_team.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD = 2, STEPS = 4, PATIENCE_MS = 10000 };

typedef struct process {
    test_gpus g;
    pthread_t thread;
    int stops_at;     /* step after which it wants to stop, or -1 */
    int loses_gpu;    /* 1 = its first GPU fails during the first step */
    int err, stopped; /* step whose result said stop, or -1 */
    dpt_sums sums[STEPS], evaluated;
    dpl_text why;
} process;

static int collect(process *p, int k)
{
    dpt_team_result r;
    const int err = dpt_team_collect(p->g.team, &r, &p->why);

    p->sums[k] = r.sums;
    if (!err && r.stop && p->stopped < 0) p->stopped = k;
    return err;
}

static int steps(process *p)
{
    dpt_team_part part[TEST_GPUS];
    int err = DPL_OK;

    for (int k = 0; k < STEPS && !err; k++) {
        const dpt_team_step s = { .part = test_gpus_feed(&p->g, k, part),
                                  .update = test_gpus_sgd(k),
                                  .planned = test_gpus_planned(&p->g.c),
                                  .stop = k == p->stops_at };

        if ((err = dpt_team_submit(p->g.team, &s, &p->why))) break;
        test_gpus_release(&p->g, k);
        if (p->loses_gpu) {
            test_fake_cuda()->lose(p->g.gpu[0], 700);
            return collect(p, k);
        }
        if (k > 0) err = collect(p, k - 1);
    }
    return err ? err : collect(p, STEPS - 1);
}

static void *process_main(void *arg)
{
    process *p = arg;
    dpt_team_part part[TEST_GPUS];

    p->stopped = -1;
    if ((p->err = test_gpus_start(&p->g, &p->why))) return NULL;
    p->err = steps(p);
    if (!p->err) {
        test_gpus_feed(&p->g, STEPS, part);
        p->err = dpt_team_evaluate(p->g.team, part, &p->evaluated, &p->why);
        test_gpus_release(&p->g, STEPS);
    }
    if (!p->err) p->err = dpt_team_fetch(p->g.team, &p->why);
    dpt_team_destroy(&p->g.team);
    return NULL;
}

static void open_all(process p[WORLD], const test_gpu_case *c)
{
    memset(p, 0, WORLD * sizeof *p);
    for (int r = 0; r < WORLD; r++) {
        test_gpu_case own = *c;

        own.rank = r;
        own.world = WORLD;
        test_gpus_open(&p[r].g, &own);
        p[r].stops_at = -1;
    }
}

static void run_all(process p[WORLD])
{
    const int64_t start = dpl_now_ns();

    for (int r = 0; r < WORLD; r++)
        assert_int_equal(pthread_create(&p[r].thread, NULL, process_main, &p[r]), 0);
    for (int r = 0; r < WORLD; r++) pthread_join(p[r].thread, NULL);
    assert_true(dpl_now_ns() - start < 3 * PATIENCE_MS * 1000000LL);
}

static void close_all(process p[WORLD])
{
    test_fake_cuda()->reset();
    test_fake_nccl()->reset();
    for (int r = 0; r < WORLD; r++) test_gpus_close(&p[r].g);
    assert_int_equal(test_fake_cuda()->alive(), 0);
    assert_int_equal(test_fake_nccl()->alive(), 0);
}

static const test_gpu_case two_by_two = { .arch = "slimnet",
                                          .size = 8,
                                          .gpus = 2,
                                          .n = { 3, 1, 0, 2 },
                                          .refused = 2,
                                          .timeout_ms = PATIENCE_MS };

static void two_processes_train_like_the_host(void **state)
{
    process p[WORLD];
    test_twin t;
    dpt_sums want;

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(4)) skip();
    open_all(p, &two_by_two);
    for (size_t i = 0; i < p[1].g.graph->param_floats; i++)
        p[1].g.params[i] = -1; /* rank 0's count */
    p[1].stops_at = 2;
    run_all(p);
    test_twin_open(&t, &p[0].g.c);
    for (int r = 0; r < WORLD; r++)
        if (p[r].err) fail_msg("process %d: %s", r, p[r].why.s);
    for (int k = 0; k < STEPS; k++) {
        const dpt_update sgd = test_gpus_sgd(k);

        test_twin_step(&t, k, &sgd, &want);
        for (int r = 0; r < WORLD; r++)
            test_twin_compare_sums(&p[r].sums[k], &want, test_format("process %d, step %d", r, k));
    }
    test_twin_evaluate(&t, STEPS, &want);
    for (int r = 0; r < WORLD; r++) {
        test_twin_compare_sums(&p[r].evaluated, &want, "evaluation");
        test_twin_compare(&t, &p[r].g);
        assert_int_equal(p[r].stopped, 2); /* both at the same step */
    }
    test_twin_close(&t);
    close_all(p);
}

static void other_options_are_refused_by_all(void **state)
{
    process p[WORLD];
    test_gpu_case c = two_by_two;

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(4)) skip();
    open_all(p, &c);
    p[1].g.graph->tensor[0].h = 16;
    run_all(p);
    p[1].g.graph->tensor[0].h = 8;
    for (int r = 0; r < WORLD; r++) assert_int_equal(p[r].err, DPL_EINVAL);
    assert_non_null(strstr(p[0].why.s, "2 of 4 GPUs were started with other options"));
    assert_non_null(strstr(p[1].why.s, "process 1 of 2, GPU "));
    assert_non_null(strstr(p[1].why.s, "picture height: 16 here, 8 in the first process"));
    close_all(p);
}

static void a_process_that_does_not_come_is_a_time_out(void **state)
{
    test_gpu_case c = two_by_two;
    process p;

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(4)) skip();
    memset(&p, 0, sizeof p);
    c.world = WORLD;
    c.timeout_ms = 300;
    test_gpus_open(&p.g, &c);
    process_main(&p);
    assert_int_equal(p.err, DPL_ETIMEOUT);
    assert_non_null(strstr(p.why.s, "process 0 of 2, GPU "));
    test_gpus_close(&p.g);
    test_fake_nccl()->reset();
}

static void a_process_that_fails_ends_the_other(void **state)
{
    test_gpu_case c = two_by_two;
    process p[WORLD];

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(4)) skip();
    c.timeout_ms = 1000;
    open_all(p, &c);
    p[1].loses_gpu = 1;
    run_all(p);
    assert_int_equal(p[0].err, DPL_EDEVICE);
    assert_int_equal(p[1].err, DPL_EDEVICE);
    assert_non_null(strstr(p[0].why.s, "process 0 of 2, GPU "));
    assert_non_null(strstr(p[1].why.s, "process 1 of 2, GPU "));
    close_all(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_train_like_the_host),
        cmocka_unit_test(other_options_are_refused_by_all),
        cmocka_unit_test(a_process_that_does_not_come_is_a_time_out),
        cmocka_unit_test(a_process_that_fails_ends_the_other),
    };

    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("NCCL_COMM_ID", "127.0.0.1:29400", 1); /* or both threads would set it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
