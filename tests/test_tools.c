/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the tools: hash, small text, PNG files, how the sample maker stores and draws. */
#include "tests/testutil.h"

#include "base/text.h"
#include "dpload.h"
#include "loader/decode.h"
#include "tools/dpload_bench.h"
#include "tools/dpload_cli.h"
#include "tools/drawset.h"
#include "tools/font.h"
#include "tools/hash64.h"
#include "tools/png_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- hash --- */

/* Values published with the xxHash reference implementation, seed 0. */
static void hash_is_xxh64(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } known[] = {
        { "", 0xEF46DB3751D8E999U },
        { "a", 0xD24EC4F1A98C6E5BU },
        { "abc", 0x44BC2CF5AD770999U },
        { "Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1U },
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tool_hash64 h;

        tool_hash64_init(&h);
        tool_hash64_add(&h, known[i].text, strlen(known[i].text));
        assert_true(tool_hash64_value(&h) == known[i].want);
    }
}

static void hash_does_not_see_the_pieces(void **state)
{
    uint8_t *data = test_guarded_bytes(1000, 1);
    tool_hash64 whole;
    (void)state;

    tool_hash64_init(&whole);
    tool_hash64_add(&whole, data, 1000);
    for (size_t piece = 1; piece < 100; piece++) {
        tool_hash64 h;

        tool_hash64_init(&h);
        for (size_t at = 0; at < 1000; at += piece) {
            tool_hash64_add(&h, data + at, at + piece < 1000 ? piece : 1000 - at);
        }
        assert_true(tool_hash64_value(&h) == tool_hash64_value(&whole));
    }
    test_free_all();
}

/* --- text --- */

enum { PAGE_W = 60, PAGE_H = 12 };

static int ink_between(const uint8_t *page, int from, int to)
{
    int n = 0;

    for (int y = 0; y < PAGE_H; y++) {
        for (int x = from; x < to; x++) n += page[3 * (y * PAGE_W + x)] != 0;
    }
    return n;
}

static void text_is_drawn_and_cut(void **state)
{
    static const uint8_t white[3] = { 255, 255, 255 };
    static const uint8_t l_rows[7] = { 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f };
    uint8_t *page = test_canary(3 * PAGE_W * PAGE_H), *other = test_canary(3 * PAGE_W * PAGE_H);
    (void)state;

    memset(page, 0, 3 * PAGE_W * PAGE_H);
    tool_font_draw(page, PAGE_W, PAGE_H, 1, 2, 58, "L", white);
    for (int y = 0; y < 7; y++) {
        for (int x = 0; x < 5; x++) {
            assert_int_equal(page[3 * ((y + 2) * PAGE_W + x + 1)] != 0, l_rows[y] >> (4 - x) & 1);
        }
    }
    assert_int_equal(ink_between(page, 6, PAGE_W), 0);

    memset(page, 0, 3 * PAGE_W * PAGE_H); /* room for five: "abc.." */
    memset(other, 0, 3 * PAGE_W * PAGE_H);
    tool_font_draw(page, PAGE_W, PAGE_H, 0, 0, 29, "abcdefgh", white);
    tool_font_draw(other, PAGE_W, PAGE_H, 0, 0, 29, "abc..", white);
    assert_memory_equal(page, other, 3 * PAGE_W * PAGE_H);
    assert_true(ink_between(page, 18, 29) > 0);
    assert_int_equal(ink_between(page, 29, PAGE_W), 0);

    tool_font_draw(page, PAGE_W, PAGE_H, -3, -4, 200, "outside on every side {}|~", white);
    tool_font_draw(page, PAGE_W, PAGE_H, 40, 8, 200, "\xc3\xa4\xff\x80", white);
    tool_font_draw(page, PAGE_W, PAGE_H, 0, 0, 3, "x", white);
    assert_true(test_canary_ok(page, 3 * PAGE_W * PAGE_H));
    test_free_all();
}

static void every_letter_has_its_own_shape(void **state)
{
    static const uint8_t white[3] = { 255, 255, 255 };
    uint8_t pages[95][3 * 6 * 9];
    (void)state;

    memset(pages, 0, sizeof pages);
    for (int c = 0; c < 95; c++) {
        const char text[2] = { (char)(' ' + c), 0 };

        tool_font_draw(pages[c], 6, 9, 0, 0, 5, text, white);
        for (int other = 0; other < c; other++) {
            if (!memcmp(pages[c], pages[other], sizeof pages[c])) {
                fail_msg("'%c' looks like '%c'", ' ' + c, ' ' + other);
            }
        }
    }
}

/* --- PNG --- */

static void png_reads_back(void **state)
{
    const dpl_decode_limits limits = { 1000000, 100, 1, 1, 1 };
    char path[4096];
    uint8_t *rgb = test_picture(37, 21, 5), *file;
    dpl_decoder *d;
    dpl_pixels got;
    dpl_text why = { "" };
    size_t len;
    int w, h, warned, err;
    (void)state;

    snprintf(path, sizeof path, "%s/a.png", test_tempdir());
    if (tool_png_write(path, rgb, 37, 21, &why)) fail_msg("%s", why.s);
    file = test_read_file(path, &len);
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    err = dpl_decode_begin(d, file, len, &w, &h, &why);
    if (!err) err = dpl_decode_region(d, 0, 0, w, h, 1, &got, &warned, &why);
    if (err) fail_msg("%s", why.s);
    assert_true(w == 37 && h == 21);
    for (int y = 0; y < h; y++) {
        assert_memory_equal(got.rgb + (size_t)y * got.stride, rgb + 3 * 37 * y, 3 * 37);
    }
    dpl_decoder_destroy(&d);
    free(file);
    free(rgb);
}

static void png_refuses_a_path_with_a_reason(void **state)
{
    static const uint8_t dot[3] = { 1, 2, 3 };
    dpl_text why = { "" };
    (void)state;

    assert_int_equal(tool_png_write(test_format("%s/no/a.png", test_tempdir()), dot, 1, 1, &why),
                     DPL_EIO);
    assert_non_null(strstr(why.s, "no/a.png"));
    assert_non_null(strstr(why.s, "No such file"));
}

/* --- drawset --- */

static void turned_pictures_show_upright(void **state)
{
    FILE *f = fopen("tests/data/exif_turns.txt", "r");
    int o, w, h, seen = 0;
    (void)state;

    if (!f) skip(); /* run from the root of the project */
    while (fscanf(f, "%d %d %d", &o, &w, &h) == 3) {
        uint8_t shown[18], stored[18];

        for (int i = 0; i < 6; i++) {
            int v;

            assert_int_equal(fscanf(f, "%d", &v), 1);
            memset(shown + 3 * i, v, 3);
        }
        memset(stored, 0, sizeof stored);
        drawset_turn(stored, shown, w, h, o);
        for (int i = 0; i < 6; i++) {
            if (stored[3 * i] != i + 1) fail_msg("orientation %d, pixel %d", o, i);
        }
        seen++;
    }
    fclose(f);
    assert_int_equal(seen, 8);
}

static void awkward_files_are_few_and_all_kinds(void **state)
{
    int orientations = 0, colors = 0, awkward = 0, gray = 0, progressive = 0, restart = 0;
    (void)state;

    for (uint64_t i = 0; i < 600; i++) {
        tool_jpeg_spec spec;
        const char *word = drawset_storage(&spec, i, 77);

        assert_int_equal(spec.quality, 77);
        awkward += *word != 0;
        if (spec.orientation) orientations |= 1 << spec.orientation;
        colors |= 1 << spec.color;
        gray += spec.color == TOOL_JPEG_GRAY;
        progressive += spec.progressive;
        restart += spec.restart_rows > 0;
        assert_false(*word && strcmp(word, "gray") == 0 && spec.color != TOOL_JPEG_GRAY);
    }
    assert_int_equal(orientations, 0x1fc); /* 2..8 */
    assert_int_equal(colors, 0x1f);
    assert_true(awkward >= 30 && awkward <= 90);
    assert_true(gray >= 1 && gray <= 6); /* colour tells the classes apart */
    assert_true(progressive > 3 && restart > 3);
}

/* Many pixels of the class's colour, few of the other. */
static void scenes_show_their_color(void **state)
{
    enum { W = 160, H = 120 };
    uint8_t *rgb = test_canary(3 * W * H);
    (void)state;

    for (int i = 0; i < 60; i++) {
        const int k = i % DRAWSET_CLASSES, blue = !strncmp(drawset_class_name(k), "blue", 4);
        int red_n = 0, blue_n = 0;

        drawset_scene(rgb, W, H, k, 9, 0, (uint64_t)i);
        for (int p = 0; p < W * H; p++) {
            const int r = rgb[3 * p], g = rgb[3 * p + 1], b = rgb[3 * p + 2];

            red_n += r > 2 * b && r > 2 * g && r > 90;
            blue_n += b > 2 * r && 2 * b > 3 * g && b > 90;
        }
        if (blue ? blue_n < 4 * red_n + 500 : red_n < 4 * blue_n + 500) {
            fail_msg("scene %d is no %s: %d red, %d blue", i, drawset_class_name(k), red_n, blue_n);
        }
    }
    assert_true(test_canary_ok(rgb, 3 * W * H));
    test_free_all();
}

static void scenes_are_functions_of_their_numbers(void **state)
{
    enum { W = 50, H = 40, LEN = 3 * W * H };
    static uint8_t a[LEN], b[LEN];
    int w, h;
    (void)state;

    drawset_scene(a, W, H, 2, 1, 0, 7);
    drawset_scene(b, W, H, 2, 1, 0, 7);
    assert_memory_equal(a, b, LEN);
    drawset_scene(b, W, H, 2, 2, 0, 7);
    assert_memory_not_equal(a, b, LEN);
    drawset_scene(b, W, H, 2, 1, 1, 7);
    assert_memory_not_equal(a, b, LEN);
    drawset_scene(b, W, H, 2, 1, 0, 8);
    assert_memory_not_equal(a, b, LEN);
    for (uint64_t i = 0; i < 500; i++) {
        drawset_scene_size(&w, &h, 90, 200, 3, 0, i);
        assert_true(w >= 90 && w <= 200 && h >= 90 && h <= 200);
    }
    drawset_scene_size(&w, &h, 64, 64, 3, 0, 1);
    assert_true(w == 64 && h == 64);
}

/* --- captions of dpload show --- */

static void captions_name_both_of_a_mixture(void **state)
{
    static const char *const names[] = { "cat", "dog" };
    const int32_t labels[] = { 1, 1, -1 }, labels2[] = { 1, 0, 1 };
    const float mix[] = { 1, 0.7109375F, 0.25F };
    const dpl_info info = { .classes = 2, .class_names = names };
    const dpl_part p = { .labels = labels, .labels2 = labels2, .mix = mix, .n = 3 };
    char line[2][CLI_CAPTION_MAX];

    (void)state;
    assert_int_equal(cli_caption(line, &p, 0, &info), 1);
    assert_string_equal(line[0], "dog");
    assert_int_equal(cli_caption(line, &p, 1, &info), 2);
    assert_string_equal(line[0], "0.71 dog");
    assert_string_equal(line[1], "0.29 cat");
    assert_int_equal(cli_caption(line, &p, 2, &info), 2);
    assert_string_equal(line[0], "0.25 -");
    assert_string_equal(line[1], "0.75 dog");
}

/* --- dpload bench --- */

static bench_result measured(double waited, double blocked)
{
    bench_result r = { .start_ns = 0, .end = { .ns = 10000000000 } };

    r.info.workers = 4;
    r.end.stats.seconds = 10;
    r.end.stats.wait_s = waited;         /* of the consumer, of 10 s */
    r.end.stats.blocked_s = 4 * blocked; /* of all threads together */
    return r;
}

static void a_wait_for_the_first_batches_is_no_limit(void **state)
{
    bench_result r;

    (void)state;
    r = measured(0.1, 0);
    assert_int_equal(bench_verdict_of(&r), BENCH_KEEPS_UP);
    r = measured(0.7, 7); /* seen: 7 % of a short run, with the loader idle for 70 % of it */
    assert_int_equal(bench_verdict_of(&r), BENCH_STARTS_ONLY);
    r = measured(4, 0.1);
    assert_int_equal(bench_verdict_of(&r), BENCH_LOADER_IS_THE_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_xxh64),
        cmocka_unit_test(hash_does_not_see_the_pieces),
        cmocka_unit_test(text_is_drawn_and_cut),
        cmocka_unit_test(every_letter_has_its_own_shape),
        cmocka_unit_test(png_reads_back),
        cmocka_unit_test(png_refuses_a_path_with_a_reason),
        cmocka_unit_test(turned_pictures_show_upright),
        cmocka_unit_test(awkward_files_are_few_and_all_kinds),
        cmocka_unit_test(scenes_show_their_color),
        cmocka_unit_test(scenes_are_functions_of_their_numbers),
        cmocka_unit_test(captions_name_both_of_a_mixture),
        cmocka_unit_test(a_wait_for_the_first_batches_is_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
