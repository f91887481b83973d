/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on finished pictures, against Pillow and torchvision with the same parameters: each at
 * both instruction-set levels, on guarded memory. */
#include "augment/augment.h"
#include "base/cpu.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

/* Apply a list to px; the result is px's or spare's memory. */
static uint8_t *apply(const dpl_ops *ops, uint8_t *px, int w, int h, const dpl_op_style *style,
                      unsigned cpu)
{
    const size_t bytes = 3 * (size_t)w * (size_t)h, floats = dpl_ops_scratch(ops, w);
    uint8_t *spare = test_canary(bytes);
    float *scratch = floats ? test_canary(floats * sizeof *scratch) : NULL;
    dpl_kernels k;
    int moves = 0;

    dpl_kernels_select(&k, cpu);
    dpl_ops_apply(ops, px, spare, w, h, style, &k, scratch);
    assert_true(test_canary_ok(spare, bytes));
    if (scratch) assert_true(test_canary_ok(scratch, floats * sizeof *scratch));
    for (int i = 0; i < ops->n; i++) moves += dpl_op_moves(&ops->op[i]);
    return moves % 2 ? spare : px;
}

/* dim 1: value -> 100 + value / 4, 2: all 77. */
static uint8_t *picture(int w, int h, int seed, int dim)
{
    const size_t bytes = 3 * (size_t)w * (size_t)h;
    uint8_t *px = test_guarded_bytes(bytes, 0);

    test_formula_picture(px, w, h, seed);
    for (size_t i = 0; dim && i < bytes; i++) px[i] = (uint8_t)(dim == 1 ? 100 + px[i] / 4 : 77);
    return px;
}

static void check(const dpl_ops *ops, int w, int h, int seed, int dim, const dpl_op_style *style,
                  unsigned crc, const char *line)
{
    const size_t bytes = 3 * (size_t)w * (size_t)h;

    for (int level = 0; level < 2; level++) {
        const uint8_t *out =
            apply(ops, picture(w, h, seed, dim), w, h, style, level ? test_cpu() : DPL_CPU_C);
        if (test_crc(out, bytes) != crc) fail_msg("level %d differs: %s", level, line);
    }
    test_free_all();
}

static void colour_operations_match_pillow(void **state)
{
    static const dpl_op_style style;
    FILE *f = test_data_open("tests/data/ops_color.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, dim, kind;
        double value;
        unsigned crc;
        dpl_ops ops = { 0 };
        assert_int_equal(
            sscanf(line, "%d %d %d %d %d %lf %x", &w, &h, &seed, &dim, &kind, &value, &crc), 7);
        dpl_ops_add(&ops, (dpl_op_kind)kind, value);
        check(&ops, w, h, seed, dim, &style, crc, line);
    }
    fclose(f);
    assert_int_equal(cases, 440);
}

static void jitter_chains_match_torchvision(void **state)
{
    static const dpl_op_style style;
    static const dpl_op_kind kinds[] = { DPL_OP_BRIGHTNESS, DPL_OP_CONTRAST, DPL_OP_SATURATION,
                                         DPL_OP_HUE };
    FILE *f = test_data_open("tests/data/ops_jitter.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, o[4];
        double v[4];
        unsigned crc;
        dpl_ops ops = { 0 };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %lf %lf %lf %lf %x", &w, &h, &seed,
                                &o[0], &o[1], &o[2], &o[3], &v[0], &v[1], &v[2], &v[3], &crc),
                         12);
        for (int i = 0; i < 4; i++) dpl_ops_add(&ops, kinds[o[i]], v[o[i]]);
        check(&ops, w, h, seed, 0, &style, crc, line);
    }
    fclose(f);
    assert_int_equal(cases, 60);
}

static void affine_maps_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_affine.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, corner, fill[3];
        unsigned crc;
        dpl_affine_params p;
        dpl_op_style style;
        dpl_ops ops = { 0 };
        assert_int_equal(sscanf(line, "%d %d %d %lf %lf %lf %lf %lf %lf %d %d %d %d %d %x", &w, &h,
                                &seed, &p.angle, &p.tx, &p.ty, &p.scale, &p.shear_x, &p.shear_y,
                                &corner, &style.bilinear, &fill[0], &fill[1], &fill[2], &crc),
                         15);
        p.cx = corner ? 0 : w * 0.5;
        p.cy = corner ? 0 : h * 0.5;
        for (int c = 0; c < 3; c++) style.fill[c] = (uint8_t)fill[c];
        dpl_ops_add(&ops, DPL_OP_AFFINE, 0)->map = dpl_affine_inverse(&p);
        check(&ops, w, h, seed, 0, &style, crc, line);
    }
    fclose(f);
    assert_int_equal(cases, 240);
}

/* Every operation of RandAugment, TrivialAugmentWide and AutoAugment. */
static void policy_operations_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_policy.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int policy, name, bin, negative, w, h, seed;
        unsigned crc;
        dpl_op_style style = { 0 };
        dpl_ops ops = { 0 };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %d %x", &policy, &name, &bin, &negative,
                                &w, &h, &seed, &style.bilinear, &crc),
                         9);
        dpl_policy_add(&ops, (dpl_policy)policy, (dpl_policy_name)name, bin, negative, w, h);
        check(&ops, w, h, seed, 0, &style, crc, line);
    }
    fclose(f);
    assert_true(cases > 700);
}

/* RandomCrop of a padded picture, and both flips, all in the one resampling step. */
static void padded_crops_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_crop.txt");
    dpl_apply_scratch scratch = { 0 };
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, pad, fill[3], left, top;
        unsigned crc;
        dpl_plan p = { 0 };
        dpl_recipe_spec s = { .train = 1, .crop = DPL_CROPS_RANDOM };
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d %d %d %d %d %d %d %d %x", &w, &h, &seed,
                                &pad, &fill[0], &fill[1], &fill[2], &left, &top, &s.width,
                                &s.height, &p.flip, &p.vflip, &crc),
                         14);
        for (int c = 0; c < 3; c++) s.fill[c] = (uint8_t)fill[c];
        p.w = p.resized_w = w;
        p.h = p.resized_h = h;
        p.win_x = left - pad;
        p.win_y = top - pad;
        const size_t bytes = 3 * (size_t)s.width * (size_t)s.height;
        const dpl_pixels src = { picture(w, h, seed, 0), 3 * (size_t)w, 0, 0, w, h, 1 };
        for (int level = 0; level < 2; level++) {
            uint8_t *out = test_canary(bytes);
            dpl_kernels k;
            dpl_kernels_select(&k, level ? test_cpu() : DPL_CPU_C);
            assert_int_equal(dpl_plan_apply(out, &p, &s, &src, &k, &scratch), 0);
            assert_true(test_canary_ok(out, bytes));
            if (test_crc(out, bytes) != crc) fail_msg("level %d differs: %s", level, line);
        }
        test_free_all();
    }
    fclose(f);
    dpl_apply_scratch_free(&scratch);
    assert_int_equal(cases, 80);
}

/* Rounding of values near a half may differ: by 1, and rarely. */
static void blur_is_within_one_level_of_torchvision(void **state)
{
    static const dpl_op_style style;
    FILE *f = test_data_open("tests/data/ops_blur.txt");
    char *line = NULL;
    size_t room = 0, bytes = 0, others = 0;
    int cases = 0;

    (void)state;
    for (; getline(&line, &room, f) > 0;) {
        int w, h, seed, kernel, at;
        double sigma;
        dpl_ops ops = { 0 };
        if (*line == '#') continue;
        assert_int_equal(sscanf(line, "%d %d %d %d %lf %n", &w, &h, &seed, &kernel, &sigma, &at),
                         5);
        dpl_ops_add(&ops, DPL_OP_BLUR, sigma)->radius = kernel / 2;
        const size_t n = 3 * (size_t)w * (size_t)h;
        uint8_t *c = apply(&ops, picture(w, h, seed, 0), w, h, &style, DPL_CPU_C);
        uint8_t *fast = apply(&ops, picture(w, h, seed, 0), w, h, &style, test_cpu());
        assert_memory_equal(c, fast, n);
        for (size_t i = 0; i < n; i++) {
            int want;
            assert_int_equal(sscanf(line + at + 2 * i, "%2x", (unsigned *)&want), 1);
            if (abs(want - c[i]) > 1) fail_msg("byte %zu is %d: %.60s", i, c[i], line);
            others += want != c[i];
        }
        bytes += n;
        cases++;
        test_free_all();
    }
    free(line);
    fclose(f);
    assert_int_equal(cases, 40);
    assert_true(others <= bytes / 1000);
}

/* A flat picture stays; a wide blur of a picture of a few pixels stays inside them. */
static void blur_of_small_pictures(void **state)
{
    static const dpl_op_style style;

    (void)state;
    for (int w = 1; w < 5; w++)
        for (int h = 1; h < 5; h++) {
            const size_t n = 3 * (size_t)w * (size_t)h;
            dpl_ops ops = { 0 };
            dpl_ops_add(&ops, DPL_OP_BLUR, 9)->radius = DPL_BLUR_RADIUS_MAX;
            uint8_t *px = apply(&ops, picture(w, h, 0, 2), w, h, &style, test_cpu());
            for (size_t i = 0; i < n; i++) assert_int_equal(px[i], 77);
            px = apply(&ops, picture(w, h, 0, 1), w, h, &style, test_cpu());
            for (size_t i = 0; i < n; i++) assert_in_range(px[i], 100, 163);
            test_free_all();
        }
}

/* Variants that claim equal bytes have them on every size around a vector. */
static void variants_match_c(void **state)
{
    dpl_kernels c, fast;

    (void)state;
    dpl_kernels_select(&c, DPL_CPU_C);
    dpl_kernels_select(&fast, test_cpu());
    for (int w = 1; w < 70; w += w < 40 ? 1 : 7) {
        const int h = 1 + w % 7;
        const size_t n = (size_t)w * (size_t)h;
        for (int i = 0; i < 4; i++) {
            static const double factors[] = { 0, 0.3, 1, 2.7 };
            uint8_t *a = picture(w, h, w, 0), *b = picture(w, h, w, 0);
            uint8_t *sharp_a = test_canary(3 * n), *sharp_b = test_canary(3 * n);
            c.sharpen(sharp_a, a, w, h, factors[i]);
            fast.sharpen(sharp_b, a, w, h, factors[i]);
            assert_memory_equal(sharp_a, sharp_b, 3 * n);
            assert_true(test_canary_ok(sharp_b, 3 * n));
            c.saturate(a, n, factors[i]);
            fast.saturate(b, n, factors[i]);
            assert_memory_equal(a, b, 3 * n);
            c.hue(a, n, 0.2 * i - 0.3);
            fast.hue(b, n, 0.2 * i - 0.3);
            assert_memory_equal(a, b, 3 * n);
            test_free_all();
        }
    }
}

static dpl_op random_op(dpl_rng *rng, int w, int h)
{
    dpl_op op = { .kind = (dpl_op_kind)dpl_rng_below(rng, DPL_OP_AFFINE + 1) };
    op.value = dpl_rng_uniform(rng, 0, 2);
    op.radius = (int)dpl_rng_below(rng, DPL_BLUR_RADIUS_MAX + 1);
    if (op.kind == DPL_OP_HUE) op.value = op.value / 2 - 0.5;
    if (op.kind == DPL_OP_POSTERIZE) op.value = dpl_rng_below(rng, 9);
    if (op.kind == DPL_OP_SOLARIZE) op.value *= 128;
    if (op.kind == DPL_OP_BLUR) op.value += 0.01;
    if (op.kind == DPL_OP_ROTATE) op.value = 180 * (op.value - 1);
    if (op.kind == DPL_OP_AFFINE)
        op.map =
            dpl_affine_inverse(&(dpl_affine_params){ .angle = dpl_rng_uniform(rng, -180, 180),
                                                     .tx = dpl_rng_uniform(rng, -w, w),
                                                     .ty = dpl_rng_uniform(rng, -h, h),
                                                     .scale = dpl_rng_uniform(rng, 1e-5, 4),
                                                     .shear_x = dpl_rng_uniform(rng, -89.9, 89.9),
                                                     .shear_y = dpl_rng_uniform(rng, -89.9, 89.9),
                                                     .cx = w * 0.5,
                                                     .cy = h * 0.5 });
    return op;
}

/* Long lists on thin, tiny and ordinary pictures: the same at both levels, and nothing out of
 * bounds (which the guards and the sanitizers tell). */
static void random_lists_on_odd_sizes(void **state)
{
    static const int sides[] = { 1, 2, 3, 5, 17, 64 };
    dpl_rng rng;

    (void)state;
    dpl_rng_init(&rng, 5, 0, 0, DPL_RNG_AUGMENT);
    for (int i = 0; i < 400; i++) {
        const int w = sides[dpl_rng_below(&rng, 6)], h = sides[dpl_rng_below(&rng, 6)];
        const dpl_op_style style = { .bilinear = i % 2, .fill = { 1, 2, 3 } };
        dpl_ops ops = { .n = (int)dpl_rng_below(&rng, DPL_OPS_MAX + 1) };
        for (int k = 0; k < ops.n; k++) ops.op[k] = random_op(&rng, w, h);
        const uint8_t *a = apply(&ops, picture(w, h, i, 0), w, h, &style, DPL_CPU_C);
        const uint8_t *b = apply(&ops, picture(w, h, i, 0), w, h, &style, test_cpu());
        assert_memory_equal(a, b, 3 * (size_t)w * (size_t)h);
        test_free_all();
    }
}

/* The erased part, and nothing else, has the value, in all three layouts. */
static void erasing_sets_the_box_alone(void **state)
{
    enum { W = 7, H = 5 };
    static const uint8_t byte[3] = { 9, 8, 7 };
    static const float value[3] = { 9, 8, 7 };
    const dpl_rect r = { 2, 1, 4, 3 }, none = { 3, 3, 0, 0 };
    uint8_t px[H][W][3];
    float nhwc[H][W][3], nchw[3][H][W];

    (void)state;
    memset(px, 0, sizeof px);
    memset(nhwc, 0, sizeof nhwc);
    memset(nchw, 0, sizeof nchw);
    dpl_erase_u8(px[0][0], W, &none, byte);
    dpl_erase_u8(px[0][0], W, &r, byte);
    dpl_erase_nhwc(nhwc[0][0], W, &r, value);
    dpl_erase_nchw(nchw[0][0], W, H, &r, value);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 3; c++) {
                const int inside = x >= 2 && x < 6 && y >= 1 && y < 4;
                const int want = inside ? byte[c] : 0;
                assert_int_equal(px[y][x][c], want);
                assert_true(nhwc[y][x][c] == (float)want);
                assert_true(nchw[c][y][x] == (float)want);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_operations_match_pillow),
        cmocka_unit_test(jitter_chains_match_torchvision),
        cmocka_unit_test(affine_maps_match_torchvision),
        cmocka_unit_test(policy_operations_match_torchvision),
        cmocka_unit_test(padded_crops_match_torchvision),
        cmocka_unit_test(blur_is_within_one_level_of_torchvision),
        cmocka_unit_test(blur_of_small_pictures),
        cmocka_unit_test(variants_match_c),
        cmocka_unit_test(random_lists_on_odd_sizes),
        cmocka_unit_test(erasing_sets_the_box_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
