/* SPDX-License-Identifier: Apache-2.0 */
/* What really goes wrong in picture folders, beside damaged JPEGs: sizes, other formats, what is no
 * picture at all, and files made to do harm. As in test_fault_cases.c. */
#include "base/clock.h"
#include "tests/decode_cases.h"
#include "tests/fault_set.h"
#include "tests/testutil.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { W = 64, H = 48 };

static const tool_jpeg_spec usual = { .quality = 85 };

/* Seconds that deciding on one file takes, and the text. */
static double decide(fault_file f, int status, const char *text)
{
    const dpl_decode_limits limits = decode_limits();
    const int64_t start = dpl_now_ns();
    const decode_result r = decode_once(&limits, f.bytes, f.len);
    const double seconds = (double)(dpl_now_ns() - start) * 1e-9;

    if (r.status != status || (text && !strstr(r.why.s, text)))
        fail_msg("status %d, \"%s\"; wanted %d, \"%s\"", r.status, r.status ? r.why.s : "", status,
                 text ? text : "");
    free(r.rgb);
    return seconds;
}

/* --- A6: sizes --- */

/* A6-01: one pixel wide or high, whole, and through random crops. */
static void a6_thin_pictures_are_pictures(void **state)
{
    fault_set s;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/tall.jpg", fault_jpeg(&usual, 1, 4000, 1), FAULT_OK, NULL);
    fault_add(&s, "a/wide.jpg", fault_jpeg(&usual, 4000, 1, 1), FAULT_OK, NULL);
    fault_add(&s, "b/dot.jpg", fault_jpeg(&usual, 1, 1, 1), FAULT_OK, NULL);
    fault_add(&s, "b/dot.png", fault_png(1, 1, 2, 8, NULL, NULL), FAULT_OK, NULL);
    fault_judge(&s);
}

/* A6-04 and A6-06: no side may be 0, or more than JPEG or the limit allows; what the file cannot
 * hold costs no memory. */
static void a6_sizes_out_of_range_are_refused_at_once(void **state)
{
    const fault_file j = fault_jpeg(&usual, W, H, 2);
    size_t before;
    fault_set s;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/0x48.jpg", fault_dims(j, 0, H), FAULT_BAD, "Empty JPEG image");
    fault_add(&s, "a/64x0.jpg", fault_dims(j, W, 0), FAULT_BAD, "Empty JPEG image");
    fault_add(&s, "a/65501.jpg", fault_dims(j, 65501, 10), FAULT_BAD, "65500");
    fault_add(&s, "b/300m.jpg", fault_dims(j, 15000, 20000), FAULT_BAD,
              "15000x20000 pixels, the limit is 178956970 (max_pixels)");
    fault_add(&s, "b/65500.jpg", fault_dims(j, 65500, 65500), FAULT_BAD, "(max_pixels)");
    fault_add(&s, "b/144m.jpg", fault_dims(j, 12000, 12000), FAULT_BAD,
              "cannot hold a JPEG of 12000x12000 pixels");
    before = mallinfo2().uordblks;
    assert_true(decide(fault_dims(j, 12000, 12000), DPL_EDATA, NULL) < 0.1);
    assert_true(mallinfo2().uordblks <= before + (1 << 20));
    fault_judge(&s);
}

/* --- A7: other formats --- */

/* What fault_png() shows at pixel x of row y. */
static void png_pixel(uint8_t rgb[3], unsigned x, unsigned y, int type, int depth)
{
    static const unsigned channels[] = { [0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4 };
    const unsigned bytes = channels[type] * (unsigned)depth / 8, step = (unsigned)depth / 8;
    const int gray = type == 0 || type == 4;

    for (unsigned c = 0; c < 3; c++) {
        rgb[c] = fault_png_byte(x * bytes + (gray || type == 3 ? 0 : c * step), y);
        if (type == 3) rgb[c] = (uint8_t)(rgb[c] ^ (0x55 * c)); /* as the palette of the test */
    }
}

/* A7-01 to A7-04: the format is told by the bytes, alpha is dropped, 16 bits keep the high byte. */
static void a7_png_kinds_become_rgb(void **state)
{
    static const int kinds[][2] = { { 2, 8 },  { 6, 8 },  { 4, 8 },  { 0, 8 },
                                    { 0, 16 }, { 2, 16 }, { 6, 16 }, { 3, 8 } };
    uint8_t palette[768], alpha[256];
    fault_file extra;
    fault_set s;

    (void)state;
    for (unsigned i = 0; i < 768; i++) palette[i] = (uint8_t)(i / 3 ^ 0x55 * (i % 3));
    for (int i = 0; i < 256; i++) alpha[i] = (uint8_t)(255 - i);
    fault_begin(&s);
    extra = fault_chunk((fault_file){ 0 }, "PLTE", palette, sizeof palette);
    extra = fault_chunk(extra, "tRNS", alpha, sizeof alpha);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int type = kinds[i][0], depth = kinds[i][1];
        const fault_file f = fault_png(W, H, type, depth, NULL, type == 3 ? &extra : NULL);
        uint8_t *got = fault_pixels(f, 1, W, H), rgb[3];

        for (unsigned y = 0; y < H; y++) {
            for (unsigned x = 0; x < W; x++) {
                png_pixel(rgb, x, y, type, depth);
                assert_memory_equal(got + (y * W + x) * 3, rgb, 3);
            }
        }
        free(got);
        fault_add(&s, test_format("a/n02105855_%d_%d.JPEG", type, depth), f, FAULT_OK, NULL);
    }
    fault_judge(&s);
}

/* A7-06, A7-07 and what else is found under a picture's name. */
static void a7_damaged_and_other_formats_are_refused_by_name(void **state)
{
    const fault_file thirty = fault_bytes(test_format("%030d", 0), 30);
    const fault_file good = fault_png(8, 8, 2, 8, NULL, NULL);
    fault_file sum = fault_bytes(good.bytes, good.len), filter = fault_bytes("\7", 1), rows;
    fault_set s;

    (void)state;
    sum.bytes[sum.len - 13] ^= 1; /* the last byte of the pixels' checksum */
    rows = fault_more(filter, thirty.bytes, 24);
    fault_begin(&s);
    fault_add(&s, "a/rows.png", fault_png(8, 8, 2, 8, &thirty, NULL), FAULT_BAD, "PNG: ");
    fault_add(&s, "a/filter.png", fault_png(8, 1, 2, 8, &rows, NULL), FAULT_BAD, "PNG: ");
    fault_add(&s, "a/sum.png", sum, FAULT_BAD, "wrong checksum (CRC) in chunk IDAT");
    fault_add(&s, "a/cut.png", fault_less(good, 20), FAULT_BAD, "rows missing");
    fault_add(&s, "a/end.png", fault_less(good, 12), FAULT_WARN, "(IEND) is missing");
    fault_add(&s, "a/palette.png", fault_png(8, 8, 3, 8, NULL, NULL), FAULT_BAD, "PLTE");
    fault_add(&s, "b/gif.jpg", fault_gif(), FAULT_BAD, "GIF is not supported (JPEG, PNG and WebP");
    fault_add(&s, "b/10073.jpg", fault_bmp(8, 8), FAULT_BAD, "BMP is not supported");
    fault_add(&s, "b/tiff.jpg", fault_bytes("II*\0\10\0\0\0", 8), FAULT_BAD, "TIFF");
#ifdef DPL_HAVE_WEBP
    fault_add(&s, "b/webp.jpg", fault_webp(), FAULT_OK, NULL);
    fault_add(&s, "b/webp_cut.webp", fault_less(fault_webp(), 5), FAULT_BAD, "cut off");
#else
    fault_add(&s, "b/webp.jpg", fault_webp(), FAULT_BAD, "WebP is not supported");
#endif
    fault_judge(&s);
}

/* --- A8: wrong content --- */

/* A8-01, A8-04: what is no picture is named; A8-05: junk is no sample, nor a class. */
static void a8_what_is_no_picture_is_named_or_ignored(void **state)
{
    static const char *const junk[] = { ".DS_Store",   "Thumbs.db",   "desktop.ini",   "README",
                                        "a/.DS_Store", "a/Thumbs.db", "b/desktop.ini", "b/README" };
    const uint8_t zeros[5000] = { 0 };
    const char *out, *err;
    fault_set s;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/empty.jpg", fault_bytes("", 0), FAULT_BAD, "empty file");
    fault_add(&s, "a/page.jpg", fault_bytes("<!DOCTYPE html><html><body>404", 30), FAULT_BAD,
              "HTML");
    fault_add(&s, "a/gzip.jpg", fault_bytes("\x1f\x8b\10\0\0\0\0\0\0\0", 10), FAULT_BAD, "gzip");
    fault_add(&s, "b/zeros.jpg", fault_bytes(zeros, sizeof zeros), FAULT_BAD, "zeros");
    fault_add(&s, "b/text.jpg", fault_bytes("hello", 5), FAULT_BAD, "text");
    fault_add(&s, "b/noise.jpg", fault_bytes("\x9e\x01\xfe\x80", 4), FAULT_BAD, "9e 01 fe 80");
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
        test_write_file(test_format("%s/%s", s.root, junk[i]), "x", 1);
    if (fault_run(&s, &out, &err, "dpload check .") >= 0)
        assert_non_null(strstr(out,
                               "8 pictures: 2 decoded in full (0 with a warning), 6 bad; 2 other "
                               "files ignored"));
    fault_judge(&s); /* two classes, eight samples */
}

/* --- C1: malicious pictures --- */

/* C1-01: the first 1..64 bytes of each format end at an unreadable page. */
static void c1_short_files_are_not_read_past_their_end(void **state)
{
    const fault_file whole[] = { fault_png(8, 8, 2, 8, NULL, NULL), fault_jpeg(&usual, W, H, 1),
                                 fault_webp(), fault_gif(), fault_bmp(4, 4) };
    const dpl_decode_limits limits = decode_limits();

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        for (size_t n = 1; n < whole[i].len && n <= 64; n++) {
            uint8_t *bytes = test_guarded_bytes(n, 0);
            decode_result r;

            memcpy(bytes, whole[i].bytes, n);
            r = decode_once(&limits, bytes, n);
            assert_int_equal(r.status, DPL_EDATA);
            test_free_all();
        }
    }
    fault_free_all();
}

/* C1-02: sizes whose product overflows are refused by the limit, within 100 ms and no memory. */
static void c1_sizes_that_overflow_are_refused_at_once(void **state)
{
    const fault_file none = fault_bytes("", 0);
    const fault_file files[] = {
        fault_png(65536, 65536, 6, 8, &none, NULL),
        fault_png(0x7fffffff, 0x7fffffff, 6, 16, &none, NULL),
        fault_png(0xffffffff, 0xffffffff, 6, 16, &none, NULL),
        fault_png(0x80000000, 2, 0, 1, &none, NULL),
        fault_png(0xffffffff, 1, 2, 8, &none, NULL),
    };
    const size_t before = mallinfo2().uordblks;
    fault_set s;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_true(decide(files[i], DPL_EDATA, "(max_pixels)") < 0.1);
    assert_true(mallinfo2().uordblks <= before + (1 << 20));
    fault_begin(&s);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fault_add(&s, test_format("b/%zu.png", i), files[i], FAULT_BAD, "(max_pixels)");
    fault_judge(&s);
}

/* C1-03: scans that say nothing cost no bytes but visit every block of 36 megapixels. */
static void c1_scan_bombs_are_bounded(void **state)
{
    enum { SIDE = 6000, SCANS = 6 /* of a gray picture */, MOST = 71 /* of 36 megapixels */ };
    const tool_jpeg_spec gray = { .quality = 85, .progressive = 1, .color = TOOL_JPEG_GRAY };
    uint8_t *rgb = malloc((size_t)SIDE * SIDE * 3);
    dpl_decode_limits limits = decode_limits();
    decode_result r;
    fault_file f, g;

    (void)state;
    assert_non_null(rgb);
    memset(rgb, 128, (size_t)SIDE * SIDE * 3);
    f = fault_encode(&gray, rgb, SIDE, SIDE);
    free(rgb);
    assert_true(decide(fault_repeat_scan(f, 1000), DPL_EDATA,
                       "more than 71 scans (max_scans 256, fewer above 10 megapixels)") < 0.1);
    decide(fault_repeat_scan(f, MOST - SCANS + 1), DPL_EDATA, "more than 71 scans");
    assert_true(decide(fault_repeat_scan(f, MOST - SCANS), DPL_OK, NULL) < 15); /* 1.5 s of work */
    limits.max_scans = 20; /* 5 by size: what encoders write is taken all the same */
    g = fault_repeat_scan(f, 16 - SCANS);
    r = decode_once(&limits, g.bytes, g.len);
    assert_int_equal(r.status, DPL_OK);
    free(r.rgb);
    g = fault_repeat_scan(f, 17 - SCANS);
    r = decode_once(&limits, g.bytes, g.len);
    assert_int_equal(r.status, DPL_EDATA);
    limits.max_scans = SCANS - 1; /* the option may go lower */
    r = decode_once(&limits, f.bytes, f.len);
    assert_int_equal(r.status, DPL_EDATA);
    fault_free_all();
}

/* A name with a line break, a tab or an escape sequence stays one entry of one line. */
static void c1_names_cannot_forge_the_list(void **state)
{
    const char *out, *err, *at;
    int code, lines = 0;
    fault_set s;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/x\n3 pictures\t\x1b[2J.jpg", fault_gif(), FAULT_BAD, "GIF");
    code = fault_run(&s, &out, &err, "dpload check .");
    if (code >= 0) {
        assert_int_equal(code, 3);
        assert_non_null(strstr(out, "./a/x\\n3 pictures\\t\\x1b[2J.jpg\tGIF is not"));
        for (at = out; (at = strchr(at, '\n')); at++) lines++;
        assert_int_equal(lines, 2);
    }
    fault_free_all();
}

/* --- C1-05 --- */

typedef struct herd {
    fault_file kind[6];
    uint64_t n;
} herd;

static uint64_t herd_count(void *user)
{
    return ((herd *)user)->n;
}

static int64_t herd_read(void *user, uint64_t i, void *buf, size_t cap)
{
    const fault_file f = ((herd *)user)->kind[i % 6];

    memcpy(buf, f.bytes, f.len < cap ? f.len : cap);
    return (int64_t)f.len;
}

static int32_t herd_label(void *user, uint64_t i)
{
    (void)user;
    return (int32_t)(i % 3);
}

/* 10 000 bad pictures by way of libjpeg's and libpng's jumps: the process lives, nothing is left
 * behind but the list of them, and closing frees that. */
static void c1_ten_thousand_bad_pictures_leave_nothing_behind(void **state)
{
    const fault_file j = fault_jpeg(&usual, W, H, 3), p = fault_png(8, 8, 2, 8, NULL, NULL);
    herd h = { { fault_cut(j, 60), fault_drop(j, 0xdb), fault_bytes(j.bytes, 300), fault_gif(),
                 fault_less(p, 20), fault_png(8, 8, 3, 8, NULL, NULL) },
               10000 };
    const dpl_source source = { &h, herd_count, herd_read, herd_label, NULL };
    dpl_stats st = { .size = sizeof st };
    size_t before, listed = 0;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    dpl_options_init(&opt, sizeof opt);
    opt.source = &source;
    opt.width = opt.height = 32;
    opt.batch = 100;
    opt.workers = 4;
    opt.max_bad = 1;
    opt.epochs = 2;
    before = mallinfo2().uordblks;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int e = 0; e < 2; e++) {
        while (!dpl_next(l, &b, -1)) {
            assert_int_equal(b.n, 0);
            dpl_release(l, &b, NULL);
        }
        dpl_stats_get(l, &st);
        assert_int_equal(st.bad, 10000);
        if (e == 0)
            listed = mallinfo2().uordblks;
        else
            assert_true(mallinfo2().uordblks <= listed + (256 << 10));
    }
    dpl_close(&l);
    assert_true(mallinfo2().uordblks <= before + (256 << 10));
    fault_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a6_thin_pictures_are_pictures),
        cmocka_unit_test(a6_sizes_out_of_range_are_refused_at_once),
        cmocka_unit_test(a7_png_kinds_become_rgb),
        cmocka_unit_test(a7_damaged_and_other_formats_are_refused_by_name),
        cmocka_unit_test(a8_what_is_no_picture_is_named_or_ignored),
        cmocka_unit_test(c1_short_files_are_not_read_past_their_end),
        cmocka_unit_test(c1_sizes_that_overflow_are_refused_at_once),
        cmocka_unit_test(c1_scan_bombs_are_bounded),
        cmocka_unit_test(c1_names_cannot_forge_the_list),
        cmocka_unit_test(c1_ten_thousand_bad_pictures_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
