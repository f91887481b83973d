/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain on GPUs, over the fakes beside the tests or on cards: the steps of the CPU, whatever the
 * batch is split over, one process or two. */
#include "device/device.h"
#include "tests/fake/fake_cuda.h"
#include "tests/run_inside.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 64 };
#define COMMON "-a tinynet --size 16 --lr 0.01 --epochs 2 -j 2 "

/* Skips the test where the part for GPUs was not built, or so many are not there. */
static void need_gpus(int n_gpus)
{
    dpl_gpu_info *gpu = NULL;
    char path[4200];
    const ssize_t n = readlink("/proc/self/exe", path, 4096);

    assert_true(n > 0);
    path[n] = '\0';
    strcpy(strrchr(path, '/'), "/libdptrain_cuda.so");
    if (access(path, R_OK)) skip();
    if (test_fake_cuda()) setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("XDG_CACHE_HOME", test_format("%s/cache", test_work()), 1);
    if (dpl_gpu_list(&gpu, NULL) < n_gpus) n_gpus = 0;
    free(gpu);
    if (!n_gpus) skip();
}

/* Over the fakes a GPU computes what the CPU does, in another order of sums. */
static double near(void)
{
    return test_fake_cuda() ? 1e-5 : 0.01;
}

/* A whole run. @return its exit code; *why */
static int train(const char *words, dpl_text *why)
{
    test_inside x;
    int rc;

    test_inside_open(&x, test_format(COMMON "%s data", words));
    if (!(rc = test_inside_prepare(&x)) && !(rc = test_inside_model(&x)))
        rc = dpt_run_train(&x.run, &x.why);
    *why = x.why;
    test_inside_close(&x);
    return rc;
}

static void must_train(const char *words)
{
    dpl_text why;

    if (train(words, &why)) fail_msg("%s: %s", words, why.s);
}

static void compare(const char *folder, const char *want_folder, const char *key, double tolerance)
{
    double got[MAX], want[MAX];
    char file[64], want_file[64];
    int n;

    snprintf(file, sizeof file, "%s/log.jsonl", folder);
    snprintf(want_file, sizeof want_file, "%s/log.jsonl", want_folder);
    n = test_log_numbers(want_file, key, want, MAX);
    assert_true(n > 0);
    assert_int_equal(test_log_numbers(file, key, got, MAX), n);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fabs(want[i])))
            fail_msg("%s: %s %d is %.9g, in %s %.9g", folder, key, i, got[i], want_folder, want[i]);
}

static void on_the_cpu(const char *words, const char *folder)
{
    char args[256];

    if (!access(test_format("%s/%s", test_work(), folder), F_OK)) return;
    snprintf(args, sizeof args, "--devices cpu --backend ref %s -o %s", words, folder);
    must_train(args);
}

/* Losses, learning rates and evaluations of 36 + 12 pictures in batches of 10. */
static void on_gpus(const char *devices, const char *folder)
{
    char args[256];

    on_the_cpu("-b 10", "cpu");
    snprintf(args, sizeof args, "--devices %s --amp off -b 10 -o %s", devices, folder);
    must_train(args);
    compare(folder, "cpu", "train.loss", near());
    compare(folder, "cpu", "train.lr", 0);
    compare(folder, "cpu", "step", 0);
    compare(folder, "cpu", "val.loss", near());
    compare(folder, "cpu", "val.images", 0);
}

static void a_gpu_makes_the_steps_of_the_cpu(void **state)
{
    (void)state;
    need_gpus(1);
    on_gpus("cuda:0", "gpu");
}

static void gpus_make_the_steps_of_the_cpu(void **state)
{
    (void)state;
    need_gpus(3);
    on_gpus("0,1", "gpus2");
    on_gpus("0-2 --split 5,3,2", "gpus3");
}

static void options_of_the_cpu_are_refused(void **state)
{
    dpl_text why;

    (void)state;
    need_gpus(2);
    assert_int_equal(train("--devices cuda --backend ref -o no", &why), 2);
    assert_non_null(strstr(why.s, "--backend with --devices cuda: "));
    assert_int_equal(train("--devices 0 --threads 2 -o no", &why), 2);
    assert_non_null(strstr(why.s, "--threads with --devices 0: "));
    on_the_cpu("-b 10", "cpu"); /* its backend is no hindrance to go on here */
    must_train("--devices cpu --backend ref -b 10 --steps 3 -o moved");
    must_train("--devices 0,1 --amp off --resume moved");
    compare("moved", "cpu", "train.loss", near());
}

static void kernels_are_kept_in_the_users_cache(void **state)
{
    (void)state;
    need_gpus(1);
    must_train("--devices 0 --steps 1 -o keeps");
    assert_int_equal(access(test_format("%s/cache/dptrain", test_work()), W_OK), 0);
    test_write_file(test_format("%s/file", test_work()), "x", 1);
    setenv("XDG_CACHE_HOME", test_format("%s/file", test_work()), 1);
    must_train("--devices 0 --steps 1 -o does_not"); /* a run goes on without */
}

/* Blends stay floats, so that they are those of the CPU. */
static void mixed_and_erased_pictures_too(void **state)
{
#define MIX "-b 10 --mixup 0.4 --cutmix 1 --random-erase 0.5"
    (void)state;
    need_gpus(2);
    on_the_cpu(MIX, "cpu_mix");
    must_train("--devices 0,1 --amp off " MIX " -o gpus_mix");
    compare("gpus_mix", "cpu_mix", "train.loss", near());
    compare("gpus_mix", "cpu_mix", "val.loss", near());
}

/* What is saved in the middle of an epoch is what the GPUs had then. */
static void a_run_goes_on_where_it_was_saved(void **state)
{
    (void)state;
    need_gpus(2);
    on_the_cpu("-b 10", "cpu");
    must_train("--devices 0,1 --amp off -b 10 --steps 3 -o parts");
    must_train("--devices 0,1 --amp off --resume parts --steps 6");
    must_train("--devices cpu --backend ref --resume parts"); /* and elsewhere */
    compare("parts", "cpu", "train.loss", near());
}

/* A large eps: else the rounding of a gradient that should be 0 would count. */
static void each_rule_makes_the_steps_of_the_cpu(void **state)
{
    static const char *const rules[] = { "-b 10 --opt adamw --opt-eps 1e-3",
                                         "-b 10 --opt lars --lr 4" };

    (void)state;
    need_gpus(2);
    for (int i = 0; i < 2; i++) {
        char args[256], whole[16], cpu[16], parts[16];

        snprintf(cpu, sizeof cpu, "cpu_rule%d", i);
        snprintf(whole, sizeof whole, "gpu_rule%d", i);
        snprintf(parts, sizeof parts, "parts_rule%d", i);
        on_the_cpu(rules[i], cpu);
        snprintf(args, sizeof args, "--devices 0,1 --amp off %s -o %s", rules[i], whole);
        must_train(args);
        compare(whole, cpu, "train.loss", near());
        snprintf(args, sizeof args, "--devices 0,1 --amp off %s --steps 3 -o %s", rules[i], parts);
        must_train(args);
        snprintf(args, sizeof args, "--devices 0,1 --amp off --resume %s %s", parts, rules[i]);
        must_train(args);
        compare(parts, whole, "train.loss", 0);
    }
}

static void nothing_is_left_behind(void **state)
{
    const fake_cuda *fake = test_fake_cuda();

    (void)state;
    need_gpus(1);
    if (!fake) skip();
    assert_string_equal(fake->fault(), ""); /* and nothing was used out of order */
    assert_int_equal(fake->alive(), 0);
}

static void the_first_lines_say_what_each_gpu_gets(void **state)
{
    const char *const words = COMMON "--amp off --steps 1 -b 12 --devices 0-2 -v -o lines data";
    size_t len;
    char *text = NULL;
    test_inside x;

    (void)state;
    need_gpus(3);
    test_inside_open(&x, words);
    x.report.quiet = 0;
    x.report.err = x.report.out = open_memstream(&text, &len);
    if (test_inside_prepare(&x) || test_inside_model(&x)) fail_msg("%s", x.why.s);
    dpt_run_first_lines(&x.run);
    fclose(x.report.err);
    x.report.err = x.report.out = stderr;
    if (!strstr(text, "3 GPUs (cuda:0, cuda:1, cuda:2), batch 12 per step: each GPU gets 4 of the "
                      "global batch\n") ||
        !strstr(text, "backend cuda (3 GPUs, fp32, "))
        fail_msg("it said: %s", text);
    free(text);
    test_inside_close(&x);
}

static void speeds_are_measured_on_gpus(void **state)
{
    (void)state;
    need_gpus(2);
    on_the_cpu("-b 10", "cpu");
    must_train("--devices 0,1 --amp off -b 10 --split auto -o measured");
    compare("measured", "cpu", "train.loss", near());
}

/* --- two processes: threads stand for them --- */

typedef struct process {
    test_inside x;
    pthread_t thread;
    int rc;
} process;

static void *process_main(void *arg)
{
    process *p = arg;

    if (!(p->rc = test_inside_model(&p->x)))
        p->rc = p->x.run.opt->evaluate ? dpt_run_evaluate(&p->x.run, &p->x.why)
                                       : dpt_run_train(&p->x.run, &p->x.why);
    return NULL;
}

/* words[rank], without DIR */
static void together(process p[2], const char *const words[2])
{
    static int port = 29700;

    port++;
    for (int i = 0; i < 2; i++)
        test_inside_open(&p[i].x,
                         test_format(COMMON "--rank %d --world 2 --master-addr localhost:%d "
                                            "--amp off --devices %d %s data",
                                     i, port, i, words[i]));
    for (int i = 0; i < 2; i++) /* --resume reads options, which one thread at a time may do */
        if (test_inside_prepare(&p[i].x)) fail_msg("%s", p[i].x.why.s);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&p[i].thread, NULL, process_main, &p[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(p[i].thread, NULL);
}

static void close_both(process p[2])
{
    for (int i = 0; i < 2; i++) test_inside_close(&p[i].x);
}

/* The same GPUs with the same parts, so the same sums: one process or two. */
static void two_processes_train_as_one(void **state)
{
    static const char *const words[2] = { "-b 10 --save-freq 3 -o two", "-b 10 --save-freq 3" };
    process p[2];
    const dpt_run *r = &p[1].x.run;

    (void)state;
    need_gpus(2);
    must_train("--devices 0,1 --amp off -b 10 -o one");
    together(p, words);
    for (int i = 0; i < 2; i++)
        if (p[i].rc) fail_msg("process %d: %s", i, p[i].x.why.s);
    compare("two", "one", "train.loss", 0);
    compare("two", "one", "train.images", 0);
    compare("two", "one", "val.loss", 1e-12); /* summed per process first */
    compare("two", "one", "val.images", 0);
    assert_null(r->folder);
    assert_int_equal(r->saved, 0);
    assert_int_equal(r->progress.step, p[0].x.run.progress.step);
    assert_true(r->last_val.total.n == 12);
    close_both(p);
}

static void two_processes_go_on_together(void **state)
{
    static const char *const first[2] = { "-b 10 --steps 3 -o halves", "-b 10 --steps 3" };
    static const char *const then[2] = { "--resume halves", "--resume halves" };
    static const char *const measure[2] = { "-e --resume halves", "-e --resume halves" };
    process p[2];

    (void)state;
    need_gpus(2);
    on_the_cpu("-b 10", "cpu");
    together(p, first);
    close_both(p);
    together(p, then);
    if (p[1].rc) fail_msg("%s", p[1].x.why.s);
    close_both(p);
    compare("halves", "cpu", "train.loss", near());
    together(p, measure);
    for (int i = 0; i < 2; i++) {
        if (p[i].rc) fail_msg("%s", p[i].x.why.s);
        assert_int_equal(p[i].x.run.last_val.total.n, 12);
    }
    close_both(p);
}

static void processes_of_other_runs_are_refused(void **state)
{
    static const char *const words[2] = { "-b 10 -o apart", "-b 10 --wd 0.5" };
    process p[2];

    (void)state;
    need_gpus(2);
    together(p, words);
    assert_int_equal(p[1].rc, 1);
    assert_non_null(strstr(p[1].x.why.s, "check sum of classes, options and position"));
    assert_int_equal(p[0].rc, 1);
    close_both(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_makes_the_steps_of_the_cpu),
        cmocka_unit_test(gpus_make_the_steps_of_the_cpu),
        cmocka_unit_test(options_of_the_cpu_are_refused),
        cmocka_unit_test(kernels_are_kept_in_the_users_cache),
        cmocka_unit_test(mixed_and_erased_pictures_too),
        cmocka_unit_test(a_run_goes_on_where_it_was_saved),
        cmocka_unit_test(each_rule_makes_the_steps_of_the_cpu),
        cmocka_unit_test(the_first_lines_say_what_each_gpu_gets),
        cmocka_unit_test(speeds_are_measured_on_gpus),
        cmocka_unit_test(two_processes_train_as_one),
        cmocka_unit_test(two_processes_go_on_together),
        cmocka_unit_test(processes_of_other_runs_are_refused),
        cmocka_unit_test(nothing_is_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
