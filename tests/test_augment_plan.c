/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing plans: rounding, fallback and evaluation geometry against closed forms, the distribution
 * of the random boxes against integrals, and that a sample's plan depends on its key alone. */
#include "augment/augment.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dpl_recipe_spec train_spec(void)
{
    return (dpl_recipe_spec){ .train = 1,
                              .width = 224,
                              .height = 224,
                              .scale_min = 0.08,
                              .scale_max = 1,
                              .ratio_min = 3 / 4.0,
                              .ratio_max = 4 / 3.0,
                              .hflip = 0.5 };
}

static dpl_plan draw(const dpl_recipe_spec *s, uint64_t sample, int w, int h)
{
    dpl_rng rng;
    dpl_plan p;

    dpl_rng_init(&rng, 42, 3, sample, DPL_RNG_AUGMENT);
    dpl_plan_draw(&p, s, &rng, w, h);
    return p;
}

static int same_plan(const dpl_plan *a, const dpl_plan *b)
{
    return a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h && a->flip == b->flip &&
           a->resized_w == b->resized_w && a->resized_h == b->resized_h && a->win_x == b->win_x &&
           a->win_y == b->win_y && a->angle == b->angle;
}

static void plans_depend_on_the_key_alone(void **state)
{
    enum { N = 500 };
    dpl_recipe_spec s = train_spec();
    dpl_plan first[N];
    int others = 0;

    (void)state;
    s.rotate = 10;
    for (int i = 0; i < N; i++) first[i] = draw(&s, (uint64_t)i, 500, 375);
    for (int i = N - 1; i >= 0; i--) {
        const dpl_plan again = draw(&s, (uint64_t)i, 500, 375);
        assert_true(same_plan(&again, &first[i]));
        others += i && !same_plan(&first[i], &first[i - 1]);
    }
    assert_int_equal(others, N - 1);
}

/* Other purposes of one option must not move what the others draw. */
static void rotation_does_not_move_the_box(void **state)
{
    dpl_recipe_spec s = train_spec();

    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        dpl_plan turned, plain = draw(&s, i, 640, 480);
        s.rotate = 30;
        turned = draw(&s, i, 640, 480);
        assert_true(fabs(turned.angle) <= 30 && turned.angle != 0);
        turned.angle = 0;
        assert_true(same_plan(&turned, &plain));
        s.rotate = 0;
    }
}

static void boxes_stay_in_the_picture(void **state)
{
    static const int sides[][2] = { { 1, 1 },     { 1, 4000 }, { 4000, 1 },  { 2, 3 },
                                    { 500, 375 }, { 33, 500 }, { 65500, 2 }, { 13000, 13700 } };
    dpl_recipe_spec s = train_spec();

    (void)state;
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        for (uint64_t i = 0; i < 2000; i++) {
            const int w = sides[k][0], h = sides[k][1];
            const dpl_plan p = draw(&s, i, w, h);
            assert_true(p.w >= 1 && p.h >= 1 && p.x >= 0 && p.y >= 0);
            assert_true(p.x + p.w <= w && p.y + p.h <= h);
            assert_int_equal(p.resized_w, 224);
            assert_int_equal(p.resized_h, 224);
            assert_true(p.win_x == 0 && p.win_y == 0 && p.angle == 0);
        }
}

/* With one scale and one ratio the box has one size; sides that end in one half round to even. */
static void sides_round_half_to_even(void **state)
{
    static const struct {
        int side, want;
    } cases[] = { { 5, 2 }, { 7, 4 }, { 9, 4 }, { 11, 6 }, { 10, 5 }, { 13, 6 }, { 15, 8 } };
    dpl_recipe_spec s = train_spec();

    (void)state;
    s.scale_min = s.scale_max = 0.25;
    s.ratio_min = s.ratio_max = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dpl_plan p = draw(&s, i, cases[i].side, cases[i].side);
        assert_int_equal(p.w, cases[i].want);
        assert_int_equal(p.h, cases[i].want);
    }
}

/* 2000 x 100: no box of an allowed area and ratio fits, so the central one is taken. */
static void fallback_is_central(void **state)
{
    const dpl_recipe_spec s = train_spec();

    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        const dpl_plan wide = draw(&s, i, 2000, 100), high = draw(&s, i, 100, 2000);
        assert_int_equal(wide.w, 133); /* 100 * 4/3 */
        assert_int_equal(wide.h, 100);
        assert_int_equal(wide.x, 933); /* (2000 - 133) / 2, floor */
        assert_int_equal(wide.y, 0);
        assert_int_equal(high.w, 100);
        assert_int_equal(high.h, 133); /* 100 / (3/4) */
        assert_int_equal(high.x, 0);
        assert_int_equal(high.y, 933);
    }
}

/* Accepted (share s, u = log ratio) are uniform over s_min <= s <= exp(-|u|), |u| <= L. */
static void box_areas_follow_the_integrals(void **state)
{
    enum { N = 200000, SIDE = 4000 };
    const dpl_recipe_spec s = train_spec();
    const double lo = 0.08, l = log(4 / 3.0);
    const double mass = (1 - exp(-l)) - lo * l;
    const double mean = ((1 - exp(-2 * l)) / 4 - lo * lo * l / 2) / mass;
    const double square = ((1 - exp(-3 * l)) / 9 - lo * lo * lo * l / 3) / mass;
    double sum_s = 0, sum_s2 = 0, sum_u = 0, sum_x = 0, sum_y = 0;
    int flips = 0, below = 0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i, SIDE, SIDE);
        const double share = (double)p.w * p.h / SIDE / SIDE;
        assert_true(share > 0.0799 && share <= 1 && p.w < 1.335 * p.h && p.h < 1.335 * p.w);
        sum_s += share;
        sum_s2 += share * share;
        sum_u += log((double)p.w / p.h);
        sum_x += (p.x + 0.5) / (SIDE - p.w + 1);
        sum_y += (p.y + 0.5) / (SIDE - p.h + 1);
        flips += p.flip;
        below += share < 0.3;
    }
    /* five standard errors: deviations are below 0.29, those of u below 0.17 */
    const double error = 5 * 0.29 / sqrt(N);
    assert_true(fabs(sum_s / N - mean) < error);
    assert_true(fabs(sum_s2 / N - square) < error);
    assert_true(fabs(sum_u / N) < error);
    assert_true(fabs(sum_x / N - 0.5) < error);
    assert_true(fabs(sum_y / N - 0.5) < error);
    assert_true(fabs((double)flips / N - 0.5) < 5 * 0.5 / sqrt(N));
    assert_true(fabs((double)below / N - (0.3 - lo) * l / mass) < 5 * 0.5 / sqrt(N));
}

/* Corners are reached: with 2 free places each way all 9 boxes come up about equally often. */
static void every_place_is_drawn(void **state)
{
    enum { N = 9000 };
    dpl_recipe_spec s = train_spec();
    int seen[3][3] = { { 0 } };

    (void)state;
    s.scale_min = s.scale_max = 64 / 100.0;
    s.ratio_min = s.ratio_max = 1;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i, 10, 10);
        assert_int_equal(p.w, 8);
        assert_int_equal(p.h, 8);
        seen[p.y][p.x]++;
    }
    for (int i = 0; i < 9; i++) assert_true(abs(seen[i / 3][i % 3] - N / 9) < 5 * 30);
}

static void flip_and_angle_follow_their_options(void **state)
{
    enum { N = 50000 };
    dpl_recipe_spec s = train_spec();
    double sum = 0, sum2 = 0;
    int flips = 0;

    (void)state;
    s.hflip = 0.2;
    s.rotate = 30;
    for (uint64_t i = 0; i < N; i++) {
        const dpl_plan p = draw(&s, i, 300, 200);
        flips += p.flip;
        sum += p.angle;
        sum2 += p.angle * p.angle;
    }
    assert_true(fabs((double)flips / N - 0.2) < 5 * 0.4 / sqrt(N));
    assert_true(fabs(sum / N) < 5 * 17.4 / sqrt(N));
    assert_true(fabs(sum2 / N - 300) < 5 * 269 / sqrt(N)); /* 30^2 / 3 */
    for (uint64_t i = 0; i < 100; i++) {
        s.hflip = 0;
        assert_int_equal(draw(&s, i, 300, 200).flip, 0);
        s.hflip = 1;
        assert_int_equal(draw(&s, i, 300, 200).flip, 1);
    }
}

static void evaluation_geometry(void **state)
{
    /* picture, resize, crop; resized, window: worked out by hand from torchvision's rules */
    static const struct {
        int w, h, resize, cw, ch, rw, rh, x, y;
    } cases[] = {
        { 500, 375, 256, 224, 224, 341, 256, 58, 16 }, /* 58.5 rounds to even */
        { 375, 500, 256, 224, 224, 256, 341, 16, 58 },
        { 500, 333, 256, 224, 224, 384, 256, 80, 16 },
        { 1, 4000, 256, 224, 224, 256, 1024000, 16, 511888 },
        { 100, 100, 100, 224, 224, 100, 100, -62, -62 },
        { 101, 100, 100, 224, 32, 101, 100, -61, 34 }, /* 61 left, 62 right */
        { 3, 2, 1, 1, 1, 1, 1, 0, 0 },
        { 257, 256, 256, 254, 254, 257, 256, 2, 1 },                  /* 1.5 rounds to even */
        { 255, 254, 254, 254, 254, 255, 254, 0, 0 },                  /* 0.5 rounds to even */
        { 178956970, 1, 256, 224, 224, 1 << 30, 256, 536870800, 16 }, /* bounded */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dpl_recipe_spec s = { .resize = cases[i].resize,
                                    .width = cases[i].cw,
                                    .height = cases[i].ch };
        const dpl_plan p = draw(&s, 0, cases[i].w, cases[i].h);
        assert_true(p.x == 0 && p.y == 0 && p.w == cases[i].w && p.h == cases[i].h);
        assert_int_equal(p.resized_w, cases[i].rw);
        assert_int_equal(p.resized_h, cases[i].rh);
        assert_int_equal(p.win_x, cases[i].x);
        assert_int_equal(p.win_y, cases[i].y);
        assert_true(!p.flip && p.angle == 0);
    }
}

static void denominator_keeps_the_box_large_enough(void **state)
{
    static const struct {
        int w, h, want;
    } cases[] = { { 224, 224, 1 },   { 447, 448, 1 }, { 448, 448, 2 },   { 5000, 447, 1 },
                  { 895, 900, 2 },   { 896, 896, 4 }, { 1792, 1792, 8 }, { 1791, 1792, 4 },
                  { 9000, 9000, 8 }, { 100, 100, 1 } };
    dpl_recipe_spec s = train_spec();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dpl_plan p = { .w = cases[i].w, .h = cases[i].h, .resized_w = 224, .resized_h = 224 };
        s.fast = 1;
        assert_int_equal(dpl_plan_denominator(&p, &s), cases[i].want);
        s.fast = 0;
        assert_int_equal(dpl_plan_denominator(&p, &s), 1);
    }
}

/* The region lies in the box, and grows no further than the filter reaches. */
static void evaluation_region_is_the_window(void **state)
{
    dpl_recipe_spec s = { .resize = 256, .width = 224, .height = 224 };
    int x, y, w, h;

    (void)state;
    for (s.filter = 0; s.filter < 2; s.filter++) {
        const dpl_plan p = draw(&s, 0, 1024, 512);
        const double reach = (s.filter ? 2 : 1) * 2; /* the picture is halved */
        dpl_plan_region(&p, &s, &x, &y, &w, &h);
        assert_true(fabs(x - (2 * 144 + 1 - reach)) <= 1 && fabs(y - (2 * 16 + 1 - reach)) <= 1);
        assert_true(fabs(x + w - (2 * 368 - 1 + reach)) <= 1);
        assert_true(fabs(y + h - (2 * 240 - 1 + reach)) <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_depend_on_the_key_alone),
        cmocka_unit_test(rotation_does_not_move_the_box),
        cmocka_unit_test(boxes_stay_in_the_picture),
        cmocka_unit_test(sides_round_half_to_even),
        cmocka_unit_test(fallback_is_central),
        cmocka_unit_test(box_areas_follow_the_integrals),
        cmocka_unit_test(every_place_is_drawn),
        cmocka_unit_test(flip_and_angle_follow_their_options),
        cmocka_unit_test(evaluation_geometry),
        cmocka_unit_test(denominator_keeps_the_box_large_enough),
        cmocka_unit_test(evaluation_region_is_the_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
