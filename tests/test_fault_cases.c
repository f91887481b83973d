/* SPDX-License-Identifier: Apache-2.0 */
/* What really goes wrong in folders of JPEGs: colour kinds, coding processes, damage, metadata, sampling.
 * Each test makes the files, holds library and `dpload check` against a verdict for each, and looks
 * at the delivered pixels. */
#include "tests/fault_set.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { W = 96, H = 64, PIXELS = W * H };

static const tool_jpeg_spec usual = { .quality = 85 };
static const tool_jpeg_spec fine = { .quality = 97, .h_samp = 1, .v_samp = 1 };

static tool_jpeg_spec fine_in(tool_jpeg_color color)
{
    tool_jpeg_spec spec = fine;

    spec.color = color;
    return spec;
}

static double mean_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += abs(a[i] - b[i]);
    return sum / (double)n;
}

static double mean(const uint8_t *a, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += a[i];
    return sum / (double)n;
}

/* f delivers what a picture of the seed shows, up to JPEG's loss. */
static void shows(fault_file f, uint64_t seed, double tolerance)
{
    uint8_t *want = test_picture(W, H, seed), *got = fault_pixels(f, 1, W, H);
    const double d = mean_difference(want, got, PIXELS * 3);

    if (d > tolerance) fail_msg("differs by %.2f on average", d);
    free(want);
    free(got);
}

/* Two files deliver the same bytes. */
static void same_pixels(fault_file f, fault_file g)
{
    uint8_t *a = fault_pixels(f, 1, W, H), *b = fault_pixels(g, 1, W, H);

    assert_memory_equal(a, b, PIXELS * 3);
    free(a);
    free(b);
}

/* --- A1: colour --- */

static void shows_luma(fault_file f, uint64_t seed)
{
    uint8_t *rgb = test_picture(W, H, seed), *got = fault_pixels(f, 1, W, H);

    for (size_t i = 0; i < PIXELS; i++) {
        uint8_t *p = rgb + 3 * i;
        const double luma = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];

        assert_true(got[3 * i] == got[3 * i + 1] && got[3 * i] == got[3 * i + 2]);
        memset(p, (int)(luma + 0.5), 3);
    }
    assert_true(mean_difference(rgb, got, PIXELS * 3) < 2);
    free(rgb);
    free(got);
}

/* A1-01, A1-02, A1-07: CMYK and YCCK with Adobe's inverted ink, and gray, among RGB pictures and under
 * names of ImageNet. */
static void a1_cmyk_and_gray_become_three_channels(void **state)
{
    static const struct {
        tool_jpeg_color color;
        const char *path;
    } kinds[] = { { TOOL_JPEG_CMYK, "a/n01739381_1309.JPEG" },
                  { TOOL_JPEG_YCCK, "b/n02447366_23489.JPEG" },
                  { TOOL_JPEG_RGB, "a/n03018349_4028.JPEG" } };
    const tool_jpeg_spec gray = fine_in(TOOL_JPEG_GRAY);
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const tool_jpeg_spec spec = fine_in(kinds[i].color);
        const fault_file f = fault_jpeg(&spec, W, H, 7);
        uint8_t *want = test_picture(W, H, 7), *got = fault_pixels(f, 1, W, H);

        fault_add(&s, kinds[i].path, f, FAULT_OK, NULL);
        shows(f, 7, 2);
        assert_true(fabs(mean(want, PIXELS * 3) - mean(got, PIXELS * 3)) < 1); /* no negative */
        free(want);
        free(got);
    }
    fault_add(&s, "b/gray.JPEG", fault_jpeg(&gray, W, H, 7), FAULT_OK, NULL);
    shows_luma(fault_jpeg(&gray, W, H, 7), 7);
    fault_judge(&s);
}

/* A1-04: what the markers say decides: Adobe 0 means RGB, unless there is a JFIF segment. */
static void a1_markers_decide_on_the_colour(void **state)
{
    static const uint8_t rgb_names[3] = { 'R', 'G', 'B' }, zero_names[3] = { 0, 1, 2 };
    const fault_file j = fault_jpeg(&fine, W, H, 3), bare = fault_drop(j, 0xe0);
    const fault_file as_rgb = fault_adobe(bare, 0), as_ycc = fault_adobe(j, 0);
    uint8_t *colours = fault_pixels(j, 1, W, H), *stored = fault_pixels(as_rgb, 1, W, H);
    double luma = 0;
    fault_set s;

    (void)state;
    for (size_t i = 0; i < PIXELS; i++)
        luma += fabs(0.299 * colours[3 * i] + 0.587 * colours[3 * i + 1] +
                     0.114 * colours[3 * i + 2] - stored[3 * i]);
    assert_true(luma / PIXELS < 1.5); /* its first channel is the other's luma */
    assert_true(mean_difference(colours, stored, PIXELS * 3) > 10);
    free(colours);
    free(stored);
    same_pixels(j, as_ycc);
    same_pixels(j, fault_ids(j, rgb_names)); /* JFIF: always YCbCr */
    same_pixels(j, fault_ids(j, zero_names));
    fault_begin(&s);
    fault_add(&s, "a/adobe0.jpg", as_rgb, FAULT_OK, NULL);
    fault_add(&s, "b/adobe0_jfif.jpg", as_ycc, FAULT_OK, NULL);
    fault_add(&s, "b/names.jpg", fault_ids(j, rgb_names), FAULT_OK, NULL);
    fault_add(&s, "a/adobe7.jpg", fault_adobe(bare, 7), FAULT_WARN, "transform code 7");
    fault_judge(&s);
}

/* --- A2: coding process --- */

/* A2-01, A2-02, A2-03, A5-04: the same coefficients, whatever codes them. */
static void a2_coding_processes(void **state)
{
    const tool_jpeg_spec progressive = { .quality = 85, .progressive = 1 };
    const tool_jpeg_spec arithmetic = { .quality = 85, .arithmetic = 1 };
    const tool_jpeg_spec both = { .quality = 85, .arithmetic = 1, .progressive = 1 };
    const tool_jpeg_spec restarts = { .quality = 85, .restart_rows = 1 };
    const fault_file j = fault_jpeg(&usual, W, H, 4);
    const fault_file r = fault_jpeg(&restarts, W, H, 4);
    fault_file deep = fault_bytes(j.bytes, j.len);
    uint8_t *rgb = test_picture(W, H, 4), *bytes;
    size_t len;
    fault_set s;

    (void)state;
    fault_begin(&s);
    same_pixels(j, fault_jpeg(&progressive, W, H, 4));
    same_pixels(j, r);
    fault_add(&s, "a/progressive.jpg", fault_jpeg(&progressive, W, H, 4), FAULT_OK, NULL);
    fault_add(&s, "a/restarts.jpg", r, FAULT_OK, NULL);
    deep.bytes[fault_frame_at(deep)] = 12;
    fault_add(&s, "b/deep.jpg", deep, FAULT_BAD, "12-bit JPEG is not supported");
    deep = fault_bytes(j.bytes, j.len);
    deep.bytes[fault_frame_at(deep) - 3] = 0xc3;
    fault_add(&s, "b/lossless.jpg", deep, FAULT_BAD, "lossless JPEG is not supported");
    if (!tool_jpeg_write(&arithmetic, rgb, W, H, &bytes, &len)) { /* this libjpeg can */
        free(bytes);
        same_pixels(j, fault_jpeg(&arithmetic, W, H, 4));
        same_pixels(j, fault_jpeg(&both, W, H, 4));
        fault_add(&s, "b/ari.jpg", fault_jpeg(&arithmetic, W, H, 4), FAULT_OK, NULL);
    }
    free(rgb);
    fault_judge(&s);
}

/* --- A3: truncated, corrupt --- */

/* A3-01, A3-02, A3-04 and their kin. */
static void a3_damage_has_a_verdict(void **state)
{
    static const tool_jpeg_spec restarts = { .quality = 85, .restart_rows = 1 };
    const fault_file j = fault_jpeg(&usual, W, H, 5), r = fault_jpeg(&restarts, W, H, 5);
    const uint8_t zeros[4096] = { 0 };
    fault_file lying = fault_bytes(j.bytes, j.len);
    fault_set s;

    (void)state;
    lying.bytes[4] = lying.bytes[5] = 0xff; /* length of the JFIF segment */
    same_pixels(j, fault_less(j, 2));
    same_pixels(j, fault_junk_before(j, 0xdb, 18));
    same_pixels(j, fault_more(j, zeros, sizeof zeros));
    fault_begin(&s);
    fault_add(&s, "a/00.jpg", j, FAULT_OK, NULL);
    fault_add(&s, "a/60.jpg", fault_cut(j, 60), FAULT_BAD, "rows missing");
    fault_add(&s, "a/end.jpg", fault_less(j, 2), FAULT_WARN, "the end marker is missing");
    fault_add(&s, "a/300.jpg", fault_bytes(j.bytes, 300), FAULT_BAD, "ends inside its header");
    fault_add(&s, "a/2.jpg", fault_bytes(j.bytes, 2), FAULT_BAD, "ends inside its header");
    fault_add(&s, "b/junk.jpg", fault_junk_before(j, 0xdb, 18), FAULT_WARN,
              "18 extraneous bytes before marker 0xdb");
    fault_add(&s, "b/zeros.jpg", fault_more(j, zeros, sizeof zeros), FAULT_OK, NULL);
    fault_add(&s, "b/twice.jpg", fault_more(j, j.bytes, j.len), FAULT_OK, NULL);
    fault_add(&s, "b/quant.jpg", fault_drop(j, 0xdb), FAULT_BAD, "Quantization table");
    fault_add(&s, "b/length.jpg", lying, FAULT_BAD, "ends inside its header");
    fault_add(&s, "b/restart.jpg", fault_lose_restart(r, 3), FAULT_BAD, "rows missing");
    fault_add(&s, "b/mjpeg.jpg", fault_no_tables(), FAULT_OK, NULL); /* a frame of motion JPEG */
    fault_judge(&s);
}

static void a3_a_file_without_huffman_tables_gets_the_usual_ones(void **state)
{
    uint8_t *rgb = fault_pixels(fault_no_tables(), 1, 8, 8);

    (void)state;
    for (size_t i = 0; i < 8 * 8 * 3; i++) assert_int_equal(rgb[i], 128);
    free(rgb);
    fault_free_all();
}

/* A3-06: flipped bits, seeds 1..50: whatever comes of each, it is the same with 1, 2 and 8 workers. */
static void a3_flipped_bits_give_one_result(void **state)
{
    const fault_file j = fault_jpeg(&usual, W, H, 6);
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (uint64_t seed = 1; seed <= 50; seed++)
        fault_add(&s, test_format("%c/%02d.jpg", seed % 2 ? 'a' : 'b', (int)seed),
                  fault_flips(j, 40, seed), FAULT_ANY, NULL);
    fault_judge(&s);
}

/* --- A4: metadata, markers --- */

/* What is stored when a camera held in this orientation sees rgb [h][w][3]: the first row and column
 * of the stored picture are these sides of the scene (EXIF 2.3, tag 274). */
static uint8_t *as_held(const uint8_t *rgb, int w, int h, int orientation)
{
    const int swap = orientation > 4, out_w = swap ? h : w, out_h = swap ? w : h;
    uint8_t *out = malloc((size_t)w * (size_t)h * 3);

    assert_non_null(out);
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            static const char first_row[] = "?ttbblrrl", first_column[] = "?lrrlttbb";
            const char r = first_row[orientation], c = first_column[orientation];
            const int row = r == 't' ? y : r == 'b' ? h - 1 - y : r == 'l' ? x : w - 1 - x;
            const int col = c == 't' ? y : c == 'b' ? h - 1 - y : c == 'l' ? x : w - 1 - x;

            assert_true(row < out_h && col < out_w);
            memcpy(out + ((size_t)row * (size_t)out_w + (size_t)col) * 3,
                   rgb + ((size_t)y * (size_t)w + (size_t)x) * 3, 3);
        }
    }
    return out;
}

/* A4-01 */
static void a4_all_orientations_show_the_same_picture(void **state)
{
    uint8_t *scene = test_picture(W, H, 8);
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (int o = 1; o <= 8; o++) {
        const int swap = o > 4;
        const tool_jpeg_spec spec = { .quality = 97, .h_samp = 1, .v_samp = 1, .orientation = o };
        uint8_t *stored = as_held(scene, W, H, o), *got;
        const fault_file f = fault_encode(&spec, stored, swap ? H : W, swap ? W : H);

        shows(f, 8, 2);
        got = fault_pixels(f, 0, swap ? H : W, swap ? W : H); /* ignored: as stored */
        assert_true(mean_difference(got, stored, PIXELS * 3) < 2);
        free(got);
        free(stored);
        fault_add(&s, test_format("a/%d.jpg", o), f, FAULT_OK, NULL);
    }
    free(scene);
    fault_judge(&s);
}

/* A4-03: EXIF that is wrong changes nothing and is no news. A4-05: fill bytes are legal, others are
 * named. A4-08: of several pictures in one file the first counts. */
static void a4_odd_markers(void **state)
{
    static const uint8_t mpf[] = "MPF\0II*\0\10\0\0\0\0\0\0\0\0\0";
    const fault_file j = fault_jpeg(&usual, W, H, 9), other = fault_jpeg(&usual, 40, 30, 1);
    const fault_file mpo =
        fault_more(fault_after_start(j, 0xe2, mpf, sizeof mpf), other.bytes, other.len);
    const fault_file wrong[] = {
        fault_exif(j, 0, 1),
        fault_exif(j, 255, 1),
        fault_exif(j, 6, 0x7fffffff),
        fault_after_start(j, 0xe1, "Exif\0\0II*\0\377\377\377\377", 14),
        fault_after_start(j, 0xe1, "Exif\0\0MM", 8),
        fault_after_start(j, 0xe1, "Exif", 4),
        fault_after_start(j, 0xe1, "", 0),
        fault_insert(j, 2, "\xff\xff\xff\xff\xff", 5),
        mpo,
    };
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        same_pixels(j, wrong[i]);
        fault_add(&s, test_format("a/%zu.jpg", i), wrong[i], FAULT_OK, NULL);
    }
    fault_add(&s, "b/data.jpg", fault_insert(j, 20, "\xff\0", 2), FAULT_WARN,
              "2 extraneous bytes before marker");
    fault_add(&s, "b/zeros.jpg", fault_insert(j, 20, "\0\0\0\0", 4), FAULT_WARN,
              "4 extraneous bytes before marker");
    fault_judge(&s);
}

/* --- A5: sampling, restart --- */

/* A5-01, A5-02 and A5-04: chroma at any resolution, with and without restart markers. */
static void a5_sampling(void **state)
{
    static const int factors[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 },
                                      { 4, 1 }, { 4, 2 }, { 1, 4 } };
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        tool_jpeg_spec spec = { .quality = 97, .h_samp = factors[i][0], .v_samp = factors[i][1] };
        const fault_file f = fault_jpeg(&spec, W, H, 10);

        shows(f, 10, 5); /* colour is smeared over the disc's edge */
        spec.restart_rows = 1;
        same_pixels(f, fault_jpeg(&spec, W, H, 10));
        fault_add(&s, test_format("b/%dx%d.jpg", factors[i][0], factors[i][1]), f, FAULT_OK, NULL);
    }
    fault_judge(&s);
}

/* The tests above, and those of the other files, hold `dpload check` against the same verdicts. */
static void the_programs_were_tested_too(void **state)
{
    const char *out, *err;
    fault_set s;

    (void)state;
    fault_begin(&s);
    if (fault_run(&s, &out, &err, "dpload --version") < 0) skip();
    fault_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a1_cmyk_and_gray_become_three_channels),
        cmocka_unit_test(a1_markers_decide_on_the_colour),
        cmocka_unit_test(a2_coding_processes),
        cmocka_unit_test(a3_damage_has_a_verdict),
        cmocka_unit_test(a3_a_file_without_huffman_tables_gets_the_usual_ones),
        cmocka_unit_test(a3_flipped_bits_give_one_result),
        cmocka_unit_test(a4_all_orientations_show_the_same_picture),
        cmocka_unit_test(a4_odd_markers),
        cmocka_unit_test(a5_sampling),
        cmocka_unit_test(the_programs_were_tested_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
