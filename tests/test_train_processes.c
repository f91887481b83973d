/* SPDX-License-Identifier: Apache-2.0 */
/* One of several processes: what options and launchers say, who talks, who writes, and refusals. */
#include "base/thread.h"
#include "tests/dptrain_runs.h"
#include "trainer/loop.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const launcher_names[] = { "RANK",        "WORLD_SIZE",  "LOCAL_RANK",
                                              "MASTER_ADDR", "MASTER_PORT", "LOCAL_WORLD_SIZE" };

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof launcher_names / sizeof *launcher_names; i++)
        unsetenv(launcher_names[i]);
    test_work();
    return 0;
}

typedef struct process {
    dpt_cli cli;
    dpt_report report;
    dpt_run run;
    char words[1024], *argv[32];
    dpl_text why;
} process;

/* @return what dpt_run_processes() gives for these words */
static int start(process *p, const char *words)
{
    char *save = NULL;
    int argc = 0, helped;

    memset(p, 0, sizeof *p);
    snprintf(p->words, sizeof p->words, "dptrain %s data", words);
    for (char *w = strtok_r(p->words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        p->argv[argc++] = w;
    if (dpt_cli_parse(&p->cli, argc, p->argv, NULL, 0, stdout, &helped, &p->why))
        fail_msg("%s", p->why.s);
    p->run = (dpt_run){ .cli = &p->cli, .opt = &p->cli.opt, .report = &p->report, .world = 1 };
    dpt_report_init(&p->report, &p->cli.opt);
    return dpt_run_processes(&p->run, &p->why);
}

static void expect(const char *words, int rank, int world, const char *address)
{
    process p;

    if (start(&p, words)) fail_msg("%s: %s", words, p.why.s);
    assert_int_equal(p.run.rank, rank);
    assert_int_equal(p.run.world, world);
    assert_int_equal(p.report.rank, rank);
    if (address)
        assert_string_equal(p.run.address, address);
    else
        assert_null(p.run.address);
    dpt_cli_fini(&p.cli);
}

static void expect_refused(const char *words, const char *part)
{
    process p;

    assert_int_equal(start(&p, words), DPT_EXIT_USAGE);
    if (!strstr(p.why.s, part)) fail_msg("%s: not \"%s\": %s", words, part, p.why.s);
    dpt_cli_fini(&p.cli);
}

static void options_of_other_trainers_are_understood(void **state)
{
    (void)state;
    expect("", 0, 1, NULL);
    expect("--rank 1 --world-size 4 --master-addr gpu0 --master-port 29600", 1, 4, "gpu0:29600");
    expect("--rank 0 --world 2 --master-addr 10.0.0.1:5", 0, 2, "10.0.0.1:5");
    expect("--rank 0 --world 2 --master-addr [fe80::1] --master-port 7", 0, 2, "[fe80::1]:7");
    expect("--rank=2 --world-size=3 --dist-url tcp://node7:23456", 2, 3, "node7:23456");
    expect("--rank 0 --world 1 --dist-url env://", 0, 1, NULL);
}

static void launchers_are_understood(void **state)
{
    (void)state;
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("MASTER_ADDR", "node0", 1);
    setenv("MASTER_PORT", "29500", 1);
    expect("--dist-url env://", 3, 4, "node0:29501"); /* torchrun itself listens on the first */
    expect("--rank 0 --world 2 --master-addr b:9", 0, 2, "b:9");
    set_up(NULL);
    expect("", 0, 1, NULL);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    expect_refused("--rank 1", "--world is missing");
    expect_refused("--rank 2 --world 2 --master-addr h:1", "ranks count from 0");
    expect_refused("--rank 0 --world 2", "--master-addr");
    expect_refused("--rank 0 --world 2 --master-port 5", "--master-addr HOST too");
    expect_refused("--rank 0 --world 2 --master-addr h:1 --master-port 5", "said twice");
    expect_refused("--rank 0 --world 2 --master-addr h:2 --master-port 2", "said twice");
    expect_refused("--rank 0 --world 2 --dist-url file:///tmp/x", "tcp://HOST:PORT");
    expect_refused("--rank 0 --world 2 --dist-url tcp://h:1 --master-addr h", "leave one out");
    expect_refused("--rank 0 --world 2 --dist-url tcp://", "--master-addr");
}

static void processes_of_a_machine_share_its_cores(void **state)
{
    const int cores = dpl_cpus_usable(NULL);
    process p;

    (void)state;
    assert_int_equal(start(&p, ""), 0);
    assert_int_equal(dpt_run_workers(&p.run), 0); /* the loader takes all */
    p.run.launcher.local_size = 2;
    assert_int_equal(dpt_run_workers(&p.run), cores > 1 ? cores / 2 : 1);
    p.run.launcher.local_size = 4096;
    assert_int_equal(dpt_run_workers(&p.run), 1);
    p.cli.opt.load.workers = 7;
    assert_int_equal(dpt_run_workers(&p.run), 7);
    dpt_cli_fini(&p.cli);
}

/* Part sizes are those that the loader makes of each process's share. */
static void a_share_is_split_over_the_devices(void **state)
{
    static const int want[3][2] = { { 3, 2 }, { 2, 2 }, { 2, 2 } }; /* 13 = 5 + 4 + 4 */

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        int part[2], most[2];
        dpl_loader *l;
        dpl_options o;
        dpl_batch b;
        process p;

        assert_int_equal(start(&p, "--batch 13"), 0);
        p.run.rank = rank;
        p.run.world = 3;
        p.run.devices = 2;
        p.run.part = part;
        p.run.part_most = most;
        assert_int_equal(dpt_run_parts(&p.run, &p.why), 0);
        dpl_options_init(&o, sizeof o);
        o.path = test_format("%s/data/train", test_work());
        o.batch = 13;
        o.rank = rank;
        o.world = 3;
        o.devices = "cpu,cpu";
        o.width = o.height = 8;
        assert_int_equal(dpl_open(&l, &o), DPL_OK);
        assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(part[i], want[rank][i]);
            assert_int_equal(b.part[i].n, want[rank][i]);
            assert_true(most[i] >= part[i]);
        }
        dpl_release(l, &b, NULL);
        dpl_close(&l);
        dpt_cli_fini(&p.cli);
    }
}

static uint64_t digest(const char *words, const char *const *classes, int64_t step)
{
    process p;
    uint64_t sum;

    if (start(&p, words)) fail_msg("%s", p.why.s);
    p.run.opt->evaluate = 1;
    p.run.peek.class_names = (char **)(uintptr_t)classes;
    p.run.peek.classes = 2;
    p.run.progress.step = step;
    sum = dpt_run_digest(&p.run);
    dpt_cli_fini(&p.cli);
    return sum;
}

/* What must be the same in all processes shows in the sum, and what may differ does not. */
static void the_check_sum_tells_runs_apart(void **state)
{
    static const char *const a[] = { "ab", "c" }, *const b[] = { "a", "bc" };
    static const char *const other[] = { "--lr 0.2",  "-b 65",     "--steps 9", "--seed 1",
                                         "--hflip 0", "--wd 0.01", "--amp fp16" };
    static const char *const same[] = { "--devices cuda:3", "-j 4", "-o here", "-v" };
    const uint64_t sum = digest("", a, 0);

    (void)state;
    assert_true(digest("", a, 0) == sum);
    assert_true(digest("", b, 0) != sum);
    assert_true(digest("", a, 1) != sum);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (digest(other[i], a, 0) == sum) fail_msg("%s is not seen", other[i]);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (digest(same[i], a, 0) != sum) fail_msg("%s makes another sum", same[i]);
}

/* What a report wrote, to be freed. */
static char *said_by(int rank, int world)
{
    char *text = NULL;
    size_t len;
    dpt_options o = { .progress = "auto", .print_freq = 1, .verbose = 1 };
    dpt_report r;
    dpt_pass pass = { .batch = 1, .batches = 2 };

    dpt_report_init(&r, &o);
    dpt_report_process(&r, rank, world);
    r.out = r.err = open_memstream(&text, &len);
    r.color = 0;
    dpt_report_note(&r, "note");
    dpt_report_detail(&r, "detail");
    dpt_report_warn(&r, "warn");
    dpt_report_result(&r, "result");
    dpt_report_begin(&r, &pass);
    dpt_report_step(&r, &pass);
    dpt_report_own(&r, "refused: %s", "a.jpg");
    dpt_report_error(&r, "lost");
    fclose(r.err);
    return text;
}

static void others_say_only_what_they_alone_know(void **state)
{
    char *text = said_by(2, 4);

    (void)state;
    assert_string_equal(text, "dptrain: process 2: refused: a.jpg\ndptrain: process 2: lost\n");
    free(text);
    text = said_by(0, 4);
    assert_non_null(strstr(text, "note\ndetail\ndptrain: warning: warn\nresult\n"));
    assert_non_null(strstr(text, "Epoch: [0]"));
    assert_non_null(strstr(text, "dptrain: process 0: refused: a.jpg\ndptrain: process 0: lost\n"));
    free(text);
    text = said_by(0, 1);
    assert_non_null(strstr(text, "\ndptrain: refused: a.jpg\ndptrain: lost\n"));
    free(text);
}

static void the_cpu_has_one_process(void **state)
{
    static const char *const devices[] = { "cpu", "cpu:2", "sim:5ms" };
    test_run r;

    (void)state;
    for (int i = 0; i < 3; i++) {
        test_dptrain(&r, "--rank 1 --world 2 --master-addr localhost --devices %s data",
                     devices[i]);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, "dptrain: process 1: 2 processes (options) with --devices "));
        assert_non_null(strstr(r.err, "one process drives all replicas"));
        test_run_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_of_other_trainers_are_understood, set_up),
        cmocka_unit_test_setup(launchers_are_understood, set_up),
        cmocka_unit_test_setup(contradictions_are_refused, set_up),
        cmocka_unit_test_setup(processes_of_a_machine_share_its_cores, set_up),
        cmocka_unit_test_setup(a_share_is_split_over_the_devices, set_up),
        cmocka_unit_test_setup(the_check_sum_tells_runs_apart, set_up),
        cmocka_unit_test_setup(others_say_only_what_they_alone_know, set_up),
        cmocka_unit_test_setup(the_cpu_has_one_process, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
