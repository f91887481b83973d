/* SPDX-License-Identifier: Apache-2.0 */
/* A run that was ended and resumed gives the losses of the run that was not; whatever ended it, and
 * with another number of loader threads. */
#include "tests/dptrain_runs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* 36 pictures in batches of 8: 5 steps an epoch, the last one with 4. */
#define COMMON "-a tinynet --size 16 --backend ref -b 8 --lr 0.01 --seed 7 --progress none"
enum { STEPS = 15, MAX = 64 };

typedef struct run_log {
    double loss[MAX], step[MAX], val[MAX];
    int losses, steps, vals;
} run_log;

static void read_log(const char *folder, run_log *l)
{
    const char *file = test_format("%s/log.jsonl", folder);

    l->losses = test_log_numbers(file, "train.loss", l->loss, MAX);
    l->steps = test_log_numbers(file, "step", l->step, MAX);
    l->vals = test_log_numbers(file, "val.loss", l->val, MAX);
}

/* The same losses and evaluations, every step once and in order. */
static void assert_same_log(const char *folder, const run_log *want)
{
    run_log got;

    read_log(folder, &got);
    assert_int_equal(got.losses, want->losses);
    assert_int_equal(got.vals, want->vals);
    assert_memory_equal(got.loss, want->loss, (size_t)want->losses * sizeof *want->loss);
    assert_memory_equal(got.val, want->val, (size_t)want->vals * sizeof *want->val);
    assert_memory_equal(got.step, want->step, (size_t)want->steps * sizeof *want->step);
}

/* One epoch's row each, 0, 1, 2. */
static void assert_rows(const char *folder, int rows)
{
    size_t len;
    char *text = (char *)test_read_file(test_format("%s/%s/log.csv", test_work(), folder), &len);
    char *save = NULL, *l = text;
    int n = 0;

    text[len - 1] = '\0'; /* the last newline */
    l = strtok_r(text, "\n", &save);
    assert_non_null(l);
    assert_true(!strncmp(l, "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,", 50));
    while ((l = strtok_r(NULL, "\n", &save))) assert_int_equal(atoi(l), n++);
    assert_int_equal(n, rows);
    free(text);
}

static void train(const char *args)
{
    test_run r;

    test_dptrain(&r, COMMON " %s data", args);
    if (r.code) fail_msg("%s: exit %d: %s", args, r.code, r.err);
    test_run_free(&r);
}

static const run_log *unbroken(void)
{
    static run_log l;

    if (l.losses) return &l;
    train("--epochs 3 -j 2 -o whole");
    read_log("whole", &l);
    assert_int_equal(l.losses, STEPS);
    assert_int_equal(l.vals, 3);
    return &l;
}

/* The weights stand at the end of the file, behind metadata that tells of each run. */
static void same_weights(const char *folder)
{
    const size_t n = 240000; /* all but the first few of 60,639 floats */
    size_t a, b;
    uint8_t *x = test_read_file(test_format("%s/whole/model.safetensors", test_work()), &a);
    uint8_t *y = test_read_file(test_format("%s/%s/model.safetensors", test_work(), folder), &b);

    assert_true(a > n && b > n);
    assert_memory_equal(x + a - n, y + b - n, n);
    free(x);
    free(y);
}

static void resume_at_an_epoch_equals_the_unbroken_run(void **state)
{
    (void)state;
    unbroken();
    train("--epochs 3 --steps 5 -j 1 -o epoch");
    train("--resume epoch --epochs 3 -j 4");
    assert_same_log("epoch", unbroken());
    assert_rows("epoch", 3);
    same_weights("epoch");
}

static void resume_within_an_epoch_equals_the_unbroken_run(void **state)
{
    static const char *const steps[] = { "1", "7", "9", "14" };

    (void)state;
    unbroken();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *name = test_format("mid%s", steps[i]);
        char folder[32];

        snprintf(folder, sizeof folder, "%s", name);
        train(test_format("--epochs 3 --steps %s -j 3 -o %s", steps[i], folder));
        train(test_format("--resume %s/model.safetensors --epochs 3 -j 1", folder));
        assert_same_log(folder, unbroken());
        assert_rows(folder, 3);
        same_weights(folder);
    }
}

/* A checkpoint older than the logs: the steps behind it are cut from the log and done again. */
static void a_killed_run_goes_on_from_its_checkpoint(void **state)
{
    test_run r;

    (void)state;
    unbroken();
    test_dptrain_signal(&r, SIGKILL, "killed/log.jsonl", 8,
                        COMMON " --epochs 3 --save-freq 3 -j 2 -o killed data");
    assert_int_equal(r.code, 1000 + SIGKILL);
    test_run_free(&r);
    train("--resume killed --epochs 3 -j 2");
    assert_same_log("killed", unbroken());
    assert_rows("killed", 3);
    same_weights("killed");
}

/* What the run was started with need not be said again, and what it says is what counts. */
static void resume_takes_the_options_of_its_run(void **state)
{
    test_run r;

    (void)state;
    unbroken();
    train("--epochs 3 --steps 7 -o again");
    test_dptrain(&r, "--resume again data -q");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    assert_non_null(strstr(r.err, "=> loaded checkpoint 'again' (epoch 1"));
    assert_same_log("again", unbroken());
    test_run_free(&r);
    test_dptrain(&r, "--resume again data");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "nothing left to do"));
    assert_same_log("again", unbroken());
    test_run_free(&r);
}

/* The disk is full while saving: the run ends, the checkpoint of before still stands. */
static void a_save_that_fails_keeps_the_old_checkpoint(void **state)
{
    test_run r;

    (void)state;
    unbroken();
    train("--epochs 3 --steps 5 -o full");
    test_dptrain_file_limit(100000); /* a checkpoint has some 240,000 */
    test_dptrain(&r, "--resume full data");
    test_dptrain_file_limit(0);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "dptrain: not saved: "));
    assert_non_null(strstr(r.err, "full/"));
    test_run_free(&r);
    train("--resume full");
    assert_same_log("full", unbroken());
    same_weights("full");
}

/* As when one is resumed that has not ended yet: they would take each other's checkpoints away. */
static void two_runs_do_not_write_to_one_folder(void **state)
{
    int fd;
    test_run r;

    (void)state;
    train("--epochs 1 -o shared");
    fd = open(test_format("%s/shared", test_work()), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* what the run holds that has not ended */
    test_dptrain(&r, "--resume shared --epochs 2 data");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "dptrain: shared: another run writes to this folder; wait"));
    test_run_free(&r);
    test_dptrain(&r, COMMON " --epochs 1 --force -o shared data");
    assert_int_equal(r.code, 1);
    test_run_free(&r);
    assert_rows("shared", 1);
    close(fd);
    test_dptrain(&r, "--resume shared --epochs 2 data");
    if (r.code) fail_msg("%s", r.err);
    test_run_free(&r);
    assert_rows("shared", 2);
}

static void changed_options_are_told(void **state)
{
    test_run r;

    (void)state;
    train("--epochs 3 --steps 2 -o told");
    test_dptrain(&r, "--resume told --lr 0.02 --workers 1 --steps 3 data");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "resume: --lr was 0.01, is 0.02 from here on\n"));
    assert_null(strstr(r.err, "--workers was"));
    assert_null(strstr(r.err, "--epochs was"));
    test_run_free(&r);
}

/* More pictures are another order, so that the position in the old one says little. */
static void pictures_that_changed_within_an_epoch_are_told(void **state)
{
    test_run r;

    (void)state;
    test_work_tree("grows/train", 10, 2);
    test_work_tree("grows/val", 10, 1);
    test_dptrain(&r, COMMON " --epochs 3 --steps 2 -o grown grows");
    assert_int_equal(r.code, 0);
    test_run_free(&r);
    test_work_tree("grows/train", 10, 3);
    test_dptrain(&r, "--resume grown --steps 3 grows");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "warning: --resume grown: "
                                  "the epoch under way began with 20 pictures, there are 30 now"));
    test_run_free(&r);
    test_dptrain(&r, "--resume grown --steps 4 grows"); /* as it is now */
    assert_null(strstr(r.err, "began with"));
    test_run_free(&r);
}

static void fewer_epochs_than_were_made_are_refused(void **state)
{
    test_run r;

    (void)state;
    train("--epochs 2 -o made");
    test_dptrain(&r, "--resume made --epochs 1 data");
    assert_int_equal(r.code, 2);
    assert_non_null(
        strstr(r.err, "dptrain: --epochs 1: the run in made has made 2 already; give "));
    test_run_free(&r);
}

/* Without args.json beside it, a checkpoint was resumed with default options, and nothing said so. */
static void a_checkpoint_moved_away_keeps_its_options(void **state)
{
    test_run r;

    (void)state;
    unbroken();
    train("--epochs 3 --steps 7 -o moved");
    assert_int_equal(unlink(test_format("%s/moved/args.json", test_work())), 0);
    test_dptrain(&r, "--resume moved data");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    test_run_free(&r);
    assert_same_log("moved", unbroken());
    same_weights("moved");
}

/* Whoever uses the weights must know how the pictures were normalised. */
static void a_checkpoint_tells_the_normalisation(void **state)
{
    static const char want[] = "\"mean\":\"[0.485,0.456,0.406]\",\"std\":\"[0.229,0.224,0.225]\"";
    size_t len;
    uint8_t *file;

    (void)state;
    unbroken();
    file = test_read_file(test_format("%s/whole/model.safetensors", test_work()), &len);
    assert_non_null(memmem(file, len, want, sizeof want - 1));
    free(file);
}

static void evaluate_gives_what_training_saw(void **state)
{
    double loss[MAX], top1[MAX];
    char want[64];
    test_run r;
    int n;

    (void)state;
    unbroken();
    n = test_log_numbers("whole/log.jsonl", "val.top1", top1, MAX);
    assert_int_equal(test_log_numbers("whole/log.jsonl", "val.loss", loss, MAX), n);
    test_dptrain(&r, "-e --resume whole --batch 5 --devices cpu,cpu data");
    assert_int_equal(r.code, 0);
    snprintf(want, sizeof want, " *   Acc@1 %.3f Acc@5 100.000\n", top1[n - 1]);
    assert_string_equal(r.out, want);
    assert_non_null(strstr(r.err, test_format("evaluated 12 pictures, loss %.4f", loss[n - 1])));
    test_run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_at_an_epoch_equals_the_unbroken_run),
        cmocka_unit_test(resume_within_an_epoch_equals_the_unbroken_run),
        cmocka_unit_test(a_killed_run_goes_on_from_its_checkpoint),
        cmocka_unit_test(resume_takes_the_options_of_its_run),
        cmocka_unit_test(a_save_that_fails_keeps_the_old_checkpoint),
        cmocka_unit_test(two_runs_do_not_write_to_one_folder),
        cmocka_unit_test(changed_options_are_told),
        cmocka_unit_test(pictures_that_changed_within_an_epoch_are_told),
        cmocka_unit_test(fewer_epochs_than_were_made_are_refused),
        cmocka_unit_test(a_checkpoint_moved_away_keeps_its_options),
        cmocka_unit_test(a_checkpoint_tells_the_normalisation),
        cmocka_unit_test(evaluate_gives_what_training_saw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
