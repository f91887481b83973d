/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged and hostile JPEGs: what is refused, what only warns, and that nothing else happens. */
#include "base/clock.h"
#include "base/rng.h"
#include "dpload.h"
#include "tests/decode_cases.h"
#include "tests/testutil.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { W = 96, H = 80 };

typedef struct sample {
    uint8_t *bytes;
    size_t len;
} sample;

static sample make(const tool_jpeg_spec *spec)
{
    sample s;

    s.bytes = test_jpeg(W, H, 5, spec, &s.len);
    return s;
}

static const tool_jpeg_spec baseline = { .quality = 85 };
static const tool_jpeg_spec progressive = { .quality = 85, .progressive = 1 };
static const tool_jpeg_spec arithmetic = { .quality = 85, .arithmetic = 1 };
static const tool_jpeg_spec restarts = { .quality = 85, .restart_rows = 1 };

/* Offset of the k-th marker (from 0), or fails. Markers in entropy-coded data are found as well. */
static size_t find_marker(const sample *s, int marker, int k)
{
    for (size_t i = 2; i + 1 < s->len; i++)
        if (s->bytes[i] == 0xff && s->bytes[i + 1] == marker && k-- == 0) return i;
    fail_msg("no marker %02x", (unsigned)marker);
    return 0;
}

static sample without(const sample *s, size_t at, size_t n)
{
    sample out = { malloc(s->len), s->len - n };

    memcpy(out.bytes, s->bytes, at);
    memcpy(out.bytes + at, s->bytes + at + n, s->len - at - n);
    return out;
}

static sample with(const sample *s, size_t at, const void *data, size_t n)
{
    sample out = { malloc(s->len + n), s->len + n };

    memcpy(out.bytes, s->bytes, at);
    memcpy(out.bytes + at, data, n);
    memcpy(out.bytes + at + n, s->bytes + at, s->len - at);
    return out;
}

static decode_result decode_default(const uint8_t *bytes, size_t len)
{
    const dpl_decode_limits limits = decode_limits();
    return decode_once(&limits, bytes, len);
}

static void expect(const sample *s, int status, int warned, const char *why)
{
    const decode_result r = decode_default(s->bytes, s->len);

    if (r.status != status || r.warned != warned || ((status || warned) && !strstr(r.why.s, why)))
        fail_msg("status %d, warned %d, \"%s\"; wanted %d, %d, \"%s\"", r.status, r.warned,
                 r.status || r.warned ? r.why.s : "", status, warned, why);
    free(r.rgb);
}

static int region_of(const sample *s, int y, int h, dpl_text *why)
{
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;
    dpl_pixels px;
    int width, height, warned = 0, err;

    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    err = dpl_decode_begin(d, s->bytes, s->len, &width, &height, why);
    if (!err) err = dpl_decode_region(d, 3, y, 20, h, 1, &px, &warned, why);
    dpl_decoder_destroy(&d);
    return err ? err : warned;
}

/* A half file is refused whatever part of it is wanted: the verdict belongs to the file. */
static void a_cut_file_is_bad_for_every_region(void **state)
{
    static const tool_jpeg_spec *const specs[] = { &baseline, &progressive, &arithmetic,
                                                   &restarts };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        sample s = make(specs[i]);
        dpl_text why;

        s.len = s.len * 6 / 10;
        for (int y = 0; y < H - 8; y += 8) {
            assert_int_equal(region_of(&s, y, 8, &why), DPL_EDATA);
            assert_non_null(strstr(why.s, "rows missing"));
        }
        free(s.bytes);
    }
}

static void a_missing_end_marker_only_warns(void **state)
{
    static const tool_jpeg_spec *const specs[] = { &baseline, &progressive, &arithmetic,
                                                   &restarts };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        sample s = make(specs[i]);
        decode_result whole = decode_default(s.bytes, s.len), cut;
        dpl_text why;

        s.len -= 2;
        cut = decode_default(s.bytes, s.len);
        assert_int_equal(cut.status, DPL_OK);
        assert_int_equal(cut.warned, 1);
        assert_string_equal(cut.why.s, "JPEG: the end marker is missing");
        assert_memory_equal(cut.rgb, whole.rgb, W * H * 3);
        assert_int_equal(region_of(&s, 0, 8, &why), 1);
        free(whole.rgb);
        free(cut.rgb);
        free(s.bytes);
    }
}

static void strict_makes_a_warning_an_error(void **state)
{
    sample s = make(&baseline);
    dpl_decode_limits limits = decode_limits();
    decode_result r;

    (void)state;
    limits.strict = 1;
    r = decode_once(&limits, s.bytes, s.len);
    assert_int_equal(r.status, DPL_OK);
    free(r.rgb);
    r = decode_once(&limits, s.bytes, s.len - 2);
    assert_int_equal(r.status, DPL_EDATA);
    assert_string_equal(r.why.s, "JPEG: the end marker is missing (strict)");
    free(s.bytes);
}

static void stray_bytes_before_a_marker_only_warn(void **state)
{
    static const uint8_t junk[18] = { 0x11, 0x11, 0x11 }, fill[5] = { 255, 255, 255, 255, 255 };
    sample s = make(&baseline), t;

    (void)state;
    t = with(&s, find_marker(&s, 0xdb, 0), junk, sizeof junk);
    expect(&t, DPL_OK, 1, "18 extraneous bytes");
    free(t.bytes);
    t = with(&s, 2, fill, sizeof fill); /* legal */
    expect(&t, DPL_OK, 0, "");
    free(t.bytes);
    t = with(&s, s.len, s.bytes, s.len); /* two pictures in one file: the first counts */
    expect(&t, DPL_OK, 0, "");
    free(t.bytes);
    free(s.bytes);
}

static void a_lost_restart_interval_is_missing_rows(void **state)
{
    sample s = make(&restarts), t;
    const size_t at = find_marker(&s, 0xd2, 0);

    (void)state;
    t = without(&s, at, 2); /* the marker alone */
    expect(&t, DPL_EDATA, 0, "rows missing");
    free(t.bytes);
    t = without(&s, at, find_marker(&s, 0xd3, 0) - at); /* with its rows */
    expect(&t, DPL_EDATA, 0, "rows missing");
    free(t.bytes);
    t = without(&s, at - 12, 12); /* damage inside an interval: the rows behind it are there */
    expect(&t, DPL_OK, 1, "premature end of data segment");
    free(t.bytes);
    free(s.bytes);
}

/* A gray file whose header is changed to promise three components. */
static void a_component_without_a_scan_is_missing_rows(void **state)
{
    static const tool_jpeg_spec gray = { .quality = 85, .color = TOOL_JPEG_GRAY };
    static const uint8_t two_more[6] = { 2, 0x11, 0, 3, 0x11, 0 };
    sample s = make(&gray), t;
    const size_t sof = find_marker(&s, 0xc0, 0);

    (void)state;
    t = with(&s, sof + 13, two_more, sizeof two_more);
    t.bytes[sof + 3] = 17; /* length of the segment */
    t.bytes[sof + 9] = 3;
    expect(&t, DPL_EDATA, 0, "a colour component of the JPEG has no scan");
    free(t.bytes);
    free(s.bytes);
}

/* A picture without a table of its own must not get that of the picture before it. */
static void tables_of_the_last_picture_are_forgotten(void **state)
{
    sample s = make(&baseline), t;
    const size_t at = find_marker(&s, 0xdb, 0);
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;
    decode_result r;

    (void)state;
    t = without(&s, at, 2 + ((size_t)s.bytes[at + 2] << 8 | s.bytes[at + 3]));
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    r = decode_whole(d, s.bytes, s.len);
    assert_int_equal(r.status, DPL_OK);
    free(r.rgb);
    r = decode_whole(d, t.bytes, t.len);
    assert_int_equal(r.status, DPL_EDATA);
    assert_string_equal(r.why.s, "JPEG: Quantization table 0x00 was not defined");
    dpl_decoder_destroy(&d);
    free(t.bytes);
    free(s.bytes);
}

static void set_size(sample *s, unsigned w, unsigned h)
{
    uint8_t *sof = s->bytes + find_marker(s, 0xc0, 0);

    sof[5] = (uint8_t)(h >> 8);
    sof[6] = (uint8_t)h;
    sof[7] = (uint8_t)(w >> 8);
    sof[8] = (uint8_t)w;
}

static void sizes_that_the_data_cannot_fill_are_refused_at_once(void **state)
{
    sample s = make(&baseline);
    const int64_t start = dpl_now_ns();

    (void)state;
    set_size(&s, 65500, 65500);
    expect(&s, DPL_EDATA, 0, "65500x65500 pixels, the limit is 178956970 (max_pixels)");
    set_size(&s, 12000, 12000);
    expect(&s, DPL_EDATA, 0, "cannot hold a JPEG of 12000x12000 pixels");
    set_size(&s, W, 0);
    expect(&s, DPL_EDATA, 0, "Empty JPEG image");
    set_size(&s, 65501, 10);
    expect(&s, DPL_EDATA, 0, "65500");
    assert_true(dpl_now_ns() - start < 100 * 1000000);
    free(s.bytes);
}

static void a_scan_bomb_is_refused_at_once(void **state)
{
    sample s = make(&progressive), bomb;
    dpl_decode_limits limits = decode_limits();
    size_t last = 0, n;
    int64_t start;
    decode_result r;

    (void)state;
    for (size_t i = 2; i + 1 < s.len; i++)
        if (s.bytes[i] == 0xff && s.bytes[i + 1] == 0xda) last = i;
    n = s.len - 2 - last;
    bomb.len = s.len + 1000 * n;
    bomb.bytes = malloc(bomb.len);
    memcpy(bomb.bytes, s.bytes, s.len - 2);
    for (int i = 0; i < 1000; i++)
        memcpy(bomb.bytes + s.len - 2 + (size_t)i * n, s.bytes + last, n);
    memcpy(bomb.bytes + bomb.len - 2, "\xff\xd9", 2);
    start = dpl_now_ns();
    expect(&bomb, DPL_EDATA, 0, "JPEG with more than 256 scans (max_scans)");
    assert_true(dpl_now_ns() - start < 100 * 1000000);
    limits.max_scans = 9; /* jpeg_simple_progression() makes 10 */
    r = decode_once(&limits, s.bytes, s.len);
    assert_int_equal(r.status, DPL_EDATA);
    limits.max_scans = 10;
    r = decode_once(&limits, s.bytes, s.len);
    assert_int_equal(r.status, DPL_OK);
    free(r.rgb);
    free(bomb.bytes);
    free(s.bytes);
}

static void other_jpeg_kinds_are_refused_by_name(void **state)
{
    sample s = make(&baseline);
    uint8_t *sof = s.bytes + find_marker(&s, 0xc0, 0);

    (void)state;
    sof[4] = 12;
    expect(&s, DPL_EDATA, 0, "12-bit JPEG is not supported");
    sof[4] = 8;
    sof[1] = 0xc3;
    expect(&s, DPL_EDATA, 0, "lossless JPEG is not supported");
    sof[1] = 0xc5;
    expect(&s, DPL_EDATA, 0, "hierarchical JPEG is not supported");
    free(s.bytes);
}

/* The first 1..700 bytes, each at the end of readable memory. */
static void short_files_are_bad(void **state)
{
    static const tool_jpeg_spec exif = { .quality = 85, .orientation = 6 };
    sample s = make(&exif);

    (void)state;
    for (size_t n = 1; n <= 700 && n < s.len; n++) {
        uint8_t *bytes = test_guarded_bytes(n, 0);
        decode_result r;

        memcpy(bytes, s.bytes, n);
        r = decode_default(bytes, n);
        assert_int_equal(r.status, DPL_EDATA);
        test_free_all();
    }
    free(s.bytes);
}

static uint64_t outcome(dpl_decoder *d, const uint8_t *bytes, size_t len, int *counts)
{
    const decode_result r = decode_whole(d, bytes, len);
    uint64_t hash = decode_hash(&r.status, sizeof r.status);

    assert_true(r.status == DPL_OK || r.status == DPL_EDATA);
    if (r.status || r.warned) hash ^= decode_hash(r.why.s, strlen(r.why.s));
    if (r.rgb) hash ^= decode_hash(r.rgb, (size_t)r.width * (size_t)r.height * 3);
    counts[r.status ? 2 : r.warned]++;
    free(r.rgb);
    return hash;
}

/* 40 flipped bits in the picture data: refused or not, but the same twice, in one decoder or two. */
static void flipped_bits_give_the_same_result_twice(void **state)
{
    static const tool_jpeg_spec *const specs[] = { &baseline, &progressive, &arithmetic,
                                                   &restarts };
    const dpl_decode_limits limits = decode_limits();
    int counts[3] = { 0 };
    dpl_decoder *used, *fresh;

    (void)state;
    assert_int_equal(dpl_decoder_create(&used, &limits), DPL_OK);
    for (size_t i = 0; i < 4; i++) {
        sample s = make(specs[i]);
        const size_t from = find_marker(&s, 0xda, 0) + 14;
        uint8_t *copy = malloc(s.len);

        for (uint64_t seed = 1; seed <= 50; seed++) {
            dpl_rng r;
            dpl_rng_init(&r, seed, 0, i, DPL_RNG_MIX);
            memcpy(copy, s.bytes, s.len);
            for (int k = 0; k < 40; k++)
                copy[from + dpl_rng_below(&r, (uint32_t)(s.len - from - 2))] ^=
                    (uint8_t)(1u << dpl_rng_below(&r, 8));
            assert_int_equal(dpl_decoder_create(&fresh, &limits), DPL_OK);
            assert_int_equal(outcome(used, copy, s.len, counts),
                             outcome(fresh, copy, s.len, counts));
            dpl_decoder_destroy(&fresh);
        }
        free(copy);
        free(s.bytes);
    }
    assert_true(counts[1] > 40 && counts[2] > 40); /* both kinds were seen */
    dpl_decoder_destroy(&used);
}

/* Flips anywhere, and cuts: under the address sanitizer this is also the search for leaks on the
 * ways out of libjpeg's and libpng's jumps. */
static void two_thousand_bad_files_leave_nothing_behind(void **state)
{
    const dpl_decode_limits limits = decode_limits();
    const tool_jpeg_spec *const specs[] = { &baseline, &progressive };
    int counts[3] = { 0 };
    dpl_decoder *d;
    sample s[3];

    (void)state;
    s[0] = make(specs[0]);
    s[1] = make(specs[1]);
    s[2].bytes = test_read_file("tests/data/decode/png_palette.png", &s[2].len);
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const sample *from = &s[seed % 3];
        uint8_t *copy = malloc(from->len);
        size_t len = from->len;
        dpl_rng r;

        dpl_rng_init(&r, seed, 0, 0, DPL_RNG_MIX);
        memcpy(copy, from->bytes, len);
        if (seed % 2) len = 2 + dpl_rng_below(&r, (uint32_t)len - 2);
        for (uint32_t k = dpl_rng_below(&r, 12); k > 0; k--)
            copy[dpl_rng_below(&r, (uint32_t)len)] ^= (uint8_t)(1u << dpl_rng_below(&r, 8));
        outcome(d, copy, len, counts);
        free(copy);
    }
    assert_true(counts[2] > 1000);
    dpl_decoder_destroy(&d);
    for (int i = 0; i < 3; i++) free(s[i].bytes);
}

static int quiet(const char *folder)
{
    struct dirent *e;
    int files = 0;
    DIR *dir = opendir(folder);

    while (dir && (e = readdir(dir))) {
        size_t len;
        decode_result r;
        uint8_t *bytes;

        if (e->d_name[0] == '.') continue;
        bytes = test_read_file(test_format("%s/%s", folder, e->d_name), &len);
        r = decode_default(bytes, len);
        assert_true(r.status == DPL_OK || r.status == DPL_EDATA);
        if (r.status) assert_true(strlen(r.why.s) > 10);
        free(r.rgb);
        free(bytes);
        files++;
    }
    if (dir) closedir(dir);
    return files;
}

/* Whatever a folder of odd files holds: a verdict for each. */
static void a_corpus_of_odd_files_is_judged(void **state)
{
    (void)state;
    if (!quiet("../shared/corpus")) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_file_is_bad_for_every_region),
        cmocka_unit_test(a_missing_end_marker_only_warns),
        cmocka_unit_test(strict_makes_a_warning_an_error),
        cmocka_unit_test(stray_bytes_before_a_marker_only_warn),
        cmocka_unit_test(a_lost_restart_interval_is_missing_rows),
        cmocka_unit_test(a_component_without_a_scan_is_missing_rows),
        cmocka_unit_test(tables_of_the_last_picture_are_forgotten),
        cmocka_unit_test(sizes_that_the_data_cannot_fill_are_refused_at_once),
        cmocka_unit_test(a_scan_bomb_is_refused_at_once),
        cmocka_unit_test(other_jpeg_kinds_are_refused_by_name),
        cmocka_unit_test(short_files_are_bad),
        cmocka_unit_test(flipped_bits_give_the_same_result_twice),
        cmocka_unit_test(two_thousand_bad_files_leave_nothing_behind),
        cmocka_unit_test(a_corpus_of_odd_files_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
