/* SPDX-License-Identifier: Apache-2.0 */
/* Resampling kernels: taps against closed forms, whole resizes against Pillow, variants against C
 * with inputs that end at an unreadable page. */
#include "base/cpu.h"
#include "kernels/kernels.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

/* Upscaling by two, bilinear: three quarters and one quarter, but the edge alone at the ends. */
static void taps_of_doubling_are_quarters(void **state)
{
    const dpl_axis a = { .box1 = 3, .in_n = 3, .out_n = 6, .count = 6 };
    static const int start[] = { 0, 0, 0, 1, 1, 2 }, size[] = { 1, 2, 2, 2, 2, 1 };
    static const double first[] = { 1, 0.75, 0.25, 0.75, 0.25, 1 };
    dpl_taps t = { 0 };

    (void)state;
    assert_int_equal(dpl_taps_make(&t, &a), 0);
    for (int k = 0; k < 6; k++) {
        assert_int_equal(t.start[k], start[k]);
        assert_int_equal(t.size[k], size[k]);
        assert_int_equal(t.weight[k * t.stride], (int)(first[k] * (1 << 22)));
        assert_int_equal(t.weight16[k * t.stride], (int)(first[k] * (1 << t.bits16)));
    }
    dpl_taps_free(&t);
}

/* Every size up and down: weights sum to one, halves give back the whole, nothing out of range. */
static void taps_hold_what_the_header_says(void **state)
{
    dpl_taps t = { 0 };

    (void)state;
    for (int i = 0; i < 4000; i++) {
        const int in = 1 + i * 7919 % 900, out = 1 + i * 104729 % 300, filter = i & 1;
        const dpl_axis a = { .box1 = in, .in_n = in, .out_n = out, .count = out, .filter = filter };
        int lo, hi;
        assert_int_equal(dpl_taps_make(&t, &a), 0);
        dpl_axis_support(&a, &lo, &hi);
        assert_true(lo >= 0 && hi <= in && t.stride % 4 == 0);
        for (int k = 0; k < out; k++) {
            int64_t sum = 0, sum16 = 0;
            assert_true(t.size[k] >= 1 && t.size[k] <= t.stride);
            assert_true(t.start[k] >= lo && t.start[k] + t.size[k] <= hi);
            for (int j = k * t.stride; j < (k + 1) * t.stride; j++) {
                sum += t.weight[j];
                sum16 += t.weight16[j];
                assert_int_equal(t.hi[j] * 2048 + t.lo[j], t.weight[j]);
                if (j >= k * t.stride + t.size[k]) assert_int_equal(t.weight[j], 0);
            }
            assert_true(llabs(sum - (1 << 22)) <= t.size[k]);
            if (t.bits16 < 22) assert_int_equal(sum16, 1 << t.bits16);
        }
    }
    dpl_taps_free(&t);
}

/* A part of the outputs, and the reverse order, give the same taps as the whole. */
static void wanted_outputs_are_a_part_of_all(void **state)
{
    dpl_axis a = { .box0 = 1.5, .box1 = 90, .in_n = 97, .out_n = 41, .count = 41 };
    dpl_taps all = { 0 }, part = { 0 };

    (void)state;
    assert_int_equal(dpl_taps_make(&all, &a), 0);
    a.first = 7;
    a.count = 20;
    a.reverse = 1;
    assert_int_equal(dpl_taps_make(&part, &a), 0);
    assert_int_equal(part.count, 20);
    for (int k = 0; k < 20; k++) {
        const int j = 7 + 19 - k;
        assert_int_equal(part.start[k], all.start[j]);
        assert_int_equal(part.size[k], all.size[j]);
        assert_memory_equal(part.weight + k * part.stride, all.weight + j * all.stride,
                            (size_t)all.stride * sizeof *all.weight);
    }
    dpl_taps_free(&all);
    dpl_taps_free(&part);
}

typedef struct picture {
    const uint8_t *px;
    int w, h;
} picture;

/* The picture's box, resized, in memory of test_canary(). */
static uint8_t *resized(const picture *in, const dpl_axis *x, const dpl_axis *y,
                        dpl_resample_rows_fn *rows, dpl_resample_cols_fn *cols)
{
    const size_t width = 3 * (size_t)x->count, bytes = width * (size_t)y->count;
    dpl_taps tx = { 0 }, ty = { 0 };
    int lo, hi;

    dpl_axis_support(y, &lo, &hi);
    assert_int_equal(dpl_taps_make(&tx, x), 0);
    assert_int_equal(dpl_taps_make(&ty, y), 0);
    uint8_t *between = test_canary((size_t)(hi - lo) * width), *out = test_canary(bytes);
    rows(between, in->px + 3 * (size_t)lo * (size_t)in->w, 3 * (size_t)in->w, hi - lo, 0, &tx);
    cols(out, width, between, (int)width, lo, &ty);
    assert_true(test_canary_ok(between, (size_t)(hi - lo) * width));
    assert_true(test_canary_ok(out, bytes));
    dpl_taps_free(&tx);
    dpl_taps_free(&ty);
    return out;
}

static void fractional_boxes_match_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/augment_box.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, x0, y0, x1, y1, ow, oh, filter;
        uint32_t crc;
        dpl_kernels k;
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %d %d %d %x", &w, &h, &seed, &x0, &y0,
                                &x1, &y1, &ow, &oh, &filter, &crc),
                         11);
        uint8_t *px = test_guarded_bytes(3 * (size_t)w * (size_t)h, 0);
        test_formula_picture(px, w, h, seed);
        const picture in = { px, w, h };
        const dpl_axis x = { x0 / 8.0, x1 / 8.0, w, ow, 0, ow, filter, 0 };
        const dpl_axis y = { y0 / 8.0, y1 / 8.0, h, oh, 0, oh, filter, 0 };
        for (unsigned level = 0; level < 2; level++) {
            dpl_kernels_select(&k, level ? test_cpu() : DPL_CPU_C);
            const uint8_t *out = resized(&in, &x, &y, k.rows, k.cols);
            if (test_crc(out, 3 * (size_t)ow * (size_t)oh) != crc)
                fail_msg("level %u differs from Pillow: %s", level, line);
        }
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 200);
}

/* One pass after the other over the same input, so that an error names its pass. */
static void compare_rows(const dpl_kernels *k, const dpl_axis *a, int rows, size_t gap)
{
    dpl_taps t = { 0 };
    int lo, hi;

    assert_int_equal(dpl_taps_make(&t, a), 0);
    lo = a->in_n;
    hi = 0;
    for (int i = 0; i < t.count; i++) {
        if (t.start[i] < lo) lo = t.start[i];
        if (t.start[i] + t.size[i] > hi) hi = t.start[i] + t.size[i];
    }
    /* the input starts at the first pixel that is read and ends with the last */
    const size_t row = 3 * (size_t)(hi - lo), stride = row + gap;
    const size_t n = 3 * (size_t)t.count * (size_t)rows;
    const uint8_t *in = test_guarded_bytes(stride * (size_t)(rows - 1) + row, (uint64_t)hi);
    uint8_t *want = test_canary(n), *fast = test_canary(n), *got = test_canary(n);
    dpl_resample_rows_c(want, in, stride, rows, lo, &t);
    k->rows(got, in, stride, rows, lo, &t);
    assert_memory_equal(got, want, n);
    assert_true(test_canary_ok(got, n));
    dpl_resample_rows_fast_c(fast, in, stride, rows, lo, &t);
    for (size_t i = 0; i < n; i++) assert_true(abs(fast[i] - want[i]) <= 1);
    k->rows_fast(got, in, stride, rows, lo, &t);
    assert_memory_equal(got, fast, n);
    assert_true(test_canary_ok(got, n));
    dpl_taps_free(&t);
    test_free_all();
}

static void rows_variants_match_c(void **state)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 23, 24, 25, 33, 224 };
    const size_t n_sizes = sizeof sizes / sizeof *sizes;
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    if (k.rows == dpl_resample_rows_c) skip();
    for (size_t i = 0; i < n_sizes * n_sizes; i++) {
        const int in = sizes[i / n_sizes] + (i % 5 ? 0 : 700), out = sizes[i % n_sizes];
        const dpl_axis a = { 0, in, in, out, 0, out, (int)(i & 1), (int)(i >> 1 & 1) };
        const dpl_axis middle = { in * 0.3, in * 0.6, in, out, out / 3, out - out / 2, 0, 0 };
        compare_rows(&k, &a, 1 + (int)(i % 9), 0);
        compare_rows(&k, &a, 33, i % 50);
        compare_rows(&k, &middle, 2, 1);
    }
}

static void compare_cols(const dpl_kernels *k, const dpl_axis *a, int width)
{
    dpl_taps t = { 0 };
    int lo, hi;

    assert_int_equal(dpl_taps_make(&t, a), 0);
    lo = t.start[0];
    hi = t.start[t.count - 1] + t.size[t.count - 1];
    const size_t stride = (size_t)width + 5, n = stride * (size_t)(t.count - 1) + (size_t)width;
    const uint8_t *in = test_guarded_bytes((size_t)(hi - lo) * (size_t)width, (uint64_t)width);
    uint8_t *want = test_canary(n), *fast = test_canary(n);
    uint8_t *got = test_canary(n), *got_fast = test_canary(n);
    dpl_resample_cols_c(want, stride, in, width, lo, &t);
    k->cols(got, stride, in, width, lo, &t);
    assert_memory_equal(got, want, n); /* the gaps too: untouched */
    assert_true(test_canary_ok(got, n));
    dpl_resample_cols_fast_c(fast, stride, in, width, lo, &t);
    for (size_t i = 0; i < n; i++) assert_true(abs(fast[i] - want[i]) <= 1);
    k->cols_fast(got_fast, stride, in, width, lo, &t);
    assert_memory_equal(got_fast, fast, n);
    assert_true(test_canary_ok(got_fast, n));
    dpl_taps_free(&t);
    test_free_all();
}

static void cols_variants_match_c(void **state)
{
    static const int widths[] = { 3, 30, 33, 60, 63, 66, 96, 99, 672 };
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    if (k.cols == dpl_resample_cols_c) skip();
    for (int i = 0; i < 400; i++) {
        const int in = 1 + i * 31 % 120, out = 1 + i * 17 % 40;
        const dpl_axis a = { 0, in, in, out, 0, out, i & 1, 0 };
        compare_cols(&k, &a, widths[i % 9]);
    }
}

/* Both passes, fast against exact, over sizes as training has them. */
static void fast_is_near_exact(void **state)
{
    dpl_kernels k;
    size_t bytes = 0, ones = 0;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (int i = 0; i < 60; i++) {
        const int w = 40 + i * 13 % 400, h = 40 + i * 29 % 300;
        const dpl_axis x = { 0, w, w, 96, 0, 96, DPL_RESAMPLE_BILINEAR, 0 };
        const dpl_axis y = { 0, h, h, 96, 0, 96, DPL_RESAMPLE_BILINEAR, 0 };
        uint8_t *px = test_guarded_bytes(3 * (size_t)w * (size_t)h, (uint64_t)i);
        if (i % 2) test_formula_picture(px, w, h, i);
        const picture in = { px, w, h };
        const uint8_t *want = resized(&in, &x, &y, k.rows, k.cols);
        const uint8_t *got = resized(&in, &x, &y, k.rows_fast, k.cols_fast);
        for (int j = 0; j < 96 * 96 * 3; j++, bytes++) {
            assert_true(abs(got[j] - want[j]) <= 1);
            ones += got[j] != want[j];
        }
        test_free_all();
    }
    assert_true(ones * 100 < bytes); /* seen: 0.1 % */
}

/* An even picture stays even, however large the step. */
static void even_pictures_stay_even(void **state)
{
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (int v = 0; v < 256; v += 51)
        for (int w = 1; w < 3000; w = w * 3 + 1) {
            const dpl_axis x = { 0, w, w, 10, 0, 10, w & 1, 0 }, y = { 0, 9, 9, 9, 0, 9, w & 1, 0 };
            uint8_t *px = test_canary(27 * (size_t)w);
            memset(px, v, 27 * (size_t)w);
            const picture in = { px, w, 9 };
            const uint8_t *exact = resized(&in, &x, &y, k.rows, k.cols);
            const uint8_t *fast = resized(&in, &x, &y, k.rows_fast, k.cols_fast);
            for (int i = 0; i < 270; i++) {
                assert_int_equal(exact[i], v);
                assert_int_equal(fast[i], v);
            }
            test_free_all();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taps_of_doubling_are_quarters),
        cmocka_unit_test(taps_hold_what_the_header_says),
        cmocka_unit_test(wanted_outputs_are_a_part_of_all),
        cmocka_unit_test(fractional_boxes_match_pillow),
        cmocka_unit_test(rows_variants_match_c),
        cmocka_unit_test(cols_variants_match_c),
        cmocka_unit_test(fast_is_near_exact),
        cmocka_unit_test(even_pictures_stay_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
