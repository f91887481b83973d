/* SPDX-License-Identifier: Apache-2.0 */
/* Odd files from other projects, when a folder of them lies beside this one: each has its verdict. They
 * are not needed; the same kinds are made in test_fault_cases.c. */
#include "tests/fault_set.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <unistd.h>

#define CORPUS "../shared/corpus"

static const struct {
    const char *name;
    fault_verdict verdict;
    const char *reason;
} files[] = {
    { "F01_ycck_adobe2.jpg", FAULT_OK, NULL },
    { "F02_portrait_3.jpg", FAULT_OK, NULL },
    { "F03_cmyk_adobe0.jpg", FAULT_OK, NULL },
    { "F04_ycck.jpg", FAULT_OK, NULL },
    { "F05_cmyk.jpg", FAULT_OK, NULL },
    { "F06_bad_exif.jpg", FAULT_WARN, "1214 extraneous bytes" },
    { "F07_invalid_exif.jpg", FAULT_OK, NULL },
    { "F08_mpo.jpg", FAULT_OK, NULL },
    { "F09_progressive.jpg", FAULT_OK, NULL },
    { "F13_12bit.jpg", FAULT_BAD, "12-bit JPEG is not supported" },
    { "F14_arithmetic.jpg", FAULT_OK, NULL },
    { "F15_ari_440_rst.jpg", FAULT_OK, NULL },
    { "F18_max_size.jpg", FAULT_BAD, "65500" },
    { "F21_440.jpg", FAULT_OK, NULL },
    { "F22_410.jpg", FAULT_OK, NULL },
    { "F24_restarts.jpg", FAULT_OK, NULL },
    { "F25_giant_gray.jpg", FAULT_BAD, "20000x14000 pixels, the limit is 178956970 (max_pixels)" },
    { "F26_65536.png", FAULT_BAD, "65536x65536 pixels, the limit is 178956970 (max_pixels)" },
    { "F27_palette_trns.png", FAULT_OK, NULL },
    { "F29_gray16.png", FAULT_OK, NULL },
    { "F30_bad_checksum.png", FAULT_BAD, "wrong checksum (CRC)" },
    { "F31_animated.gif", FAULT_BAD, "GIF is not supported" },
    { "testorig.jpg", FAULT_OK, NULL },
};

static fault_file load(const char *name)
{
    size_t len;
    uint8_t *bytes = test_read_file(test_format(CORPUS "/%s", name), &len);
    const fault_file f = fault_bytes(bytes, len);

    free(bytes);
    return f;
}

static void each_file_gets_its_verdict(void **state)
{
    fault_set s;

    (void)state;
    if (access(CORPUS, R_OK)) skip();
    fault_begin(&s);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fault_add(&s, test_format("%c/%s", i % 2 ? 'a' : 'b', files[i].name), load(files[i].name),
                  files[i].verdict, files[i].reason);
    fault_judge(&s);
}

static double difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += abs(a[i] - b[i]);
    return sum / (double)n;
}

/* The same scene, held in eight ways: displayed it is the same picture. */
static void orientations_show_the_same_picture(void **state)
{
    enum { W = 1800, H = 1200 };
    uint8_t *upright;

    (void)state;
    if (access(CORPUS, R_OK)) skip();
    upright = fault_pixels(load("F02_landscape_1.jpg"), 1, W, H);
    for (int o = 2; o <= 8; o++) {
        const fault_file f = load(test_format("F02_landscape_%d.jpg", o));
        uint8_t *turned = fault_pixels(f, 1, W, H);

        assert_true(difference(upright, turned, (size_t)W * H * 3) < 5);
        free(turned);
    }
    free(upright);
    fault_free_all();
}

/* Inverted ink, beside the picture that another decoder made of it: not its negative. */
static void ink_has_adobes_polarity(void **state)
{
    enum { W = 400, H = 250 };
    const fault_file want = access(CORPUS, R_OK) ? (fault_file){ 0 } : load("F03_cmyk_adobe0.rgba");
    double sum = 0;
    uint8_t *got;

    (void)state;
    if (!want.bytes) skip();
    assert_int_equal(want.len, W * H * 4);
    got = fault_pixels(load("F03_cmyk_adobe0.jpg"), 1, W, H);
    for (size_t i = 0; i < (size_t)W * H; i++)
        for (size_t c = 0; c < 3; c++) sum += abs(got[3 * i + c] - want.bytes[4 * i + c]);
    assert_true(sum / (W * H * 3) < 3);
    free(got);
    fault_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_gets_its_verdict),
        cmocka_unit_test(orientations_show_the_same_picture),
        cmocka_unit_test(ink_has_adobes_polarity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
