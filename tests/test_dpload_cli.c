/* SPDX-License-Identifier: Apache-2.0 */
/* dpload and drawset as a user runs them. BIN names the folder of the built programs. */
#include "tests/testutil.h"

#include "dpload.h"
#include "tools/hash64.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

static char work[4096]; /* folder of this test; holds set/ (drawn) and flat/ (classes only) */
static char out[1 << 16], err[1 << 16];

static const char *bin(void)
{
    const char *folder = getenv("BIN");

    return folder ? folder : "build/bin";
}

static void take(char *to, const char *name)
{
    size_t len;
    uint8_t *got = test_read_file(test_format("%s/%s", work, name), &len);

    if (len >= sizeof out) len = sizeof out - 1;
    memcpy(to, got, len);
    to[len] = 0;
    free(got);
}

/* Run a shell command line after "BIN/"; fill out and err. @return the exit code */
static int __attribute__((format(printf, 1, 2))) run(const char *format, ...)
{
    char line[4096], command[8192 + sizeof work];
    va_list ap;
    int status;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    snprintf(command, sizeof command, "cd '%s' && '%s'/%s >out 2>err", work, bin(), line);
    status = system(command);
    assert_true(WIFEXITED(status));
    take(out, "out");
    take(err, "err");
    return WEXITSTATUS(status);
}

static void __attribute__((format(printf, 3, 4)))
expect(int code, const char *text, const char *format, ...)
{
    char line[2048];
    va_list ap;
    int got;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    got = run("%s", line);
    if (got != code) fail_msg("%s: exit %d, not %d\n%s%s", line, got, code, out, err);
    if (!strstr(out, text) && !strstr(err, text)) {
        fail_msg("%s: no \"%s\" in\n%s%s", line, text, out, err);
    }
}

/* One line, and it starts with the program's name. */
static void expect_error(int code, const char *text, const char *line)
{
    expect(code, text, "%s", line);
    if (strncmp(err, "dpload: ", 8) != 0 && strncmp(err, "drawset: ", 9) != 0) {
        fail_msg("%s: %s", line, err);
    }
    if (strchr(err, '\n') != err + strlen(err) - 1) fail_msg("%s: not one line: %s", line, err);
}

static int set_up(void **state)
{
    static char absolute[4096], flat[4200];
    struct stat st;
    (void)state;

    if (!realpath(bin(), absolute) || stat(test_format("%s/dpload", absolute), &st)) return 0;
    setenv("BIN", absolute, 1);
    snprintf(work, sizeof work, "%s", test_tempdir());
    if (run("drawset --train 60 --val 18 --side 40,90 set")) fail_msg("drawset: %s", err);
    snprintf(flat, sizeof flat, "%s/flat", work); /* formatted texts do not live long enough */
    test_make_tree(flat, 3, 8);
    return 0;
}

static void need_programs(void)
{
    if (!*work) skip();
}

/* --- drawset --- */

static int count(const char *command)
{
    char text[32] = "";
    FILE *f = popen(test_format("cd '%s' && %s", work, command), "r");

    assert_non_null(f);
    if (!fgets(text, sizeof text, f)) text[0] = 0;
    pclose(f);
    return atoi(text);
}

static void drawset_draws_what_was_asked(void **state)
{
    (void)state;
    need_programs();
    assert_int_equal(count("find set/train -name '*.jpg' | wc -l"), 61); /* and the broken one */
    assert_int_equal(count("find set/val -name '*.jpg' | wc -l"), 18);
    assert_int_equal(count("find set -name 'broken*' | wc -l"), 1);
    assert_int_equal(count("ls set/train | wc -l"), 6);
    assert_int_equal(count("ls set/val/red_cross | wc -l"), 3);
    assert_int_equal(count("ls -d set.partial* 2>/dev/null | wc -l"), 0);
}

static void drawset_repeats_itself(void **state)
{
    (void)state;
    need_programs();
    assert_int_equal(run("drawset --train 60 --val 18 --side 40,90 again"), 0);
    assert_int_equal(run("drawset --train 60 --val 18 --side 40,90 --seed 1 other"), 0);
    assert_int_equal(count("diff -r set again >diff && echo 1"), 1);
    assert_int_equal(count("cmp -s set/val/red_ring/red_ring_00000.jpg "
                           "other/val/red_ring/red_ring_00000.jpg || echo 1"),
                     1);
}

static void drawset_refuses(void **state)
{
    (void)state;
    need_programs();
    expect_error(1, "set: ", "drawset set"); /* holds pictures */
    expect_error(1, "/proc/none", "drawset --plain /proc/none/set");
    expect_error(2, "folder is missing", "drawset");
    expect_error(2, "more than one", "drawset a b");
    expect_error(2, "--train", "drawset --train 2 a");
    expect_error(2, "side", "drawset --side 90,40 a");
    assert_int_equal(count("ls -d a* 2>/dev/null | grep -cv again"), 0);
}

/* --- check --- */

static void check_lists_what_is_bad(void **state)
{
    (void)state;
    need_programs();
    expect(3, "set/train/blue_cross/broken_000.jpg\t", "dpload check set");
    assert_non_null(strstr(out, "\n79 pictures: 78 decoded in full (0 with a warning), 1 bad;"));
    assert_string_equal(err, "");
    expect(0, "18 pictures: 18 decoded in full (", "dpload check --subset val set");
    expect(0, "24 pictures: 24 decoded in full (", "dpload check -v flat");
    assert_non_null(strstr(err, "memory: "));
}

/* Bad only at the far end of a long strip, which a centre crop would not reach. */
static void check_decodes_the_whole_picture(void **state)
{
    size_t len;
    uint8_t *tall = test_jpeg(16, 1600, 3, NULL, &len), *again;
    (void)state;

    need_programs();
    test_make_folder(test_format("%s/strip/a", work));
    test_write_file(test_format("%s/strip/a/whole.jpg", work), tall, len);
    test_write_file(test_format("%s/strip/a/cut.jpg", work), tall, len - len / 20);
    expect(3, "strip/a/cut.jpg\t", "dpload check strip");
    assert_non_null(strstr(out, "2 pictures: 1 decoded in full (0 with a warning), 1 bad"));
    again = test_jpeg(30, 30, 4, NULL, &len); /* complete, but its end marker is missing */
    test_write_file(test_format("%s/strip/a/cut.jpg", work), again, len - 2);
    expect(0, "strip/a/cut.jpg\twarning: ", "dpload check strip");
    expect(3, "1 decoded in full (0 with a warning), 1 bad", "dpload check --strict strip");
    free(again);
    free(tall);
}

/* --- bench --- */

static uint64_t hash_of(const char *options)
{
    const char *at;

    expect(0, "hash of epoch 0", "dpload bench --size 32 --hash %s", options);
    at = strstr(strstr(out, "hash of epoch 0"), ": ");
    assert_non_null(at);
    return strtoull(at + 2, NULL, 16);
}

static void hash_depends_on_the_data_only(void **state)
{
    static const char *const same[] = {
        "-j1 set",          "-j2 set",
        "-j3 set",          "-j8 set",
        "--prefetch 1 set", "--prefetch 4 -j3 set",
        "-b7 set",          "--devices cpu,cpu set",
        "--step 1ms set",   "--devices sim:0ms,cpu,cpu -b 9 set",
        "-b1000 set",       "--epochs 2 set/train",
    };
    static const char *const other[] = { "--seed 1 set",          "--no-shuffle set",
                                         "--recipe eval set",     "--dtype float32 set",
                                         "--hflip 0 set",         "--size 33 set",
                                         "--batches 1 -b 30 set", "--exif ignore set" };
    uint64_t want;
    (void)state;

    need_programs();
    want = hash_of("set");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (hash_of(same[i]) != want) fail_msg("another hash with %s", same[i]);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        if (hash_of(other[i]) == want) fail_msg("the same hash with %s", other[i]);
    }
}

static void put_le(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(v >> (8 * i));
}

/* What the manual says the hash is taken over, put together from the library. */
static void hash_is_what_it_says(void **state)
{
    enum { ONE = 32 * 32 * 3 };
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    tool_hash64 h;
    (void)state;

    need_programs();
    tool_hash64_init(&h);
    dpl_options_init(&opt, sizeof opt);
    opt.path = test_format("%s/flat", work);
    opt.width = opt.height = 32;
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    while (dpl_next(l, &b, -1) == DPL_OK) {
        for (int i = 0; i < b.n; i++) {
            uint8_t sample[ONE + 12];

            memcpy(sample, (const uint8_t *)b.part[0].pixels + (size_t)i * ONE, ONE);
            put_le(sample + ONE, (uint32_t)b.part[0].labels[i], 4);
            put_le(sample + ONE + 4, b.part[0].ids[i], 8);
            tool_hash64_add(&h, sample, sizeof sample);
        }
        dpl_release(l, &b, NULL);
    }
    dpl_close(&l);
    assert_true(hash_of("flat") == tool_hash64_value(&h));
}

static void bench_says_which_folder(void **state)
{
    (void)state;
    need_programs();
    expect(0, "set/train: 61 pictures in 6 classes; train recipe", "dpload bench --size 32 set");
    assert_ptr_equal(strstr(out, "set/train: "), out);
    assert_non_null(strstr(err, "left out set/train/blue_cross/broken_000.jpg: "));
    assert_non_null(strstr(out, "\ndecode "));
    expect(0, "set/val: 18 pictures", "dpload bench --size 32 --recipe eval set");
    expect(0, "set/val: 18 pictures", "dpload bench --size 32 --subset val set");
    expect(0, "flat: 24 pictures in 3 classes", "dpload bench --size 32 flat");
    expect(0, "flat: 18 pictures", "dpload bench --size 32 --val-split 25%% flat");
    expect(0, "flat: 6 pictures", "dpload bench --size 32 --val-split 25%% --recipe eval flat");
    expect(0, "memory: batch slots", "dpload bench -v --size 32 flat");
}

static void bench_json_is_one_object(void **state)
{
    json_error_t e;
    json_t *j;
    double busy = 0;
    size_t i;
    json_t *stage;
    (void)state;

    need_programs();
    assert_int_equal(run("dpload bench --json --hash --size 32 --epochs 3 -j2 flat"), 0);
    j = json_loads(out, 0, &e);
    if (!j) fail_msg("%s in %s", e.text, out);
    assert_int_equal(json_integer_value(json_object_get(j, "images")), 72);
    assert_int_equal(json_integer_value(json_object_get(j, "epochs")), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "workers")), 2);
    assert_int_equal(json_array_size(json_object_get(j, "hashes")), 3);
    assert_true(json_real_value(json_object_get(j, "images_per_s")) > 0);
    json_array_foreach(json_object_get(j, "stages"), i, stage)
    {
        busy += json_real_value(json_object_get(stage, "busy_share"));
    }
    assert_int_equal(i, 3);
    assert_true(busy > 0 && busy <= 1.001);
    json_decref(j);
}

static void bench_measures_the_limit(void **state)
{
    json_t *j;
    (void)state;

    need_programs();
    expect(0, "libjpeg alone", "dpload bench --limit --rounds 2 --batches 2 -b 8 --size 32 set");
    assert_int_equal(run("dpload bench --limit --rounds 3 --batches 1 -b 8 --json --size 32 flat"),
                     0);
    assert_non_null(j = json_loads(out, 0, NULL));
    assert_int_equal(json_integer_value(json_object_get(j, "rounds")), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "images")), 24);
    assert_true(json_real_value(json_object_get(j, "ratio")) > 0);
    json_decref(j);
}

static void bench_names_the_readers(void **state)
{
    json_t *j;
    (void)state;

    need_programs();
    expect(0, "loader threads 2 + 3 that read", "dpload bench -j2 --readers 3 --size 32 flat");
    assert_int_equal(run("dpload bench --json --readers 3 --size 32 flat"), 0);
    assert_non_null(j = json_loads(out, 0, NULL));
    assert_int_equal(json_integer_value(json_object_get(j, "readers")), 3);
    json_decref(j);
}

static void bench_takes_the_time_of_a_step(void **state)
{
    json_t *j;
    (void)state;

    need_programs();
    assert_int_equal(run("dpload bench --json --size 32 -b 8 --devices cpu,sim:30ms,bus=1G flat"),
                     0);
    assert_non_null(j = json_loads(out, 0, NULL));
    assert_true(json_real_value(json_object_get(j, "step_s")) == 0.03);
    assert_true(json_real_value(json_object_get(j, "seconds")) >= 3 * 0.03);
    assert_int_equal(json_array_size(json_object_get(j, "stages")), 4); /* upload */
    json_decref(j);
    assert_int_equal(run("dpload bench --json --size 32 -b 8 --step 40ms flat"), 0);
    assert_non_null(j = json_loads(out, 0, NULL));
    assert_true(json_real_value(json_object_get(j, "seconds")) >= 3 * 0.04);
    json_decref(j);
}

static void bench_refuses(void **state)
{
    (void)state;
    need_programs();
    expect_error(3, "nowhere", "dpload bench nowhere");
    expect_error(2, "folder is missing", "dpload bench");
    expect_error(2, "wrokers", "dpload bench --wrokers 2 set");
    expect_error(2, "workers", "dpload bench --workers x set");
    expect_error(2, "NCHW", "dpload bench --layout nchw set");
    expect_error(2, "rank", "dpload bench --rank 2 --world 2 set");
    expect_error(2, "--step fast", "dpload bench --step fast set");
    expect_error(2, "train/ and val/", "dpload bench --subset val flat");
    expect_error(2, "train/ and val/", "dpload bench --subset all set");
    expect_error(2, "train/ and val/", "dpload bench --val-split 0.1 set");
    expect_error(4, "CUDA", "dpload bench --devices cuda:0 set");
    expect_error(2, "known are bench, check and show", "dpload benhc set");
    expect_error(2, "no command", "dpload");
    expect(3, "broken_000.jpg", "dpload bench --max-bad 0 --size 32 set");
    test_make_folder(test_format("%s/empty", work));
    expect_error(3, "empty", "dpload bench empty");
    expect_error(3, "empty", "dpload check empty");
}

static void a_full_disk_is_not_success(void **state)
{
    (void)state;
    need_programs();
    for (int i = 0; i < 2; i++) {
        const char *command = i ? "check flat" : "bench --size 32 flat";
        const int status =
            system(test_format("cd '%s' && '%s'/dpload %s >/dev/full 2>err", work, bin(), command));

        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        take(err, "err");
        assert_non_null(strstr(err, "standard output"));
    }
}

/* --- show --- */

static void show_writes_a_sheet(void **state)
{
    size_t len;
    uint8_t *png;
    (void)state;

    need_programs();
    expect(0, "sheet.png: 6 pictures",
           "dpload show --rows 2 --columns 3 --size 50 set -o sheet.png");
    png = test_read_file(test_format("%s/sheet.png", work), &len);
    assert_true(len > 1000);
    assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(png[18] << 8 | png[19], 6 + 3 * (50 + 6)); /* width */
    assert_int_equal(png[22] << 8 | png[23], 6 + 2 * (50 + 13 + 6));
    free(png);
    expect(0, "sheet.png: 6 pictures",
           "dpload show --rows 2 --columns 3 --size 50 --mixup 1 set -o sheet.png");
    png = test_read_file(test_format("%s/sheet.png", work), &len);
    assert_int_equal(png[22] << 8 | png[23], 6 + 2 * (50 + 22 + 6)); /* two lines each */
    free(png);
    expect(0, "e.png: 18 pictures", "dpload show --recipe eval -o e.png set"); /* not 32 */
    expect(0, "e.png: 32 pictures", "dpload show set -o e.png");
    assert_int_equal(count("ls -A | grep -c '[.]png'"), 2); /* and no temporary files */
}

/* What the library says of options is said of what was typed. */
static void messages_name_options_as_typed(void **state)
{
    (void)state;
    need_programs();
    expect_error(2, "--color-jitter (hue) 0.6", "dpload bench --color-jitter 0,0,0,0.6 set");
    expect_error(2, "--rotate-once without rotation", "dpload bench --rotate-once set");
    expect_error(2, "bilinear or nearest", "dpload bench --rotate-filter bicubic set");
    expect(3, "(--max-pixels)", "dpload check --max-pixels 9 flat");
    assert_int_equal(run("dpload bench --max-pixels 9 --max-bad 0 flat"), 3);
    assert_non_null(strstr(err, "(--max-bad 0 of"));
}

static void show_refuses(void **state)
{
    (void)state;
    need_programs();
    expect_error(2, "-o sheet.png", "dpload show set");
    expect(1, "no/s.png", "dpload show set -o no/s.png");
    expect_error(3, "nowhere", "dpload show nowhere -o s.png");
}

/* --- help --- */

static void help_fits_a_screen(void **state)
{
    static const char *const commands[] = { "dpload", "dpload bench", "dpload check", "dpload show",
                                            "drawset" };
    (void)state;
    need_programs();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int lines = 0;

        expect(0, "Usage: ", "%s -h", commands[i]);
        for (const char *s = out; *s; s++) lines += *s == '\n';
        if (lines > 24) fail_msg("%s -h has %d lines", commands[i], lines);
        expect(0, "Usage: ", "%s --help", commands[i]);
    }
    expect(0, DPL_VERSION, "dpload --version");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawset_draws_what_was_asked),
        cmocka_unit_test(drawset_repeats_itself),
        cmocka_unit_test(drawset_refuses),
        cmocka_unit_test(check_lists_what_is_bad),
        cmocka_unit_test(check_decodes_the_whole_picture),
        cmocka_unit_test(hash_depends_on_the_data_only),
        cmocka_unit_test(hash_is_what_it_says),
        cmocka_unit_test(bench_says_which_folder),
        cmocka_unit_test(bench_json_is_one_object),
        cmocka_unit_test(bench_measures_the_limit),
        cmocka_unit_test(bench_names_the_readers),
        cmocka_unit_test(bench_takes_the_time_of_a_step),
        cmocka_unit_test(bench_refuses),
        cmocka_unit_test(a_full_disk_is_not_success),
        cmocka_unit_test(show_writes_a_sheet),
        cmocka_unit_test(messages_name_options_as_typed),
        cmocka_unit_test(show_refuses),
        cmocka_unit_test(help_fits_a_screen),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
