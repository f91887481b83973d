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
        cmocka_unit_test(without_the_option_bytes_are_as_ever),
    };

    return cmocka_run_group_tests(tests, NULL, free_scratch);
}
