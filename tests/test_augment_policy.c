/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn: magnitudes and pairs against torchvision's tables, frequencies, the order of the
 * transforms, and that a transform that is off moves nothing. */
#include "augment/augment.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ulps_apart(float a, float b)
{
    int32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return abs(x - y);
}

static void magnitudes_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_magnitude.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int policy, name, bin, w, h;
        double want;
        assert_int_equal(sscanf(line, "%d %d %d %d %d %la", &policy, &name, &bin, &w, &h, &want),
                         6);
        const float got =
            dpl_policy_magnitude((dpl_policy)policy, (dpl_policy_name)name, bin, w, h);
        const int moves = name == DPL_AUTO_TRANSLATE_X || name == DPL_AUTO_TRANSLATE_Y;
        if (ulps_apart(got, (float)want) > moves) fail_msg("%a: %s", (double)got, line);
    }
    fclose(f);
    assert_true(cases > 700);
}

static void translations_are_the_same_whole_pixels(void **state)
{
    FILE *f = test_data_open("tests/data/ops_translate.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        char *at = line;
        const int width = (int)strtol(at, &at, 10);
        for (int bin = 0; bin < DPL_POLICY_BINS; bin++) {
            const long want = strtol(at, &at, 10);
            const float m =
                dpl_policy_magnitude(DPL_POLICY_RAND, DPL_AUTO_TRANSLATE_X, bin, width, 1);
            if ((long)m != want) fail_msg("width %d bin %d: %ld", width, bin, (long)m);
        }
    }
    fclose(f);
    assert_int_equal(cases, 88);
}

static void imagenet_pairs_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_imagenet.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int pair, name[2], bin[2];
        double p[2];
        assert_int_equal(sscanf(line, "%d %d %lf %d %d %lf %d", &pair, &name[0], &p[0], &bin[0],
                                &name[1], &p[1], &bin[1]),
                         7);
        const dpl_policy_half *half = dpl_policy_imagenet(pair);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(half[i].name, name[i]);
            assert_int_equal(half[i].bin, bin[i]);
            assert_true(half[i].p == p[i]);
        }
    }
    fclose(f);
    assert_int_equal(cases, DPL_IMAGENET_PAIRS);
}

/* --- drawing --- */

static dpl_recipe_spec plain_spec(void)
{
    return (dpl_recipe_spec){ .train = 1,
                              .width = 64,
                              .height = 48,
                              .scale_min = 0.08,
                              .scale_max = 1,
                              .ratio_min = 0.75,
                              .ratio_max = 4.0 / 3,
                              .hflip = 0.5,
                              .rotate = 10,
                              .ra_ops = 2,
                              .ra_magnitude = 9,
                              .affine = { .scale_min = 1, .scale_max = 1 },
                              .erase_scale_min = 0.02,
                              .erase_scale_max = 0.33,
                              .erase_ratio_min = 0.3,
                              .erase_ratio_max = 3.3 };
}

static dpl_plan draw(const dpl_recipe_spec *s, uint64_t sample)
{
    dpl_plan p;
    dpl_rng rng;
    dpl_rng_init(&rng, 7, 1, sample, DPL_RNG_AUGMENT);
    dpl_plan_draw(&p, s, &rng, 500, 375);
    return p;
}

static int near(double share, double p, int n)
{
    return fabs(share - p) < 5 * sqrt(p * (1 - p) / n);
}

static void policies_draw_evenly(void **state)
{
    enum { N = 20000 };
    int kinds[DPL_OP_AFFINE + 1] = { 0 }, left = 0, down = 0, ops = 0, exact = 0;
    dpl_recipe_spec s = plain_spec();

    (void)state;
    s.policy = DPL_POLICY_RAND;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i);
        assert_in_range(p.ops.n, 0, 2);
        ops += p.ops.n;
        for (int k = 0; k < p.ops.n; k++) {
            kinds[p.ops.op[k].kind]++;
            if (p.ops.op[k].kind != DPL_OP_BRIGHTNESS) continue;
            down += p.ops.op[k].value < 1;
            exact += fabs(fabs(p.ops.op[k].value - 1) - 0.27) < 1e-6;
        }
    }
    assert_true(near(ops / (2.0 * N), 13.0 / 14, 2 * N)); /* one of 14 is the identity */
    for (int k = 0; k <= DPL_OP_AFFINE; k++) {
        const int none =
            k == DPL_OP_HUE || k == DPL_OP_GRAYSCALE || k == DPL_OP_INVERT || k == DPL_OP_BLUR;
        const double p = none ? 0 : k == DPL_OP_AFFINE ? 4.0 / 14 : 1.0 / 14;
        if (none) assert_int_equal(kinds[k], 0);
        if (!none) assert_true(near(kinds[k] / (2.0 * N), p, 2 * N));
    }
    assert_int_equal(exact, kinds[DPL_OP_BRIGHTNESS]); /* magnitude 9 of 0..30 up to 0.9 */
    assert_true(near((double)down / exact, 0.5, exact));
    s.policy = DPL_POLICY_TRIVIAL;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i);
        assert_in_range(p.ops.n, 0, 1);
        if (p.ops.n && p.ops.op[0].kind == DPL_OP_ROTATE) left += p.ops.op[0].value > 67.4;
    }
    /* one of 14, the upper half of the bins, and one sign */
    assert_true(near((double)left / N, 16.0 / 31 / 14 / 2, N));
}

static void imagenet_applies_halves_by_their_chance(void **state)
{
    enum { N = 20000 };
    double want = 0;
    int ops = 0, turned = 0, right = 0;
    dpl_recipe_spec s = plain_spec();

    (void)state;
    s.policy = DPL_POLICY_IMAGENET;
    for (int i = 0; i < DPL_IMAGENET_PAIRS; i++)
        want += dpl_policy_imagenet(i)[0].p + dpl_policy_imagenet(i)[1].p;
    want /= 2 * DPL_IMAGENET_PAIRS;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i);
        ops += p.ops.n;
        for (int k = 0; k < p.ops.n; k++) {
            turned += p.ops.op[k].kind == DPL_OP_ROTATE;
            right += p.ops.op[k].kind == DPL_OP_ROTATE && p.ops.op[k].value < 0;
        }
    }
    assert_true(near((double)right / turned, 0.5, turned));
    assert_true(near(ops / (2.0 * N), want, 2 * N));
}

/* 24 orders, evenly; factors inside their ranges and evenly spread. */
static void jitter_draws_every_order(void **state)
{
    enum { N = 24000 };
    static const dpl_op_kind kinds[] = { DPL_OP_BRIGHTNESS, DPL_OP_CONTRAST, DPL_OP_SATURATION,
                                         DPL_OP_HUE };
    int seen[256] = { 0 }, orders = 0, dark = 0;
    dpl_recipe_spec s = plain_spec();

    (void)state;
    memcpy(s.color_jitter, (double[4]){ 0.4, 1.5, 0.2, 0.1 }, sizeof s.color_jitter);
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i);
        int code = 0;
        assert_int_equal(p.ops.n, 4);
        for (int k = 0; k < 4; k++) {
            const dpl_op *op = &p.ops.op[k];
            int c = 0;
            while (kinds[c] != op->kind) c++;
            code = code * 4 + c;
            if (c == 0) assert_true(op->value >= 0.6 && op->value < 1.4);
            if (c == 0) dark += op->value < 0.8;
            if (c == 1) assert_true(op->value >= 0 && op->value < 2.5);
            if (c == 2) assert_true(op->value >= 0.8 && op->value < 1.2);
            if (c == 3) assert_true(fabs(op->value) <= 0.1);
        }
        seen[code]++;
    }
    for (int c = 0; c < 256; c++) {
        orders += seen[c] > 0;
        if (seen[c]) assert_true(near((double)seen[c] / N, 1.0 / 24, N));
    }
    assert_int_equal(orders, 24);
    assert_true(near((double)dark / N, 0.25, N));
    s.color_jitter[1] = s.color_jitter[3] = 0; /* off: left out, and no factor drawn */
    assert_int_equal(draw(&s, 3).ops.n, 2);
}

static void erased_boxes_match_torchvision(void **state)
{
    FILE *f = test_data_open("tests/data/ops_erase.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        dpl_recipe_spec s = plain_spec();
        int w, h;
        double area, ratio;
        assert_int_equal(
            sscanf(line, "%d %d %lf %lf %d %d", &s.width, &s.height, &area, &ratio, &w, &h), 6);
        s.erase = 1;
        s.erase_scale_min = s.erase_scale_max = area;
        s.erase_ratio_min = s.erase_ratio_max = ratio;
        const dpl_rect r = draw(&s, (uint64_t)cases).erase;
        if (r.w != w || r.h != h) fail_msg("%d x %d: %s", r.w, r.h, line);
    }
    fclose(f);
    assert_int_equal(cases, 200);
}

/* Boxes of torchvision's RandomErasing: inside, of the area and shape asked for. */
static void erased_boxes_have_the_area_asked_for(void **state)
{
    enum { N = 4000 };
    int boxes = 0;
    dpl_recipe_spec s = plain_spec();

    (void)state;
    s.erase = 0.25;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_rect r = draw(&s, i).erase;
        if (!r.w) continue;
        boxes++;
        assert_true(r.x >= 0 && r.y >= 0 && r.x + r.w <= s.width && r.y + r.h <= s.height);
        assert_true(r.w < s.width && r.h < s.height);
        const double area = (double)r.w * r.h, half = (r.w + r.h + 1) / 2.0; /* of rounding */
        assert_true(area >= 0.02 * 64 * 48 - half && area <= 0.33 * 64 * 48 + half);
        assert_true((r.h - 0.5) / (r.w + 0.5) <= 3.3 && (r.h + 0.5) / (r.w - 0.5) >= 0.3);
    }
    assert_true(near((double)boxes / N, 0.25, N)); /* ten tries fail next to never */
    s.erase = 1;
    s.erase_scale_min = s.erase_scale_max = 1; /* never smaller than the picture */
    s.erase_ratio_min = s.erase_ratio_max = 1;
    assert_int_equal(draw(&s, 0).erase.w, 0);
}

static void padded_crops_reach_every_place(void **state)
{
    int seen[9][9] = { { 0 } };
    dpl_recipe_spec s = plain_spec();

    (void)state;
    s.crop = DPL_CROPS_RANDOM;
    s.width = s.height = 32;
    s.crop_padding = 4;
    for (uint64_t i = 0; i < 2000; i++) {
        dpl_plan p;
        dpl_rng rng;
        dpl_rng_init(&rng, 1, 0, i, DPL_RNG_AUGMENT);
        dpl_plan_draw(&p, &s, &rng, 32, 32);
        assert_true(p.resized_w == 32 && p.resized_h == 32 && p.w == 32 && p.h == 32);
        assert_in_range(p.win_x + 4, 0, 8);
        assert_in_range(p.win_y + 4, 0, 8);
        seen[p.win_y + 4][p.win_x + 4]++;
        dpl_plan_draw(&p, &s, &rng, 20, 100); /* 28 wide with padding: 4 more on either side */
        assert_true(p.win_x >= -8 && p.win_x + 32 <= 20 + 8);
        assert_true(p.win_y >= -4 && p.win_y + 32 <= 100 + 4);
    }
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 9; x++) assert_true(seen[y][x] > 0);
    s.crop_resize = 64;
    const dpl_plan p = draw(&s, 0);
    assert_true(p.resized_w == 85 && p.resized_h == 64); /* of 500 x 375 */
}

/* The streams of samples stay as they were: what is added is drawn after box, flip and angle. */
static void later_transforms_do_not_move_earlier_draws(void **state)
{
    const dpl_recipe_spec off = plain_spec();
    dpl_recipe_spec s = off;

    (void)state;
    s.vflip = s.grayscale = s.blur = s.invert = s.posterize = s.solarize = 1;
    s.sharpness = s.autocontrast = s.equalize = s.erase = 1;
    s.policy = DPL_POLICY_RAND;
    s.ra_ops = 16;
    for (int i = 0; i < 4; i++) s.color_jitter[i] = 0.4;
    s.blur_sigma_min = 0.1;
    s.blur_sigma_max = s.sharpness_factor = 2;
    s.blur_kernel = 9;
    s.posterize_bits = 4;
    s.affine = (dpl_affine_spec){ 1, 5, { 0.1, 0.1 }, 0.9, 1.1, { 3, 3 } };
    for (uint64_t i = 0; i < 300; i++) {
        const dpl_plan a = draw(&off, i), b = draw(&s, i);
        assert_true(a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h);
        assert_true(a.flip == b.flip && a.angle == b.angle);
        assert_true(!a.ops.n && !a.vflip && !a.erase.w);
        assert_true(b.ops.n >= 13 && b.vflip == 1);
        assert_int_equal(b.ops.op[b.ops.n - 1].kind, DPL_OP_AFFINE);
        assert_int_equal(b.ops.op[b.ops.n - 2].kind, DPL_OP_EQUALIZE);
        assert_int_equal(b.ops.op[b.ops.n - 8].kind, DPL_OP_BLUR);
        assert_int_equal(b.ops.op[b.ops.n - 9].kind, DPL_OP_GRAYSCALE);
    }
}

/* RandomAffine that only moves: whole pixels, at most the share asked for. */
static void affine_moves_whole_pixels(void **state)
{
    dpl_recipe_spec s = plain_spec();
    int most = 0;

    (void)state;
    s.affine = (dpl_affine_spec){ 1, 0, { 0.25, 0 }, 1, 1, { 0, 0 } };
    for (uint64_t i = 0; i < 500; i++) {
        const dpl_affine m = draw(&s, i).ops.op[0].map;
        assert_true(m.a == 1 && m.e == 1 && m.b == 0 && m.d == 0 && m.f == 0);
        assert_true(m.c == rint(m.c) && fabs(m.c) <= 16);
        if (fabs(m.c) > most) most = (int)fabs(m.c);
    }
    assert_int_equal(most, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magnitudes_match_torchvision),
        cmocka_unit_test(translations_are_the_same_whole_pixels),
        cmocka_unit_test(imagenet_pairs_match_torchvision),
        cmocka_unit_test(policies_draw_evenly),
        cmocka_unit_test(imagenet_applies_halves_by_their_chance),
        cmocka_unit_test(jitter_draws_every_order),
        cmocka_unit_test(erased_boxes_match_torchvision),
        cmocka_unit_test(erased_boxes_have_the_area_asked_for),
        cmocka_unit_test(padded_crops_reach_every_place),
        cmocka_unit_test(later_transforms_do_not_move_earlier_draws),
        cmocka_unit_test(affine_moves_whole_pixels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
