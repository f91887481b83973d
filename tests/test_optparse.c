/* SPDX-License-Identifier: Apache-2.0 */
/* Options from one table: values, messages, environment, both helps. */
#include "base/optparse.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    int workers, batch, shuffle, verbose, filter;
    uint64_t seed, max_bytes;
    double lr, share, scale[2], move[2], fill[3], jitter[4];
    const char *out;
} settings;

static const dpl_opt table[] = {
    { "workers", 'j', "num-workers num-threads", DPL_OPT_INT, offsetof(settings, workers), 0, 1024,
      NULL, "N", "loader threads; 0 = one per usable core [0]", "Loader", 1 },
    { "batch", 'b', "batch-size", DPL_OPT_INT, offsetof(settings, batch), 1, 1048576, NULL, "N",
      "pictures per step, over all devices [64]", NULL, 1 },
    { "shuffle", 0, "random-order", DPL_OPT_FLAG, offsetof(settings, shuffle), 0, 0, NULL, NULL,
      "another order each epoch [on]", NULL, 0 },
    { "seed", 0, NULL, DPL_OPT_UINT64, offsetof(settings, seed), 0, 0, NULL, "N", "seed [0]", NULL,
      0 },
    { "max-file-bytes", 0, NULL, DPL_OPT_SIZE, offsetof(settings, max_bytes), 1, 0, NULL, "BYTES",
      "larger files are refused [512MiB]", NULL, 0 },
    { "lr", 0, NULL, DPL_OPT_DOUBLE, offsetof(settings, lr), 0, 10, NULL, "RATE",
      "learning rate; a text that is long enough to need a second line in the help, and even a "
      "third "
      "one after that [0.1]",
      "Training", 1 },
    { "val-split", 0, NULL, DPL_OPT_SHARE, offsetof(settings, share), 0, 0.9, NULL, "SHARE",
      "share for validation [0]", NULL, 0 },
    { "scale", 0, NULL, DPL_OPT_PAIR, offsetof(settings, scale), 0.0001, 1, NULL, "LO,HI",
      "share of the area [0.08,1]", NULL, 0 },
    { "move", 0, NULL, DPL_OPT_TWO, offsetof(settings, move), -1, 1, NULL, "X,Y", "shift [0,0]",
      NULL, 0 },
    { "fill", 0, NULL, DPL_OPT_THREE, offsetof(settings, fill), 0, 255, NULL, "R,G,B",
      "colour [0,0,0]", NULL, 0 },
    { "jitter", 0, NULL, DPL_OPT_FOUR, offsetof(settings, jitter), 0, 1, NULL, "B,C,S,H",
      "strengths [0,0,0,0]", NULL, 0 },
    { "filter", 0, "interpolation", DPL_OPT_CHOICE, offsetof(settings, filter), 0, 0,
      "bilinear|bicubic|nearest", "NAME", "resize filter [bilinear]", NULL, 0 },
    { "out", 'o', NULL, DPL_OPT_STRING, offsetof(settings, out), 0, 0, NULL, "DIR", "run folder",
      "Output", 1 },
    { "verbose", 'v', NULL, DPL_OPT_COUNT, offsetof(settings, verbose), 0, 0, NULL, NULL,
      "say more", NULL, 1 },
    { 0 },
};
enum { ENTRIES = sizeof table / sizeof *table - 1, MAX_ARGS = 32 };

static const dpl_opt_spec spec = {
    .program = "prog",
    .usage = "[options] DIR",
    .summary = "Do something with DIR.",
    .examples = "prog --batch 8 pictures\nprog -j 2 pictures",
    .see = "More: --help, man prog",
    .env = "DPTEST_",
    .opts = table,
};

typedef struct result {
    settings v;
    char given[ENTRIES];
    int status, operands;
    char *operand[MAX_ARGS];
    dpl_text why;
    char *out;
} result;

static char arg_text[1024];

/* Parses blank-separated words. */
static result parse(const char *line)
{
    char *argv[MAX_ARGS + 1] = { "prog" }, *save = NULL;
    int argc = 1, operand = -1;
    result r = { .v = { .batch = 64, .shuffle = 1 } };
    size_t len;
    FILE *out = open_memstream(&r.out, &len);

    assert_non_null(out);
    snprintf(arg_text, sizeof arg_text, "%s", line);
    for (char *w = strtok_r(arg_text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        assert_true(argc < MAX_ARGS);
        argv[argc++] = w;
    }
    r.status = dpl_opt_parse(&spec, argc, argv, &r.v, r.given, &operand, out, &r.why);
    fclose(out);
    if (r.status == DPL_OPT_RUN) {
        r.operands = argc - operand;
        for (int i = operand; i < argc; i++) r.operand[i - operand] = argv[i];
    }
    return r;
}

static void assert_refused(const char *line, const char *text)
{
    result r = parse(line);

    assert_int_equal(r.status, DPL_EINVAL);
    assert_string_equal(r.why.s, text);
    assert_string_equal(r.out, "");
    free(r.out);
}

static result accept(const char *line)
{
    result r = parse(line);

    if (r.status != DPL_OPT_RUN) fail_msg("%s: %s", line, r.why.s);
    free(r.out);
    r.out = NULL;
    return r;
}

static void every_type_is_read(void **state)
{
    const result r = accept("--workers 8 -b 32 --no-shuffle --seed 18446744073709551615 "
                            "--max-file-bytes 2GiB --lr 1e-3 --val-split 10% --scale 0.25,1 "
                            "--move -0.5,1 --fill 1,2,255 --jitter .4,0,1,0.1 "
                            "--filter nearest -o runs -vv --verbose");

    (void)state;
    assert_int_equal(r.v.workers, 8);
    assert_int_equal(r.v.batch, 32);
    assert_int_equal(r.v.shuffle, 0);
    assert_true(r.v.seed == UINT64_MAX);
    assert_true(r.v.max_bytes == UINT64_C(2) << 30);
    assert_true(r.v.lr == 0.001);
    assert_true(r.v.share == 0.1);
    assert_true(r.v.scale[0] == 0.25 && r.v.scale[1] == 1);
    assert_true(r.v.move[0] == -0.5 && r.v.move[1] == 1);
    assert_true(r.v.fill[0] == 1 && r.v.fill[1] == 2 && r.v.fill[2] == 255);
    assert_true(r.v.jitter[0] == 0.4 && r.v.jitter[2] == 1 && r.v.jitter[3] == 0.1);
    assert_int_equal(r.v.filter, 2);
    assert_string_equal(r.v.out, "runs");
    assert_int_equal(r.v.verbose, 3);
    for (int i = 0; i < ENTRIES; i++) assert_int_equal(r.given[i], 1);
}

static void defaults_stay_and_given_tells(void **state)
{
    const result r = accept("--batch=16");

    (void)state;
    assert_int_equal(r.v.batch, 16);
    assert_int_equal(r.v.shuffle, 1);
    for (int i = 0; i < ENTRIES; i++) assert_int_equal(r.given[i], i == 1);
}

static void all_spellings_are_one_option(void **state)
{
    static const char *const lines[] = {
        "--workers 3",     "--workers=3",     "-j3",     "-j 3",    "-vj3",
        "--num-workers 3", "--num-threads=3", "--wor 3", "--num 3", /* the beginning of two names of the same option */
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(accept(lines[i]).v.workers, 3);
    }
    assert_int_equal(accept("--no-random-order").v.shuffle, 0);
    assert_int_equal(accept("--no-shuffle --random-order").v.shuffle, 1);
    assert_int_equal(accept("--batch 1 -b 2 --batch-size 3").v.batch, 3); /* the last one holds */
}

static void operands_may_stand_anywhere(void **state)
{
    result r = accept("first --batch 8 second -v -- --seed -j");

    (void)state;
    assert_int_equal(r.operands, 4);
    assert_string_equal(r.operand[0], "first");
    assert_string_equal(r.operand[1], "second");
    assert_string_equal(r.operand[2], "--seed");
    assert_string_equal(r.operand[3], "-j");
    assert_int_equal(r.v.batch, 8);
    assert_int_equal(accept("-").operands, 1);
    assert_int_equal(accept("").operands, 0);
}

static void wrong_values_are_named_with_what_is_allowed(void **state)
{
    (void)state;
    assert_refused("--batch abc", "--batch abc: expected a whole number from 1 to 1048576");
    assert_refused("--batch=0", "--batch 0: expected a whole number from 1 to 1048576");
    assert_refused("--batch 1048577", "--batch 1048577: expected a whole number from 1 to 1048576");
    assert_refused("-b 8x", "-b 8x: expected a whole number from 1 to 1048576");
    assert_refused("--batch-size 1.5",
                   "--batch-size 1.5: expected a whole number from 1 to 1048576");
    assert_refused("--batch 99999999999999999999",
                   "--batch 99999999999999999999: expected a whole number from 1 to 1048576");
    assert_refused("--batch --workers",
                   "--batch --workers: expected a whole number from 1 to 1048576");
    assert_refused("--workers -1", "--workers -1: expected a whole number from 0 to 1024");
    assert_refused("--seed -1",
                   "--seed -1: expected a whole number from 0 to 18446744073709551615");
    assert_refused("--max-file-bytes 0",
                   "--max-file-bytes 0: expected a size like 64, 4k or 2GiB, at least 1");
    assert_refused("--lr nan", "--lr nan: expected a number from 0 to 10");
    assert_refused("--lr 0x1", "--lr 0x1: expected a number from 0 to 10");
    assert_refused("--lr 10.5", "--lr 10.5: expected a number from 0 to 10");
    assert_refused("--val-split 91%",
                   "--val-split 91%: expected a share like 0.05 or 5% from 0 to 0.9");
    assert_refused("--scale 1,0.5",
                   "--scale 1,0.5: expected two numbers LO,HI (LO <= HI) from 0.0001 to 1");
    assert_refused("--scale 0.5",
                   "--scale 0.5: expected two numbers LO,HI (LO <= HI) from 0.0001 to 1");
    assert_refused("--scale 0,1",
                   "--scale 0,1: expected two numbers LO,HI (LO <= HI) from 0.0001 to 1");
    assert_refused("--move 1", "--move 1: expected two numbers from -1 to 1");
    assert_refused("--move 1,0,0", "--move 1,0,0: expected two numbers from -1 to 1");
    assert_refused("--move 0,2", "--move 0,2: expected two numbers from -1 to 1");
    assert_refused("--fill 1,2,", "--fill 1,2,: expected three numbers from 0 to 255");
    assert_refused("--fill 1,,2", "--fill 1,,2: expected three numbers from 0 to 255");
    assert_refused("--jitter 0,0,0", "--jitter 0,0,0: expected four numbers from 0 to 1");
    assert_refused("--filter lanczos", "--filter lanczos: expected bilinear, bicubic or nearest");
    assert_refused("--filter bi", "--filter bi: expected bilinear, bicubic or nearest");
}

static void empty_values_are_refused_not_taken_as_zero(void **state)
{
    (void)state;
    assert_refused("--workers=", "--workers : expected a whole number from 0 to 1024");
    assert_refused("--lr=", "--lr : expected a number from 0 to 10");
    assert_refused("--val-split=%",
                   "--val-split %: expected a share like 0.05 or 5% from 0 to 0.9");
    assert_refused("--filter=", "--filter : expected bilinear, bicubic or nearest");
}

static void unknown_options_get_the_nearest(void **state)
{
    (void)state;
    assert_refused("--bacth 3", "unknown option --bacth; did you mean --batch?");
    assert_refused("--bacth=3", "unknown option --bacth; did you mean --batch?");
    assert_refused("--batchsize 3", "unknown option --batchsize; did you mean --batch-size?");
    assert_refused("--no-shufle", "unknown option --no-shufle; did you mean --no-shuffle?");
    assert_refused("--interpolatoin x",
                   "unknown option --interpolatoin; did you mean --interpolation?");
    assert_refused("-batch 3", "unknown option -batch; did you mean --batch?");
    assert_refused("-seed 3", "unknown option -seed; did you mean --seed?");
    assert_refused("--momentum 3", "unknown option --momentum; --help lists the options");
    assert_refused("-z", "unknown option -z; --help lists the options");
    assert_refused("-vz", "unknown option -z; --help lists the options");
    assert_refused("-vzv", "unknown option -z; --help lists the options");
    assert_refused("dir --Batch 3", "unknown option --Batch; did you mean --batch?");
    assert_refused("--no-batch", "unknown option --no-batch; --help lists the options");
}

static void long_unknown_options_do_no_harm(void **state)
{
    char line[900] = "--", want[1000];

    (void)state;
    memset(line + 2, 'x', 800);
    snprintf(want, sizeof want, "unknown option %s; --help lists the options", line);
    assert_refused(line, want);
}

static void ambiguous_beginnings_are_refused(void **state)
{
    (void)state;
    assert_refused("--s 1", "--s is ambiguous: --shuffle, --seed, --scale");
    assert_refused("--v=1", "--v is ambiguous: --val-split, --verbose");
}

static void missing_and_surplus_values_are_told(void **state)
{
    (void)state;
    assert_refused("--batch", "--batch: a value is missing: a whole number from 1 to 1048576");
    assert_refused("dir -b", "-b: a value is missing: a whole number from 1 to 1048576");
    assert_refused("--out", "--out: a value is missing: DIR");
    assert_refused("--shuffle=3", "--shuffle takes no value");
    assert_refused("--no-shuffle=1", "--no-shuffle takes no value");
    assert_refused("--verbose=1", "--verbose takes no value");
    assert_refused("--help=1", "--help takes no value");
}

static void environment_gives_defaults(void **state)
{
    result r;

    (void)state;
    setenv("DPTEST_BATCH", "16", 1);
    setenv("DPTEST_SHUFFLE", "no", 1);
    setenv("DPTEST_MAX_FILE_BYTES", "4k", 1);
    setenv("DPTEST_NUM_WORKERS", "5", 1);
    setenv("DPTEST_VERBOSE", "2", 1);
    setenv("DPTEST_SEED", "", 1);
    setenv("BATCH", "7", 1);
    r = accept("--max-file-bytes 1");
    assert_int_equal(r.v.batch, 16);
    assert_int_equal(r.v.shuffle, 0);
    assert_int_equal(r.v.workers, 5);
    assert_int_equal(r.v.verbose, 2);
    assert_true(r.v.max_bytes == 1); /* the command line wins */
    assert_int_equal(r.given[1], 1);
    assert_int_equal(r.given[2], 1);
    assert_int_equal(r.given[3], 0); /* empty: as if not set */
    assert_int_equal(accept("--shuffle -b 2").v.shuffle, 1);
    assert_int_equal(accept("--shuffle -b 2").v.batch, 2);
}

static void wrong_environment_is_named(void **state)
{
    result r;

    (void)state;
    setenv("DPTEST_BATCH", "x", 1);
    assert_refused("", "DPTEST_BATCH=x: expected a whole number from 1 to 1048576");
    r = parse("-h");
    assert_int_equal(r.status, DPL_OPT_HELPED); /* help is there when it is needed */
    free(r.out);
    unsetenv("DPTEST_BATCH");
    setenv("DPTEST_SHUFFLE", "perhaps", 1);
    assert_refused("", "DPTEST_SHUFFLE=perhaps: expected on, off, yes, no, true, false, 1 or 0");
    unsetenv("DPTEST_SHUFFLE");
    setenv("DPTEST_BATCH_SIZE", "0", 1);
    assert_refused("", "DPTEST_BATCH_SIZE=0: expected a whole number from 1 to 1048576");
}

static int clear_environment(void **state)
{
    static const char *const names[] = { "BATCH",   "SHUFFLE", "MAX_FILE_BYTES", "NUM_WORKERS",
                                         "VERBOSE", "SEED",    "BATCH_SIZE" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(test_format("DPTEST_%s", names[i]));
    }
    unsetenv("BATCH");
    return 0;
}

static void short_help_is_the_brief_rows(void **state)
{
    result r = parse("-h");

    (void)state;
    assert_int_equal(r.status, DPL_OPT_HELPED);
    assert_string_equal(
        r.out, "Usage: prog [options] DIR\n"
               "Do something with DIR.\n"
               "\n"
               "  -j, --workers N  loader threads; 0 = one per usable core [0]\n"
               "  -b, --batch N    pictures per step, over all devices [64]\n"
               "      --lr RATE    learning rate; a text that is long enough to need a second\n"
               "                   line in the help, and even a third one after that [0.1]\n"
               "  -o, --out DIR    run folder\n"
               "  -v, --verbose    say more\n"
               "  -h, --help       --help: every option\n"
               "\n"
               "Examples:\n"
               "  prog --batch 8 pictures\n"
               "  prog -j 2 pictures\n"
               "More: --help, man prog\n");
    free(r.out);
}

static void full_help_has_every_name_and_group(void **state)
{
    static const char *const want[] = {
        "\nLoader:\n",
        "\nTraining:\n",
        "\nOutput:\n",
        "--[no-]shuffle",
        " also --batch-size\n",
        " also --num-workers, --num-threads\n",
        "--random-order",
        "--interpolation",
        "DPTEST_NAME",
        "  prog -j 2 pictures\n",
        "More: --help, man prog\n",
    };
    result r = parse("dir --help --nonsense");
    char *save = NULL;

    (void)state;
    assert_int_equal(r.status, DPL_OPT_HELPED);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (!strstr(r.out, want[i])) fail_msg("%s is not in the help", want[i]);
    }
    for (const dpl_opt *o = table; o->name; o++) assert_non_null(strstr(r.out, o->name));
    for (char *line = strtok_r(r.out, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strlen(line) > 80) fail_msg("longer than 80 columns: %s", line);
    }
    free(r.out);
}

static void values_print_as_they_are_typed(void **state)
{
    static const char *const want[] = { "8",           "32",      "off",      "7",      "2048",
                                        "0.001",       "0.125",   "0.0001,1", "-1,0.5", "9,8,7",
                                        "0.4,0,0,0.1", "bicubic", "a/b",      "2" };
    const result r = accept("-j 8 -b 32 --no-shuffle --seed 7 --max-file-bytes 2Ki --lr 1e-3 "
                            "--val-split 12.5% --scale 1e-4,1 --move -1,.5 --fill 9,8,7 "
                            "--jitter .4,0,0,.1 --filter bicubic --out a/b -vv");
    char buf[64];

    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        assert_int_equal(dpl_opt_format(&table[i], &r.v, buf, sizeof buf), strlen(want[i]));
        assert_string_equal(buf, want[i]);
    }
    assert_int_equal(dpl_opt_format(&table[12], &r.v, buf, 2), 3); /* cut, as snprintf does */
    assert_string_equal(buf, "a");
    assert_int_equal(dpl_opt_format(&table[12], &(settings){ 0 }, buf, sizeof buf), 0);
}

/* Whatever is typed ends in a value within its limits or in a message. */
static void random_words_never_break_out(void **state)
{
    static const char *const words[] = { "--batch", "--batch=", "-b",   "-1",   "--scale", "0.5,1",
                                         "--",      "-",        "-vvv", "--no", "--s",     "%",
                                         "9e99",    "-jz",      "--=",  "-v=",  "---",     ",",
                                         "64",      "--filter", "|",    "=",    "--lr",    "-bv" };
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        const uint8_t *r = test_guarded_bytes(8, seed);
        char line[256] = "";
        result got;
        for (int i = 0; i < 1 + r[0] % 7; i++) {
            strcat(line, words[r[i + 1] % (sizeof words / sizeof *words)]);
            strcat(line, " ");
        }
        got = parse(line);
        free(got.out);
        assert_true(got.status == DPL_OPT_RUN || (got.status == DPL_EINVAL && got.why.s[0]));
        assert_in_range(got.v.batch, 1, 1048576);
        test_free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(defaults_stay_and_given_tells),
        cmocka_unit_test(all_spellings_are_one_option),
        cmocka_unit_test(operands_may_stand_anywhere),
        cmocka_unit_test(wrong_values_are_named_with_what_is_allowed),
        cmocka_unit_test(empty_values_are_refused_not_taken_as_zero),
        cmocka_unit_test(unknown_options_get_the_nearest),
        cmocka_unit_test(long_unknown_options_do_no_harm),
        cmocka_unit_test(ambiguous_beginnings_are_refused),
        cmocka_unit_test(missing_and_surplus_values_are_told),
        cmocka_unit_test_teardown(environment_gives_defaults, clear_environment),
        cmocka_unit_test_teardown(wrong_environment_is_named, clear_environment),
        cmocka_unit_test(short_help_is_the_brief_rows),
        cmocka_unit_test(full_help_has_every_name_and_group),
        cmocka_unit_test(values_print_as_they_are_typed),
        cmocka_unit_test(random_words_never_break_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
