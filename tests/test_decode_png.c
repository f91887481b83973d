/* SPDX-License-Identifier: Apache-2.0 */
/* PNG: every kind against its closed form, written here chunk by chunk; damage; limits. */
#include "dpload.h"
#include "tests/decode_cases.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum { GRAY = 0, RGB = 2, PALETTE = 3, GRAY_ALPHA = 4, RGBA = 6, MAX_PNG = 65536 };

typedef struct png_file {
    uint8_t bytes[MAX_PNG];
    size_t len;
} png_file;

static void put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void add_chunk(png_file *f, const char *name, const void *data, size_t n)
{
    uint8_t *at = f->bytes + f->len;

    assert_true(f->len + n + 12 <= MAX_PNG);
    put32(at, (uint32_t)n);
    memcpy(at + 4, name, 4);
    if (n) memcpy(at + 8, data, n);
    put32(at + 8 + n, (uint32_t)crc32(0, at + 4, (uInt)n + 4));
    f->len += n + 12;
}

static void start_png(png_file *f, uint32_t w, uint32_t h, int depth, int type, int interlace)
{
    uint8_t ihdr[13] = { 0 };

    memcpy(f->bytes, "\x89PNG\r\n\x1a\n", 8);
    f->len = 8;
    put32(ihdr, w);
    put32(ihdr + 4, h);
    ihdr[8] = (uint8_t)depth;
    ihdr[9] = (uint8_t)type;
    ihdr[12] = (uint8_t)interlace;
    add_chunk(f, "IHDR", ihdr, sizeof ihdr);
}

static int channels_of(int type)
{
    static const int n[] = { 1, 0, 3, 1, 2, 0, 4 };
    return n[type];
}

/* Channel c of pixel (x, y) as stored, `depth` bits. */
static unsigned sample(int x, int y, int c, int depth)
{
    const unsigned v = (unsigned)(x * 2654 + y * 40503 + c * 977 + x * y * 31);
    return (v ^ v >> 7) & ((1u << depth) - 1);
}

static void wanted(uint8_t rgb[3], int x, int y, int type, int depth)
{
    for (int c = 0; c < 3; c++) {
        const unsigned v = sample(x, y, type == RGB || type == RGBA ? c : 0, depth);
        if (type == PALETTE)
            rgb[c] = (uint8_t)(v * 5 + (unsigned)c * 60);
        else
            rgb[c] = (uint8_t)(depth == 16 ? v >> 8 : v * 255 / ((1u << depth) - 1));
    }
}

/* Pixels x0, x0 + step_x … of every step_y-th row, each row behind filter byte 0. */
static size_t put_pass(uint8_t *out, int w, int h, int depth, int type, const int grid[4])
{
    size_t n = 0;

    for (int y = grid[1]; y < h && grid[0] < w; y += grid[3]) {
        unsigned bits = 0, held = 0;
        out[n++] = 0;
        for (int x = grid[0]; x < w; x += grid[2]) {
            for (int c = 0; c < channels_of(type); c++) {
                bits = bits << depth | sample(x, y, c, depth);
                for (held += (unsigned)depth; held >= 8; held -= 8)
                    out[n++] = (uint8_t)(bits >> (held - 8));
            }
        }
        if (held) out[n++] = (uint8_t)(bits << (8 - held));
    }
    return n;
}

static void add_pixels(png_file *f, int w, int h, int depth, int type, int interlace)
{
    static const int passes[8][4] = { { 0, 0, 8, 8 }, { 4, 0, 8, 8 }, { 0, 4, 4, 8 },
                                      { 2, 0, 4, 4 }, { 0, 2, 2, 4 }, { 1, 0, 2, 2 },
                                      { 0, 1, 1, 2 }, { 0, 0, 1, 1 } };
    static uint8_t raw[MAX_PNG], packed[MAX_PNG];
    size_t n = 0;
    uLongf len = sizeof packed;

    for (int p = interlace ? 0 : 7; p < (interlace ? 7 : 8); p++)
        n += put_pass(raw + n, w, h, depth, type, passes[p]);
    assert_int_equal(compress(packed, &len, raw, n), Z_OK);
    add_chunk(f, "IDAT", packed, len / 2);
    add_chunk(f, "IDAT", packed + len / 2, len - len / 2);
}

static void make_png(png_file *f, int w, int h, int depth, int type, int interlace)
{
    uint8_t palette[768];

    start_png(f, (uint32_t)w, (uint32_t)h, depth, type, interlace);
    for (int i = 0; i < 768; i++) palette[i] = (uint8_t)(i / 3 * 5 + i % 3 * 60);
    if (type == PALETTE) add_chunk(f, "PLTE", palette, 3u << depth);
    if (type == PALETTE) add_chunk(f, "tRNS", palette, 2);
    if (type == GRAY) add_chunk(f, "tRNS", "\0\1", 2);
    add_pixels(f, w, h, depth, type, interlace);
    add_chunk(f, "IEND", NULL, 0);
}

static void check_kind(dpl_decoder *d, int depth, int type, int interlace)
{
    enum { W = 29, H = 19 };
    static png_file f;
    decode_result r;
    int width, height, warned;
    dpl_pixels px;
    dpl_text why;

    make_png(&f, W, H, depth, type, interlace);
    r = decode_whole(d, f.bytes, f.len);
    if (r.status || r.warned) fail_msg("type %d depth %d: %s", type, depth, r.why.s);
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            uint8_t want[3];
            wanted(want, x, y, type, depth);
            if (memcmp(r.rgb + (y * W + x) * 3, want, 3))
                fail_msg("type %d depth %d interlace %d: pixel %d,%d", type, depth, interlace, x,
                         y);
        }
    }
    for (int i = 0; i < 20; i++) {
        const int x = i * 7 % W, y = i * 5 % H, w = 1 + i % (W - x), h = 1 + i * 3 % (H - y);
        assert_int_equal(dpl_decode_begin(d, f.bytes, f.len, &width, &height, &why), DPL_OK);
        assert_int_equal(dpl_decode_region(d, x, y, w, h, 8, &px, &warned, &why), DPL_OK);
        assert_true(px.x <= x && px.x + px.w >= x + w && px.y <= y && px.y + px.h >= y + h);
        assert_int_equal(px.denominator, 1);
        assert_true(decode_same(&px, r.rgb, W));
    }
    free(r.rgb);
}

static void every_kind_becomes_8_bit_rgb(void **state)
{
    static const int kinds[][2] = { { GRAY, 1 },        { GRAY, 2 },    { GRAY, 4 },
                                    { GRAY, 8 },        { GRAY, 16 },   { RGB, 8 },
                                    { RGB, 16 },        { PALETTE, 1 }, { PALETTE, 2 },
                                    { PALETTE, 4 },     { PALETTE, 8 }, { GRAY_ALPHA, 8 },
                                    { GRAY_ALPHA, 16 }, { RGBA, 8 },    { RGBA, 16 } };
    dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;

    (void)state;
    limits.exact = 0;
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int interlace = 0; interlace < 2; interlace++)
            check_kind(d, kinds[k][1], kinds[k][0], interlace);
    dpl_decoder_destroy(&d);
}

/* A flipped bit anywhere is noticed. (In the length of the last chunk it only hides the end.) */
static void each_flipped_bit_is_noticed(void **state)
{
    static png_file f;
    const dpl_decode_limits limits = decode_limits();
    dpl_decoder *d;

    (void)state;
    make_png(&f, 13, 11, 8, RGB, 0);
    assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
    for (size_t bit = 0; bit < f.len * 8; bit++) {
        decode_result r;
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        r = decode_whole(d, f.bytes, f.len);
        if (r.status != DPL_EDATA && !r.warned) fail_msg("bit %zu was not noticed", bit);
        free(r.rgb);
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    dpl_decoder_destroy(&d);
}

/* Every beginning of a file, at the end of readable memory: bad, or, once all pixels are there, a
 * warning and the same pixels, for a small region too. */
static void a_cut_file_is_bad_until_its_pixels_are_complete(void **state)
{
    enum { W = 13, H = 11, IEND = 12 };
    static png_file f;
    dpl_decode_limits limits = decode_limits();
    decode_result whole;

    (void)state;
    make_png(&f, W, H, 8, RGB, 0);
    whole = decode_once(&limits, f.bytes, f.len);
    for (size_t n = 1; n < f.len; n++) {
        uint8_t *bytes = test_guarded_bytes(n, 0);
        dpl_decoder *d;
        int width, height, warned, err;
        dpl_pixels px;
        dpl_text why;

        memcpy(bytes, f.bytes, n);
        assert_int_equal(dpl_decoder_create(&d, &limits), DPL_OK);
        err = dpl_decode_begin(d, bytes, n, &width, &height, &why);
        if (!err) err = dpl_decode_region(d, 1, 1, 2, 2, 1, &px, &warned, &why);
        if (n < f.len - IEND) {
            if (err != DPL_EDATA) fail_msg("%zu of %zu bytes passed", n, f.len);
        } else {
            assert_int_equal(err, DPL_OK);
            assert_int_equal(warned, 1);
            assert_string_equal(why.s, "PNG: the end chunk (IEND) is missing");
            assert_true(decode_same(&px, whole.rgb, W));
        }
        dpl_decoder_destroy(&d);
        test_free_all();
    }
    limits.strict = 1;
    free(whole.rgb);
    whole = decode_once(&limits, f.bytes, f.len - 1);
    assert_int_equal(whole.status, DPL_EDATA);
    assert_string_equal(whole.why.s, "PNG: the end chunk (IEND) is missing (strict)");
}

static void too_little_data_is_bad(void **state)
{
    static png_file f;
    uint8_t packed[64];
    uLongf len = sizeof packed;
    const dpl_decode_limits limits = decode_limits();
    decode_result r;

    (void)state;
    assert_int_equal(compress(packed, &len, (const Bytef[30]){ 0 }, 30), Z_OK);
    start_png(&f, 8, 8, 8, RGB, 0);
    add_chunk(&f, "IDAT", packed, len);
    add_chunk(&f, "IEND", NULL, 0);
    r = decode_once(&limits, f.bytes, f.len);
    assert_int_equal(r.status, DPL_EDATA);
    assert_string_equal(r.why.s, "PNG: Not enough image data");
}

static void impossible_sizes_are_refused(void **state)
{
    static const struct {
        uint32_t w, h;
        int depth, type;
    } cases[] = {
        { 65536, 65536, 8, RGBA }, { 0x7fffffff, 0x7fffffff, 16, RGBA },
        { 0xffffffff, 1, 8, RGB }, { 0xffffffff, 0xffffffff, 16, RGBA },
        { 0, 5, 8, RGB },          { 5, 0, 8, RGB },
        { 5, 5, 3, GRAY },         { 5, 5, 8, 1 },
    };
    static png_file f;
    const dpl_decode_limits limits = decode_limits();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_png(&f, cases[i].w, cases[i].h, cases[i].depth, cases[i].type, 0);
        add_chunk(&f, "IDAT", "", 0);
        add_chunk(&f, "IEND", NULL, 0);
        assert_int_equal(decode_once(&limits, f.bytes, f.len).status, DPL_EDATA);
    }
}

/* Colour profiles, text and times are not looked at, be they nonsense. */
static void other_chunks_are_not_looked_at(void **state)
{
    static png_file f;
    const dpl_decode_limits limits = decode_limits();
    decode_result r;

    (void)state;
    start_png(&f, 9, 7, 8, RGB, 0);
    add_chunk(&f, "iCCP", "no profile", 10);
    add_chunk(&f, "gAMA", "\0\0\0\0", 4);
    add_chunk(&f, "zTXt", "", 0);
    add_chunk(&f, "eXIf", "MM\0*\xff\xff\xff\xff", 8);
    add_pixels(&f, 9, 7, 8, RGB, 0);
    add_chunk(&f, "tIME", "yesterday", 9);
    add_chunk(&f, "IEND", NULL, 0);
    r = decode_once(&limits, f.bytes, f.len);
    assert_int_equal(r.status, DPL_OK);
    assert_int_equal(r.warned, 0);
    free(r.rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_becomes_8_bit_rgb),
        cmocka_unit_test(each_flipped_bit_is_noticed),
        cmocka_unit_test(a_cut_file_is_bad_until_its_pixels_are_complete),
        cmocka_unit_test(too_little_data_is_bad),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(other_chunks_are_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
