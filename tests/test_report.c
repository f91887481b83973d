/* SPDX-License-Identifier: Apache-2.0 */
/* The text of progress lines, where lines go, and when colour and redrawing are used. */
#include "tests/testutil.h"
#include "trainer/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dpt_pass train_pass(void)
{
    dpt_pass p = { .kind = DPT_PASS_TRAIN, .epochs = 5, .batches = 5005, .images_all = 1281167 };
    const dpt_sums first = { 64 * 7.0, 0, 1, 64 }, second = { 64 * 6.9012, 1, 2, 64 };

    dpt_pass_step(&p, &first, 64, 0.109, 0.007, 0.102);
    dpt_pass_step(&p, &second, 64, 0.093, 0.001, 0.092);
    p.lr = 0.1;
    return p;
}

/* The layout is that of PyTorch's ImageNet example, which log parsers know. */
static void train_line_reads_as_known(void **state)
{
    const dpt_pass p = train_pass();
    char s[512];

    (void)state;
    dpt_format_pass(s, sizeof s, &p);
    assert_string_equal(s, "Epoch: [0][   2/5005]\tTime  0.093 ( 0.101)\tData  0.001 ( 0.004)\t"
                           "Loss 6.9012e+00 (6.9506e+00)\tAcc@1   1.56 (  0.78)\t"
                           "Acc@5   3.12 (  2.34)\tLR 1.00e-01\t634 img/s");
}

static void test_line_reads_as_known(void **state)
{
    dpt_pass p = { .kind = DPT_PASS_TEST, .batches = 196 };
    const dpt_sums sums = { 256 * 0.91, 198, 238, 256 };
    char s[512];

    (void)state;
    dpt_pass_step(&p, &sums, 256, 0.31, 0, 0.31);
    dpt_format_pass(s, sizeof s, &p);
    assert_string_equal(s, "Test: [  1/196]\tTime  0.310 ( 0.310)\tLoss 9.1000e-01 (9.1000e-01)\t"
                           "Acc@1  77.34 ( 77.34)\tAcc@5  92.97 ( 92.97)");
}

/* Means are over samples: a small last batch counts by its size. */
static void averages_weigh_by_samples(void **state)
{
    dpt_pass p = { .kind = DPT_PASS_TRAIN, .batches = 2 };
    const dpt_sums big = { 3 * 1.0, 3, 3, 3 }, small = { 1 * 5.0, 0, 1, 1 };

    (void)state;
    dpt_pass_step(&p, &big, 4, 1, 0.25, 0.75); /* one of four was refused */
    dpt_pass_step(&p, &small, 1, 1, 0.75, 0.25);
    assert_true(dpt_mean_loss(&p.total) == 2.0);
    assert_true(dpt_percent(p.total.top1, p.total.n) == 75.0);
    assert_true(dpt_pass_rate(&p) == 2.0);
    assert_true(dpt_pass_wait_share(&p) == 0.5);
    assert_int_equal(p.images, 5);
    assert_int_equal(p.batch, 2);
}

static size_t columns_of(const char *s)
{
    size_t n = 0;

    for (; *s; s++) {
        if (*s == '\033')
            s = strchr(s, 'm');
        else
            n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

static void live_line_fits_any_width(void **state)
{
    const dpt_pass p = train_pass();
    char s[2048];

    (void)state;
    for (int columns = 1; columns <= 300; columns++)
        for (int mode = 0; mode < 4; mode++) {
            dpt_format_live(s, sizeof s, &p, columns, mode & 1, mode >> 1, 60);
            assert_true(columns_of(s) < (size_t)columns || (columns == 1 && !*s));
        }
    dpt_format_live(s, sizeof s, &p, 100, 0, 0, 60);
    assert_non_null(strstr(s, "epoch 1/5 ..."));
    assert_non_null(strstr(s, " 128/1,281,167  0.0%  "));
    assert_non_null(strstr(s, "  wait 4%"));
    assert_non_null(strstr(s, "  eta "));
    dpt_format_live(s, sizeof s, &p, 100, 0, 0, 4.9);
    assert_null(strstr(s, "eta")); /* nothing to go by yet */
}

static void live_bar_fills_with_the_epoch(void **state)
{
    dpt_pass p = train_pass();
    char s[2048];

    (void)state;
    p.images_all = 256; /* half of it is done */
    dpt_format_live(s, sizeof s, &p, 200, 0, 0, 0);
    assert_non_null(strstr(s, " ####################.................... "));
    p.images = 256;
    dpt_format_live(s, sizeof s, &p, 200, 1, 0, 0);
    assert_non_null(strstr(s, "\u2501 256/256  100.0%"));
    assert_null(strstr(s, "\u2500"));
}

static void numbers_read_well(void **state)
{
    char b[32];

    (void)state;
    assert_string_equal(dpt_format_count(b, 0), "0");
    assert_string_equal(dpt_format_count(b, 999), "999");
    assert_string_equal(dpt_format_count(b, 1000), "1,000");
    assert_string_equal(dpt_format_count(b, 1281167), "1,281,167");
    assert_string_equal(dpt_format_count(b, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(dpt_format_duration(b, 0.2), "0:00");
    assert_string_equal(dpt_format_duration(b, 755), "12:35");
    assert_string_equal(dpt_format_duration(b, 3 * 3600 + 131), "3:02:11");
    assert_string_equal(dpt_format_duration(b, 1e300), "0:00");
    assert_string_equal(dpt_format_seconds(b, 12.34), "12.3 s");
    assert_string_equal(dpt_format_seconds(b, 59.97), "1:00");
    assert_string_equal(dpt_format_bytes(b, 1023), "1023 B");
    assert_string_equal(dpt_format_bytes(b, 9.2 * 1048576), "9.2 MiB");
}

static int color_with(int choice, const char *no_color, const char *force)
{
    dpt_options o = { .color = choice, .progress = "auto", .print_freq = 1 };
    dpt_report r;

    if (no_color)
        setenv("NO_COLOR", no_color, 1);
    else
        unsetenv("NO_COLOR");
    if (force)
        setenv("CLICOLOR_FORCE", force, 1);
    else
        unsetenv("CLICOLOR_FORCE");
    dpt_report_init(&r, &o);
    return r.color;
}

/* With a stderr that is no terminal, however the test was started. */
static void color_follows_the_conventions(void **state)
{
    const int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

    (void)state;
    assert_true(kept >= 0 && null >= 0 && dup2(null, STDERR_FILENO) >= 0);
    assert_int_equal(color_with(DPT_COLOR_AUTO, NULL, NULL), 0);
    assert_int_equal(color_with(DPT_COLOR_AUTO, NULL, "1"), 1);
    assert_int_equal(color_with(DPT_COLOR_AUTO, NULL, ""), 0); /* empty is unset */
    assert_int_equal(color_with(DPT_COLOR_ALWAYS, "1", NULL), 1);
    assert_int_equal(color_with(DPT_COLOR_NEVER, NULL, "1"), 0);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(null);
}

/* Lines of a report written to memory. */
typedef struct captured {
    dpt_report r;
    char *out, *err;
    size_t out_len, err_len;
} captured;

static void capture(captured *c, const dpt_options *o)
{
    dpt_report_init(&c->r, o);
    c->r.color = 0;
    c->r.out = open_memstream(&c->out, &c->out_len);
    c->r.err = open_memstream(&c->err, &c->err_len);
}

static void captured_end(captured *c)
{
    fclose(c->r.out);
    fclose(c->r.err);
}

static void captured_free(captured *c)
{
    free(c->out);
    free(c->err);
}

static void results_and_messages_have_their_streams(void **state)
{
    dpt_options o = { .progress = "auto", .print_freq = 1 };
    captured c;

    (void)state;
    for (o.json = 0; o.json < 2; o.json++) {
        capture(&c, &o);
        dpt_report_result(&c.r, "result %d", 1);
        dpt_report_note(&c.r, "note");
        dpt_report_detail(&c.r, "detail");
        dpt_report_warn(&c.r, "careful");
        dpt_report_error(&c.r, "wrong");
        captured_end(&c);
        assert_string_equal(c.out, o.json ? "" : "result 1\n");
        assert_string_equal(c.err,
                            o.json ? "result 1\nnote\ndptrain: warning: careful\ndptrain: wrong\n"
                                   : "note\ndptrain: warning: careful\ndptrain: wrong\n");
        captured_free(&c);
    }
    o.json = 0;
    o.quiet = 2;
    capture(&c, &o);
    dpt_report_result(&c.r, "result");
    dpt_report_note(&c.r, "note");
    dpt_report_warn(&c.r, "careful");
    dpt_report_error(&c.r, "wrong");
    captured_end(&c);
    assert_string_equal(c.out, "result\n");
    assert_string_equal(c.err, "dptrain: wrong\n");
    captured_free(&c);
}

static int lines_of(const char *s)
{
    int n = 0;

    for (; *s; s++) n += *s == '\n';
    return n;
}

static void plain_progress_keeps_its_distance(void **state)
{
    dpt_options o = { .progress = "auto", .print_freq = 10 };
    const dpt_sums sums = { 1, 0, 0, 1 };
    captured c;

    (void)state;
    for (int seconds = 0; seconds < 2; seconds++) {
        dpt_pass p = { .kind = DPT_PASS_TRAIN, .batches = 100, .images_all = 100 };
        if (seconds) o.progress = "1000";
        capture(&c, &o);
        dpt_report_begin(&c.r, &p);
        for (int i = 0; i < 25; i++) {
            dpt_pass_step(&p, &sums, 1, 0.1, 0, 0.1);
            dpt_report_step(&c.r, &p);
        }
        dpt_report_wipe(&c.r);
        captured_end(&c);
        assert_null(strchr(c.err, '\r'));
        assert_int_equal(lines_of(c.err), seconds ? 0 : 3); /* steps 1, 11, 21 */
        captured_free(&c);
    }
}

/* Redrawn at most ten times a second; a message takes the line's place, and the end leaves nothing. */
static void live_progress_is_redrawn_seldom_and_wiped(void **state)
{
    const dpt_options o = { .progress = "auto", .print_freq = 1 };
    dpt_pass p = { .kind = DPT_PASS_TRAIN, .epochs = 1, .batches = 2000, .images_all = 2000 };
    const dpt_sums sums = { 1, 0, 0, 1 };
    int draws = 0;
    captured c;

    (void)state;
    capture(&c, &o);
    c.r.live = 1;
    c.r.plain = 0;
    dpt_report_begin(&c.r, &p);
    for (int i = 0; i < 2000; i++) {
        dpt_pass_step(&p, &sums, 1, 0.001, 0, 0.001);
        dpt_report_step(&c.r, &p);
    }
    dpt_report_note(&c.r, "note");
    dpt_report_wipe(&c.r);
    captured_end(&c);
    for (const char *at = c.err; (at = strstr(at, "\repoch")); at++) draws++;
    assert_true(draws >= 1 && draws <= 20); /* 2,000 steps in far less than two seconds */
    assert_string_equal(c.err + c.err_len - 9, "\r\033[Knote\n");
    captured_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_line_reads_as_known),
        cmocka_unit_test(test_line_reads_as_known),
        cmocka_unit_test(averages_weigh_by_samples),
        cmocka_unit_test(live_line_fits_any_width),
        cmocka_unit_test(live_bar_fills_with_the_epoch),
        cmocka_unit_test(numbers_read_well),
        cmocka_unit_test(results_and_messages_have_their_streams),
        cmocka_unit_test(plain_progress_keeps_its_distance),
        cmocka_unit_test(live_progress_is_redrawn_seldom_and_wiped),
        cmocka_unit_test(color_follows_the_conventions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
