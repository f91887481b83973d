/* SPDX-License-Identifier: Apache-2.0 */
/* A signal ends a run at once: the step under way does not count, the state before it is saved, the
 * exit code tells, and the run goes on with that step. */
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
    assert_non_null(strstr(r.err, "dptrain: stopping; again: at once, without saving\n"));
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

static void sighup_saves_and_exits_75(void **state)
{
    (void)state;
    signal(SIGHUP, SIG_DFL); /* these tests may run under nohup themselves */
    stop_and_go_on(SIGHUP, 75, "hup");
}

/* Under nohup the system ignores it, and dptrain leaves it so. */
static void sighup_that_is_ignored_stays_so(void **state)
{
    void (*was)(int) = signal(SIGHUP, SIG_IGN);
    test_run r;

    (void)state;
    test_dptrain_signal(&r, SIGHUP, "nohup/log.jsonl", 4, COMMON " --epochs 2 -o nohup data");
    signal(SIGHUP, was);
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.err, "stopping"));
    test_run_free(&r);
}

static void a_second_signal_ends_at_once_unsaved(void **state)
{
    test_run r;

    (void)state;
    test_dptrain_second_signal(SIGTERM);
    test_dptrain_signal(&r, SIGINT, "twice/log.jsonl", 2, COMMON " --epochs 5000 -o twice data");
    test_dptrain_second_signal(0);
    assert_true(r.code == 130 || r.code == 1); /* whichever the system delivers last */
    assert_null(strstr(r.err, "stopped by"));
    test_run_free(&r);
}

/* A closing terminal or a service manager sends it along with another one. */
static void a_hang_up_is_never_the_second_signal(void **state)
{
    static const int other[] = { SIGTERM, SIGUSR1 };
    test_run r;

    (void)state;
    signal(SIGHUP, SIG_DFL);
    for (int i = 0; i < 2; i++) {
        char folder[16], file[32]; /* the formatted text would not live long enough */

        snprintf(folder, sizeof folder, "hup%d", i);
        snprintf(file, sizeof file, "hup%d/log.jsonl", i);
        test_dptrain_second_signal(other[i]);
        test_dptrain_signal(&r, SIGHUP, file, 2, COMMON " --epochs 5000 -o %s data", folder);
        test_dptrain_second_signal(0);
        if (r.code != 75) fail_msg("exit %d: %s", r.code, r.err);
        assert_non_null(strstr(r.err, "checkpoint saved"));
        test_run_free(&r);
    }
}

/* A step takes long here, so that the signal, sent when a line of log appears, meets the next one:
 * that one is cut short, is in no log and no checkpoint, and the resumed run makes it again. */
static void the_step_under_way_is_repeated(void **state)
{
#define SLOW "-a tinynet --size 64 --backend ref -b 12 --lr 0.01 --seed 3 --progress none -j 2"
    double want[16], got[16], step[16];
    test_run r;

    (void)state;
    test_dptrain(&r, SLOW " --epochs 2 -o slow_whole data");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    test_run_free(&r);
    assert_int_equal(test_log_numbers("slow_whole/log.jsonl", "train.loss", want, 16), 6);
    test_dptrain_signal(&r, SIGINT, "slow/log.jsonl", 1, SLOW " --epochs 2 -o slow data");
    if (r.code != 130) fail_msg("exit %d: %s", r.code, r.err);
    assert_non_null(strstr(r.err, "epoch 1, 12 of 36 pictures"));
    test_run_free(&r);
    assert_int_equal(test_log_numbers("slow/log.jsonl", "train.loss", got, 16), 1);
    test_dptrain(&r, "--resume slow data");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    test_run_free(&r);
    assert_int_equal(test_log_numbers("slow/log.jsonl", "train.loss", got, 16), 6);
    assert_memory_equal(got, want, 6 * sizeof *want);
    assert_int_equal(test_log_numbers("slow/log.jsonl", "step", step, 16),
                     test_log_numbers("slow_whole/log.jsonl", "step", got, 16));
    assert_int_equal(test_log_numbers("slow/log.jsonl", "val.loss", got, 16), 2);
    test_log_numbers("slow_whole/log.jsonl", "val.loss", want, 16);
    assert_memory_equal(got, want, 2 * sizeof *want);
}

/* It said "saved", with exit code 0, and had not. */
static void a_signal_behind_the_last_of_the_steps_saves(void **state)
{
    double step[16];
    test_run r;

    (void)state;
    test_work_tree("late/train", 10, 1);
    test_work_tree("late/val", 10, 14);
    test_dptrain_signal(&r, SIGINT, "late_run/log.jsonl", 1,
                        COMMON " --epochs 3 --steps 1 --size 40 --batch 4 -o late_run late");
    if (r.code != 130) fail_msg("exit %d: %s", r.code, r.err);
    assert_non_null(strstr(r.err, "epoch 1, 4 of 10 pictures"));
    test_run_free(&r);
    test_dptrain(&r, "--resume late_run --steps 2 late");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    assert_int_equal(test_log_numbers("late_run/log.jsonl", "step", step, 16), 3); /* and val */
    assert_true(step[0] == 1 && step[1] == 2 && step[2] == 2);
    test_run_free(&r);
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
        cmocka_unit_test(sighup_saves_and_exits_75),
        cmocka_unit_test(sighup_that_is_ignored_stays_so),
        cmocka_unit_test(a_second_signal_ends_at_once_unsaved),
        cmocka_unit_test(a_hang_up_is_never_the_second_signal),
        cmocka_unit_test(the_step_under_way_is_repeated),
        cmocka_unit_test(a_signal_behind_the_last_of_the_steps_saves),
        cmocka_unit_test(a_signal_during_evaluation_keeps_the_epoch),
        cmocka_unit_test(a_signal_ends_a_simulated_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
