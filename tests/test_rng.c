/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: Random123's known answers, streams, ranges and distributions. */
#include "base/rng.h"
#include "tests/testutil.h"

#include <math.h>
#include <string.h>

/* Random123, tests/kat_vectors, lines "philox4x32 10": counter, key, expected. */
static void philox_gives_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } kat[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0U, ~0U, ~0U, ~0U },
          { ~0U, ~0U },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        dpl_philox4x32(kat[i].counter, kat[i].key, out);
        assert_memory_equal(out, kat[i].want, sizeof out);
    }
}

/* The layout is part of the data format: what a sample gets must never change between versions. */
static void stream_is_philox_of_seed_epoch_sample_purpose(void **state)
{
    const uint64_t seed = UINT64_C(0x1122334455667788), sample = UINT64_C(0x99aabbccddeeff00);
    uint32_t counter[4] = { 0, 0xddeeff00, 0x99aabbcc, 0x3abcdef };
    const uint32_t key[2] = { 0x55667788, 0x11223344 };
    uint32_t want[4];
    dpl_rng r;

    (void)state;
    counter[3] |= (uint32_t)DPL_RNG_SPLIT << 28;
    dpl_rng_init(&r, seed, 0x3abcdef, sample, DPL_RNG_SPLIT);
    for (counter[0] = 0; counter[0] < 3; counter[0]++) {
        dpl_philox4x32(counter, key, want);
        for (int i = 0; i < 4; i++) assert_int_equal(dpl_rng_u32(&r), want[i]);
    }
}

static void streams_differ_in_every_part_of_the_key(void **state)
{
    static const uint64_t keys[][4] = {
        { 0, 0, 0, DPL_RNG_AUGMENT },
        { 1, 0, 0, DPL_RNG_AUGMENT },
        { UINT64_C(1) << 32, 0, 0, DPL_RNG_AUGMENT },
        { 0, 1, 0, DPL_RNG_AUGMENT },
        { 0, (1 << 28) - 1, 0, DPL_RNG_AUGMENT },
        { 0, 0, 1, DPL_RNG_AUGMENT },
        { 0, 0, UINT64_C(1) << 32, DPL_RNG_AUGMENT },
        { 0, 0, 0, DPL_RNG_ORDER },
        { 0, 0, 0, DPL_RNG_MIX },
    };
    enum { N = sizeof keys / sizeof *keys };
    uint32_t first[N][4];

    (void)state;
    for (int i = 0; i < N; i++) {
        dpl_rng r;
        dpl_rng_init(&r, keys[i][0], keys[i][1], keys[i][2], (dpl_purpose)keys[i][3]);
        for (int k = 0; k < 4; k++) first[i][k] = dpl_rng_u32(&r);
        for (int k = 0; k < i; k++) assert_memory_not_equal(first[i], first[k], sizeof first[0]);
    }
}

static dpl_rng stream(uint64_t seed)
{
    dpl_rng r;

    dpl_rng_init(&r, seed, 0, 0, DPL_RNG_MIX);
    return r;
}

/* A stream that goes on with these four numbers. */
static dpl_rng fixed(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    dpl_rng r = stream(0);
    const uint32_t block[4] = { a, b, c, d };

    memcpy(r.block, block, sizeof block);
    r.used = 0;
    return r;
}

static void unit_covers_zero_to_below_one(void **state)
{
    dpl_rng r = fixed(0, 0, ~0U, ~0U);

    (void)state;
    assert_true(dpl_rng_unit(&r) == 0);
    assert_true(dpl_rng_unit(&r) == 1 - 0x1p-53);
    r = fixed(1U << 31, 0, 0, 1U << 6); /* top bit = one half; lowest used bit = 2^-53 */
    assert_true(dpl_rng_unit(&r) == 0.5);
    assert_true(dpl_rng_unit(&r) == 0x1p-53);
}

static void uniform_stays_below_its_end(void **state)
{
    dpl_rng r = fixed(~0U, ~0U, 0, 0);
    const double lo = 1, hi = nextafter(1, 2); /* no number lies between */

    (void)state;
    assert_true(dpl_rng_uniform(&r, lo, hi) == lo);
    assert_true(dpl_rng_uniform(&r, -3, 5) == -3);
    r = stream(1);
    assert_true(dpl_rng_uniform(&r, 2, 2) == 2);
    for (int i = 0; i < 10000; i++) {
        const double v = dpl_rng_uniform(&r, 0.75, 1.25);
        assert_true(v >= 0.75 && v < 1.25);
    }
}

/* Chi-square of counts against equal shares; df = k - 1. */
static double chi_square(const int *counts, int k, int n)
{
    const double want = (double)n / k;
    double sum = 0;

    for (int i = 0; i < k; i++) sum += (counts[i] - want) * (counts[i] - want) / want;
    return sum;
}

static void below_is_even(void **state)
{
    enum { N = 70000 };
    int counts[7] = { 0 };
    dpl_rng r = stream(2);

    (void)state;
    for (int i = 0; i < N; i++) {
        const uint32_t v = dpl_rng_below(&r, 7);
        assert_true(v < 7);
        counts[v]++;
    }
    assert_true(chi_square(counts, 7, N) < 22.46); /* 0.1 % point of chi-square, df 6 */
}

/* With n = 3 * 2^30 a plain product or remainder gives one third of the results twice as often. */
static void below_has_no_bias_for_large_n(void **state)
{
    enum { N = 60000 };
    const uint32_t n = 3U << 30;
    int counts[3] = { 0 }, rest[3] = { 0 };
    dpl_rng r = stream(3);

    (void)state;
    for (int i = 0; i < N; i++) {
        const uint32_t v = dpl_rng_below(&r, n);
        assert_true(v < n);
        counts[v >> 30]++;
        rest[v % 3]++;
    }
    assert_true(chi_square(counts, 3, N) < 13.82); /* 0.1 % point, df 2 */
    assert_true(chi_square(rest, 3, N) < 13.82);
}

static void below_rejects_exactly_the_surplus(void **state)
{
    /* n = 3: 2^32 mod 3 = 1, so that of all draws only 0 has to be drawn again. */
    dpl_rng r = fixed(0, 1, ~0U, 0x55555555);

    (void)state;
    assert_int_equal(dpl_rng_below(&r, 3), 0);
    assert_int_equal(r.used, 2);
    assert_int_equal(dpl_rng_below(&r, 3), 2);
    assert_int_equal(dpl_rng_below(&r, 3), 0); /* 0x55555555 * 3 = 2^32 - 1 */
    r = stream(4);
    for (int i = 0; i < 10; i++) assert_int_equal(dpl_rng_below(&r, 1), 0);
}

static void normal_has_its_moments(void **state)
{
    enum { N = 100000 };
    dpl_rng r = stream(5);
    double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        const double v = dpl_rng_normal(&r);
        assert_true(isfinite(v));
        sum += v;
        sum2 += v * v;
        sum3 += v * v * v;
        sum4 += v * v * v * v;
    }
    /* Four standard errors each: 1, sqrt 2, sqrt 15, sqrt 96 over sqrt N. */
    assert_true(fabs(sum / N) < 4 * 1 / sqrt(N));
    assert_true(fabs(sum2 / N - 1) < 4 * sqrt(2) / sqrt(N));
    assert_true(fabs(sum3 / N) < 4 * sqrt(15) / sqrt(N));
    assert_true(fabs(sum4 / N - 3) < 4 * sqrt(96) / sqrt(N));
}

static void normal_is_finite_at_the_ends(void **state)
{
    dpl_rng r = fixed(~0U, ~0U, 0, 0);

    (void)state;
    assert_true(fabs(dpl_rng_normal(&r) - sqrt(2 * 53 * log(2))) < 1e-12); /* u = 2^-53, angle 0 */
    r = fixed(0, 0, 0, 0);
    assert_true(dpl_rng_normal(&r) == 0);
}

/* Expected: Philox and the formula written down anew in Python, rounded by numpy's float32. */
static void normals_are_box_muller_pairs(void **state)
{
    static const float want[8] = { -1.62597871F, 1.57071877F,  -0.30767253F, -0.337646365F,
                                   -1.64149785F, 0.365433514F, 0.199953601F, 0.462123871F };
    float got[9] = { 0 };
    dpl_rng r;

    (void)state;
    dpl_rng_init(&r, 7, 3, 11, DPL_RNG_ERASE);
    dpl_rng_normals(&r, got, 8);
    assert_memory_equal(got, want, sizeof want);
    dpl_rng_init(&r, 7, 3, 11, DPL_RNG_ERASE);
    dpl_rng_normals(&r, got, 3); /* the fourth is dropped */
    dpl_rng_normals(&r, got + 3, 4);
    assert_memory_equal(got, want, 3 * sizeof *want);
    assert_memory_equal(got + 3, want + 4, 4 * sizeof *want);
    assert_true(got[8] == 0);
    r = fixed(0, 0, ~0U, 0);
    dpl_rng_normals(&r, got, 4);
    for (int i = 0; i < 4; i++) assert_true(fabsf(got[i]) < 6.8F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_known_answers),
        cmocka_unit_test(stream_is_philox_of_seed_epoch_sample_purpose),
        cmocka_unit_test(streams_differ_in_every_part_of_the_key),
        cmocka_unit_test(unit_covers_zero_to_below_one),
        cmocka_unit_test(uniform_stays_below_its_end),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(below_has_no_bias_for_large_n),
        cmocka_unit_test(below_rejects_exactly_the_surplus),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(normal_is_finite_at_the_ends),
        cmocka_unit_test(normals_are_box_muller_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
