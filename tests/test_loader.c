/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery: exactly once, the same bytes whatever the threads and the split, order of the calls. */
#include "tests/loaderutil.h"

#include "kernels/convert.h"

#include <dirent.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void each_sample_is_delivered_once(void **state)
{
    static const uint64_t sizes[] = { 1, 2, 3, 7, 8, 16, 17, 31, 33 };
    static const int batches[] = { 1, 3, 8, 16, 40 };
    static const char *const devices[] = { "cpu", "cpu,cpu", "cpu,cpu,cpu" };
    test_memory m;

    (void)state;
    test_memory_gray(&m, 0);
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes * 5 * 3 * 3 * 2; c++) {
        const uint64_t n = sizes[c % 9], batch = (uint64_t)batches[c / 9 % 5];
        const int parts = (int)(c / 45 % 3) + 1;
        test_entry trace[40];
        uint64_t seen[40] = { 0 }, want = n, got;
        dpl_options opt;

        m.n = n;
        opt = test_loader_options(&m);
        opt.batch = (int)batch;
        opt.width = opt.height = 4;
        opt.prefetch = 1 + (int)(c % 3);
        opt.devices = devices[parts - 1];
        opt.world = (int)(c / 135 % 3) + 1;
        opt.drop_last = (int)(c / 405);
        if (opt.batch < opt.world * parts) continue;
        if (opt.drop_last && n >= batch) want -= n % batch;
        got = test_trace(&opt, c % 4, trace, 40);
        assert_int_equal(got, want);
        for (uint64_t k = 0; k < got; k++) {
            assert_true(trace[k].id < n);
            assert_int_equal(seen[trace[k].id]++, 0);
            assert_int_equal(trace[k].label, trace[k].id % 7);
        }
    }
    test_memory_free(&m);
}

enum { TRACED = 70 };

static void same_trace(const dpl_options *opt, const test_entry *want, uint64_t n)
{
    test_entry got[TRACED];

    memset(got, 0, sizeof got);
    assert_int_equal(test_trace(opt, 2, got, TRACED), n);
    assert_memory_equal(got, want, sizeof got);
}

/* Rule 2: workers, prefetch, ranks and devices do not change a byte, nor the global order. */
static void bytes_do_not_depend_on_threads_or_split(void **state)
{
    static const int workers[] = { 1, 2, 3, 8 };
    static const int weights[] = { 3, 1 };
    test_entry want[TRACED], other[TRACED];
    test_memory m;
    dpl_options opt;

    (void)state;
    test_memory_pictures(&m, TRACED);
    memset(want, 0, sizeof want);
    for (int f = 0; f < 2; f++) {
        opt = test_loader_options(&m);
        opt.rotate = 20;
        opt.seed = 5;
        opt.workers = 1;
        opt.dtype = f ? DPL_FLOAT32 : DPL_UINT8;
        opt.layout = f ? DPL_NCHW : DPL_NHWC;
        assert_int_equal(test_trace(&opt, 2, want, TRACED), TRACED);
        for (int w = 0; w < 4; w++) {
            opt.workers = workers[w];
            opt.prefetch = w % 2 ? 4 : 1;
            opt.world = 1;
            opt.devices = NULL;
            same_trace(&opt, want, TRACED);
            opt.world = w + 1;
            opt.devices = "cpu,cpu";
            same_trace(&opt, want, TRACED);
            opt.world = 1;
            opt.split = weights;
            opt.n_split = 2;
            same_trace(&opt, want, TRACED);
            opt.split = NULL;
            opt.n_split = 0;
        }
    }
    /* The comparison can fail: another seed and another epoch give other bytes. */
    opt.devices = NULL;
    opt.seed = 6;
    test_trace(&opt, 2, other, TRACED);
    assert_memory_not_equal(other, want, sizeof want);
    opt.seed = 5;
    test_trace(&opt, 3, other, TRACED);
    assert_memory_not_equal(other, want, sizeof want);
    test_memory_free(&m);
}

static void without_shuffle_the_order_is_the_sources(void **state)
{
    test_entry trace[20];
    test_memory m;
    dpl_options opt;

    (void)state;
    test_memory_gray(&m, 20);
    opt = test_loader_options(&m);
    opt.shuffle = 0;
    assert_int_equal(test_trace(&opt, 1, trace, 20), 20);
    for (uint64_t k = 0; k < 20; k++) assert_int_equal(trace[k].id, k);
    test_memory_free(&m);
}

/* Pixels against their closed form: a gray file stays its value under every crop and resize. */
static void pixels_are_the_samples_own(void **state)
{
    test_memory m;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    test_memory_gray(&m, 40);
    for (int form = 0; form < 3; form++) {
        dpl_options opt = test_loader_options(&m);

        opt.recipe = form ? DPL_EVAL : DPL_TRAIN;
        opt.dtype = form ? DPL_FLOAT32 : DPL_UINT8;
        opt.layout = form == 1 ? DPL_NCHW : DPL_NHWC;
        opt.height = 12;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        while (!dpl_next(l, &b, -1)) {
            const size_t pixels = 16 * 12;

            assert_int_equal((uintptr_t)b.part[0].pixels % 64, 0);
            for (size_t k = 0; k < (size_t)b.n * pixels * 3; k++) {
                const int value = test_gray_value(b.part[0].ids[k / (3 * pixels)]);
                const size_t c = form == 1 ? k / pixels % 3 : k % 3;
                const double want = (value / 255.0 - (double)opt.mean[c]) / (double)opt.std[c];

                if (form == 0)
                    assert_int_equal(((uint8_t *)b.part[0].pixels)[k], value);
                else
                    assert_true(fabs((double)((float *)b.part[0].pixels)[k] - want) < 1e-5);
            }
            dpl_release(l, &b, NULL);
        }
        dpl_close(&l);
    }
    test_memory_free(&m);
}

/* The same pictures as float32, rounded number by number; with erasing, which comes last. */
static void sixteen_bits_are_the_floats_rounded(void **state)
{
    test_memory m;

    (void)state;
    test_memory_pictures(&m, 16);
    for (int form = 0; form < 4; form++) {
        const dpl_dtype type = form < 2 ? DPL_BFLOAT16 : DPL_FLOAT16;
        dpl_options opt = test_loader_options(&m);
        dpl_loader *l[2];
        dpl_batch b[2];

        opt.layout = form % 2 ? DPL_NCHW : DPL_NHWC;
        opt.random_erase = 0.5;
        opt.erase_value[1] = 0.3;
        for (int k = 0; k < 2; k++) {
            opt.dtype = k ? type : DPL_FLOAT32;
            assert_int_equal(dpl_open(&l[k], &opt), DPL_OK);
            assert_int_equal(dpl_next(l[k], &b[k], -1), DPL_OK);
        }
        for (size_t i = 0; i < (size_t)b[0].n * 16 * 16 * 3; i++) {
            const float v = ((const float *)b[0].part[0].pixels)[i];
            const uint16_t got = ((const uint16_t *)b[1].part[0].pixels)[i];
            assert_int_equal(got, type == DPL_BFLOAT16 ? dpl_to_bfloat(v) : dpl_to_half(v));
        }
        for (int k = 0; k < 2; k++) dpl_close(&l[k]);
    }
    test_memory_free(&m);
}

static void epochs_follow_each_other(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    test_memory_gray(&m, 20); /* 8 + 8 + 4 */
    opt = test_loader_options(&m);
    opt.epochs = 2;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (uint64_t e = 0; e < 2; e++) {
        for (uint64_t k = 0; k < 3; k++) {
            assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
            assert_int_equal(b.epoch, e);
            assert_int_equal(b.index, k);
            assert_int_equal(b.first, 8 * k);
            assert_int_equal(b.planned, k < 2 ? 8 : 4);
            assert_int_equal(b.n, b.planned);
            dpl_release(l, &b, NULL);
            assert_null(b.slot);
            dpl_release(l, &b, NULL); /* a cleared batch is ignored */
        }
        assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    }
    assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    assert_int_equal(dpl_next(l, &b, 0), DPL_EOF);
    dpl_close(&l);
    assert_null(l);
    dpl_close(&l);
    test_memory_free(&m);
}

static void holding_every_slot_is_an_error_not_a_deadlock(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b[4], copy;

    (void)state;
    test_memory_gray(&m, 100);
    opt = test_loader_options(&m);
    opt.prefetch = 2;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int k = 0; k < 3; k++) assert_int_equal(dpl_next(l, &b[k], -1), DPL_OK);
    assert_int_equal(dpl_next(l, &b[3], -1), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "3 batch slots"));
    assert_null(b[3].slot);
    copy = b[1];
    dpl_release(l, &b[1], NULL);       /* not the oldest */
    dpl_release(l, &copy, NULL);       /* a second time: ignored */
    for (uint64_t k = 3; k < 9; k++) { /* goes on with one slot while two are held */
        assert_int_equal(dpl_next(l, &b[3], -1), DPL_OK);
        assert_int_equal(b[3].index, k);
        dpl_release(l, &b[3], NULL);
    }
    assert_int_equal(b[0].index, 0); /* held ones still stand */
    assert_int_equal(((uint8_t *)b[2].part[0].pixels)[0], test_gray_value(b[2].part[0].ids[0]));
    dpl_close(&l);
    test_memory_free(&m);
}

static void info_and_stats_add_up(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_info info;
    dpl_stats st = { .size = sizeof st }, old = { .size = offsetof(dpl_stats, bad), .bad = 77 };
    uint64_t bytes = 0;

    (void)state;
    test_memory_gray(&m, 50);
    opt = test_loader_options(&m);
    opt.epochs = 1;
    opt.drop_last = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_info_get(l, &info);
    assert_int_equal(info.samples, 50);
    assert_int_equal(info.batches, 6);
    assert_int_equal(info.dropped, 2);
    assert_int_equal(info.classes, 7);
    assert_string_equal(info.class_names[6], "6");
    assert_int_equal(info.class_counts[0], 8);
    assert_int_equal(info.class_counts[6], 7);
    assert_int_equal(info.workers, 2);
    assert_int_equal(info.prefetch, 3);
    assert_int_equal(info.parts, 1);
    assert_int_equal(info.slot_bytes, 4 * (8 * 16 * 16 * 3 + 4 * 64));
    while (!dpl_next(l, &b, -1)) {
        for (int k = 0; k < b.n; k++) bytes += m.len[b.part[0].ids[k] % 16];
        dpl_release(l, &b, NULL);
    }
    do dpl_stats_get(l, &st); /* the last worker may not have found out yet that it is done */
    while (st.starved_s <= 0);
    assert_int_equal(st.batches, 6);
    assert_int_equal(st.images, 48);
    assert_int_equal(st.prepared, 48);
    assert_int_equal(st.bytes_read, bytes);
    assert_int_equal(st.bytes_out, 48 * 16 * 16 * 3);
    assert_true(st.pixels_decoded > 0 && st.pixels_decoded <= 48 * 16 * 16);
    assert_int_equal(st.bad + st.warned, 0);
    assert_int_equal(st.workers, 2);
    assert_int_equal(st.ready, 0);
    assert_true(st.seconds > 0 && st.decode_s > 0);
    assert_true(st.decode_s + st.read_s + st.augment_s + st.starved_s + st.blocked_s <
                2 * st.seconds + 0.001);
    dpl_stats_get(l, &old); /* an older caller's shorter struct is not overrun */
    assert_int_equal(old.images, 48);
    assert_int_equal(old.bad, 77);
    assert_string_equal(dpl_sample_name(l, 49), "sample 49");
    assert_ptr_equal(dpl_sample_name(l, 49), dpl_sample_name(l, 49));
    assert_null(dpl_sample_name(l, 50));
    dpl_close(&l);
    test_memory_free(&m);
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Rule 5, over 30 epochs with every file opened each time. */
static void memory_and_files_stay_flat(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    size_t before = 0;
    int files = 0;

    (void)state;
    test_make_tree(root, 5, 12);
    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.batch = 16;
    opt.workers = 2;
    opt.width = opt.height = 32;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int e = 0; e < 35; e++) {
        while (!dpl_next(l, &b, -1)) dpl_release(l, &b, NULL);
        if (e == 5) {
            before = mallinfo2().uordblks;
            files = open_files();
        }
    }
    /* A worker may be reading one file at each of the two moments. */
    assert_true(abs(open_files() - files) <= 2);
    assert_true(mallinfo2().uordblks <= before + (256 << 10));
    dpl_close(&l);
}

/* One huge picture must not keep its memory for the rest of the run. */
static void scratch_is_given_back_after_a_huge_picture(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_info info;
    size_t before, after;

    (void)state;
    test_memory_gray(&m, 64);
    free(m.file[0]);
    m.file[0] = test_jpeg(5200, 5000, 1, NULL, &m.len[0]); /* 78 MB decoded */
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    opt = test_loader_options(&m);
    opt.recipe = DPL_EVAL;
    opt.width = opt.height = 224;
    opt.resize = 230;
    opt.workers = 1;
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_info_get(l, &info);
    while (!dpl_next(l, &b, -1)) dpl_release(l, &b, NULL);
    after = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (before) /* a sanitizer's allocator does not say */
        assert_true(after <=
                    before + info.slot_bytes + info.scratch_bytes + info.index_bytes + (1 << 20));
    assert_true(info.scratch_bytes <= (uint64_t)66 << 20);
    dpl_close(&l);
    test_memory_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_is_delivered_once),
        cmocka_unit_test(bytes_do_not_depend_on_threads_or_split),
        cmocka_unit_test(without_shuffle_the_order_is_the_sources),
        cmocka_unit_test(pixels_are_the_samples_own),
        cmocka_unit_test(sixteen_bits_are_the_floats_rounded),
        cmocka_unit_test(epochs_follow_each_other),
        cmocka_unit_test(holding_every_slot_is_an_error_not_a_deadlock),
        cmocka_unit_test(info_and_stats_add_up),
        cmocka_unit_test(memory_and_files_stay_flat),
        cmocka_unit_test(scratch_is_given_back_after_a_huge_picture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
