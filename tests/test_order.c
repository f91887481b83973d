/* SPDX-License-Identifier: Apache-2.0 */
/* The keyed permutation is a bijection and mixes; splits and steps cover everything exactly once. */
#include "base/rng.h"
#include "dpload.h"
#include "loader/order.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

static void permutation_is_a_bijection(void **state)
{
    static const uint64_t big[] = { 1023, 1024, 1025, 65536, 65537, 100003, 1281167 };
    uint8_t *seen = calloc(2000000, 1);

    (void)state;
    assert_non_null(seen);
    for (uint64_t c = 0; c < 300 + sizeof big / sizeof *big; c++) {
        const uint64_t n = c < 300 ? c + 1 : big[c - 300];
        dpl_permutation p;

        memset(seen, 0, n);
        dpl_permutation_init(&p, n, 7, c);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t at = dpl_permutation_at(&p, i);

            assert_true(at < n);
            assert_int_equal(seen[at], 0);
            seen[at] = 1;
        }
    }
    free(seen);
}

static void permutation_stays_inside_at_huge_sizes(void **state)
{
    static const uint64_t sizes[] = { UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1, UINT64_C(1) << 62,
                                      (UINT64_C(1) << 62) + 1, UINT64_MAX };

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        dpl_permutation p;

        dpl_permutation_init(&p, sizes[k], 1, 0);
        for (uint64_t i = 0; i < 1000; i++) {
            const uint64_t a = dpl_permutation_at(&p, i);

            assert_true(a < sizes[k]);
            assert_true(a != dpl_permutation_at(&p, i + 1));
        }
    }
}

/* Chi-square of where samples land: n * n cells over many epochs. For permutations, times (n-1)/n, it
 * has (n-1)^2 degrees of freedom; six standard deviations of it are outside chance. */
static void permutation_mixes_evenly(void **state)
{
    static const int sizes[] = { 2, 3, 4, 5, 10, 17, 33 };
    enum { EPOCHS = 20000 };

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int n = sizes[k];
        const double want = (double)EPOCHS / n, freedom = (double)(n - 1) * (n - 1);
        int *hits = calloc((size_t)n * (size_t)n, sizeof *hits);
        double chi = 0, limit = freedom;

        assert_non_null(hits);
        for (uint64_t e = 0; e < EPOCHS; e++) {
            dpl_permutation p;

            dpl_permutation_init(&p, (uint64_t)n, 3, e);
            for (int i = 0; i < n; i++)
                hits[(uint64_t)i * (uint64_t)n + dpl_permutation_at(&p, (uint64_t)i)]++;
        }
        for (int i = 0; i < n * n; i++) chi += (hits[i] - want) * (hits[i] - want) / want;
        chi = chi * (n - 1) / n;
        while ((limit - freedom) * (limit - freedom) < 36 * 2 * freedom) limit += 1;
        if (chi > limit) fail_msg("n %d: chi-square %g, at most %g", n, chi, limit);
        free(hits);
    }
}

/* Neighbours must not stay neighbours: in a random order of n, about 2 pairs do. */
static void permutation_breaks_runs(void **state)
{
    const uint64_t n = 10000;
    uint64_t together = 0;

    (void)state;
    for (uint64_t e = 0; e < 10; e++) {
        dpl_permutation p;

        dpl_permutation_init(&p, n, 0, e);
        for (uint64_t i = 0; i + 1 < n; i++) {
            const uint64_t a = dpl_permutation_at(&p, i), b = dpl_permutation_at(&p, i + 1);

            together += a + 1 == b || b + 1 == a;
        }
    }
    assert_true(together < 60); /* expected 20, deviation 4.5 */
}

static void permutation_depends_on_seed_epoch_and_purpose(void **state)
{
    dpl_permutation p[4];
    int same[4] = { 0 };

    (void)state;
    dpl_permutation_init(&p[0], 1000, 1, 1);
    dpl_permutation_init(&p[1], 1000, 2, 1);
    dpl_permutation_init(&p[2], 1000, 1, 2);
    dpl_permutation_init_for(&p[3], 1000, 1, 1, 0, DPL_RNG_SPLIT);
    for (uint64_t i = 0; i < 1000; i++)
        for (int k = 1; k < 4; k++)
            same[k] += dpl_permutation_at(&p[0], i) == dpl_permutation_at(&p[k], i);
    for (int k = 1; k < 4; k++) assert_true(same[k] < 12); /* expected 1 */
}

static void split_sums_up_and_is_fair(void **state)
{
    static const int weights[][4] = {
        { 1, 1, 1, 1 }, { 3, 1, 1, 1 }, { 5, 3, 2, 7 }, { 1000000, 1, 1, 999999 }
    };

    (void)state;
    for (int k = 1; k <= 4; k++) {
        for (uint64_t n = 0; n <= 100; n++) {
            for (size_t w = 0; w <= 4; w++) {
                const int *weight = w < 4 ? weights[w] : NULL;
                uint64_t out[4], sum = 0;
                double total = 0;

                for (int i = 0; i < k; i++) total += weight ? weight[i] : 1;
                dpl_split(n, weight, k, out);
                for (int i = 0; i < k; i++) {
                    const double share = (double)n * (weight ? weight[i] : 1) / total;

                    assert_true((double)out[i] > share - 1 && (double)out[i] < share + 1);
                    sum += out[i];
                }
                assert_int_equal(sum, n);
            }
        }
    }
}

static void split_gives_the_rest_to_the_first(void **state)
{
    const int weight[] = { 3, 1 };
    uint64_t out[4];

    (void)state;
    dpl_split(10, NULL, 4, out);
    assert_int_equal(out[0], 3);
    assert_int_equal(out[1], 3);
    assert_int_equal(out[2], 2);
    assert_int_equal(out[3], 2);
    dpl_split(64, weight, 2, out);
    assert_int_equal(out[0], 48);
    assert_int_equal(out[1], 16);
    dpl_split(UINT64_MAX, weight, 2, out); /* no overflow */
    assert_int_equal(out[0] + out[1], UINT64_MAX);
    assert_int_equal(out[1], UINT64_MAX / 4 + 1); /* remainder 3/4 beats 1/4 */
}

/* Every position of an epoch belongs to exactly one (batch, rank, part). */
static void steps_cover_each_position_once(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 33; n++)
        for (uint64_t batch = 1; batch <= 40; batch++)
            for (int world = 1; world <= 5; world++)
                for (int drop = 0; drop < 2; drop++) {
                    dpl_steps s;
                    uint64_t next = 0;

                    dpl_steps_init(&s, n, batch, drop);
                    assert_true(s.count >= 1);
                    for (uint64_t b = 0; b < s.count; b++)
                        for (int r = 0; r < world; r++) {
                            uint64_t first, k, share[3], even[5];
                            const uint64_t size = n - b * batch < batch ? n - b * batch : batch;

                            dpl_steps_rank(&s, b, r, world, &first, &k);
                            dpl_split(size, NULL, world, even);
                            assert_int_equal(k, even[r]);
                            assert_int_equal(first, next);
                            dpl_split(k, NULL, 3, share);
                            next += share[0] + share[1] + share[2];
                        }
                    assert_int_equal(next + s.dropped, n);
                    assert_int_equal(s.dropped, drop && n >= batch ? n % batch : 0);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutation_is_a_bijection),
        cmocka_unit_test(permutation_stays_inside_at_huge_sizes),
        cmocka_unit_test(permutation_mixes_evenly),
        cmocka_unit_test(permutation_breaks_runs),
        cmocka_unit_test(permutation_depends_on_seed_epoch_and_purpose),
        cmocka_unit_test(split_sums_up_and_is_fair),
        cmocka_unit_test(split_gives_the_rest_to_the_first),
        cmocka_unit_test(steps_cover_each_position_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
