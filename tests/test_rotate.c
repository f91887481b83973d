/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation against Pillow, and what must hold for any picture. */
#include "base/cpu.h"
#include "kernels/kernels.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <string.h>

static void rotation_matches_pillow(void **state)
{
    FILE *f = test_data_open("tests/data/augment_rotate.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, seed, bilinear;
        unsigned fill[3], crc;
        double degrees;
        assert_int_equal(sscanf(line, "%d %d %d %lf %d %u %u %u %x", &w, &h, &seed, &degrees,
                                &bilinear, &fill[0], &fill[1], &fill[2], &crc),
                         9);
        const uint8_t fill8[3] = { (uint8_t)fill[0], (uint8_t)fill[1], (uint8_t)fill[2] };
        const size_t bytes = 3 * (size_t)w * (size_t)h;
        uint8_t *in = test_guarded_bytes(bytes, 0);
        test_formula_picture(in, w, h, seed);
        for (unsigned level = 0; level < 2; level++) {
            uint8_t *out = test_canary(bytes);
            dpl_kernels k;
            dpl_kernels_select(&k, level ? test_cpu() : DPL_CPU_C);
            k.rotate(out, in, w, h, degrees, bilinear, fill8);
            assert_true(test_canary_ok(out, bytes));
            if (test_crc(out, bytes) != crc)
                fail_msg("level %u differs from Pillow: %s", level, line);
        }
        test_free_all();
    }
    fclose(f);
    assert_int_equal(cases, 300);
}

/* Four quarter turns of a square are none; a full turn is none. */
static void quarter_turns_add_up(void **state)
{
    enum { SIDE = 13, BYTES = SIDE * SIDE * 3 };
    static const uint8_t fill[3];
    uint8_t in[BYTES], a[BYTES], b[BYTES];

    (void)state;
    test_formula_picture(in, SIDE, SIDE, 3);
    for (int bilinear = 0; bilinear < 2; bilinear++) {
        dpl_rotate_rgb_c(a, in, SIDE, SIDE, 90, bilinear, fill);
        dpl_rotate_rgb_c(b, a, SIDE, SIDE, 270, bilinear, fill);
        assert_memory_equal(b, in, BYTES);
        dpl_rotate_rgb_c(b, a, SIDE, SIDE, 90, bilinear, fill);
        dpl_rotate_rgb_c(a, in, SIDE, SIDE, -180, bilinear, fill);
        assert_memory_equal(a, b, BYTES);
        dpl_rotate_rgb_c(b, in, SIDE, SIDE, -720, bilinear, fill);
        assert_memory_equal(b, in, BYTES);
    }
}

/* Counter-clockwise: the pixel at the right end goes to the top. */
static void positive_angles_turn_counter_clockwise(void **state)
{
    static const uint8_t fill[3];
    uint8_t in[9 * 3] = { 0 }, out[9 * 3];

    (void)state;
    in[3 * 5] = 200; /* row 1, column 2 */
    dpl_rotate_rgb_c(out, in, 3, 3, 90, 0, fill);
    assert_int_equal(out[3 * 1], 200);
}

/* A bright picture on a bright ground: the edge is never mixed with what is outside. */
static void bilinear_edges_do_not_mix_with_the_fill(void **state)
{
    enum { SIDE = 21 };
    static const uint8_t fill[3] = { 0, 255, 7 };
    uint8_t in[SIDE * SIDE * 3], out[SIDE * SIDE * 3];

    (void)state;
    memset(in, 100, sizeof in);
    dpl_rotate_rgb_c(out, in, SIDE, SIDE, 33, 1, fill);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int inside = out[3 * i] == 100 && out[3 * i + 1] == 100 && out[3 * i + 2] == 100;
        assert_true(inside || !memcmp(out + 3 * i, fill, 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotation_matches_pillow),
        cmocka_unit_test(quarter_turns_add_up),
        cmocka_unit_test(positive_angles_turn_counter_clockwise),
        cmocka_unit_test(bilinear_edges_do_not_mix_with_the_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
