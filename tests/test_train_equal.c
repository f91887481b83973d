/* SPDX-License-Identifier: Apache-2.0 */
/* What a run computes depends on data, seed and options alone: not on loader threads, not on how many
 * devices share the batch. And what a run leaves behind and says, with good and bad pictures. */
#include "tests/dptrain_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON "-a tinynet --size 16 --backend ref --lr 0.01 --epochs 2"
enum { MAX = 64 };

/* Losses of a run over `data` with these options, into out. */
static int losses(const char *args, const char *data, double *out)
{
    static int runs;
    char folder[32];
    test_run r;

    snprintf(folder, sizeof folder, "run%d", ++runs);
    test_dptrain(&r, COMMON " --progress none -o %s %s %s", folder, args, data);
    if (r.code) fail_msg("%s: exit %d: %s", args, r.code, r.err);
    test_run_free(&r);
    return test_log_numbers(test_format("%s/log.jsonl", folder), "train.loss", out, MAX);
}

static void threads_and_prefetch_change_nothing(void **state)
{
    static const char *const args[] = { "-b 8 -j 8", "-b 8 -j 3 --prefetch 1", "-b 8 --threads 1" };
    double want[MAX], got[MAX];
    const int n = losses("-b 8 -j 1", "data", want);

    (void)state;
    assert_int_equal(n, 10);
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        assert_int_equal(losses(args[i], "data", got), n);
        assert_memory_equal(got, want, (size_t)n * sizeof *want);
    }
}

/* 36 pictures in batches of 10: the last batch is 6, over three devices 2 + 2 + 2. */
static void devices_compute_one_global_gradient(void **state)
{
    static const char *const args[] = { "-b 10 --devices cpu,cpu", "-b 10 --device cpu:3",
                                        "-b 10 --devices cpu,cpu --split 3,1" };
    double want[MAX], got[MAX];
    const int n = losses("-b 10", "data", want);

    (void)state;
    assert_int_equal(n, 8);
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        assert_int_equal(losses(args[i], "data", got), n);
        for (int k = 0; k < n; k++)
            if (fabs(got[k] - want[k]) > 1e-5 * want[k])
                fail_msg("%s, step %d: %.9g, one device %.9g", args[i], k + 1, got[k], want[k]);
    }
}

/* Mixed batches and their soft labels are those of the whole batch, too. */
static void devices_share_mixed_batches(void **state)
{
#define MIX "-b 10 --mixup 0.4 --cutmix 1 "
    double plain[MAX], want[MAX], got[MAX];
    const int n = losses(MIX "-j 1", "data", want);

    (void)state;
    assert_int_equal(n, 8);
    assert_int_equal(losses("-b 10", "data", plain), n);
    assert_true(fabs(want[0] - plain[0]) > 1e-5);
    assert_int_equal(losses(MIX "-j 3 --readers 2 --devices cpu,cpu", "data", got), n);
    for (int k = 0; k < n; k++) assert_true(fabs(got[k] - want[k]) <= 1e-5 * want[k]);
#undef MIX
}

/* With momentum, decay and three learning rates: another seed is another run. */
static void the_seed_decides(void **state)
{
    double a[MAX], b[MAX];

    (void)state;
    assert_int_equal(losses("-b 8 --seed 1", "data", a), 10);
    assert_int_equal(losses("-b 8 --seed 2", "data", b), 10);
    assert_memory_not_equal(a, b, sizeof *a);
}

static void the_rate_follows_the_schedule(void **state)
{
    double lr[MAX];
    test_run r;

    (void)state;
    test_dptrain(&r, COMMON " --lr 0.02 --step-size 1 --gamma 0.25 -b 12 -q -o sched data");
    assert_int_equal(r.code, 0);
    assert_int_equal(test_log_numbers("sched/log.jsonl", "train.lr", lr, MAX), 6);
    for (int i = 0; i < 6; i++) assert_true(fabs(lr[i] - (i < 3 ? 0.02 : 0.005)) < 1e-12);
    test_run_free(&r);
}

static void count_times(const char *text, const char *what, int times)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    if (n != times) fail_msg("\"%s\" stands %d times, not %d, in: %s", what, n, times, text);
}

/* Two of 14 files are no pictures; a batch of one of them is skipped without a step. */
static void refused_pictures_are_named_once_and_counted(void **state)
{
    double images[MAX];
    test_run r;

    (void)state;
    test_work_tree("bad/train", 2, 6);
    test_work_tree("bad/val", 2, 2);
    test_write_file(test_format("%s/bad/train/c0/page.jpg", test_work()), "<html>", 6);
    test_write_file(test_format("%s/bad/train/c1/cut.jpg", test_work()), "\xff\xd8\xff", 3);
    test_write_file(test_format("%s/bad/train/c1/readme.txt", test_work()), "hello", 5);
    test_dptrain(&r, COMMON " -b 1 -p 1000 -o bad_run bad");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    count_times(r.err, "dptrain: refused: bad/train/c0/page.jpg: ", 1);
    count_times(r.err, "dptrain: refused: bad/train/c1/cut.jpg: ", 1);
    count_times(r.err, "readme.txt", 1); /* ignored, and said so */
    count_times(r.out, "read 12, refused 2, warned 0", 2);
    assert_int_equal(test_log_numbers("bad_run/log.jsonl", "train.images", images, MAX), 24);
    test_run_free(&r);
    test_dptrain(&r, COMMON " -b 4 -o bad_run2 --max-bad 0 bad");
    assert_int_equal(r.code, 3);
    test_run_free(&r);
}

static void without_validation_it_says_so(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, COMMON " -b 12 -p 100 -o noval data/train");
    assert_int_equal(r.code, 0);
    count_times(r.err, "val: none", 1);
    count_times(r.out, "val loss", 0);
    count_times(r.out, "epoch 2/2: ", 1);
    test_run_free(&r);
    test_dptrain(&r, COMMON " -b 12 -p 100 -o split --val-split 25%% data/train");
    assert_int_equal(r.code, 0);
    count_times(r.out, "(9 pictures); read 27", 2);
    test_run_free(&r);
}

/* The last good checkpoint stays what it was. */
static void divergence_ends_the_run_and_keeps_the_checkpoint(void **state)
{
    size_t a, b;
    uint8_t *before, *after;
    test_run r;

    (void)state;
    test_dptrain(&r, COMMON " -b 12 -q --epochs 1 -o nan data");
    assert_int_equal(r.code, 0);
    test_run_free(&r);
    before = test_read_file(test_format("%s/nan/model.safetensors", test_work()), &a);
    test_dptrain(&r, "--resume nan --epochs 9 --lr 1e6 data");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "diverged"));
    assert_non_null(strstr(r.err, "lr 1e+06"));
    assert_non_null(strstr(r.err, "checkpoint is kept: nan"));
    after = test_read_file(test_format("%s/nan/model.safetensors", test_work()), &b);
    assert_int_equal(a, b);
    assert_memory_equal(before, after, a);
    free(before);
    free(after);
    test_run_free(&r);
}

static void simulated_devices_measure_the_loader(void **state)
{
    const char *at;
    test_run r;

    (void)state;
    test_dptrain(&r, "--devices sim:20ms,sim:20ms --size 16 -b 12 --epochs 2 --json data");
    assert_int_equal(r.code, 0);
    count_times(r.err, "nothing is learned", 1);
    count_times(r.out, "\n", 1); /* pure JSON */
    assert_true(r.out[0] == '{');
    at = strstr(r.out, "\"images_per_s\":");
    assert_non_null(at);
    assert_true(strtod(at + 15, NULL) > 100 && strtod(at + 15, NULL) <= 610); /* 12 in 20 ms */
    test_run_free(&r);
}

static void first_lines_say_what_was_understood(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, COMMON " -b 8 -j 2 --threads 2 --devices cpu:2 -o first -v --steps 1 data");
    assert_int_equal(r.code, 0);
    count_times(
        r.err,
        "2 loader threads, 2 devices (cpu, cpu; 1 compute thread each), batch 8 per step = 4 + 4\n",
        1);
    count_times(r.err, "train data/train: 36 pictures, 3 classes (c0, c1, c2)\n", 1);
    count_times(r.err, "val data/val: 12 pictures, 3 classes (c0, c1, c2)\n", 1);
    count_times(r.err, "=> creating model 'tinynet'\n", 1);
    count_times(r.err, "output: first\n", 1);
    count_times(r.err, "memory: train loader ", 1);
    count_times(r.err, "Epoch: [0][1/5]\tTime ", 1);
    test_run_free(&r);
}

static void the_default_run_folder_is_always_new(void **state)
{
    test_run r;
    char *at;

    (void)state;
    for (int i = 0; i < 2; i++) {
        test_dptrain(&r, COMMON " -b 12 -p 100 --epochs 1 data");
        assert_int_equal(r.code, 0);
        at = strstr(r.err, "output: runs/tinynet-");
        assert_non_null(at);
        assert_int_equal(at[strcspn(at, "\n") - 1], '1' + i);
        test_run_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_prefetch_change_nothing),
        cmocka_unit_test(devices_compute_one_global_gradient),
        cmocka_unit_test(devices_share_mixed_batches),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(the_rate_follows_the_schedule),
        cmocka_unit_test(refused_pictures_are_named_once_and_counted),
        cmocka_unit_test(without_validation_it_says_so),
        cmocka_unit_test(divergence_ends_the_run_and_keeps_the_checkpoint),
        cmocka_unit_test(simulated_devices_measure_the_loader),
        cmocka_unit_test(first_lines_say_what_was_understood),
        cmocka_unit_test(the_default_run_folder_is_always_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
