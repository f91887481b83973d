/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hold for every kind of device with memory of its own, and planted races that
 * ThreadSanitizer must see through each of them. */
#ifndef TESTS_DEVICE_CASES_H
#define TESTS_DEVICE_CASES_H

#include "device/device.h"
#include "tests/testutil.h"

enum { TEST_DEVICE_BYTES = 1 << 16 };

/* Two streams, two events and three buffers of one device. */
typedef struct test_device {
    dpl_device *d;
    dpl_stream *a, *b;
    dpl_event *e, *f;
    uint8_t *host, *back, *dev;
} test_device;

void test_device_open(test_device *r, const char *spec);
void test_device_close(test_device *r);
void test_device_nap(void *arg); /* work that takes *(const int *)arg milliseconds */

/* Two devices of one kind; where the kind models time, both are quick. */
typedef struct test_device_specs {
    const char *one, *two;
} test_device_specs;

void test_copies_go_there_and_back(void **state);
void test_a_stream_keeps_its_order(void **state);
void test_host_is_not_blocked(void **state);
void test_destroying_a_stream_waits(void **state);
void test_an_event_never_recorded_is_no_wait(void **state);
void test_a_wait_keeps_its_record(void **state);
void test_events_can_be_used_many_times(void **state);
void test_devices_wait_for_each_other(void **state);

/* The list, for an array of tests; specs is a test_device_specs *. */
#define TEST_DEVICE_CASES(specs)                                                                   \
    cmocka_unit_test_prestate(test_copies_go_there_and_back, specs),                               \
        cmocka_unit_test_prestate(test_a_stream_keeps_its_order, specs),                           \
        cmocka_unit_test_prestate(test_host_is_not_blocked, specs),                                \
        cmocka_unit_test_prestate(test_destroying_a_stream_waits, specs),                          \
        cmocka_unit_test_prestate(test_an_event_never_recorded_is_no_wait, specs),                 \
        cmocka_unit_test_prestate(test_a_wait_keeps_its_record, specs),                            \
        cmocka_unit_test_prestate(test_events_can_be_used_many_times, specs),                      \
        cmocka_unit_test_prestate(test_devices_wait_for_each_other, specs)

/** Fails unless ThreadSanitizer, or without it the clocks of the fake CUDA runtime, report each planted race, in
 *  a child process, and are silent about the same program with its wait. Skips where neither is. */
void test_device_plants(const char *spec);
int test_device_has_tsan(void); /* 1 under ThreadSanitizer */
/** For main(): the child's part. @return 1 and its status when argv asks for it, else 0 */
int test_device_plant_main(int argc, char **argv, int *status);

#endif
