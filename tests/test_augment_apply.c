/* SPDX-License-Identifier: Apache-2.0 */
/* Applying plans, against Pillow and torchvision: boxes, windows, flips, evaluation, sources that
 * were decoded smaller. The source is always exactly the region a plan asks for, and ends at an
 * unreadable page. */
#include "augment/augment.h"
#include "base/cpu.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

static dpl_apply_scratch scratch;

/* The part (x, y, w, h) of a formula picture. */
static dpl_pixels part_of(int full_w, int full_h, int seed, int x, int y, int w, int h)
{
    const size_t row = 3 * (size_t)w;
    uint8_t *full = test_canary(3 * (size_t)full_w * (size_t)full_h);
    uint8_t *px = test_guarded_bytes(row * (size_t)h, 0);

    assert_true(x >= 0 && y >= 0 && x + w <= full_w && y + h <= full_h);
    test_formula_picture(full, full_w, full_h, seed);
    for (int r = 0; r < h; r++)
        memcpy(px + (size_t)r * row, full + 3 * ((size_t)(y + r) * (size_t)full_w + (size_t)x),
               row);
    return (dpl_pixels){ px, row, x, y, w, h, 1 };
}

/* CRC of the result at one level, and that nothing but the result was written. */
static uint32_t apply_crc(const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                          unsigned cpu)
{
    const size_t bytes = 3 * (size_t)s->width * (size_t)s->height;
    uint8_t *out = test_canary(bytes);
    dpl_kernels k;

    dpl_kernels_select(&k, cpu);
    assert_int_equal(dpl_plan_apply(out, p, s, src, &k, &scratch), 0);
    assert_true(test_canary_ok(out, bytes));
    return test_crc(out, bytes);
}

static void check_levels(const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                         uint32_t crc, const char *line)
{
    if (apply_crc(p, s, src, DPL_CPU_C) != crc) fail_msg("C differs from Pillow: %s", line);
    if (apply_crc(p, s, src, test_cpu()) != crc) fail_msg("the fast variant differs: %s", line);
}

static void boxes_windows_and_flips_match_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/augment_resize.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, x, y, rw, rh;
        uint32_t crc;
        dpl_plan p = { 0 };
        dpl_recipe_spec s = { .train = 1 };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %x", &w, &h,
                                &seed, &p.x, &p.y, &p.w, &p.h, &p.resized_w, &p.resized_h, &p.win_x,
                                &p.win_y, &s.width, &s.height, &s.filter, &p.flip, &crc),
                         16);
        dpl_plan_region(&p, &s, &x, &y, &rw, &rh);
        assert_true(x >= p.x && y >= p.y && x + rw <= p.x + p.w && y + rh <= p.y + p.h);
        const dpl_pixels src = part_of(w, h, seed, x, y, rw, rh);
        check_levels(&p, &s, &src, crc, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 700);
}

static void evaluation_matches_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/augment_eval.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, x, y, rw, rh;
        uint32_t crc;
        dpl_plan p;
        dpl_rng rng;
        dpl_recipe_spec s = { 0 };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %x", &w, &h, &seed, &s.resize, &s.width,
                                &s.height, &s.filter, &crc),
                         8);
        dpl_rng_init(&rng, 1, 0, 0, DPL_RNG_AUGMENT);
        dpl_plan_draw(&p, &s, &rng, w, h);
        dpl_plan_region(&p, &s, &x, &y, &rw, &rh);
        const dpl_pixels src = part_of(w, h, seed, x, y, rw, rh);
        check_levels(&p, &s, &src, crc, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 99);
}

/* The box of the full picture has fractional edges in a source decoded at 1/d. */
static void scaled_sources_match_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/augment_scaled.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, d, x, y, rw, rh;
        uint32_t crc;
        dpl_plan p = { 0 };
        dpl_recipe_spec s = { .train = 1, .fast = 1 };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %d %d %d %d %d %x", &w, &h, &seed, &d,
                                &p.x, &p.y, &p.w, &p.h, &s.width, &s.height, &s.filter, &p.flip,
                                &crc),
                         13);
        p.resized_w = s.width;
        p.resized_h = s.height;
        assert_true(dpl_plan_denominator(&p, &s) >= d);
        dpl_plan_region(&p, &s, &x, &y, &rw, &rh);
        const int x0 = x / d, y0 = y / d, x1 = (x + rw + d - 1) / d, y1 = (y + rh + d - 1) / d;
        dpl_pixels src = part_of((w + d - 1) / d, (h + d - 1) / d, seed, x0, y0, x1 - x0, y1 - y0);
        src.denominator = d;
        s.fast = 0; /* the exact weights, on the scaled source */
        check_levels(&p, &s, &src, crc, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 150);
}

/* A slope decoded at 1/d (each pixel the mean of its d x d) gives what the full slope gives. */
static void scaled_sources_show_the_same_place(void **state)
{
    enum { W = 403, H = 301, N = 40 };
    const dpl_plan p = { .x = 37, .y = 5, .w = 333, .h = 290, .resized_w = N, .resized_h = N };
    const dpl_recipe_spec s = { .train = 1, .width = N, .height = N, .fast = 1 };
    uint8_t want[N * N * 3], got[N * N * 3];
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (int d = 1; d <= 4; d *= 2) {
        const int w = (W + d - 1) / d, h = (H + d - 1) / d;
        uint8_t *px = test_guarded_bytes(3 * (size_t)w * (size_t)h, 0);
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                const double cx = d * (x + 0.5), cy = d * (y + 0.5); /* place in the full picture */
                uint8_t *at = px + 3 * ((size_t)y * (size_t)w + (size_t)x);
                at[0] = (uint8_t)(cx * 0.6);
                at[1] = (uint8_t)(cy * 0.8);
                at[2] = (uint8_t)((cx + cy) * 0.3);
            }
        const dpl_pixels src = { px, 3 * (size_t)w, 0, 0, w, h, d };
        assert_int_equal(dpl_plan_apply(d == 1 ? want : got, &p, &s, &src, &k, &scratch), 0);
        for (int i = 0; d > 1 && i < N * N * 3; i++) assert_true(abs(got[i] - want[i]) <= 2);
        test_free_all();
    }
}

/* Rotation comes last, about the centre of what is delivered, on black. */
static void rotation_comes_after_the_flip(void **state)
{
    enum { N = 33 };
    static const uint8_t black[3];
    dpl_plan p = { .x = 3, .y = 4, .w = 50, .h = 40, .resized_w = N, .resized_h = N, .flip = 1 };
    dpl_recipe_spec s = { .train = 1, .width = N, .height = N };
    uint8_t flat[N * N * 3], want[N * N * 3], got[N * N * 3];
    const dpl_pixels src = part_of(60, 50, 3, 0, 0, 60, 50);
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (s.rotate_bilinear = 0; s.rotate_bilinear < 2; s.rotate_bilinear++) {
        p.angle = 0;
        assert_int_equal(dpl_plan_apply(flat, &p, &s, &src, &k, &scratch), 0);
        p.angle = -17.5;
        assert_int_equal(dpl_plan_apply(got, &p, &s, &src, &k, &scratch), 0);
        dpl_rotate_rgb_c(want, flat, N, N, -17.5, s.rotate_bilinear, black);
        assert_memory_equal(got, want, sizeof want);
        assert_memory_not_equal(got, flat, sizeof flat);
    }
    test_free_all();
}

/* A window that misses the picture altogether is black and reads nothing, with a region of a pixel that a
 * decoder can give. */
static void window_outside_is_black(void **state)
{
    dpl_plan p = { .w = 8, .h = 8, .resized_w = 8, .resized_h = 8, .affine = { .a = 1, .e = 1 } };
    dpl_recipe_spec s = { .train = 1, .width = 5, .height = 5 };
    const dpl_pixels src = { NULL, 0, 0, 0, 0, 0, 1 };
    uint8_t out[75];
    int x, y, w, h;
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (int i = 0; i < 8; i++) {
        s.rotate_once = i % 2;
        p.win_x = i & 4 ? 0 : i & 2 ? 8 : -5;
        p.win_y = i & 4 ? (i & 2 ? 9 : -7) : 0;
        dpl_plan_region(&p, &s, &x, &y, &w, &h);
        assert_true(w >= 1 && x >= 0 && x + w <= 8 && h >= 1 && y >= 0 && y + h <= 8);
        memset(out, 1, sizeof out);
        assert_int_equal(dpl_plan_apply(out, &p, &s, &src, &k, &scratch), 0);
        for (int n = 0; n < 75; n++) assert_int_equal(out[n], 0);
    }
}

static int free_scratch(void **state)
{
    (void)state;
    dpl_apply_scratch_free(&scratch);
    return scratch.rows || scratch.image || scratch.taps_x.block;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_windows_and_flips_match_pillow),
        cmocka_unit_test(evaluation_matches_torchvision),
        cmocka_unit_test(scaled_sources_match_pillow),
        cmocka_unit_test(scaled_sources_show_the_same_place),
        cmocka_unit_test(rotation_comes_after_the_flip),
        cmocka_unit_test(window_outside_is_black),
    };

    return cmocka_run_group_tests(tests, NULL, free_scratch);
}
