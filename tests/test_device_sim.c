/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled accelerator: order, time, and ordering edges that are CUDA's and no more. */
#include "base/clock.h"
#include "dpload.h"
#include "tests/device_cases.h"

enum { MS = 1000000, BIG = TEST_DEVICE_BYTES };

static void nothing(void *arg)
{
    (void)arg;
}

static void time_is_modelled(void **state)
{
    test_device r;
    int64_t start;
    (void)state;

    test_device_open(&r, "sim:1ms,bus=6553600"); /* 65536 bytes take 10 ms */
    start = dpl_now_ns();
    for (int i = 0; i < 10; i++) dpl_stream_launch(r.a, nothing, NULL, 2 * MS);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    assert_true(dpl_now_ns() - start >= 20 * MS);

    start = dpl_now_ns(); /* one bus: two streams share it */
    dpl_copy_to_device(r.a, r.dev, r.host, BIG / 2);
    dpl_copy_to_device(r.b, r.dev + BIG / 2, r.host + BIG / 2, BIG / 2);
    dpl_stream_sync(r.a);
    dpl_stream_sync(r.b);
    assert_true(dpl_now_ns() - start >= 10 * MS);
    assert_memory_equal(r.host, r.dev, BIG);
    test_device_close(&r);
}

static void tsan_sees_a_missing_wait(void **state)
{
    (void)state;
    test_device_plants("sim:1ms,bus=100G");
}

int main(int argc, char **argv)
{
    test_device_specs specs = { "sim:1ms", "sim:2ms" };
    const struct CMUnitTest tests[] = {
        TEST_DEVICE_CASES(&specs),
        cmocka_unit_test(time_is_modelled),
        cmocka_unit_test(tsan_sees_a_missing_wait),
    };
    int status;

    if (test_device_plant_main(argc, argv, &status)) return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
