/* SPDX-License-Identifier: Apache-2.0 */
/* The program dptrain on fake GPUs, as a user runs it: results of the CPU, signals, exit codes. */
#include "tests/dptrain_runs.h"
#include "tests/fake/fake_cuda.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMON "-a tinynet --size 16 -b 10 --lr 0.01 --progress none"
enum { MAX = 4096 };

/* The dptrain beside this test finds the plug-ins beside itself. */
static void need_program(void)
{
    static char path[4200];
    const ssize_t n = readlink("/proc/self/exe", path, 4096);

    assert_true(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    if (!test_fake_cuda() || access(test_format("%s/dptrain", path), X_OK)) skip();
    setenv("BIN", path, 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    unsetenv("FAKE_CUDA_DRIVER");
    test_work();
}

static void must_train(const char *words)
{
    test_run r;

    test_dptrain(&r, COMMON " %s data", words);
    if (r.code) fail_msg("%s: exit %d: %s", words, r.code, r.err);
    test_run_free(&r);
}

static void same_numbers(const char *key, const char *got_folder, const char *want_folder,
                         double tolerance)
{
    static double got[MAX], want[MAX];
    char file[64];
    int n;

    snprintf(file, sizeof file, "%s/log.jsonl", want_folder);
    n = test_log_numbers(file, key, want, MAX);
    assert_true(n > 0);
    snprintf(file, sizeof file, "%s/log.jsonl", got_folder);
    assert_int_equal(test_log_numbers(file, key, got, MAX), n);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fabs(want[i])))
            fail_msg("%s %d: %.9g in %s, %.9g in %s", key, i, got[i], got_folder, want[i],
                     want_folder);
}

/* tinynet has no batch norm: two GPUs take the steps of one device with the whole batch. */
static void two_gpus_train_like_the_cpu(void **state)
{
    (void)state;
    need_program();
    must_train("--epochs 2 --devices cpu --backend ref -o cpu");
    must_train("--epochs 2 --devices cuda:0,cuda:1 --amp off -o gpus");
    same_numbers("train.loss", "gpus", "cpu", 1e-5);
    same_numbers("train.top1", "gpus", "cpu", 0);
    same_numbers("val.loss", "gpus", "cpu", 1e-5);
    same_numbers("val.top1", "gpus", "cpu", 0);
    same_numbers("val.images", "gpus", "cpu", 0); /* each picture once */
}

/* Bit by bit the unbroken run: steps under way when the signal came are done, or done again. */
static void sigterm_saves_and_the_run_goes_on(void **state)
{
    static double step[MAX];
    int last;
    test_run r;

    (void)state;
    need_program();
    test_dptrain_signal(&r, SIGTERM, "term/log.jsonl", 5,
                        COMMON " --epochs 5000 --devices cuda:0,cuda:1 -o term data");
    if (r.code != 75) fail_msg("exit %d: %s", r.code, r.err);
    assert_true(r.seconds < 20);
    assert_non_null(strstr(r.err, "checkpoint saved"));
    test_run_free(&r);
    last = test_log_numbers("term/log.jsonl", "step", step, MAX) + 2;
    assert_true(last >= 7);
    must_train(test_format("--epochs 5000 --steps %d --devices 0,1 --resume term", last));
    must_train(test_format("--epochs 5000 --steps %d --devices 0,1 -o unbroken", last));
    same_numbers("step", "term", "unbroken", 0);
    same_numbers("train.loss", "term", "unbroken", 0);
}

/* What the user asked for is not there: exit 4 and a word on what to do. */
static void fails_with_4(const char *devices, const char *text)
{
    test_run r;

    test_dptrain(&r, COMMON " --epochs 1 --devices %s -o never data", devices);
    if (r.code != 4) fail_msg("%s: exit %d: %s", devices, r.code, r.err);
    if (!strstr(r.err, text)) fail_msg("%s: no \"%s\" in: %s", devices, text, r.err);
    test_run_free(&r);
}

static void gpus_that_are_not_there_are_exit_4(void **state)
{
    (void)state;
    need_program();
    fails_with_4("cuda:0,cuda:5", "visible: 0-1");
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    fails_with_4("cuda:0", "no NVIDIA GPU is visible");
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("FAKE_CUDA_DRIVER", "none", 1);
    fails_with_4("cuda:0,cuda:1", "no usable NVIDIA driver");
    setenv("FAKE_CUDA_DRIVER", "stub", 1);
    fails_with_4("cuda", "no usable NVIDIA driver");
}

/* Who does not ask for GPUs gets the CPU, and one line on why. */
static void without_a_driver_the_cpu_trains(void **state)
{
    test_run r;

    (void)state;
    need_program();
    setenv("FAKE_CUDA_DRIVER", "none", 1);
    test_dptrain(&r, COMMON " --epochs 1 -o auto data");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    assert_non_null(strstr(r.err, "driver"));
    test_run_free(&r);
}

/* 36 pictures are four steps of each GPU; their numbers are bits of the mask. */
static void a_profiler_sees_steps_beside_the_stages_of_the_loader(void **state)
{
    uint8_t *text;
    size_t len;

    (void)state;
    need_program();
    setenv("NVTX_INJECTION64_PATH", test_format("%s/libfakecudart.so", getenv("BIN")), 1);
    setenv("FAKE_NVTX_LOG", test_format("%s/ranges", test_work()), 1);
    must_train("--epochs 1 --devices 0,1 -o profiled");
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("FAKE_NVTX_LOG");
    text = test_read_file(test_format("%s/ranges", test_work()), &len);
    assert_non_null(memmem(text, len, "step 8 f\n", 9));
    assert_non_null(memmem(text, len, "h2d ", 4));
    assert_non_null(memmem(text, len, "open 0\n", 7));
    assert_non_null(memmem(text, len, "faults 0\n", 9));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_gpus_train_like_the_cpu),
        cmocka_unit_test(sigterm_saves_and_the_run_goes_on),
        cmocka_unit_test(gpus_that_are_not_there_are_exit_4),
        cmocka_unit_test(without_a_driver_the_cpu_trains),
        cmocka_unit_test(a_profiler_sees_steps_beside_the_stages_of_the_loader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
