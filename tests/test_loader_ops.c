/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation through the loader: equal bytes whoever does the work, evaluation untouched, erased
 * values in every layout, and clear refusals. */
#include "kernels/convert.h"
#include "tests/loaderutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 45 };

static test_memory memory;

static int make_memory(void **state)
{
    (void)state;
    test_memory_pictures(&memory, SAMPLES);
    return 0;
}

static int free_memory(void **state)
{
    (void)state;
    test_memory_free(&memory);
    return 0;
}

/* Everything at once, on an odd size. */
static dpl_options everything(void)
{
    dpl_options o = test_loader_options(&memory);

    o.width = 37;
    o.height = 23;
    o.rotate = 20;
    o.vflip = o.grayscale = o.blur = o.invert = 0.5;
    o.posterize = o.solarize = o.sharpness = o.autocontrast = o.equalize = o.random_erase = 0.5;
    o.auto_augment = DPL_AUGMENT_RAND;
    memcpy(o.color_jitter, (double[4]){ 0.4, 0.4, 0.4, 0.1 }, sizeof o.color_jitter);
    o.affine_degrees = 10;
    o.affine_translate[0] = o.affine_translate[1] = 0.1;
    o.affine_scale_min = 0.8;
    o.affine_scale_max = 1.2;
    o.affine_shear[0] = o.affine_shear[1] = 5;
    o.fill[1] = 200;
    return o;
}

static void assert_same_trace(const dpl_options *a, const dpl_options *b)
{
    test_entry x[SAMPLES], y[SAMPLES];

    assert_int_equal(test_trace(a, 3, x, SAMPLES), SAMPLES);
    assert_int_equal(test_trace(b, 3, y, SAMPLES), SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(x[i].id, y[i].id);
        assert_int_equal(x[i].hash, y[i].hash);
    }
}

static void bytes_do_not_depend_on_the_workers(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        dpl_options a = everything(), b;

        if (kind == 1) a.auto_augment = DPL_AUGMENT_TRIVIAL_WIDE;
        if (kind == 2) a.auto_augment = DPL_AUGMENT_IMAGENET;
        if (kind == 3 || kind == 7) a.crop = DPL_CROP_RANDOM;
        if (kind == 3 || kind == 7) a.crop_padding = 7;
        if (kind == 7) a.crop_resize = 30;
        if (kind == 4 || kind == 6) a.rotate_filter = DPL_BILINEAR;
        a.rotate_once = kind >= 5;
        if (kind == 6) a.decode = DPL_DECODE_EXACT;
        if (kind % 2) a.dtype = DPL_FLOAT32;
        if (kind == 3) a.layout = DPL_NCHW;
        a.erase_mode = (dpl_erase_mode)(kind % 3);
        a.workers = 1;
        b = a;
        b.workers = 4;
        b.prefetch = 1 + kind;
        b.world = 1 + kind % 3;
        assert_same_trace(&a, &b);
    }
}

/* Each transform alone changes pictures, and changes neither order nor labels. */
static void every_transform_does_something(void **state)
{
    enum { KINDS = 16 };
    test_entry plain[SAMPLES], trace[SAMPLES];
    dpl_options o = test_loader_options(&memory);

    (void)state;
    assert_int_equal(test_trace(&o, 0, plain, SAMPLES), SAMPLES);
    for (int kind = 0; kind < KINDS; kind++) {
        double *const p[] = { &o.vflip,          &o.grayscale,       &o.blur,
                              &o.invert,         &o.posterize,       &o.solarize,
                              &o.sharpness,      &o.autocontrast,    &o.equalize,
                              &o.random_erase,   &o.color_jitter[3], &o.affine_degrees,
                              &o.affine_shear[1] };
        int changed = 0;

        o = test_loader_options(&memory);
        if (kind < 13) *p[kind] = kind == 10 ? 0.5 : kind > 10 ? 45 : 1;
        if (kind == 13) o.auto_augment = DPL_AUGMENT_IMAGENET;
        if (kind == 14) o.crop = DPL_CROP_RANDOM;
        if (kind == 15) o.rotate = 1e-9; /* the crop without antialiasing */
        if (kind == 15) o.rotate_once = 1;
        assert_int_equal(test_trace(&o, 0, trace, SAMPLES), SAMPLES);
        for (int i = 0; i < SAMPLES; i++) {
            assert_int_equal(trace[i].id, plain[i].id);
            assert_int_equal(trace[i].label, plain[i].label);
            changed += trace[i].hash != plain[i].hash;
        }
        if (changed < SAMPLES / 2) fail_msg("transform %d changed %d pictures", kind, changed);
    }
}

static void evaluation_is_not_augmented(void **state)
{
    dpl_options a = everything(), b = test_loader_options(&memory);

    (void)state;
    b.width = a.width;
    b.height = a.height;
    a.recipe = b.recipe = DPL_EVAL;
    assert_same_trace(&a, &b);
}

/* Pixels of the first pictures that have the value in all three channels. */
static int pixels_of(const dpl_options *o, const double value[3])
{
    const int plane = o->width * o->height;
    dpl_loader *l;
    dpl_batch b;
    int found = 0;

    assert_int_equal(dpl_open(&l, o), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    for (int i = 0; i < b.n * plane; i++) {
        const int at = i / plane, px = i % plane;
        int same = 0;

        for (int c = 0; c < 3; c++) {
            const int nchw = (at * 3 + c) * plane + px, nhwc = (at * plane + px) * 3 + c;
            const void *v = b.part[0].pixels;

            if (o->dtype == DPL_UINT8)
                same += ((const uint8_t *)v)[nhwc] == value[c];
            else
                same += ((const float *)v)[o->layout == DPL_NCHW ? nchw : nhwc] == (float)value[c];
        }
        found += same == 3;
    }
    dpl_release(l, &b, NULL);
    dpl_close(&l);
    return found;
}

/* One box of a quarter of every picture, wherever it is delivered. */
static void erased_pixels_have_the_value_in_every_layout(void **state)
{
    static const double own[3] = { 7.5, -8.25, 9 }, zero[3] = { 0, 0, 0 };
    static const double mean[3] = { 124, 116, 104 }; /* 255 x 0.485, 0.456, 0.406 */
    dpl_options o = test_loader_options(&memory);

    (void)state;
    o.random_erase = 1;
    o.erase_scale_min = o.erase_scale_max = 0.25;
    o.erase_ratio_min = o.erase_ratio_max = 1;
    assert_in_range(pixels_of(&o, mean), 8 * 64, 8 * 64 + 20); /* 8 pictures of 16 x 16 */
    o.dtype = DPL_FLOAT32;
    assert_int_equal(pixels_of(&o, zero), 8 * 64);
    memcpy(o.erase_value, own, sizeof own);
    assert_int_equal(pixels_of(&o, own), 8 * 64);
    o.layout = DPL_NCHW;
    assert_int_equal(pixels_of(&o, own), 8 * 64);
    o.random_erase = 0;
    assert_int_equal(pixels_of(&o, own), 0);
}

enum { ERASED_PICTURES = 40, SIDE = 64, VALUES = SIDE * SIDE * 3 };

/* The first pictures, all numbers as float and pixel by pixel: [ERASED_PICTURES][SIDE][SIDE][3]. Most
 * of each is erased. */
static float *erased(dpl_erase_mode mode, dpl_dtype dtype, dpl_layout layout, int workers)
{
    float *out = malloc(sizeof *out * ERASED_PICTURES * VALUES);
    dpl_options o = test_loader_options(&memory);
    dpl_loader *l;
    dpl_batch b;

    assert_non_null(out);
    o.batch = ERASED_PICTURES;
    o.width = o.height = SIDE;
    o.random_erase = 1;
    o.erase_scale_min = o.erase_scale_max = 0.7;
    o.erase_ratio_min = o.erase_ratio_max = 1;
    o.erase_mode = mode;
    o.dtype = dtype;
    o.layout = layout;
    o.workers = workers;
    assert_int_equal(dpl_open(&l, &o), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(b.n, ERASED_PICTURES);
    for (int i = 0; i < ERASED_PICTURES * VALUES; i++) {
        const int at = i / VALUES, px = i % VALUES / 3, c = i % 3;
        const int k = layout == DPL_NCHW ? at * VALUES + c * SIDE * SIDE + px : i;
        const void *v = b.part[0].pixels;

        out[i] = dtype == DPL_UINT8     ? (float)((const uint8_t *)v)[k]
                 : dtype == DPL_FLOAT32 ? ((const float *)v)[k]
                                        : (float)((const uint16_t *)v)[k];
    }
    dpl_release(l, &b, NULL);
    dpl_close(&l);
    return out;
}

/* Which numbers erasing with 0 set; the box is the same in every mode. */
static uint8_t *erased_where(void)
{
    float *zero = erased(DPL_ERASE_VALUE, DPL_FLOAT32, DPL_NHWC, 2);
    uint8_t *in = malloc(ERASED_PICTURES * VALUES);

    assert_non_null(in);
    for (int i = 0; i < ERASED_PICTURES * VALUES; i++) in[i] = zero[i] == 0;
    free(zero);
    return in;
}

/* Normal numbers in the box, and the picture around it as it was. */
static void random_pixels_are_normal(void **state)
{
    float *v = erased(DPL_ERASE_PIXELS, DPL_FLOAT32, DPL_NHWC, 2);
    float *zero = erased(DPL_ERASE_VALUE, DPL_FLOAT32, DPL_NHWC, 2);
    uint8_t *in = erased_where();
    double n = 0, sum = 0, squares = 0, fourth = 0, beyond = 0, next = 0;

    (void)state;
    for (int i = 0; i < ERASED_PICTURES * VALUES; i++) {
        if (!in[i]) assert_true(v[i] == zero[i]);
        if (!in[i]) continue;
        n++;
        sum += v[i];
        squares += (double)v[i] * v[i];
        fourth += pow(v[i], 4);
        beyond += fabsf(v[i]) > 1.959964F;
        if (i % VALUES && in[i - 1]) next += (double)v[i] * v[i - 1];
    }
    assert_true(n > 0.6 * ERASED_PICTURES * VALUES);
    assert_true(fabs(sum / n) < 0.01); /* deviation of the mean: 0.0017 */
    assert_true(fabs(squares / n - 1) < 0.02);
    assert_true(fabs(fourth / n - 3) < 0.1);
    assert_true(fabs(beyond / n - 0.05) < 0.003);
    assert_true(fabs(next / n) < 0.01); /* neighbours have nothing to do with each other */
    free(v);
    free(zero);
    free(in);
}

/* A colour for each box, another one for the next picture; normal over many. */
static void random_colours_fill_the_box(void **state)
{
    float *v = erased(DPL_ERASE_COLOR, DPL_FLOAT32, DPL_NHWC, 2), last[3] = { 99, 99, 99 };
    uint8_t *in = erased_where();
    double squares = 0;

    (void)state;
    for (int at = 0; at < ERASED_PICTURES; at++) {
        float color[3] = { 0 };
        int found = 0;

        for (int i = at * VALUES; i < (at + 1) * VALUES; i += 3) {
            if (!in[i] || !in[i + 1] || !in[i + 2]) continue;
            if (!found++) memcpy(color, v + i, sizeof color);
            assert_memory_equal(color, v + i, sizeof color);
        }
        assert_true(found > SIDE * SIDE / 2);
        assert_memory_not_equal(color, last, sizeof last);
        memcpy(last, color, sizeof last);
        for (int c = 0; c < 3; c++) squares += (double)color[c] * color[c];
    }
    assert_true(squares > 0.6 * 3 * ERASED_PICTURES && squares < 1.5 * 3 * ERASED_PICTURES);
    free(v);
    free(in);
}

/* torchvision normalises and then writes the numbers: other types have the nearest value of theirs,
 * other layouts and more workers the same. */
static void random_values_are_the_same_in_every_type(void **state)
{
    static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };
    uint8_t *in = erased_where();

    (void)state;
    for (int m = DPL_ERASE_COLOR; m <= DPL_ERASE_PIXELS; m++) {
        const dpl_erase_mode mode = (dpl_erase_mode)m;
        float *v = erased(mode, DPL_FLOAT32, DPL_NHWC, 1);
        float *planes = erased(mode, DPL_FLOAT32, DPL_NCHW, 3);
        float *levels = erased(mode, DPL_UINT8, DPL_NHWC, 2);
        float *bfloats = erased(mode, DPL_BFLOAT16, DPL_NCHW, 2);
        float *halves = erased(mode, DPL_FLOAT16, DPL_NHWC, 2);

        assert_memory_equal(v, planes, sizeof *v * ERASED_PICTURES * VALUES);
        for (int i = 0; i < ERASED_PICTURES * VALUES; i++) {
            const double level = 255 * (v[i] * std[i % 3] + mean[i % 3]);

            if (!in[i]) continue;
            assert_true(fabs(levels[i] - fmin(255, fmax(0, level))) <= 0.5001);
            assert_true(bfloats[i] == dpl_to_bfloat(v[i]));
            assert_true(halves[i] == dpl_to_half(v[i]));
        }
        free(v);
        free(planes);
        free(levels);
        free(bfloats);
        free(halves);
    }
    free(in);
}

/* A wide padding is the fill colour, and never less than the picture leaves of it. */
static void padding_has_the_fill_colour(void **state)
{
    static const double fill[3] = { 1, 254, 3 };
    dpl_options o = test_loader_options(&memory);

    (void)state;
    memcpy(o.fill, fill, sizeof fill);
    o.crop = DPL_CROP_RANDOM;
    assert_int_equal(pixels_of(&o, fill), 0); /* the pictures are larger than 16 x 16 */
    o.width = o.height = 120;                 /* and smaller than this */
    o.crop_resize = 60;
    assert_true(pixels_of(&o, fill) > 8 * 120 * 120 / 10);
}

/* Where padding is wider than the window, whole pictures are fill: the decoder was asked for none of
 * their pixels, and ended the program. */
static void windows_may_miss_the_picture(void **state)
{
    static const double fill[3] = { 1, 254, 3 };
    dpl_options o = test_loader_options(&memory);

    (void)state;
    memcpy(o.fill, fill, sizeof fill);
    o.crop = DPL_CROP_RANDOM;
    o.crop_padding = 1000;
    assert_true(pixels_of(&o, fill) > 6 * 16 * 16); /* of 8 pictures */
    o.rotate = 30;
    o.rotate_once = 1;
    assert_true(pixels_of(&o, fill) > 6 * 16 * 16);
}

/* Rotation leaves corners of the fill colour; a map that does next to nothing leaves none. */
static void one_resample_is_what_is_delivered(void **state)
{
    static const double fill[3] = { 1, 254, 3 };
    dpl_options o = test_loader_options(&memory), other;

    (void)state;
    memcpy(o.fill, fill, sizeof fill);
    o.rotate_once = 1;
    o.affine_translate[0] = 1e-9;
    assert_int_equal(pixels_of(&o, fill), 0);
    o.rotate = 180;
    assert_true(pixels_of(&o, fill) > 8 * 16 * 16 / 20);
    other = o;
    other.filter = DPL_BICUBIC; /* has no part in it */
    assert_same_trace(&o, &other);
}

#define REFUSED(change, text)                                                                      \
    do {                                                                                           \
        dpl_options o = test_loader_options(&memory);                                              \
        dpl_loader *l;                                                                             \
        change;                                                                                    \
        assert_int_equal(dpl_open(&l, &o), DPL_EINVAL);                                            \
        assert_null(l);                                                                            \
        if (!strstr(dpl_error_text(NULL), text))                                                   \
            fail_msg("\"%s\" does not say \"%s\"", dpl_error_text(NULL), text);                    \
    } while (0)

static void senseless_values_are_refused(void **state)
{
    (void)state;
    REFUSED(o.crop = (dpl_crop)2, "crop 2: expected 0..1");
    REFUSED(o.crop_resize = -1, "crop_resize -1");
    REFUSED(o.crop_padding = 8193, "crop_padding 8193: expected 0..8192");
    REFUSED(o.fill[1] = 256, "fill 256: expected 0..255");
    REFUSED(o.fill[2] = 1.5, "fill 1.5: expected a whole number");
    REFUSED(o.vflip = -0.1, "vflip -0.1: expected 0..1");
    REFUSED(o.auto_augment = (dpl_auto_augment)4, "auto_augment 4: expected 0..3");
    REFUSED(o.ra_ops = 17, "ra_ops 17: expected 0..16");
    REFUSED(o.ra_magnitude = 31, "ra_magnitude 31: expected 0..30");
    REFUSED(o.color_jitter[0] = NAN, "color_jitter nan");
    REFUSED(o.color_jitter[3] = 0.6, "color_jitter (hue) 0.6: expected 0..0.5");
    REFUSED(o.grayscale = 2, "grayscale 2: expected 0..1");
    REFUSED(o.blur = 1.5, "blur 1.5: expected 0..1");
    REFUSED(o.blur_kernel = 22, "blur_kernel 22: expected an odd number");
    REFUSED(o.blur_kernel = 129, "blur_kernel 129: expected 1..127");
    REFUSED(o.blur_sigma_min = 0, "blur_sigma 0..2: expected 0 < min <= max");
    REFUSED(o.blur_sigma_max = 0.05, "blur_sigma 0.1..0.05");
    REFUSED(o.invert = NAN, "invert nan");
    REFUSED(o.posterize = 9, "posterize 9");
    REFUSED(o.posterize_bits = 9, "posterize_bits 9: expected 0..8");
    REFUSED(o.solarize = -1, "solarize -1");
    REFUSED(o.solarize_threshold = 257, "solarize_threshold 257: expected 0..256");
    REFUSED(o.sharpness = 1.1, "sharpness 1.1");
    REFUSED(o.sharpness_factor = -1, "sharpness_factor -1: expected 0..100");
    REFUSED(o.autocontrast = 2, "autocontrast 2");
    REFUSED(o.equalize = 2, "equalize 2");
    REFUSED(o.rotate_once = 2, "rotate_once 2: expected 0..1");
    REFUSED(o.rotate_once = 1, "rotate_once without rotation: set rotate or an affine map");
    REFUSED(o.affine_degrees = 181, "affine_degrees 181: expected 0..180");
    REFUSED(o.affine_translate[1] = 1.1, "affine_translate 1.1: expected 0..1");
    REFUSED(o.affine_scale_min = 0, "affine_scale 0..1: expected 0 < min <= max");
    REFUSED(o.affine_shear[0] = 90, "affine_shear 90: expected 0..89");
    REFUSED(o.random_erase = 2, "random_erase 2: expected 0..1");
    REFUSED(o.erase_scale_max = 1.5, "erase_scale 0.02..1.5");
    REFUSED(o.erase_ratio_min = NAN, "erase_ratio nan");
    REFUSED(o.erase_value[0] = INFINITY, "erase_value inf");
    REFUSED(o.erase_mode = (dpl_erase_mode)3, "erase_mode 3: expected 0..2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_the_workers),
        cmocka_unit_test(every_transform_does_something),
        cmocka_unit_test(evaluation_is_not_augmented),
        cmocka_unit_test(erased_pixels_have_the_value_in_every_layout),
        cmocka_unit_test(random_pixels_are_normal),
        cmocka_unit_test(random_colours_fill_the_box),
        cmocka_unit_test(random_values_are_the_same_in_every_type),
        cmocka_unit_test(padding_has_the_fill_colour),
        cmocka_unit_test(windows_may_miss_the_picture),
        cmocka_unit_test(one_resample_is_what_is_delivered),
        cmocka_unit_test(senseless_values_are_refused),
    };

    return cmocka_run_group_tests(tests, make_memory, free_memory);
}
