/* SPDX-License-Identifier: Apache-2.0 */
/* --split auto: from times to weights, and as a user runs it. */
#include "tests/dptrain_runs.h"
#include "trainer/split_auto.h"

#include <stdlib.h>
#include <string.h>

static void expect(const double *seconds, int n, const int *want)
{
    int weight[8];

    dpt_split_weights(seconds, n, weight);
    for (int i = 0; i < n; i++)
        if (weight[i] != want[i]) fail_msg("weight %d is %d, not %d", i, weight[i], want[i]);
}

static void weights_are_speeds(void **state)
{
    (void)state;
    expect((const double[]){ 2, 1 }, 2, (const int[]){ 50, 100 });
    expect((const double[]){ 0.3, 0.1, 0.4 }, 3, (const int[]){ 33, 100, 25 });
    expect((const double[]){ 1, 1.6 }, 2, (const int[]){ 100, 63 }); /* 62.5: half up */
    expect((const double[]){ 1e-3, 10 }, 2, (const int[]){ 100, 1 });
    expect((const double[]){ 7 }, 1, (const int[]){ 1 });
}

/* What differs by less than a measurement does is the same: the split does not change by chance. */
static void equal_devices_share_evenly(void **state)
{
    (void)state;
    expect((const double[]){ 1, 1.05, 1.02 }, 3, (const int[]){ 1, 1, 1 });
    expect((const double[]){ 1, 1.06, 1.02 }, 3, (const int[]){ 100, 94, 98 });
}

#define COMMON "-a tinynet --size 16 --backend ref --lr 0.01 --epochs 1 --progress none "

/* Times to weights in the first lines, and those weights in the parts. */
static void it_says_what_it_found(void **state)
{
    const char *at;
    char again[200];
    int a = 0, b = 0, n = 0, part_a = 0, part_b = 0, end = 0;
    test_run r, same;

    (void)state;
    test_dptrain(&r, COMMON "-b 12 --devices cpu,cpu --threads 2 --split auto -o found data");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    at = strstr(r.err, "split: ");
    if (!at ||
        sscanf(at, "split: %d pictures take cpu %*f ms, cpu %*f ms: weights %d,%d (as with%n", &n,
               &a, &b, &end) != 3 ||
        !end)
        fail_msg("it said: %s", r.err);
    assert_int_equal(n, 6);
    assert_true((a == 1 && b == 1) || a == 100 || b == 100);
    at = strstr(r.err, "batch 12 per step = ");
    assert_true(at && sscanf(at, "batch 12 per step = %d + %d", &part_a, &part_b) == 2);
    snprintf(again, sizeof again, "--split %d,%d", a, b);
    test_dptrain(&same, COMMON "-b 12 --devices cpu,cpu --threads 2 %s -o again data", again);
    assert_int_equal(same.code, 0);
    assert_non_null(strstr(same.err, test_format("batch 12 per step = %d + %d", part_a, part_b)));
    test_run_free(&same);
    test_run_free(&r);
}

static void one_device_needs_no_measurement(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, COMMON "-b 12 --split auto -o one data");
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.err, "split: "));
    test_run_free(&r);
}

static void modelled_devices_are_refused(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, "--devices sim:5ms,sim:9ms --split auto data");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "--split auto with --devices sim:5ms,sim:9ms"));
    test_run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_speeds),
        cmocka_unit_test(equal_devices_share_evenly),
        cmocka_unit_test(it_says_what_it_found),
        cmocka_unit_test(one_device_needs_no_measurement),
        cmocka_unit_test(modelled_devices_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
