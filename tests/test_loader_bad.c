/* SPDX-License-Identifier: Apache-2.0 */
/* Bad samples: refused by name, left out of their batch, counted once, bounded by the cap at the same
 * batch whatever the threads. */
#include "tests/loaderutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dpl_options tree_options(const char *root)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.batch = 4;
    opt.workers = 3;
    opt.width = opt.height = 16;
    opt.shuffle = 0;
    return opt;
}

static const char *reason_of(const dpl_loader *l, const char *file, int *times)
{
    const char *reason = NULL;
    dpl_bad bad;

    *times = 0;
    for (uint64_t i = 0; !dpl_bad_get(l, i, &bad); i++) {
        assert_string_equal(bad.path, dpl_sample_name(l, bad.id));
        if (!strstr(bad.path, file)) continue;
        reason = bad.reason;
        ++*times;
    }
    return reason;
}

static void expect_bad(const dpl_loader *l, const char *file, const char *part)
{
    int times;
    const char *reason = reason_of(l, file, &times);

    if (times != 1) fail_msg("%s: listed %d times", file, times);
    if (!strstr(reason, part)) fail_msg("%s: \"%s\" does not say \"%s\"", file, reason, part);
}

static void bad_files_are_left_out_named_and_counted_once(void **state)
{
    static const char html[] = "<!DOCTYPE html><html><body>404</body></html>";
    const char *root = test_tempdir();
    dpl_options opt = tree_options(root);
    dpl_stats st = { .size = sizeof st };
    uint8_t noise[500];
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    test_make_tree(root, 2, 10); /* ids 0..9 and 10..19 */
    memset(noise, 0xA5, sizeof noise);
    test_write_file(test_format("%s/c0/0001.jpg", root), noise, sizeof noise);
    test_write_file(test_format("%s/c0/0002.jpg", root), "", 0);
    test_write_file(test_format("%s/c0/0004.jpg", root), html, sizeof html - 1);
    test_write_file(test_format("%s/c1/0003.jpg", root), "GIF89a", 6);
    opt.epochs = 3;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(unlink(test_format("%s/c1/0009.jpg", root)), 0);
    for (int e = 0; e < 3; e++) {
        uint8_t seen[20] = { 0 };
        int n = 0, err;

        while (!(err = dpl_next(l, &b, -1))) {
            assert_int_equal(b.planned, 4);
            n += b.n;
            for (int k = 0; k < b.n; k++) {
                const uint64_t id = b.part[0].ids[k];

                assert_true(id / 4 == b.index); /* in order, none in another's place */
                assert_true(!k || id > b.part[0].ids[k - 1]);
                assert_int_equal(b.part[0].labels[k], id / 10);
                seen[id]++;
            }
            if (b.index == 0) assert_int_equal(b.n, 2);
            dpl_release(l, &b, NULL);
        }
        assert_int_equal(err, DPL_EOF);
        /* The prefetched first batches may hold the picture that was deleted later. */
        assert_true(n == 15 || (e == 0 && n == 16));
        for (uint64_t id = 0; id < 20; id++)
            if (id != 19) assert_int_equal(seen[id], id != 1 && id != 2 && id != 4 && id != 13);
    }
    dpl_stats_get(l, &st);
    assert_int_equal(st.bad, 5);
    expect_bad(l, "c0/0001.jpg", "unknown content");
    expect_bad(l, "c0/0002.jpg", "empty file");
    expect_bad(l, "c0/0004.jpg", "HTML");
    expect_bad(l, "c1/0003.jpg", "GIF");
    expect_bad(l, "c1/0009.jpg", "o such file");
    dpl_close(&l);
}

/* --- the cap --- */

typedef struct flawed {
    test_memory good;
    uint64_t every; /* sample i is bad when i % every == 0; 0 = none */
} flawed;

static uint64_t flawed_count(void *user)
{
    return ((flawed *)user)->good.n;
}

static int64_t flawed_read(void *user, uint64_t i, void *buf, size_t cap)
{
    flawed *f = user;

    if (f->every && i % f->every == 0) return -1;
    return f->good.source.read(&f->good, i, buf, cap);
}

static int32_t flawed_label(void *user, uint64_t i)
{
    (void)user;
    return (int32_t)(i % 7);
}

static dpl_source flawed_init(flawed *f, uint64_t n, uint64_t every)
{
    test_memory_gray(&f->good, n);
    f->every = every;
    return (dpl_source){ f, flawed_count, flawed_read, flawed_label, NULL };
}

/* Batches given out before the end, and the status that ended it. */
static int batches_until_end(const dpl_options *opt, int *status, char text[512])
{
    dpl_loader *l;
    dpl_batch b;
    int n = 0;

    assert_int_equal(dpl_open(&l, opt), DPL_OK);
    while (!(*status = dpl_next(l, &b, -1))) {
        n++;
        dpl_release(l, &b, NULL);
    }
    snprintf(text, 512, "%s", dpl_error_text(l));
    assert_int_equal(dpl_next(l, &b, -1), *status == DPL_EOF ? DPL_EOF : *status); /* stays */
    dpl_close(&l);
    return n;
}

static void cap_ends_at_the_same_batch_for_any_threads(void **state)
{
    flawed f;
    const dpl_source src = flawed_init(&f, 400, 10); /* 40 bad samples, 1 in each 10 */
    dpl_options opt = test_loader_options(&f.good);
    char text[512];
    int status;

    (void)state;
    opt.source = &src;
    opt.shuffle = 0;
    opt.epochs = 1;
    opt.batch = 20; /* two bad ones in each */
    for (int workers = 1; workers <= 8; workers *= 2) {
        opt.workers = workers;
        opt.prefetch = workers;
        opt.max_bad = 0.001; /* at least 10: the sixth batch brings the 11th and 12th */
        assert_int_equal(batches_until_end(&opt, &status, text), 5);
        assert_int_equal(status, DPL_EDATA);
        assert_non_null(strstr(text, "12 bad samples, the cap is 10"));
        assert_non_null(strstr(text, "the first: sample 0: "));
        opt.max_bad = 0.05; /* 20 */
        assert_int_equal(batches_until_end(&opt, &status, text), 10);
        assert_int_equal(status, DPL_EDATA);
        opt.max_bad = 0.1; /* 40: never past it */
        assert_int_equal(batches_until_end(&opt, &status, text), 20);
        assert_int_equal(status, DPL_EOF);
        opt.max_bad = 0;
        assert_int_equal(batches_until_end(&opt, &status, text), 0);
        assert_int_equal(status, DPL_EDATA);
        assert_non_null(strstr(text, "the cap is 0"));
    }
    test_memory_free(&f.good);
}

/* The same sample in every epoch is one bad sample. */
static void repeats_do_not_reach_the_cap(void **state)
{
    flawed f;
    const dpl_source src = flawed_init(&f, 16, 4);
    dpl_options opt = test_loader_options(&f.good);
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    opt.source = &src;
    opt.epochs = 20;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int e = 0; e < 20; e++) {
        int n = 0;

        for (int k = 0; k < 2; k++) {
            assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
            n += b.n;
            dpl_release(l, &b, NULL);
        }
        assert_int_equal(n, 12);
        assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    }
    dpl_close(&l);
    test_memory_free(&f.good);
}

static void batch_of_bad_ones_is_delivered_empty(void **state)
{
    flawed f;
    const dpl_source src = flawed_init(&f, 6, 1);
    dpl_options opt = test_loader_options(&f.good);
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    opt.source = &src;
    opt.epochs = 1;
    opt.devices = "cpu,cpu";
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.planned, 6);
    assert_int_equal(b.parts, 2);
    assert_int_equal(b.part[0].n + b.part[1].n, 0);
    dpl_release(l, &b, NULL);
    assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    dpl_close(&l);
    test_memory_free(&f.good);
}

/* A JPEG without its end marker has every row: used and named, or refused when strict. */
static void warned_samples_are_used_unless_strict(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = tree_options(root);
    dpl_stats st = { .size = sizeof st };
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;
    size_t len;
    uint8_t *jpeg;

    (void)state;
    test_make_tree(root, 1, 4);
    jpeg = test_jpeg(64, 64, 1, NULL, &len); /* square: evaluation needs every row */
    test_write_file(test_format("%s/c0/0002.jpg", root), jpeg, len - 2);
    free(jpeg);
    opt.recipe = DPL_EVAL;
    opt.resize = 16;
    for (int strict = 0; strict < 2; strict++) {
        opt.strict = strict;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        for (int e = 0; e < 3; e++) {
            assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
            assert_int_equal(b.n, strict ? 3 : 4);
            dpl_release(l, &b, NULL);
            assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
        }
        dpl_stats_get(l, &st);
        assert_int_equal(st.bad, strict);
        assert_int_equal(st.warned, !strict);
        assert_int_equal(dpl_bad_get(l, 0, &bad), DPL_OK);
        assert_int_equal(bad.kind, strict ? DPL_BAD_REFUSED : DPL_BAD_WARNED);
        assert_int_equal(bad.id, 2);
        assert_int_equal(dpl_bad_get(l, 1, &bad), DPL_EOF);
        dpl_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_left_out_named_and_counted_once),
        cmocka_unit_test(cap_ends_at_the_same_batch_for_any_threads),
        cmocka_unit_test(repeats_do_not_reach_the_cap),
        cmocka_unit_test(batch_of_bad_ones_is_delivered_empty),
        cmocka_unit_test(warned_samples_are_used_unless_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
