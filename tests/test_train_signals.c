/* SPDX-License-Identifier: Apache-2.0 */
/* A signal ends a run at once but not in the middle of anything: the step is finished, the state is
 * saved, the exit code tells, and the run can go on. */
#include "tests/dptrain_runs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define COMMON "-a tinynet --size 16 --backend ref -b 4 --lr 0.01 --progress none"

/* Stop a long run after its first lines of log, see it end soon, and go on for two steps. */
static void stop_and_go_on(int sig, int code, const char *folder)
{
    double step[4096], last;
    char file[64];
    test_run r;
    int n;

    snprintf(file, sizeof file, "%s/log.jsonl", folder);
    test_dptrain_signal(&r, sig, file, 4, COMMON " --epochs 5000 -o %s data", folder);
    if (r.code != code) fail_msg("exit %d: %s", r.code, r.err);
    assert_true(r.seconds < 20);
    assert_non_null(strstr(r.err, "dptrain: stopping after this step; again: at once, unsaved\n"));
    assert_non_null(strstr(r.err, "checkpoint saved"));
    test_run_free(&r);
    n = test_log_numbers(file, "step", step, 4096);
    assert_true(n >= 4);
    last = step[n - 1];
    test_dptrain(&r, COMMON " --epochs 5000 --steps %d --resume %s data", (int)last + 2, folder);
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    test_run_free(&r);
    n = test_log_numbers(file, "train.loss", step, 4096);
    assert_int_equal(n, (int)last + 2);
}

static void sigint_saves_and_exits_130(void **state)
{
    (void)state;
    stop_and_go_on(SIGINT, 130, "int");
}

static void sigterm_saves_and_exits_75(void **state)
{
    (void)state;
    stop_and_go_on(SIGTERM, 75, "term");
}

static void sigusr1_saves_and_exits_75(void **state)
{
    (void)state;
    stop_and_go_on(SIGUSR1, 75, "usr1");
}

/* The validation set is large and the training set small, so that the signal meets an evaluation. */
static void a_signal_during_evaluation_keeps_the_epoch(void **state)
{
    double n[16];
    test_run r;

    (void)state;
    test_work_tree("wide/train", 10, 1);
    test_work_tree("wide/val", 10, 14);
    test_dptrain_signal(&r, SIGINT, "wide_run/log.jsonl", 1,
                        COMMON " --epochs 1 --size 40 --batch 10 -o wide_run wide");
    if (r.code != 130) fail_msg("exit %d: %s", r.code, r.err);
    assert_non_null(strstr(r.err, "epoch 2, 0 of 10 pictures"));
    assert_int_equal(test_log_numbers("wide_run/log.jsonl", "val.images", n, 16), 0);
    test_run_free(&r);
    test_dptrain(&r, "--resume wide_run wide");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    assert_int_equal(test_log_numbers("wide_run/log.jsonl", "val.images", n, 16), 1);
    assert_true(n[0] == 140);
    assert_int_equal(test_log_numbers("wide_run/log.jsonl", "train.loss", n, 16), 1);
    test_run_free(&r);
}

static void a_signal_ends_a_simulated_run(void **state)
{
    test_run r;

    (void)state;
    test_dptrain_signal(&r, SIGINT, "err", 4,
                        "--devices sim:200ms -b 4 --size 32 -p 1 --epochs 99 data");
    assert_int_equal(r.code, 130);
    assert_true(r.seconds < 20);
    test_run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigint_saves_and_exits_130),
        cmocka_unit_test(sigterm_saves_and_exits_75),
        cmocka_unit_test(sigusr1_saves_and_exits_75),
        cmocka_unit_test(a_signal_during_evaluation_keeps_the_epoch),
        cmocka_unit_test(a_signal_ends_a_simulated_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
