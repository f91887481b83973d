/* SPDX-License-Identifier: Apache-2.0 */
/* Formats by first bytes, and the orientation in EXIF data. */
#include "loader/decode.h"
#include "loader/exif.h"
#include "tests/testutil.h"

#include <string.h>

typedef struct sniff_case {
    const char *bytes;
    size_t len;
    dpl_format format;
    const char *name;
} sniff_case;

#define BYTES(s) (s), sizeof(s) - 1

static const sniff_case sniff_cases[] = {
    { BYTES("\xff\xd8\xff\xe0"), DPL_FORMAT_JPEG, "JPEG" },
    { BYTES("\xff\xd8"), DPL_FORMAT_JPEG, "JPEG" },
    { BYTES("\x89PNG\r\n\x1a\n"), DPL_FORMAT_PNG, "PNG" },
    { BYTES("\x89PNG\n\x1a\n"), DPL_FORMAT_PNG, "PNG" }, /* line ends were "repaired" */
    { BYTES("RIFF\x1a\0\0\0WEBPVP8 "), DPL_FORMAT_WEBP, "WebP" },
    { BYTES("RIFF\x1a\0\0\0WAVEfmt "), DPL_FORMAT_UNKNOWN, "unknown content (52 49 46 46)" },
    { BYTES("ROFF\x1a\0\0\0WEBPVP8 "), DPL_FORMAT_UNKNOWN, "unknown content (52 4f 46 46)" },
    { BYTES("GIF87a\1\0"), DPL_FORMAT_UNKNOWN, "GIF" },
    { BYTES("GIF89a\1\0"), DPL_FORMAT_UNKNOWN, "GIF" },
    { BYTES("BM\x66\0\0\0\0\0\0\0\x36\0\0\0"), DPL_FORMAT_UNKNOWN, "BMP" },
    { BYTES("BM is the start of text"), DPL_FORMAT_UNKNOWN, "text" },
    { BYTES("II*\0\x08\0\0\0"), DPL_FORMAT_UNKNOWN, "TIFF" },
    { BYTES("MM\0*\0\0\0\x08"), DPL_FORMAT_UNKNOWN, "TIFF" },
    { BYTES("<!DOCTYPE html>"), DPL_FORMAT_UNKNOWN, "HTML" },
    { BYTES("\xef\xbb\xbf\r\n <HTML lang=\"tr\">"), DPL_FORMAT_UNKNOWN, "HTML" },
    { BYTES("\x1f\x8b\x08\0"), DPL_FORMAT_UNKNOWN, "gzip" },
    { BYTES("PK\3\4\x14\0"), DPL_FORMAT_UNKNOWN, "ZIP" },
    { BYTES("%PDF-1.7\n"), DPL_FORMAT_UNKNOWN, "PDF" },
    { BYTES("\0\0\0\x18"
            "ftypheic\0\0\0\0"),
      DPL_FORMAT_UNKNOWN, "HEIF" },
    { BYTES("\0\0\0\x1c"
            "ftypavif\0\0\0\0"),
      DPL_FORMAT_UNKNOWN, "AVIF" },
    { BYTES("\0\0\0\x0cjP  \r\n\x87\n"), DPL_FORMAT_UNKNOWN, "JPEG 2000" },
    { BYTES("\xff\x4f\xff\x51\0\x29"), DPL_FORMAT_UNKNOWN, "JPEG 2000" },
    { BYTES("\xff\x0a\x7a\x12"), DPL_FORMAT_UNKNOWN, "JPEG XL" },
    { BYTES("\0\0\0\x0cJXL \r\n\x87\n"), DPL_FORMAT_UNKNOWN, "JPEG XL" },
    { BYTES("8BPS\0\1"), DPL_FORMAT_UNKNOWN, "PSD" },
    { BYTES("version https://git-lfs"), DPL_FORMAT_UNKNOWN, "text" },
    { BYTES("na\xc3\xafve \xe7\x8c\xab\n"), DPL_FORMAT_UNKNOWN, "text" },
    { BYTES("\0\0\0\0\0\0\0\0\0\0\0\0"), DPL_FORMAT_UNKNOWN, "zeros" },
    { BYTES("\x09\x4b\x36\xff\x01"), DPL_FORMAT_UNKNOWN, "unknown content (09 4b 36 ff)" },
    { BYTES("\x80"), DPL_FORMAT_UNKNOWN, "unknown content (80)" },
    { BYTES(""), DPL_FORMAT_UNKNOWN, "unknown content ()" },
};

static void formats_are_told_by_first_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sniff_cases / sizeof *sniff_cases; i++) {
        const sniff_case *c = &sniff_cases[i];
        uint8_t *bytes = test_guarded_bytes(c->len, 0);
        const char *name;
        char buf[64];

        memcpy(bytes, c->bytes, c->len);
        assert_int_equal(dpl_sniff(bytes, c->len, &name, buf), c->format);
        assert_string_equal(name, c->name);
        test_free_all();
    }
}

/* Every beginning of every case, at the end of readable memory. */
static void sniffing_reads_no_byte_too_many(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sniff_cases / sizeof *sniff_cases; i++) {
        for (size_t n = 0; n < sniff_cases[i].len; n++) {
            uint8_t *bytes = test_guarded_bytes(n, 0);
            const char *name;
            char buf[64];

            memcpy(bytes, sniff_cases[i].bytes, n);
            dpl_sniff(bytes, n, &name, buf);
            assert_true(strlen(name) > 0);
            test_free_all();
        }
    }
}

static int orientation(const char *tiff, size_t len)
{
    uint8_t *bytes = test_guarded_bytes(len, 0);
    int o;

    memcpy(bytes, tiff, len);
    o = dpl_exif_orientation(bytes, len);
    test_free_all();
    return o;
}

static void orientation_is_read_in_both_byte_orders(void **state)
{
    (void)state;
    assert_int_equal(orientation(BYTES("MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")),
                     6);
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\7\0\0\0\0\0\0\0")),
                     7);
    /* as LONG, and as the second of two entries, the directory not at once behind the header */
    assert_int_equal(orientation(BYTES("II*\0\x0a\0\0\0!!\2\0\x0f\1\2\0\4\0\0\0abc\0"
                                       "\x12\1\4\0\1\0\0\0\x08\0\0\0\0\0\0\0")),
                     8);
}

static void malformed_exif_means_upright(void **state)
{
    (void)state;
    assert_int_equal(orientation(BYTES("")), 1);
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0")), 1);
    assert_int_equal(orientation(BYTES("XX*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\7\0\0\0")), 1);
    assert_int_equal(orientation(BYTES("II*\0\xff\xff\xff\xff\1\0\x12\1\3\0\1\0\0\0\7\0\0\0")), 1);
    assert_int_equal(orientation(BYTES("II*\0\x04\0\0\0\1\0\x12\1\3\0\1\0\0\0\7\0\0\0")), 1);
    /* value 0, 9, count 2^31 - 1, type ASCII */
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\0\0\0\0")), 1);
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\x09\0\0\0")), 1);
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\1\0\x12\1\3\0\xff\xff\xff\x7f\6\0\0\0")),
                     1);
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\1\0\x12\1\2\0\1\0\0\0\6\0\0\0")), 1);
    /* 65535 entries are announced, one is there, and half of another with the right tag */
    assert_int_equal(orientation(BYTES("II*\0\x08\0\0\0\xff\xff\x0f\1\3\0\1\0\0\0\6\0\0\0"
                                       "\x12\1\3\0\1\0\0\0\6\0\0")),
                     1);
}

/* Any bytes behind a valid header: reads end at the unreadable page, the answer is 1..8. */
static void noise_as_exif_is_harmless(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const size_t n = 8 + seed % 90;
        uint8_t *bytes = test_guarded_bytes(n, seed);

        memcpy(bytes, seed & 1 ? "II*\0" : "MM\0*", 4);
        if (seed & 2) memset(bytes + 4, 0, 4);
        if (seed & 2) bytes[seed & 1 ? 4 : 7] = (uint8_t)(8 + seed % 70);
        assert_in_range(dpl_exif_orientation(bytes, n), 1, 8);
        test_free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told_by_first_bytes),
        cmocka_unit_test(sniffing_reads_no_byte_too_many),
        cmocka_unit_test(orientation_is_read_in_both_byte_orders),
        cmocka_unit_test(malformed_exif_means_upright),
        cmocka_unit_test(noise_as_exif_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
