/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded pixels against Pillow's, sizes and limits, scaling, and what a decoder keeps. */
#include "dpload.h"
#include "tests/decode_cases.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/decode/"

static void check_against_pillow(const char *name, int width, int height)
{
    size_t len, want_len;
    uint8_t *bytes = test_read_file(test_format(DATA "%s", name), &len);
    const char *dot = strrchr(name, '.');
    uint8_t *want =
        test_read_file(test_format(DATA "%.*s.rgb", (int)(dot - name), name), &want_len);
    const dpl_decode_limits limits = decode_limits();
    const decode_result r = decode_once(&limits, bytes, len);

    if (r.status || r.warned) fail_msg("%s: %s", name, r.why.s);
    assert_int_equal(r.width, width);
    assert_int_equal(r.height, height);
    assert_int_equal(want_len, (size_t)width * (size_t)height * 3);
    if (memcmp(r.rgb, want, want_len))
        fail_msg("%s: mean difference to Pillow %.3f", name,
                 decode_difference(r.rgb, want, want_len));
    free(r.rgb);
    free(want);
    free(bytes);
}

/* Made by tests/scripts/make_decode_data.py. */
static void jpeg_kinds_equal_pillow(void **state)
{
    static const char *const names[] = { "ycc_420.jpg",    "ycc_422.jpg", "ycc_440.jpg",
                                         "ycc_411.jpg",    "ycc_410.jpg", "progressive.jpg",
                                         "arithmetic.jpg", "restart.jpg", "gray.jpg",
                                         "rgb.jpg",        "cmyk.jpg",    "ycck.jpg" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_against_pillow(names[i], 45, 37);
}

static void png_kinds_equal_pillow(void **state)
{
    (void)state;
    check_against_pillow("png_rgb.png", 45, 37);
    check_against_pillow("png_rgba.png", 45, 37);
    check_against_pillow("png_gray_alpha.png", 45, 37);
    check_against_pillow("png_palette.png", 45, 37);
    check_against_pillow("png_bits.png", 45, 37);
}

static void turned_pictures_equal_pillow(void **state)
{
    (void)state;
    for (int o = 1; o <= 8; o++)
        check_against_pillow(test_format("turn_%d.jpg", o), o < 5 ? 45 : 37, o < 5 ? 37 : 45);
    check_against_pillow("png_turn.png", 37, 45);
}

static void webp_equals_pillow(void **state)
{
    (void)state;
#ifdef DPL_HAVE_WEBP
    check_against_pillow("webp_lossless.webp", 45, 37);
    check_against_pillow("webp_lossy.webp", 45, 37);
    check_against_pillow("webp_turn.webp", 37, 45);
#else
    skip();
#endif
}

static void a_cut_webp_is_bad(void **state)
{
    (void)state;
#ifdef DPL_HAVE_WEBP
    static const char *const names[] = { "webp_lossless.webp", "webp_lossy.webp",
                                         "webp_turn.webp" };
    const dpl_decode_limits limits = decode_limits();

    for (int i = 0; i < 3; i++) {
        size_t len;
        uint8_t *file = test_read_file(test_format(DATA "%s", names[i]), &len);

        for (size_t n = 1; n < len; n++) {
            uint8_t *bytes = test_guarded_bytes(n, 0);
            memcpy(bytes, file, n);
            if (decode_once(&limits, bytes, n).status != DPL_EDATA)
                fail_msg("%zu of %zu bytes of %s passed", n, len, names[i]);
            test_free_all();
        }
        free(file);
    }
#else
    skip();
#endif
}

static void webp_is_refused_by_name_where_it_cannot_be_read(void **state)
{
    size_t len;
    uint8_t *bytes = test_read_file(DATA "animated.webp", &len);
    const dpl_decode_limits limits = decode_limits();
    const decode_result r = decode_once(&limits, bytes, len);

    (void)state;
    assert_int_equal(r.status, DPL_EDATA);
#ifdef DPL_HAVE_WEBP
    assert_string_equal(r.why.s, "animated WebP is not supported");
#else
    assert_string_equal(r.why.s, "WebP is not supported (this build has no libwebp)");
#endif
    free(bytes);
}

static void orientation_can_be_ignored(void **state)
{
    size_t len, want_len;
    uint8_t *bytes = test_read_file(DATA "turn_6.jpg", &len);
    uint8_t *want = test_read_file(DATA "turn_1.rgb", &want_len);
    dpl_decode_limits limits = decode_limits();
    decode_result r;

    (void)state;
    limits.exif = 0;
    r = decode_once(&limits, bytes, len);
    assert_int_equal(r.status, DPL_OK);
    assert_int_equal(r.width, 45);
    assert_memory_equal(r.rgb, want, want_len);
    free(r.rgb);
    free(want);
    free(bytes);
}

static void sizes_above_the_limit_are_refused(void **state)
{
    size_t len;
    uint8_t *bytes = test_jpeg(40, 30, 1, NULL, &len);
    dpl_decode_limits limits = decode_limits();
    decode_result r;

    (void)state;
    limits.max_pixels = 1199;
    r = decode_once(&limits, bytes, len);
    assert_int_equal(r.status, DPL_EDATA);
    assert_string_equal(r.why.s, "40x30 pixels, the limit is 1199 (max_pixels)");
    limits.max_pixels = 1200;
    r = decode_once(&limits, bytes, len);
    assert_int_equal(r.status, DPL_OK);
    free(r.rgb);
    free(bytes);
}

/* The decoded region, scaled; its mean colour stays that of the same part in full size. */
static void check_scaled(dpl_decoder *d, const uint8_t *bytes, size_t len, int denominator)
{
    int width, height, warned;
    dpl_pixels px;
    dpl_text why;
    double sum = 0;
    const decode_result whole = decode_whole(d, bytes, len);

    assert_int_equal(dpl_decode_begin(d, bytes, len, &width, &height, &why), DPL_OK);
    assert_int_equal(dpl_decode_region(d, 33, 17, 81, 66, denominator, &px, &warned, &why), DPL_OK);
    assert_int_equal(px.denominator, denominator);
    assert_int_equal(px.x, 33 / denominator);
    assert_int_equal(px.y, 17 / denominator);
    assert_int_equal(px.x + px.w, (33 + 81 + denominator - 1) / denominator);
    assert_int_equal(px.y + px.h, (17 + 66 + denominator - 1) / denominator);
    for (int y = 0; y < px.h; y++) {
        for (int x = 0; x < px.w; x++) {
            const int u = (px.x + x) * denominator + denominator / 2;
            const int v = (px.y + y) * denominator + denominator / 2;
            sum += px.rgb[(size_t)y * px.stride + (size_t)x * 3] -
                   whole.rgb[((size_t)v * (size_t)width + (size_t)u) * 3];
        }
    }
    assert_true(sum / (px.w * px.h) < 4 && sum / (px.w * px.h) > -4);
    free(whole.rgb);
}

static void fast_decoding_scales(void **state)
{
    size_t len;
    const tool_jpeg_spec progressive = { .quality = 90, .progressive = 1 };
    dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;

    (void)state;
    limits.exact = 0;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (int k = 0; k < 2; k++) {
        uint8_t *bytes = test_jpeg(203, 155, 3, k ? &progressive : NULL, &len);
        for (int denominator = 1; denominator <= 8; denominator *= 2)
            check_scaled(d, bytes, len, denominator);
        free(bytes);
    }
    dpl_decoder_destroy(&d);
}

/* A scaled region equals the same part of the whole picture scaled; x and y are multiples of 8. */
static void scaled_and_turned_regions_lie_on_the_grid(void **state)
{
    dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;

    (void)state;
    limits.exact = 0;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (int o = 1; o <= 8; o++) {
        for (int odd = 0; odd < 2; odd++) {
            const tool_jpeg_spec spec = { .quality = 90, .orientation = o };
            const int side_w = 160 + odd * 3, side_h = 120 + odd * 5;
            const int want = odd && o > 1 ? 1 : 4;
            size_t len;
            uint8_t *bytes = test_jpeg(side_w, side_h, 3, &spec, &len), *all;
            int width, height, warned;
            dpl_pixels px;
            dpl_text why;

            assert_int_equal(dpl_decode_begin(d, bytes, len, &width, &height, &why), DPL_OK);
            assert_int_equal(dpl_decode_region(d, 0, 0, width, height, 4, &px, &warned, &why), 0);
            assert_int_equal(px.denominator, want);
            assert_int_equal(px.w, (width + want - 1) / want);
            all = malloc((size_t)px.w * (size_t)px.h * 3);
            for (int y = 0; y < px.h; y++)
                memcpy(all + (size_t)(y * px.w) * 3, px.rgb + (size_t)y * px.stride,
                       (size_t)px.w * 3);
            width = px.w;
            assert_int_equal(dpl_decode_region(d, 41, 30, 50, 61, 4, &px, &warned, &why), 0);
            assert_true(decode_same(&px, all, width));
            free(all);
            free(bytes);
        }
    }
    dpl_decoder_destroy(&d);
}

static void exact_decoding_does_not_scale(void **state)
{
    size_t len;
    uint8_t *bytes = test_jpeg(100, 80, 3, NULL, &len);
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;
    dpl_pixels px;
    dpl_text why;
    int width, height, warned;

    (void)state;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    assert_int_equal(dpl_decode_begin(d, bytes, len, &width, &height, &why), DPL_OK);
    assert_int_equal(dpl_decode_region(d, 0, 0, 100, 80, 8, &px, &warned, &why), DPL_OK);
    assert_int_equal(px.denominator, 1);
    assert_int_equal(px.w, 100);
    dpl_decoder_destroy(&d);
    free(bytes);
}

/* What a region costs: not the columns and rows that nobody asked for. */
static void a_small_region_decodes_few_pixels(void **state)
{
    size_t len;
    const tool_jpeg_spec spec = { .quality = 90, .h_samp = 1, .v_samp = 1 };
    uint8_t *bytes = test_jpeg(640, 480, 3, &spec, &len);
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;
    dpl_pixels px;
    dpl_text why;
    int width, height, warned;

    (void)state;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    assert_int_equal(dpl_decode_begin(d, bytes, len, &width, &height, &why), DPL_OK);
    assert_int_equal(dpl_decode_region(d, 320, 240, 64, 64, 1, &px, &warned, &why), DPL_OK);
    assert_true(dpl_decode_count(d) >= 64 * 64);
    assert_true(dpl_decode_count(d) <= 80 * 64); /* one block more on the left, the margin */
    dpl_decoder_destroy(&d);
    free(bytes);
}

static void one_decoder_takes_all_formats_in_any_order(void **state)
{
    static const char *const names[] = { "ycc_420",     "png_rgb",  "cmyk",
                                         "progressive", "png_bits", "gray" };
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;

    (void)state;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (size_t i = 0; i < 24; i++) {
        const char *name = names[i * 5 % 6];
        size_t len, want_len;
        uint8_t *bytes = test_read_file(
            test_format(DATA "%s.%s", name, name[0] == 'p' && name[1] == 'n' ? "png" : "jpg"),
            &len);
        uint8_t *want = test_read_file(test_format(DATA "%s.rgb", name), &want_len);
        const decode_result r = decode_whole(d, bytes, len);

        assert_int_equal(r.status, DPL_OK);
        assert_memory_equal(r.rgb, want, want_len);
        if (i % 3 == 0) dpl_decoder_trim(d, 0);
        free(r.rgb);
        free(want);
        free(bytes);
    }
    dpl_decoder_destroy(&d);
    assert_null(d);
    dpl_decoder_destroy(&d);
}

static void what_is_no_picture_is_refused_by_name(void **state)
{
    static const struct {
        const char *bytes, *why;
    } cases[] = {
        { "", "empty file" },
        { "GIF89a\1\0\1\0", "GIF is not supported (JPEG, PNG and WebP are)" },
        { "<!DOCTYPE html><p>404", "HTML is not supported (JPEG, PNG and WebP are)" },
        { "class,file\n1,a.jpg\n", "not a JPEG, PNG or WebP picture but text" },
        { "\x1f\x8b\x08", "not a JPEG, PNG or WebP picture but gzip" },
    };
    const dpl_decode_limits limits = decode_limits();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const decode_result r =
            decode_once(&limits, (const uint8_t *)cases[i].bytes, strlen(cases[i].bytes));
        assert_int_equal(r.status, DPL_EDATA);
        assert_string_equal(r.why.s, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpeg_kinds_equal_pillow),
        cmocka_unit_test(png_kinds_equal_pillow),
        cmocka_unit_test(turned_pictures_equal_pillow),
        cmocka_unit_test(webp_equals_pillow),
        cmocka_unit_test(a_cut_webp_is_bad),
        cmocka_unit_test(webp_is_refused_by_name_where_it_cannot_be_read),
        cmocka_unit_test(orientation_can_be_ignored),
        cmocka_unit_test(sizes_above_the_limit_are_refused),
        cmocka_unit_test(fast_decoding_scales),
        cmocka_unit_test(scaled_and_turned_regions_lie_on_the_grid),
        cmocka_unit_test(exact_decoding_does_not_scale),
        cmocka_unit_test(a_small_region_decodes_few_pixels),
        cmocka_unit_test(one_decoder_takes_all_formats_in_any_order),
        cmocka_unit_test(what_is_no_picture_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
