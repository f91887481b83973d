/* SPDX-License-Identifier: Apache-2.0 */
/* What streams, events and copies do on every kind of device with memory of its own. */
#include "tests/device_cases.h"

#include "base/clock.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MS = 1000000, BIG = TEST_DEVICE_BYTES };

void test_device_open(test_device *r, const char *spec)
{
    dpl_text why = { "" };

    if (dpl_device_open(&r->d, spec, &why) || dpl_stream_create(r->d, &r->a, "stream-a", &why) ||
        dpl_stream_create(r->d, &r->b, "a name that is too long", &why) ||
        dpl_event_create(r->d, &r->e, &why) || dpl_event_create(r->d, &r->f, &why)) {
        fail_msg("%s", why.s);
    }
    r->host = dpl_device_host_alloc(r->d, BIG);
    r->back = dpl_device_host_alloc(r->d, BIG);
    r->dev = dpl_device_alloc(r->d, BIG);
    assert_true(r->host && r->back && r->dev);
    for (int i = 0; i < BIG; i++) r->host[i] = (uint8_t)(i * 7 + i / 256);
    memset(r->back, 0, BIG);
    assert_int_equal(dpl_copy_to_device(r->a, r->dev, r->back, BIG), DPL_OK);
    assert_int_equal(dpl_stream_sync(r->a), DPL_OK);
}

void test_device_close(test_device *r)
{
    dpl_event_destroy(&r->e);
    dpl_event_destroy(&r->f);
    dpl_stream_destroy(&r->a);
    dpl_stream_destroy(&r->b);
    dpl_device_host_free(r->d, r->host);
    dpl_device_host_free(r->d, r->back);
    dpl_device_free(r->d, r->dev);
    dpl_device_close(&r->d);
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void pause_ms(long ms)
{
    const struct timespec ts = { .tv_nsec = ms * MS };

    nanosleep(&ts, NULL);
}

/* Work that takes arg milliseconds. */
void test_device_nap(void *arg)
{
    pause_ms(*(const int *)arg);
}

void test_copies_go_there_and_back(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;

    test_device_open(&r, specs->one);
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_OK);
    assert_int_equal(dpl_event_record(r.e, r.a), DPL_OK);
    assert_int_equal(dpl_stream_wait(r.b, r.e), DPL_OK);
    assert_int_equal(dpl_copy_to_host(r.b, r.back, r.dev, BIG), DPL_OK);
    assert_int_equal(dpl_copy_to_host(r.b, r.back, r.dev, 0), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.b), DPL_OK);
    assert_memory_equal(r.host, r.back, BIG);
    test_device_close(&r);
}

typedef struct log {
    int n, seen[200];
    int next;
} log;

static void note(void *arg)
{
    log *l = arg;

    l->seen[l->next++] = l->n++;
}

void test_a_stream_keeps_its_order(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;
    log l = { 0 };

    test_device_open(&r, specs->one);
    for (int i = 0; i < 200; i++) assert_int_equal(dpl_stream_launch(r.a, note, &l, 0), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    assert_int_equal(l.next, 200);
    for (int i = 0; i < 200; i++) assert_int_equal(l.seen[i], i);
    test_device_close(&r);
}

void test_host_is_not_blocked(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;
    int64_t start;
    int runs = 0;

    test_device_open(&r, specs->one);
    start = dpl_now_ns();
    dpl_stream_launch(r.a, test_device_nap, &(int){ 300 }, 0);
    dpl_stream_launch(r.a, add_one, &runs, 0);
    dpl_event_record(r.e, r.a);
    dpl_stream_wait(r.b, r.e);
    dpl_event_record(r.f, r.b);
    assert_int_equal(dpl_event_query(r.e), 0);
    assert_int_equal(dpl_event_query(r.f), 0);
    assert_true(dpl_now_ns() - start < 300 * MS);
    assert_int_equal(dpl_event_sync(r.f), DPL_OK);
    assert_true(dpl_now_ns() - start >= 300 * MS);
    assert_int_equal(dpl_event_query(r.e), 1);
    assert_int_equal(runs, 1);
    test_device_close(&r);
}

void test_destroying_a_stream_waits(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;
    int runs = 0;

    test_device_open(&r, specs->one);
    dpl_stream_launch(r.a, test_device_nap, &(int){ 10 }, 0);
    dpl_stream_launch(r.a, add_one, &runs, 0);
    dpl_event_record(r.e, r.a);
    dpl_event_destroy(&r.e); /* its point is still on its way */
    dpl_stream_destroy(&r.a);
    assert_int_equal(runs, 1);
    test_device_close(&r);
}

void test_an_event_never_recorded_is_no_wait(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;

    test_device_open(&r, specs->one);
    assert_int_equal(dpl_event_query(r.e), 1);
    assert_int_equal(dpl_event_sync(r.e), DPL_OK);
    assert_int_equal(dpl_stream_wait(r.a, r.e), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    test_device_close(&r);
}

/* A wait holds on to what was recorded when it was queued, even if the event moves on, and a later
 * record that passes early does not release it. */
void test_a_wait_keeps_its_record(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;
    int64_t start;

    test_device_open(&r, specs->one);
    start = dpl_now_ns();
    dpl_stream_launch(r.a, test_device_nap, &(int){ 30 }, 0);
    dpl_event_record(r.e, r.a); /* passes after 30 ms */
    dpl_stream_wait(r.b, r.e);
    dpl_event_record(r.f, r.b);
    {
        dpl_stream *c;
        dpl_text why;

        assert_int_equal(dpl_stream_create(r.d, &c, "c", &why), DPL_OK);
        dpl_event_record(r.e, c); /* passes at once */
        assert_int_equal(dpl_event_sync(r.e), DPL_OK);
        dpl_stream_destroy(&c);
    }
    assert_int_equal(dpl_event_sync(r.f), DPL_OK);
    assert_true(dpl_now_ns() - start >= 30 * MS);
    test_device_close(&r);
}

void test_events_can_be_used_many_times(void **state)
{
    const test_device_specs *specs = *state;
    test_device r;
    int count = 0;

    test_device_open(&r, specs->one);
    for (int i = 0; i < 2000; i++) { /* a ping-pong: each stream waits for the other */
        dpl_stream *from = i % 2 ? r.b : r.a, *to = i % 2 ? r.a : r.b;

        dpl_stream_launch(from, add_one, &count, 0);
        dpl_event_record(i % 3 ? r.e : r.f, from);
        dpl_stream_wait(to, i % 3 ? r.e : r.f);
    }
    dpl_stream_sync(r.a);
    dpl_stream_sync(r.b);
    assert_int_equal(count, 2000);
    test_device_close(&r);
}

void test_devices_wait_for_each_other(void **state)
{
    const test_device_specs *specs = *state;
    test_device r[2];
    int count = 0;

    test_device_open(&r[0], specs->one);
    test_device_open(&r[1], specs->two);
    for (int i = 0; i < 100; i++) {
        dpl_stream_launch(r[i % 2].a, add_one, &count, 0);
        dpl_event_record(r[i % 2].e, r[i % 2].a);
        dpl_stream_wait(r[1 - i % 2].a, r[i % 2].e);
    }
    dpl_stream_sync(r[0].a);
    dpl_stream_sync(r[1].a);
    assert_int_equal(count, 100);
    test_device_close(&r[0]);
    test_device_close(&r[1]);
}
