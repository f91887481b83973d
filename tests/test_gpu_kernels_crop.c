/* SPDX-License-Identifier: Apache-2.0 */
/* Crop and scale by the input kernel, against the formula in double and against kernels/resample.h. */
#include "kernels/resample.h"
#include "tests/gpu_cases.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One output size from one source size. */
typedef struct scaling {
    int src_h, src_w, h, w;
    float box[4];
} scaling;
static const scaling scalings[] = {
    { 40, 52, 12, 15, { 3.25F, 2.5F, 40.5F, 30.75F } }, /* down, within */
    { 20, 12, 31, 26, { 1, 2, 9.5F, 15 } },             /* up */
    { 64, 48, 7, 33, { 0, 0, 48, 64 } },                /* the whole; down and up */
    { 9, 300, 8, 20, { 150, 0.5F, 150, 8 } },           /* far along a row, at its end */
    { 3, 8000, 3, 40, { 7000.3F, 0, 900.7F, 3 } },      /* far along a long row */
    { 12, 13, 12, 13, { 1.5F, 2.25F, 9, 8 } },          /* as large as the source */
    { 16, 16, 8, 8, { -4, -4, 24, 24 } },               /* wider than the source */
};
enum { SCALINGS = sizeof scalings / sizeof *scalings };

static size_t numbers(const dpt_gpu_input *in)
{
    return (size_t)in->n * (size_t)in->h * (size_t)in->w * (size_t)in->channels;
}

/* Run on bytes; the output on the host. free() it. */
static float *run(dpt_gpu_input *in, const void *src, size_t bytes)
{
    in->src = gpu_put(src, bytes);
    in->dst = gpu_new(numbers(in) * sizeof(float));
    assert_int_equal(gpu_kernels()->input(in, gpu_stream()), 0);
    return gpu_get(in->dst);
}

/* Levels come out as they are: mean 0 and std 1 / 255. */
static dpt_gpu_input levels_job(const scaling *s, int n)
{
    dpt_gpu_input in = { .pixels = DPT_GPU_PIXELS_U8_NHWC,
                         .n = n,
                         .src_h = s->src_h,
                         .src_w = s->src_w,
                         .h = s->h,
                         .w = s->w,
                         .channels = 3 };

    for (int c = 0; c < 3; c++) in.std[c] = 1.F / 255;
    return in;
}

/* Weight of source pixel x for output i, not normalised. */
static double weight(double from, double length, int out_n, int i, int x)
{
    const double scale = length / out_n, reach = scale < 1 ? 1 : scale;
    const double away = fabs(x + 0.5 - (from + (i + 0.5) * scale)) / reach;

    return away < 1 ? 1 - away : 0;
}

/* Level of channel c at (y, x), exactly. */
static double level(const uint8_t *src, const scaling *s, const float box[4], int y, int x, int c)
{
    double sum = 0, weights = 0;

    for (int j = 0; j < s->src_h; j++) {
        const double down = weight((double)box[1], (double)box[3], s->h, y, j);

        for (int k = 0; down > 0 && k < s->src_w; k++) {
            const double w = down * weight((double)box[0], (double)box[2], s->w, x, k);

            sum += w * src[3 * (j * s->src_w + k) + c];
            weights += w;
        }
    }
    return weights > 0 ? sum / weights : 0; /* nothing of the source is near */
}

/* Noise is the worst there is. Positions are floats, so that the error grows with them: 0.0002 levels
 * measured at 50 pixels a side, 0.009 at 8000. */
static void scaled_levels_are_those_of_the_formula(void **state)
{
    (void)state;
    gpu_kernels();
    for (int k = 0; k < SCALINGS; k++) {
        const scaling *s = &scalings[k];
        const size_t bytes = (size_t)s->src_h * (size_t)s->src_w * 3;
        uint8_t *src = test_guarded_bytes(2 * bytes, (uint64_t)k);
        float box[2][4], *got;
        const uint8_t flip[2] = { 0, 1 };
        dpt_gpu_input in = levels_job(s, 2);

        memcpy(box[0], s->box, sizeof s->box);
        memcpy(box[1], s->box, sizeof s->box);
        box[1][0] += 0.5F; /* each picture has its own */
        in.box = gpu_put(box, sizeof box);
        in.flip = gpu_put(flip, sizeof flip);
        got = run(&in, src, 2 * bytes);
        for (int i = 0; i < 2 * s->h * s->w * 3; i++) {
            const int c = i % 3, at = i / 3 % s->w, y = i / 3 / s->w % s->h,
                      p = i / 3 / s->w / s->h;
            const int x = p ? s->w - 1 - at : at;
            const double want = level(src + (size_t)p * bytes, s, box[p], y, x, c);

            if (!(fabs((double)got[i] - want) < 5e-4 + 1.2e-6 * s->src_w))
                fail_msg("scaling %d, picture %d, x %d y %d channel %d: %.9g, expected %.9g", k, p,
                         at, y, c, (double)got[i], want);
        }
        free(got);
        gpu_free_all(NULL);
        test_free_all();
    }
}

/* The same by kernels/resample.h, which rounds to bytes twice: half a level each. free() it. */
static uint8_t *resampled(const uint8_t *src, const scaling *s)
{
    const dpl_axis across = { .box0 = (double)s->box[0],
                              .box1 = (double)s->box[0] + (double)s->box[2],
                              .in_n = s->src_w,
                              .out_n = s->w,
                              .count = s->w };
    const dpl_axis down = { .box0 = (double)s->box[1],
                            .box1 = (double)s->box[1] + (double)s->box[3],
                            .in_n = s->src_h,
                            .out_n = s->h,
                            .count = s->h };
    uint8_t *rows = malloc((size_t)s->src_h * (size_t)s->w * 3);
    uint8_t *out = malloc((size_t)s->h * (size_t)s->w * 3);
    dpl_taps taps = { 0 };

    assert_true(rows && out);
    assert_int_equal(dpl_taps_make(&taps, &across), 0);
    dpl_resample_rows_c(rows, src, (size_t)s->src_w * 3, s->src_h, 0, &taps);
    assert_int_equal(dpl_taps_make(&taps, &down), 0);
    dpl_resample_cols_c(out, (size_t)s->w * 3, rows, s->w * 3, 0, &taps);
    dpl_taps_free(&taps);
    free(rows);
    return out;
}

static void scaled_bytes_are_within_a_level_of_pillow(void **state)
{
    double worst = 0;

    (void)state;
    gpu_kernels();
    for (int k = 0; k < SCALINGS; k++) {
        const scaling *s = &scalings[k];
        const size_t bytes = (size_t)s->src_h * (size_t)s->src_w * 3;
        uint8_t *src = test_guarded_bytes(bytes, (uint64_t)k), *want = resampled(src, s);
        dpt_gpu_input in = levels_job(s, 1);
        float *got;

        in.box = gpu_put(s->box, sizeof s->box);
        got = run(&in, src, bytes);
        for (size_t i = 0; i < numbers(&in); i++)
            worst = fmax(worst, fabs((double)got[i] - want[i]));
        free(got);
        free(want);
        gpu_free_all(NULL);
        test_free_all();
    }
    print_message("largest difference: %.3f levels\n", worst);
    assert_true(worst < 1.01);
}

/* Without a box, the whole source; a box of the whole source at its own size changes nothing. */
static void the_whole_source_needs_no_box(void **state)
{
    scaling s = { 33, 29, 14, 21, { 0, 0, 29, 33 } };
    const size_t bytes = (size_t)s.src_h * (size_t)s.src_w * 3;

    (void)state;
    gpu_kernels();
    for (int same = 0; same < 2; same++) {
        uint8_t *src = test_guarded_bytes(bytes, 7);
        dpt_gpu_input in;
        float *with, *without;

        if (same) s.h = s.src_h, s.w = s.src_w;
        in = levels_job(&s, 1);
        without = run(&in, src, bytes);
        in.box = gpu_put(s.box, sizeof s.box);
        with = run(&in, src, bytes);
        gpu_same_numbers(with, without, numbers(&in), DPT_GPU_FP32, "box");
        free(with);
        free(without);
        gpu_free_all(NULL);
        test_free_all();
    }
}

/* Nothing is read outside the source, whatever a box says: its pages end there. */
static void boxes_outside_the_source_are_black(void **state)
{
    const float box[4][4] = {
        { 100, 0, 10, 8 }, { -50, -50, 20, 20 }, { NAN, 0, 8, 8 }, { 0, INFINITY, 8, -INFINITY }
    };
    const scaling s = { 8, 8, 5, 5, { 0 } };
    dpt_gpu_input in = levels_job(&s, 4);
    float *got;

    (void)state;
    gpu_kernels();
    in.box = gpu_put(box, sizeof box);
    got = run(&in, test_guarded_bytes(4 * 8 * 8 * 3, 1), 4 * 8 * 8 * 3);
    for (size_t i = 0; i < numbers(&in); i++) assert_true(got[i] == 0);
    free(got);
    test_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(scaled_levels_are_those_of_the_formula, gpu_free_all),
        cmocka_unit_test_teardown(scaled_bytes_are_within_a_level_of_pillow, gpu_free_all),
        cmocka_unit_test_teardown(the_whole_source_needs_no_box, gpu_free_all),
        cmocka_unit_test_teardown(boxes_outside_the_source_are_black, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
