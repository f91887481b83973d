/* SPDX-License-Identifier: Apache-2.0 */
/* A decoded region equals the same part of a full decode, bit for bit, for every kind of JPEG. */
#include "base/rng.h"
#include "dpload.h"
#include "tests/decode_cases.h"
#include "tests/testutil.h"

#include <dirent.h>
#include <stdlib.h>

enum { BOXES = 24, SIZES = 5, FILE_BOXES = 4 };

typedef struct kind {
    const char *name;
    tool_jpeg_spec spec;
} kind;

static const kind kinds[] = {
    { "4:4:4", { .h_samp = 1, .v_samp = 1 } },
    { "4:2:2", { .h_samp = 2, .v_samp = 1 } },
    { "4:2:0", { .h_samp = 2, .v_samp = 2 } },
    { "4:4:0", { .h_samp = 1, .v_samp = 2 } },
    { "4:1:1", { .h_samp = 4, .v_samp = 1 } },
    { "4:1:0", { .h_samp = 4, .v_samp = 2 } },
    { "1x4", { .h_samp = 1, .v_samp = 4 } },
    { "2x4", { .h_samp = 2, .v_samp = 4 } },
    { "3x1", { .h_samp = 3, .v_samp = 1 } },
    { "1x3", { .h_samp = 1, .v_samp = 3 } },
    { "gray", { .color = TOOL_JPEG_GRAY } },
    { "gray 2x2", { .color = TOOL_JPEG_GRAY, .h_samp = 2, .v_samp = 2 } },
    { "gray 1x2", { .color = TOOL_JPEG_GRAY, .h_samp = 1, .v_samp = 2 } },
    { "RGB", { .color = TOOL_JPEG_RGB } },
    { "RGB 2x2", { .color = TOOL_JPEG_RGB, .h_samp = 2, .v_samp = 2 } },
    { "CMYK", { .color = TOOL_JPEG_CMYK } },
    { "CMYK 2x1", { .color = TOOL_JPEG_CMYK, .h_samp = 2, .v_samp = 1 } },
    { "YCCK", { .color = TOOL_JPEG_YCCK } },
    { "YCCK 1x2", { .color = TOOL_JPEG_YCCK, .h_samp = 1, .v_samp = 2 } },
};

/* One file: random boxes, half of them at a border of the picture. */
static void compare_boxes(dpl_decoder *d, const char *name, const uint8_t *bytes, size_t len,
                          int boxes, dpl_rng *rng)
{
    const decode_result whole = decode_whole(d, bytes, len);

    if (whole.status) fail_msg("%s: %s", name, whole.why.s);
    for (int i = 0; i < boxes; i++) {
        int w = 1 + (int)dpl_rng_below(rng, (uint32_t)whole.width);
        int h = 1 + (int)dpl_rng_below(rng, (uint32_t)whole.height);
        int x = (int)dpl_rng_below(rng, (uint32_t)(whole.width - w + 1));
        int y = (int)dpl_rng_below(rng, (uint32_t)(whole.height - h + 1));
        int width, height, warned;
        dpl_pixels px;
        dpl_text why;

        if (i % 4 == 1) x = whole.width - w;
        if (i % 4 == 2) y = whole.height - h;
        if (i % 4 == 3) w = h = 1;
        assert_int_equal(dpl_decode_begin(d, bytes, len, &width, &height, &why), DPL_OK);
        if (dpl_decode_region(d, x, y, w, h, 1, &px, &warned, &why))
            fail_msg("%s, box %d,%d %dx%d: %s", name, x, y, w, h, why.s);
        if (warned) fail_msg("%s: %s", name, why.s);
        assert_true(px.x == x && px.y == y && px.w == w && px.h == h);
        if (!decode_same(&px, whole.rgb, whole.width))
            fail_msg("%s, %dx%d: box %d,%d %dx%d differs", name, whole.width, whole.height, x, y, w,
                     h);
    }
    free(whole.rgb);
}

static void compare_kind(dpl_decoder *d, const kind *k, int turned, dpl_rng *rng)
{
    static const int sizes[SIZES][2] = {
        { 97, 83 }, { 64, 48 }, { 33, 150 }, { 5, 3 }, { 161, 17 }
    };

    for (int variant = 0; variant < 4; variant++) {
        for (int s = 0; s < SIZES; s++) {
            tool_jpeg_spec spec = k->spec;
            uint8_t *bytes;
            size_t len;

            spec.quality = 80;
            spec.progressive = variant == 1;
            spec.arithmetic = variant == 2;
            spec.restart_rows = variant == 3;
            spec.orientation = turned ? 1 + (s + variant) % 8 : 0;
            bytes = test_jpeg(sizes[s][0], sizes[s][1], (uint64_t)s, &spec, &len);
            compare_boxes(d, test_format("%s, variant %d", k->name, variant), bytes, len, BOXES,
                          rng);
            free(bytes);
        }
    }
}

static void every_kind(int turned)
{
    dpl_decoder *d;
    dpl_rng rng;
    const dpl_decode_limits limits = decode_limits();

    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    dpl_rng_init(&rng, 7, 0, (uint64_t)turned, DPL_RNG_AUGMENT);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        compare_kind(d, &kinds[k], turned, &rng);
    dpl_decoder_destroy(&d);
}

static void regions_equal_a_full_decode(void **state)
{
    (void)state;
    every_kind(0);
}

static void regions_of_turned_pictures_equal_a_full_decode(void **state)
{
    (void)state;
    every_kind(1);
}

/* The first `scans` scans of a progressive file, then its end. */
static void keep_scans(uint8_t *bytes, size_t *len, int scans)
{
    for (size_t i = 2; i + 1 < *len; i++) {
        if (bytes[i] != 0xff || bytes[i + 1] != 0xda || scans-- > 0) continue;
        bytes[i + 1] = 0xd9;
        *len = i + 2;
        return;
    }
    fail_msg("too few scans");
}

/* libjpeg smooths such pictures over block borders. */
static void regions_of_coarse_progressive_files_equal_a_full_decode(void **state)
{
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;
    dpl_rng rng;

    (void)state;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    dpl_rng_init(&rng, 9, 0, 0, DPL_RNG_AUGMENT);
    for (int scans = 1; scans < 10; scans++) {
        const tool_jpeg_spec spec = { .quality = 80, .progressive = 1 };
        size_t len;
        uint8_t *bytes = test_jpeg(120, 90, 4, &spec, &len);
        dpl_text why;
        int width, height, warned;
        dpl_pixels px;

        keep_scans(bytes, &len, scans);
        compare_boxes(d, test_format("%d scans", scans), bytes, len, BOXES, &rng);
        /* Without an end marker the other scans are missing, not left out. */
        assert_int_equal(dpl_decode_begin(d, bytes, len - 2, &width, &height, &why), DPL_OK);
        assert_int_equal(dpl_decode_region(d, 0, 0, 9, 9, 1, &px, &warned, &why), DPL_EDATA);
        assert_string_equal(why.s, "rows missing: the JPEG file ends between its scans");
        free(bytes);
    }
    dpl_decoder_destroy(&d);
}

/* Files of other encoders, where there are any: all that decode without a complaint. */
static void regions_of_other_files_equal_a_full_decode(void **state)
{
    DIR *dir = opendir("../shared/corpus");
    const dpl_decode_limits limits = decode_limits();
    struct dirent *e;
    dpl_decoder *d;
    dpl_rng rng;
    int files = 0;

    (void)state;
    if (!dir) skip();
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    dpl_rng_init(&rng, 8, 0, 0, DPL_RNG_AUGMENT);
    while ((e = readdir(dir))) {
        size_t len;
        decode_result r;
        uint8_t *bytes;

        if (e->d_name[0] == '.') continue;
        bytes = test_read_file(test_format("../shared/corpus/%s", e->d_name), &len);
        r = decode_whole(d, bytes, len);
        if (!r.status && !r.warned) compare_boxes(d, e->d_name, bytes, len, FILE_BOXES, &rng);
        files += !r.status;
        free(r.rgb);
        free(bytes);
    }
    closedir(dir);
    dpl_decoder_destroy(&d);
    assert_true(files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_equal_a_full_decode),
        cmocka_unit_test(regions_of_turned_pictures_equal_a_full_decode),
        cmocka_unit_test(regions_of_coarse_progressive_files_equal_a_full_decode),
        cmocka_unit_test(regions_of_other_files_equal_a_full_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
