/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain's option table and checks, and what it says to input that cannot work: one line, the right
 * exit code, in no time, nothing trained. */
#include "tests/dptrain_runs.h"
#include "trainer/cli.h"

#include <stdlib.h>
#include <string.h>

static void help_fits_a_screen(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    int lines = 0;

    (void)state;
    dpl_opt_help(dpt_cli_spec(), f, 0);
    fclose(f);
    for (char *save = NULL, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        assert_true(strlen(l) <= 80);
        lines++;
    }
    for (size_t i = 0; i + 1 < len; i++) lines += !text[i] && !text[i + 1]; /* empty lines */
    assert_true(lines <= 24);
    free(text);
}

static int is_number(dpl_opt_type t)
{
    return t == DPL_OPT_INT || t == DPL_OPT_UINT64 || t == DPL_OPT_DOUBLE;
}

static void every_option_has_help_and_a_name_of_its_own(void **state)
{
    const dpl_opt *t = dpt_cli_spec()->opts;

    (void)state;
    for (const dpl_opt *o = t; o->name; o++) {
        assert_true(o->help && *o->help);
        if (o->type != DPL_OPT_FLAG && o->type != DPL_OPT_COUNT) assert_true(o->arg && *o->arg);
        for (const dpl_opt *p = t; p < o; p++) {
            assert_string_not_equal(o->name, p->name);
            if (o->letter) assert_int_not_equal(o->letter, p->letter);
        }
    }
}

/* The default in brackets is what the program starts from. */
static void the_help_tells_true_defaults(void **state)
{
    char *argv[] = { (char *)(size_t) "dptrain", (char *)(size_t) "data", NULL };
    int helped, checked = 0;
    dpl_text why;
    dpt_cli c;

    (void)state;
    assert_int_equal(dpt_cli_parse(&c, 2, argv, NULL, 0, stdout, &helped, &why), 0);
    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name; o++) {
        const char *bracket = strrchr(o->help, '[');
        char value[64];

        if (!is_number(o->type) || !bracket) continue;
        dpl_opt_format(o, &c.opt, value, sizeof value);
        assert_true(strtod(bracket + 1, NULL) == strtod(value, NULL));
        checked++;
    }
    assert_true(checked > 15);
    dpt_cli_fini(&c);
}

static void argv_wins_over_a_resumed_run(void **state)
{
    char *argv[] = { (char *)(size_t) "dptrain", (char *)(size_t) "--lr", (char *)(size_t) "0.5",
                     (char *)(size_t) "data", NULL };
    char *saved[] = { (char *)(size_t) "--lr=0.25", (char *)(size_t) "--epochs=7" };
    int helped;
    dpl_text why;
    dpt_cli c;

    (void)state;
    assert_int_equal(dpt_cli_parse(&c, 4, argv, NULL, 0, stdout, &helped, &why), 0);
    assert_int_equal(c.opt.epochs, 90);
    assert_int_equal(dpt_cli_parse(&c, 4, argv, saved, 2, stdout, &helped, &why), 0);
    assert_int_equal(c.opt.epochs, 7);
    assert_true(c.opt.lr == 0.5);
    assert_string_equal(c.opt.dir, "data");
    assert_true(dpt_cli_given(&c, "lr"));
    assert_false(dpt_cli_given(&c, "epochs"));
    dpt_cli_fini(&c);
}

static void progress_is_auto_none_or_seconds(void **state)
{
    double s;

    (void)state;
    assert_true(dpt_cli_progress("auto", &s) == 0 && s == -1);
    assert_true(dpt_cli_progress("none", &s) == 0 && s == 0);
    assert_true(dpt_cli_progress("1.5", &s) == 0 && s == 1.5);
    assert_true(dpt_cli_progress("200ms", &s) == 0 && s == 0.2);
    assert_int_equal(dpt_cli_progress("0", &s), -1);
    assert_int_equal(dpt_cli_progress("often", &s), -1);
}

/* The message is one line "dptrain: …" and comes last; says: words that must be in it. */
static void refused(int code, const char *says, const char *says_too, const char *args)
{
    test_run r;
    const char *message;

    test_dptrain(&r, "--arch tinynet --size 16 --backend ref --epochs 1 --workers 2 --batch 8 %s",
                 args);
    message = strstr(r.err, "dptrain: ");
    for (const char *next; message && (next = strstr(message + 1, "\ndptrain: "));)
        message = next + 1;
    if (r.code != code || !message || !strstr(message, says) || !strstr(message, says_too))
        fail_msg("%s: exit %d, wanted %d and \"%s\" \"%s\": %s", args, r.code, code, says, says_too,
                 r.err);
    assert_ptr_equal(strchr(message, '\n') + 1, message + strlen(message));
    assert_true(r.seconds < 5);
    assert_string_equal(r.out, "");
    test_run_free(&r);
}

static void senseless_options_are_usage_errors(void **state)
{
    (void)state;
    refused(2, "--batch", "0", "--batch 0 data");
    refused(2, "--epochs", "-3", "--epochs -3 data");
    refused(2, "--lr", "nan", "--lr nan data");
    refused(2, "--lr", "fast", "--lr fast data");
    refused(2, "--devics", "--devices", "--devics cpu data");
    refused(2, "one picture per device", "--batch 2", "--batch 2 --devices cpu:3 data");
    refused(2, "--split 3,1", "one weight per device", "--split 3,1 data");
    refused(2, "--split 3,x", "3,1", "--split 3,x --devices cpu,cpu data");
    refused(2, "device 1 would get nothing", "raise", "--split 1,1000 --devices cpu,cpu data");
    refused(2, "lenet", "resnet18", "--arch lenet data");
    refused(2, "gpu5", "cpu", "--devices gpu5 data");
    refused(2, "sim:5ms", "one kind", "--devices sim:5ms,cpu data");
    refused(2, "simulated", "--output", "--devices sim:5ms -o out1 data");
    refused(2, "--progress often", "seconds", "--progress often data");
    refused(2, "--resize 8", "crop", "--resize 8 data");
    refused(2, "Nesterov", "momentum", "--nesterov --momentum 0 data");
    refused(2, "--warmup", "shorter", "--warmup 1 data");
    refused(2, "--evaluate", "--resume", "-e data");
    refused(2, "no DIR", "dptrain -h", "");
    refused(2, "--output", "empty", "--output= data");
    refused(2, "--resume", "empty", "--resume= data");
    refused(2, "--color-jitter (hue) 0.6", "0..0.5", "--color-jitter 0,0,0,0.6 data");
    refused(2, "one DIR", "found 2", "data data");
    refused(2, "--val-split", "val/ already", "--val-split 10% data");
    refused(4, "cuda:0", "(cpu)", "--devices cuda:0 data");
    refused(2, "--amp bf16", "fp32 there", "--amp bf16 --devices cpu data");
    refused(2, "--amp fp16", "--amp auto", "--amp fp16 --devices sim:5ms data");
    refused(2, "--amp half", "bf16", "--amp half data");
}

static void unusable_data_is_named(void **state)
{
    const char *w = test_work();

    (void)state;
    refused(3, "nowhere", "No such file", "nowhere");
    refused(3, "not a folder", "out", "out");
    test_make_folder(test_format("%s/empty", w));
    refused(3, "empty", "no pictures", "empty");
    test_work_tree("hole", 2, 2);
    test_make_folder(test_format("%s/hole/c9", w));
    refused(3, "hole/c9", "no pictures", "hole");
    test_work_tree("half/train", 2, 2);
    test_make_folder(test_format("%s/rot/c0", w));
    test_write_file(test_format("%s/rot/c0/0.jpg", w), "none", 4);
    refused(3, "none of the 1 picture", "dpload check", "-o rotten rot"); /* was "saved", exit 0 */
    test_work_tree("blind/train", 2, 2);
    for (int c = 0; c < 2; c++) {
        test_make_folder(test_format("%s/blind/val/c%d", w, c));
        test_write_file(test_format("%s/blind/val/c%d/0.jpg", w, c), "none", 4);
    }
    refused(3, "blind/val", "none of the 2 pictures", "-o blinded blind");
    refused(2, "blinded", "not empty", "-o blinded blind"); /* what was learned is kept */
    refused(3, "blind/val", "none of the 2 pictures", "-e --resume blinded blind");
    refused(3, "no val/", "--val-split", "half");
    test_work_tree("more/train", 2, 2);
    test_work_tree("more/val", 3, 2);
    refused(3, "c2", "more/val", "more");
    refused(3, "--resume nowhere", "give a run folder", "--resume nowhere data");
    refused(3, "c0/", "safetensors", "-e --resume data/train/c0/0000.jpg data");
}

static void a_run_folder_is_never_overwritten(void **state)
{
    test_run r;

    (void)state;
    test_make_folder(test_format("%s/taken", test_work()));
    test_write_file(test_format("%s/taken/notes", test_work()), "x", 1);
    refused(2, "not empty", "--force", "-o taken data");
    refused(1, "out/sub", "cannot create", "-o out/sub data");
    test_dptrain(&r, "-a tinynet --size 16 --backend ref --epochs 1 -b 12 -q -f -o taken data");
    assert_int_equal(r.code, 0);
    test_run_free(&r);
}

static void another_model_or_class_count_is_refused(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, "-a tinynet --size 32 --backend ref --epochs 1 -b 12 -q -o three data");
    assert_int_equal(r.code, 0);
    test_run_free(&r);
    test_work_tree("two", 2, 4);
    refused(3, "3", "2", "--resume three --size 32 -o four two");
    refused(3, "resnet18", "tinynet", "--resume three --size 32 --arch resnet18 -o four data");
    refused(2, "seed", "leave", "--resume three --size 32 --seed 3 -o four data");
}

/* With stderr closed, the log took its number and the messages went into the log. */
static void messages_never_end_up_in_a_file(void **state)
{
    static const char *const files[] = { "log.csv", "log.jsonl", "args.json" };

    (void)state;
    for (int fd = 0; fd <= 2; fd++) {
        test_run r;

        test_dptrain_close(fd);
        test_dptrain(&r,
                     "-a tinynet --size 16 --backend ref --epochs 2 -b 12 -p 1 -f -o mute data");
        test_dptrain_close(-1);
        assert_int_equal(r.code, fd == 1); /* results that nobody got */
        test_run_free(&r);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            size_t len;
            uint8_t *text = test_read_file(test_format("%s/mute/%s", test_work(), files[i]), &len);
            assert_null(memmem(text, len, "Epoch", 5));
            assert_null(memmem(text, len, "epoch ", 6));
            free(text);
        }
    }
}

/* "…" stood behind the names of all classes once they filled a line. */
static void only_classes_left_out_are_an_ellipsis(void **state)
{
    char names[512] = "";
    test_run r;

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *class = test_format("%s/long/%d-a-class-with-a-long-name", test_work(), i);
        test_make_folder(class);
        test_write_file(test_format("%s/x.jpg", class), "none", 4);
        snprintf(names + strlen(names), sizeof names - strlen(names),
                 "%s%d-a-class-with-a-long-name", i ? ", " : "", i);
    }
    test_dptrain(&r, "-a tinynet --size 16 --backend ref --epochs 1 -o lost long");
    if (!strstr(r.err, test_format("3 classes (%s)\n", names))) fail_msg("%s", r.err);
    test_run_free(&r);
}

/* A newline in a file name broke the message; an escape sequence reached the terminal. */
static void a_name_cannot_drive_the_terminal(void **state)
{
    test_run r;

    (void)state;
    test_work_tree("tricky", 2, 4);
    test_write_file(test_format("%s/tricky/c1/a\n\033[31mb.jpg", test_work()), "none", 4);
    test_dptrain(&r, "-a tinynet --size 16 --backend ref --epochs 1 -b 8 -o tricked tricky");
    assert_int_equal(r.code, 0);
    if (!strstr(r.err, "dptrain: refused: tricky/c1/a\\n\\x1b[31mb.jpg: ")) fail_msg("%s", r.err);
    assert_null(strchr(r.err, '\033'));
    test_run_free(&r);
    refused(3, "a\\n\\x1b[31mb.jpg", "(--max-bad", "--max-bad 0 -o tricked2 tricky");
}

static void printing_options_train_nothing(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, "--version");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "dptrain " DPL_VERSION "\n");
    test_run_free(&r);
    test_dptrain(&r, "--lr 0.5 --print-config");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "lr               0.5                      set\n"));
    assert_non_null(strstr(r.out, "epochs           90                       default\n"));
    test_run_free(&r);
    test_dptrain(&r, "--help");
    assert_int_equal(r.code, 0);
    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name; o++)
        if (!strstr(r.out,
                    test_format("%s%s", o->type == DPL_OPT_FLAG ? "--[no-]" : "--", o->name)))
            fail_msg("--help does not tell of --%s", o->name);
    test_run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_fits_a_screen),
        cmocka_unit_test(every_option_has_help_and_a_name_of_its_own),
        cmocka_unit_test(the_help_tells_true_defaults),
        cmocka_unit_test(argv_wins_over_a_resumed_run),
        cmocka_unit_test(progress_is_auto_none_or_seconds),
        cmocka_unit_test(senseless_options_are_usage_errors),
        cmocka_unit_test(unusable_data_is_named),
        cmocka_unit_test(a_run_folder_is_never_overwritten),
        cmocka_unit_test(another_model_or_class_count_is_refused),
        cmocka_unit_test(messages_never_end_up_in_a_file),
        cmocka_unit_test(only_classes_left_out_are_an_ellipsis),
        cmocka_unit_test(a_name_cannot_drive_the_terminal),
        cmocka_unit_test(printing_options_train_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
