/* SPDX-License-Identifier: Apache-2.0 */
/* The log files of a run: whole lines that parse, cut to the checkpoint on resume, and the options
 * that a resumed run takes from args.json. */
#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/runlog.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s/%s", test_tempdir(), name);
    test_make_folder(path);
    return path;
}

static char *text_of(const char *dir, const char *name)
{
    size_t len;
    uint8_t *data = test_read_file(test_format("%s/%s", dir, name), &len);
    char *s = malloc(len + 1);

    assert_non_null(s);
    memcpy(s, data, len);
    s[len] = '\0';
    free(data);
    return s;
}

/* Two epochs of two steps with an evaluation behind each. */
static void write_run(dpt_runlog *l)
{
    dpl_text why;

    for (int64_t e = 0; e < 2; e++) {
        dpt_pass train = { .kind = DPT_PASS_TRAIN, .epoch = e, .batches = 2, .lr = 0.1 };
        dpt_pass val = { .kind = DPT_PASS_TEST, .epoch = e, .batches = 1 };
        const dpt_sums sums = { 1.0 / 3 + (double)e, 1, 2, 2 };
        const dpt_epoch_row row = { &train, &val, 3, 4, 2 * (e + 1), 1.5 };

        for (int i = 0; i < 2; i++) {
            dpt_pass_step(&train, &sums, 2, 0.5, 0.125, 0.375);
            assert_int_equal(dpt_runlog_step(l, &train, 2 * e + i + 1, &why), DPL_OK);
        }
        dpt_pass_step(&val, &sums, 2, 0.5, 0, 0.5);
        assert_int_equal(dpt_runlog_eval(l, &val, 2 * e + 2, &why), DPL_OK);
        assert_int_equal(dpt_runlog_epoch(l, &row, &why), DPL_OK);
    }
}

static json_t *line_at(const char *text, int n)
{
    json_t *o;
    char *line;

    for (; n > 0; n--) text = strchr(text, '\n') + 1;
    line = strndup(text, strcspn(text, "\n"));
    o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    free(line);
    assert_non_null(o);
    return o;
}

static double number(const json_t *o, const char *key)
{
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static int lines_of(const char *s)
{
    int n = 0;

    for (; *s; s++) n += *s == '\n';
    return n;
}

static void every_line_parses(void **state)
{
    const char *dir = folder("plain");
    dpt_runlog l;
    dpl_text why;
    json_t *o;
    char *s;

    (void)state;
    assert_int_equal(dpt_runlog_open(&l, dir, NULL, &why), DPL_OK);
    write_run(&l);
    assert_int_equal(dpt_runlog_close(&l, &why), DPL_OK);
    s = text_of(dir, "log.jsonl");
    assert_int_equal(lines_of(s), 6);
    o = line_at(s, 4); /* second step of the second epoch */
    assert_true(number(o, "epoch") == 1 && number(o, "batch") == 1 && number(o, "step") == 4);
    assert_true(number(o, "train.loss") == (1.0 / 3 + 1) / 2); /* every digit */
    assert_true(number(o, "train.total_ips") == 4);
    assert_true(number(o, "train.data_time") == 0.125);
    assert_true(number(o, "train.compute_time") == 0.375);
    assert_true(number(o, "train.lr") == 0.1);
    json_decref(o);
    o = line_at(s, 5);
    assert_true(number(o, "val.images") == 2 && number(o, "val.top1") == 50);
    json_decref(o);
    free(s);
    s = text_of(dir, "log.csv");
    assert_string_equal(s,
                        "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,train_top1,train_top5,"
                        "images,seconds,images_per_second,wait_share,refused,warned,steps\n"
                        "0,0.166666667,0.166666667,50,100,0.1,50,100,4,1.500,4.00,0.2500,3,4,2\n"
                        "1,0.666666667,0.666666667,50,100,0.1,50,100,4,1.500,4.00,0.2500,3,4,4\n");
    free(s);
}

/* The logs reach to epoch 2; the checkpoint stands at `at`. */
static void resume_keeps(const dpt_progress *at, int objects, int rows)
{
    const char *dir = folder("cut");
    dpt_runlog l;
    dpl_text why;
    char *s;

    assert_int_equal(dpt_runlog_open(&l, dir, NULL, &why), DPL_OK);
    write_run(&l);
    fputs("{\"epoch\":0,\"step\":1,\"train.lo", l.jsonl); /* killed while writing */
    assert_int_equal(dpt_runlog_close(&l, &why), DPL_OK);
    assert_int_equal(dpt_runlog_open(&l, dir, at, &why), DPL_OK);
    assert_int_equal(dpt_runlog_close(&l, &why), DPL_OK);
    s = text_of(dir, "log.jsonl");
    assert_int_equal(lines_of(s), objects);
    assert_true(!*s || s[strlen(s) - 1] == '\n');
    free(s);
    s = text_of(dir, "log.csv");
    assert_int_equal(lines_of(s), 1 + rows);
    free(s);
}

static void resume_cuts_what_it_will_do_again(void **state)
{
    (void)state;
    resume_keeps(&(dpt_progress){ .epoch = 2, .step = 4, .evaluated = 1 }, 6, 2);
    resume_keeps(&(dpt_progress){ .epoch = 2, .step = 4, .evaluated = 0 }, 5, 1);
    resume_keeps(&(dpt_progress){ .epoch = 1, .step = 3, .evaluated = 1, .sample = 2 }, 4, 1);
    resume_keeps(&(dpt_progress){ .epoch = 1, .step = 2, .evaluated = 0 }, 2, 0);
    resume_keeps(&(dpt_progress){ .epoch = 0, .step = 1, .sample = 2 }, 1, 0);
    resume_keeps(&(dpt_progress){ .epoch = 0, .step = 0 }, 0, 0);
}

static void resume_into_a_new_folder_starts_logs(void **state)
{
    const char *dir = folder("fresh");
    const dpt_progress at = { .epoch = 1, .step = 2, .evaluated = 1 };
    dpt_runlog l;
    dpl_text why;
    char *s;

    (void)state;
    assert_int_equal(dpt_runlog_open(&l, dir, &at, &why), DPL_OK);
    assert_int_equal(dpt_runlog_close(&l, &why), DPL_OK);
    s = text_of(dir, "log.csv");
    assert_int_equal(lines_of(s), 1);
    free(s);
}

/* A full disk is noticed at the line that did not get there. */
static void a_full_disk_is_an_error(void **state)
{
    const char *dir = folder("full");
    dpt_pass p = { .kind = DPT_PASS_TRAIN, .batch = 1 };
    dpt_runlog l;
    dpl_text why;

    (void)state;
    if (access("/dev/full", W_OK)) skip();
    assert_int_equal(dpt_runlog_open(&l, dir, NULL, &why), DPL_OK);
    fclose(l.jsonl);
    l.jsonl = fopen("/dev/full", "w");
    assert_non_null(l.jsonl);
    assert_int_equal(dpt_runlog_step(&l, &p, 1, &why), DPL_EIO);
    assert_non_null(strstr(why.s, "log.jsonl"));
    assert_non_null(strstr(why.s, "No space"));
    dpt_runlog_close(&l, NULL);
}

static void parse(dpt_cli *c, int argc, const char *const *argv, char *const *saved, int n)
{
    dpl_text why = { "" };
    int helped;

    if (dpt_cli_parse(c, argc, (char **)(size_t)argv, saved, n, stdout, &helped, &why))
        fail_msg("%s", why.s);
}

static void write_args(const char *dir, dpt_cli *c)
{
    static const char *const names[] = { "ant \"small\"", "b\xff" };
    static const uint64_t counts[] = { 5, 6 };
    const dpl_info info = {
        .samples = 11, .classes = 2, .class_names = names, .class_counts = counts
    };
    char *argv[] = { (char *)(size_t) "dptrain", NULL };
    const dpt_runlog_data d = { "data/train", "data/val", &info, &info, "ref", 1, argv };
    dpl_text why;

    assert_int_equal(dpt_runlog_args(dir, c, &d, &why), DPL_OK);
}

static void args_json_brings_a_run_back(void **state)
{
    static const char *const first[] = { "dptrain",    "--lr",    "0.07",    "--no-shuffle",
                                         "--scale",    "0.3,0.9", "--split", "3,1",
                                         "--devices",  "cpu,cpu", "--sched", "cosine",
                                         "-j",         "5",       "-o",      "somewhere",
                                         "--nesterov", "data" };
    static const char *const second[] = { "dptrain", "--resume", "x", "--epochs", "3", "data" };
    const char *dir = folder("args");
    dpt_cli c, d;
    dpl_text why;
    char **saved;
    json_t *o;
    char *s;
    int n;

    (void)state;
    parse(&c, sizeof first / sizeof *first, first, NULL, 0);
    write_args(dir, &c);
    s = text_of(dir, "args.json");
    o = json_loads(s, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    assert_true(number(json_object_get(o, "train"), "pictures") == 11);
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "options"), "lr")),
                        "0.07");
    json_decref(o);
    free(s);

    assert_int_equal(dpt_runlog_saved(dir, NULL, &saved, &n, &why), DPL_OK);
    parse(&d, sizeof second / sizeof *second, second, NULL, 0);
    parse(&d, sizeof second / sizeof *second, second, saved, n);
    assert_true(d.opt.lr == 0.07 && d.opt.load.scale_min == 0.3 && d.opt.load.scale_max == 0.9);
    assert_int_equal(d.opt.load.shuffle, 0);
    assert_int_equal(d.opt.nesterov, 1);
    assert_int_equal(d.opt.sched, 1);
    assert_string_equal(d.opt.split, "3,1");
    assert_string_equal(d.opt.devices, "cpu,cpu");
    assert_int_equal(d.opt.epochs, 3);       /* said now */
    assert_int_equal(d.opt.load.workers, 0); /* changes nothing that is computed */
    assert_null(d.opt.output);
    dpt_runlog_saved_free(saved, n);
    dpt_cli_fini(&c);
    dpt_cli_fini(&d);
}

static void a_damaged_args_json_is_named(void **state)
{
    const char *dir = folder("torn");
    dpl_text why;
    char **saved;
    int n;

    (void)state;
    assert_int_equal(dpt_runlog_saved(dir, NULL, &saved, &n, &why), DPL_OK); /* not there: fine */
    assert_int_equal(n, 0);
    dpt_runlog_saved_free(saved, n);
    test_write_file(test_format("%s/args.json", dir), "{\"options\": {\"lr\":", 18);
    assert_int_equal(dpt_runlog_saved(dir, NULL, &saved, &n, &why), DPL_EDATA);
    assert_non_null(strstr(why.s, "args.json"));
    dpt_runlog_saved_free(saved, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_parses),
        cmocka_unit_test(resume_cuts_what_it_will_do_again),
        cmocka_unit_test(resume_into_a_new_folder_starts_logs),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(args_json_brings_a_run_back),
        cmocka_unit_test(a_damaged_args_json_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
