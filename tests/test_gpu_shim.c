/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU shim makes of a .cu file does what CUDA says; results have closed forms. In tests/nvcc/
 * the same kernels are launched by nvcc's own objects. On a card the same values must come out. */
#include "tests/fake/fake_cuda.h"
#include "tests/gpu_plants.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_VALUE = 1, ERROR_CONFIGURATION = 9, ERROR_LAUNCH = 719 };

static const char *const orders[] = { "0", "1", "2", "7", "1000" };
enum { ORDERS = sizeof orders / sizeof *orders };

static void every_thread_has_its_place(void **state)
{
    static const unsigned grids[][3] = { { 1, 1, 1 }, { 7, 1, 1 }, { 3, 4, 2 }, { 1, 5, 3 } };
    static const unsigned blocks[][3] = { { 1, 1, 1 }, { 33, 1, 1 }, { 4, 3, 5 }, { 1, 2, 64 } };
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (size_t k = 0; k < 4 * ORDERS; k++) {
        const unsigned *const gd = grids[k % 4], *const bd = blocks[k % 4];
        const unsigned in_block = bd[0] * bd[1] * bd[2], n = gd[0] * gd[1] * gd[2] * in_block;
        int *got = calloc(n, 2 * sizeof *got), *p = test_gpu_put(&g, got, 2 * n * sizeof *got);

        setenv("FAKE_CUDA_ORDER", orders[k / 4], 1);
        assert_int_equal(g.k->place(p, gd, bd, 0, g.stream), 0);
        test_gpu_take(&g, got, p, 2 * n * sizeof *got);
        for (unsigned i = 0; i < n; i++) {
            const unsigned b = i / in_block, t = i % in_block;

            assert_int_equal(got[2 * i],
                             b % gd[0] + 100 * (b / gd[0] % gd[1]) + 10000 * (b / gd[0] / gd[1]));
            assert_int_equal(got[2 * i + 1],
                             t % bd[0] + 100 * (t / bd[0] % bd[1]) + 10000 * (t / bd[0] / bd[1]));
        }
        free(got);
    }
    unsetenv("FAKE_CUDA_ORDER");
    test_gpu_close(&g);
}

static void limits_of_a_launch_are_cudas(void **state)
{
    static const struct {
        unsigned grid[3], block[3];
        size_t shared;
        int error;
    } cases[] = {
        { { 1, 1, 1 }, { 1024, 1, 1 }, 0, 0 },
        { { 1, 1, 1 }, { 1025, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 1, 1, 1 }, { 32, 33, 1 }, 0, ERROR_CONFIGURATION },
        { { 1, 1, 1 }, { 1, 1, 65 }, 0, ERROR_CONFIGURATION },
        { { 1, 1, 1 }, { 0, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 0, 1, 1 }, { 32, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 1, 65536, 1 }, { 1, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 1, 1, 65536 }, { 1, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 0x80000000u, 1, 1 }, { 1, 1, 1 }, 0, ERROR_CONFIGURATION },
        { { 1, 1, 1 }, { 32, 1, 1 }, 48 << 10, 0 },
        { { 1, 1, 1 }, { 32, 1, 1 }, (48 << 10) + 1, ERROR_VALUE },
    };
    int out[2 * 1024] = { 0 }, *p;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    p = test_gpu_put(&g, out, sizeof out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int e = g.k->place(p, cases[i].grid, cases[i].block, cases[i].shared, g.stream);

        if (e != cases[i].error) fail_msg("case %zu: %d, not %d", i, e, cases[i].error);
    }
    test_gpu_take(&g, out, p, sizeof out);
    test_gpu_close(&g);
}

static void threads_of_a_block_meet_at_barriers(void **state)
{
    enum { BLOCKS = 3, BLOCK = 100, N = BLOCKS * BLOCK };
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (size_t k = 0; k < ORDERS; k++) {
        int v[N], *p, w[64], *r;
        double d[N], *q;

        setenv("FAKE_CUDA_ORDER", orders[k], 1);
        for (int i = 0; i < N; i++) d[i] = v[i] = i;
        for (int i = 0; i < 64; i++) w[i] = i;
        r = test_gpu_put(&g, w, sizeof w);
        p = test_gpu_put(&g, v, sizeof v);
        q = test_gpu_put(&g, d, sizeof d);
        assert_int_equal(g.k->reverse(p, BLOCKS, BLOCK, 1, g.stream), 0);
        assert_int_equal(g.k->reverse_dynamic(q, BLOCKS, BLOCK, BLOCK * sizeof(double), g.stream),
                         0);
        assert_int_equal(g.k->swap_twice(r, 1, g.stream), 0);
        test_gpu_take(&g, v, p, sizeof v);
        test_gpu_take(&g, d, q, sizeof d);
        test_gpu_take(&g, w, r, sizeof w);
        for (int i = 0; i < 64; i++) assert_int_equal(w[i], i + 100);
        for (int i = 0; i < N; i++) {
            const int want = i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK;

            assert_int_equal(v[i], want);
            assert_true(d[i] == want);
        }
    }
    unsetenv("FAKE_CUDA_ORDER");
    test_gpu_close(&g);
}

/* Every value is a whole number below 2^24, so the order of sums does not matter. */
static void a_sum_goes_through_warps(void **state)
{
    static const size_t sizes[] = { 1, 31, 256, 257, 5000 };
    enum { BLOCKS = 3 };
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k];
        float *in = malloc(n * sizeof *in), out[BLOCKS] = { 0 }, total = 0, *p, *q;

        for (size_t i = 0; i < n; i++) in[i] = (float)(i % 97);
        for (size_t i = 0; i < n; i++) total += in[i];
        p = test_gpu_put(&g, in, n * sizeof *in);
        q = test_gpu_put(&g, out, sizeof out);
        assert_int_equal(g.k->sum(q, p, n, BLOCKS, g.stream), 0);
        test_gpu_take(&g, out, q, sizeof out);
        test_gpu_take(&g, in, p, n * sizeof *in);
        assert_true(out[0] + out[1] + out[2] == total);
        free(in);
    }
    test_gpu_close(&g);
}

static unsigned warp_wants(unsigned k, unsigned i, unsigned mask)
{
    unsigned ballot = 0;

    for (unsigned l = 0; l < 32; l++) ballot |= (mask >> l & 1 && l % 3 == 0) << l;
    switch (k) {
    case 0: return 3;
    case 1: return i / 8 * 8 + 1;
    case 2: return i % 16 + 2 > 15 ? i : i + 2;
    case 3: return i < 2 ? i : i - 2;
    case 4: return i ^ 1;
    case 5: return ballot;
    default: return (mask >> 2 & 1) + 2 * !(mask >> 31 & 1);
    }
}

static void warps_exchange_values(void **state)
{
    static const unsigned masks[] = { 0xFFFFFFFFu, 0x0000FFFFu };
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (size_t k = 0; k < 2 * ORDERS; k++) {
        const unsigned mask = masks[k % 2];
        unsigned out[7 * 32] = { 0 }, *p;

        setenv("FAKE_CUDA_ORDER", orders[k / 2], 1);
        p = test_gpu_put(&g, out, sizeof out);
        assert_int_equal(g.k->warp(p, mask, g.stream), 0);
        test_gpu_take(&g, out, p, sizeof out);
        for (unsigned i = 0; i < 7 * 32; i++) {
            const unsigned want = mask >> i % 32 & 1 ? warp_wants(i / 32, i % 32, mask) : 0;

            if (out[i] != want) fail_msg("[%u][%u]: %u, not %u", i / 32, i % 32, out[i], want);
        }
    }
    unsetenv("FAKE_CUDA_ORDER");
    test_gpu_close(&g);
}

static void a_warps_barrier_orders_its_memory(void **state)
{
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (size_t k = 0; k < ORDERS; k++) {
        int out[96] = { 0 }, *p = test_gpu_put(&g, out, sizeof out);

        setenv("FAKE_CUDA_ORDER", orders[k], 1);
        assert_int_equal(g.k->warp_order(p, 1, g.stream), 0);
        test_gpu_take(&g, out, p, sizeof out);
        for (int i = 0; i < 96; i++) assert_int_equal(out[i], (i % 32 ^ 1) + i / 32);
    }
    unsetenv("FAKE_CUDA_ORDER");
    test_gpu_close(&g);
}

static void atomics_lose_nothing(void **state)
{
    int out[3] = { 0 }, *p;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    p = test_gpu_put(&g, out, sizeof out);
    assert_int_equal(g.k->atomics(p, 1000, 1, g.stream), 0);
    test_gpu_take(&g, out, p, sizeof out);
    assert_int_equal(out[0], 1000);
    assert_int_equal(out[1], 999);
    assert_int_equal(out[2], -1);
    test_gpu_close(&g);
}

/* bfloat16 keeps 8 bits of the significand, half 11; both round to even. */
static void conversions_are_ieee(void **state)
{
    static const plants_bits want[] = {
        { 1.0f, 0x3F800000, 7, 2, 24, 1.0f, 1.0f },
        { 1.00390625f, 0x3F808000, 8, 2, 16, 1.0f, 1.00390625f },      /* 1 + 2^-8: a tie, down */
        { 1.01171875f, 0x3F818000, 9, 2, 16, 1.015625f, 1.01171875f }, /* 1 + 3 * 2^-8: up */
        { 65520.0f, 0x477FF000, 15, 1, 13, 65536.0f, INFINITY },
        { 0.0f, 0, 0, 32, 0, 0.0f, 0.0f },
    };
    enum { N = sizeof want / sizeof *want };
    plants_bits got[N] = { 0 }, *p;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (int i = 0; i < N; i++) got[i].value = want[i].value;
    p = test_gpu_put(&g, got, sizeof got);
    assert_int_equal(g.k->bits(p, N, g.stream), 0);
    test_gpu_take(&g, got, p, sizeof got);
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[i].as_int, want[i].as_int);
        assert_int_equal(got[i].ones, want[i].ones);
        assert_int_equal(got[i].zeros, want[i].zeros);
        assert_int_equal(got[i].first, want[i].first);
        assert_true(got[i].bfloat == want[i].bfloat);
        assert_true(got[i].half == want[i].half);
    }
    test_gpu_close(&g);
}

static void vectors_and_templates(void **state)
{
    enum { N = 60 };
    float v[N], *p, *q;
    int w[N] = { 0 }, *r;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    for (int i = 0; i < N; i++) v[i] = (float)i;
    p = test_gpu_put(&g, v, sizeof v);
    q = test_gpu_put(&g, v, sizeof v);
    r = test_gpu_put(&g, w, sizeof w);
    assert_int_equal(g.k->vectors(q, p, N, g.stream), 0);
    assert_int_equal(g.k->fill_float(p, 0.5f, N / 2, g.stream), 0);
    assert_int_equal(g.k->fill_int(r, -3, N, g.stream), 0);
    test_gpu_take(&g, v, q, sizeof v);
    for (int i = 0; i < N; i++) assert_true(v[i] == (float)(2 * i));
    test_gpu_take(&g, v, p, sizeof v);
    for (int i = 0; i < N; i++) assert_true(v[i] == (i < N / 2 ? 0.5f : (float)i));
    test_gpu_take(&g, w, r, sizeof w);
    for (int i = 0; i < N; i++) assert_int_equal(w[i], -3);
    test_gpu_close(&g);
}

/* A card may give anything here; the fake gives what nobody takes for a result. */
static void shared_memory_begins_as_no_number(void **state)
{
    enum { N = 96 };
    float out[N] = { 0 }, *p;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    if (!test_fake_cuda()) skip();
    p = test_gpu_put(&g, out, sizeof out);
    assert_int_equal(g.k->uninitialised(p, N, g.stream), 0);
    test_gpu_take(&g, out, p, sizeof out);
    for (int i = 0; i < N; i++) assert_true(isnan(out[i]));
    test_gpu_close(&g);
}

static void launches_fail_on_order(void **state)
{
    const fake_cuda *const fake = test_fake_cuda();
    int out[2] = { 0 }, *p;
    test_gpu g;

    (void)state;
    test_gpu_open(&g);
    if (!fake) skip();
    p = test_gpu_put(&g, out, sizeof out);
    fake->inject(FAKE_LAUNCH, 2, ERROR_LAUNCH, 0);
    assert_int_equal(g.k->fill_int(p, 1, 1, g.stream), 0);
    assert_int_equal(g.k->fill_int(p, 2, 1, g.stream), ERROR_LAUNCH);
    assert_int_equal(g.k->fill_int(p + 1, 3, 1, g.stream), 0);
    assert_int_equal(g.k->download(out, p, sizeof out, g.stream), 0);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 3);
    fake->inject(FAKE_LAUNCH, 1, ERROR_LAUNCH, 1);
    assert_int_equal(g.k->fill_int(p, 4, 1, g.stream), 0); /* fails when it runs */
    assert_int_equal(g.k->sync(g.stream), ERROR_LAUNCH);
    assert_int_equal(g.k->fill_int(p, 5, 1, g.stream), ERROR_LAUNCH);
    fake->reset();
    test_gpu_take(&g, out, p, sizeof out);
    assert_int_equal(out[0], 1);
    test_gpu_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_has_its_place),
        cmocka_unit_test(limits_of_a_launch_are_cudas),
        cmocka_unit_test(threads_of_a_block_meet_at_barriers),
        cmocka_unit_test(a_sum_goes_through_warps),
        cmocka_unit_test(warps_exchange_values),
        cmocka_unit_test(a_warps_barrier_orders_its_memory),
        cmocka_unit_test(atomics_lose_nothing),
        cmocka_unit_test(conversions_are_ieee),
        cmocka_unit_test(vectors_and_templates),
        cmocka_unit_test(shared_memory_begins_as_no_number),
        cmocka_unit_test(launches_fail_on_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
