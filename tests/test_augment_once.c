/* SPDX-License-Identifier: Apache-2.0 */
/* Crop, flips, affine map and rotation as one resample, against Pillow's transform of the crop; and that
 * nothing of it shows where it was not asked for. The source is the region a plan asks for, and ends at
 * an unreadable page. */
#include "augment/augment.h"
#include "base/cpu.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

static dpl_apply_scratch scratch;

/* The part (x, y, w, h) of a formula picture. */
static dpl_pixels part_of(int full_w, int full_h, int seed, const dpl_rect *r)
{
    const size_t row = 3 * (size_t)r->w;
    uint8_t *full = test_canary(3 * (size_t)full_w * (size_t)full_h);
    uint8_t *px = test_guarded_bytes(row * (size_t)r->h, 0);

    assert_true(r->x >= 0 && r->y >= 0 && r->x + r->w <= full_w && r->y + r->h <= full_h);
    test_formula_picture(full, full_w, full_h, seed);
    for (int y = 0; y < r->h; y++)
        memcpy(px + (size_t)y * row,
               full + 3 * ((size_t)(r->y + y) * (size_t)full_w + (size_t)r->x), row);
    return (dpl_pixels){ px, row, r->x, r->y, r->w, r->h, 1 };
}

/* Apply at one level: nothing but the result is written. */
static uint8_t *apply(const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                      unsigned cpu)
{
    const size_t bytes = 3 * (size_t)s->width * (size_t)s->height;
    uint8_t *out = test_canary(bytes);
    dpl_kernels k;

    dpl_kernels_select(&k, cpu);
    assert_int_equal(dpl_plan_apply(out, p, s, src, &k, &scratch), 0);
    assert_true(test_canary_ok(out, bytes));
    return out;
}

/* Everything on. */
static dpl_recipe_spec everything(int i)
{
    return (dpl_recipe_spec){ .train = 1,
                              .width = 20 + i % 30,
                              .height = 41 - i % 23,
                              .scale_min = 0.08,
                              .scale_max = 1,
                              .ratio_min = 0.75,
                              .ratio_max = 4.0 / 3,
                              .hflip = 0.5,
                              .rotate = 170,
                              .rotate_bilinear = i % 2,
                              .fast = i / 2 % 2,
                              .crop = i % 5 ? DPL_CROPS_RESIZED : DPL_CROPS_RANDOM,
                              .fill = { 200, 100, 50 },
                              .vflip = 0.5,
                              .policy = (dpl_policy)(i % 4),
                              .ra_ops = 2,
                              .ra_magnitude = 9,
                              .color_jitter = { 0.4, 0.4, 0.4, 0.1 },
                              .grayscale = 0.2,
                              .blur = 0.3,
                              .blur_sigma_min = 0.1,
                              .blur_sigma_max = 2,
                              .blur_kernel = 7,
                              .equalize = 0.2,
                              .affine = { .on = i % 3 == 0,
                                          .degrees = 40,
                                          .translate = { 0.1, 0.2 },
                                          .scale_min = 0.7,
                                          .scale_max = 1.3,
                                          .shear = { 10, 5 } },
                              .erase = 0.5,
                              .erase_scale_min = 0.02,
                              .erase_scale_max = 0.33,
                              .erase_ratio_min = 0.3,
                              .erase_ratio_max = 3.3 };
}

/* A line of expected data from byte `at` on: the box and what is made of it. */
typedef struct expected {
    dpl_plan p;
    dpl_recipe_spec s;
    unsigned crc;
} expected;

static expected read_expected(const char *line, int at)
{
    expected e = { .s = { .train = 1, .rotate_once = 1 }, .p = { .affine = { .a = 1, .e = 1 } } };
    dpl_plan *p = &e.p;
    dpl_recipe_spec *s = &e.s;
    dpl_affine_params a;
    int affine, fill[3];

    assert_int_equal(sscanf(line + at,
                            "%d %d %d %d %d %d %d %d %lf %d %lf %lf %lf %lf %lf %lf %d %d %d %d %x",
                            &p->x, &p->y, &p->w, &p->h, &s->width, &s->height, &p->flip, &p->vflip,
                            &p->angle, &affine, &a.angle, &a.tx, &a.ty, &a.scale, &a.shear_x,
                            &a.shear_y, &s->rotate_bilinear, &fill[0], &fill[1], &fill[2], &e.crc),
                     21);
    for (int c = 0; c < 3; c++) s->fill[c] = (uint8_t)fill[c];
    p->resized_w = s->width;
    p->resized_h = s->height;
    a.cx = s->width * 0.5;
    a.cy = s->height * 0.5;
    if (affine) p->affine = dpl_affine_inverse(&a);
    return e;
}

static void check_levels(const expected *e, const dpl_pixels *src, const char *line)
{
    const size_t bytes = 3 * (size_t)e->s.width * (size_t)e->s.height;

    for (int level = 0; level < 2; level++)
        if (test_crc(apply(&e->p, &e->s, src, level ? test_cpu() : DPL_CPU_C), bytes) != e->crc)
            fail_msg("level %d differs: %s", level, line);
}

/* Boxes of every size, every quarter turn, fills, sources past the range of fixed point. */
static void one_resample_matches_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/once_pictures.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, at;
        dpl_rect r;
        assert_int_equal(sscanf(line, "%d %d %d %n", &w, &h, &seed, &at), 3);
        const expected e = read_expected(line, at);
        dpl_plan_region(&e.p, &e.s, &r.x, &r.y, &r.w, &r.h);
        assert_true(r.x == e.p.x && r.y == e.p.y && r.w == e.p.w && r.h == e.p.h);
        const dpl_pixels src = part_of(w, h, seed, &r);
        check_levels(&e, &src, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 500);
}

/* In a source decoded at 1/d the box begins within a pixel, and ends at whole ones. */
static void scaled_sources_match_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/once_scaled.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, d, at;
        assert_int_equal(sscanf(line, "%d %d %d %d %n", &w, &h, &seed, &d, &at), 4);
        const expected e = read_expected(line, at);
        const int x = e.p.x / d, y = e.p.y / d;
        const dpl_rect r = { x, y, (e.p.x + e.p.w + d - 1) / d - x,
                             (e.p.y + e.p.h + d - 1) / d - y };
        dpl_pixels src = part_of((w + d - 1) / d, (h + d - 1) / d, seed, &r);
        src.denominator = d;
        check_levels(&e, &src, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 150);
}

/* A random crop: the window of the whole picture as resized, which may stick out of it. */
static void windows_match_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/once_window.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, at;
        dpl_rect r;
        assert_int_equal(sscanf(line, "%d %d %d %n", &w, &h, &seed, &at), 3);
        expected e = read_expected(line, at); /* in the places of the box: */
        e.p.resized_w = e.p.x;
        e.p.resized_h = e.p.y;
        e.p.win_x = e.p.w;
        e.p.win_y = e.p.h;
        e.p.x = e.p.y = 0;
        e.p.w = w;
        e.p.h = h;
        dpl_plan_region(&e.p, &e.s, &r.x, &r.y, &r.w, &r.h);
        const dpl_pixels src = part_of(w, h, seed, &r);
        check_levels(&e, &src, line);
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 200);
}

/* A decoder gives more than it is asked for: the box is cut out of it, and what lies around it is fill. */
static void pixels_around_the_box_are_not_looked_at(void **state)
{
    static const dpl_rect all = { 0, 0, 90, 70 };
    const dpl_plan p = { .x = 21,
                         .y = 13,
                         .w = 40,
                         .h = 50,
                         .resized_w = 37,
                         .resized_h = 29,
                         .angle = 33,
                         .affine = { 1, 0, 0, 0, 1, 0 } };
    dpl_recipe_spec s = { .train = 1, .width = 37, .height = 29, .rotate_once = 1, .fill = { 7 } };

    (void)state;
    for (s.rotate_bilinear = 0; s.rotate_bilinear < 2; s.rotate_bilinear++) {
        const dpl_rect r = { p.x, p.y, p.w, p.h };
        const dpl_pixels box = part_of(all.w, all.h, 3, &r), more = part_of(all.w, all.h, 3, &all);
        assert_memory_equal(apply(&p, &s, &box, test_cpu()), apply(&p, &s, &more, test_cpu()),
                            3 * 37 * 29);
        test_free_all();
    }
}

/* Of a box that has the delivered size, the ordinary way moves pixels once, too: it is the same. */
static void without_resizing_it_is_a_rotation_of_the_crop(void **state)
{
    enum { W = 51, H = 37 }; /* quarter turns hit pixels, not the lines between them */
    static const dpl_rect r = { 5, 9, W, H };
    static const double angles[] = { 0, 90, -90, 180, 17.5, -133.25, 359 };

    (void)state;
    for (int i = 0; i < 28; i++) {
        dpl_plan p = { .x = r.x,
                       .y = r.y,
                       .w = W,
                       .h = H,
                       .resized_w = W,
                       .resized_h = H,
                       .angle = angles[i % 7],
                       .affine = { 1, 0, 0, 0, 1, 0 } };
        dpl_recipe_spec s = {
            .train = 1, .width = W, .height = H, .rotate_bilinear = i / 7 % 2, .fill = { 1, 2, 3 }
        };
        const dpl_pixels src = part_of(70, 60, 1, &r);
        p.flip = p.vflip = i >= 14;
        const uint8_t *twice = apply(&p, &s, &src, test_cpu());
        s.rotate_once = 1;
        const uint8_t *once = apply(&p, &s, &src, test_cpu());
        int others = 0;
        for (int k = 0; k < 3 * W * H; k++) others += once[k] != twice[k];
        /* a mirrored map rounds the other way between two pixels */
        if (others > (i < 14 ? 0 : 3 * W * H / 20)) fail_msg("case %d: %d bytes differ", i, others);
        test_free_all();
    }
}

/* The same numbers are drawn; the affine map and the rotation are in the map, not among the operations. */
static void plans_are_the_same_but_for_where_the_map_is(void **state)
{
    (void)state;
    for (int i = 1; i < 100; i++) {
        dpl_recipe_spec s = everything(i);
        dpl_plan a, b;
        dpl_rng rng;

        dpl_rng_init(&rng, 7, 0, (uint64_t)i, DPL_RNG_AUGMENT);
        dpl_plan_draw(&a, &s, &rng, 97, 64);
        s.rotate_once = 1;
        dpl_rng_init(&rng, 7, 0, (uint64_t)i, DPL_RNG_AUGMENT);
        dpl_plan_draw(&b, &s, &rng, 97, 64);
        assert_true(a.x == b.x && a.w == b.w && a.flip == b.flip && a.vflip == b.vflip);
        assert_true(a.angle == b.angle && a.erase.w == b.erase.w && a.erase.x == b.erase.x);
        assert_int_equal(b.ops.n, a.ops.n - s.affine.on);
        assert_memory_equal(b.ops.op, a.ops.op, (size_t)b.ops.n * sizeof *b.ops.op);
        if (s.affine.on)
            assert_memory_equal(&b.affine, &a.ops.op[a.ops.n - 1].map, sizeof b.affine);
        else
            assert_true(b.affine.a == 1 && b.affine.b == 0 && b.affine.c == 0 && b.affine.e == 1);
    }
}

/* Operations work on what the map has made. */
static void operations_come_after_it(void **state)
{
    static const dpl_rect r = { 0, 0, 60, 40 };
    dpl_plan p = { .w = 60,
                   .h = 40,
                   .resized_w = 30,
                   .resized_h = 20,
                   .angle = 45,
                   .affine = { 1, 0, 0, 0, 1, 0 } };
    const dpl_recipe_spec s = {
        .train = 1, .width = 30, .height = 20, .rotate_once = 1, .fill = { 9, 8, 7 }
    };

    (void)state;
    const dpl_pixels src = part_of(60, 40, 3, &r);
    const uint8_t *plain = apply(&p, &s, &src, test_cpu());
    dpl_ops_add(&p.ops, DPL_OP_INVERT, 0);
    const uint8_t *inverted = apply(&p, &s, &src, test_cpu());
    for (int i = 0; i < 3 * 30 * 20; i++) assert_int_equal(inverted[i], 255 - plain[i]);
    assert_int_equal(inverted[0], 255 - 9); /* the fill of a corner, inverted */
    test_free_all();
}

/* The value is from before there was the option. */
static void without_the_option_bytes_are_as_ever(void **state)
{
    enum { W = 97, H = 64, PLANS = 300 };
    uint32_t sums[PLANS];

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        const dpl_recipe_spec s = everything(i);
        const dpl_pixels src = part_of(W, H, i, &(dpl_rect){ 0, 0, W, H });
        dpl_plan p;
        dpl_rng rng;

        dpl_rng_init(&rng, 7, 0, (uint64_t)i, DPL_RNG_AUGMENT);
        dpl_plan_draw(&p, &s, &rng, W, H);
        sums[i] = test_crc(apply(&p, &s, &src, test_cpu()), 3 * (size_t)s.width * (size_t)s.height);
        test_free_all();
    }
    assert_int_equal(test_crc(sums, sizeof sums), 0x48cf4347);
}

static int free_scratch(void **state)
{
    (void)state;
    dpl_apply_scratch_free(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_resample_matches_pillow),
        cmocka_unit_test(scaled_sources_match_pillow),
        cmocka_unit_test(windows_match_pillow),
        cmocka_unit_test(pixels_around_the_box_are_not_looked_at),
        cmocka_unit_test(without_resizing_it_is_a_rotation_of_the_crop),
        cmocka_unit_test(plans_are_the_same_but_for_where_the_map_is),
        cmocka_unit_test(operations_come_after_it),
        cmocka_unit_test(without_the_option_bytes_are_as_ever),
    };

    return cmocka_run_group_tests(tests, NULL, free_scratch);
}
