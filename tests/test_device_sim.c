/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled accelerator: order, time, and ordering edges that are CUDA's and no more. */
#include "base/clock.h"
#include "device/device.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#    define UNDER_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define UNDER_TSAN 1
#    endif
#endif
#ifndef UNDER_TSAN
#    define UNDER_TSAN 0
#endif

enum { MS = 1000000, BIG = 1 << 16 };

/* Two streams, two events and three buffers of one device. */
typedef struct rig {
    dpl_device *d;
    dpl_stream *a, *b;
    dpl_event *e, *f;
    uint8_t *host, *back, *dev;
} rig;

static void rig_open(rig *r, const char *spec)
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
    memset(r->dev, 0, BIG);
}

static void rig_close(rig *r)
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

static void nothing(void *arg)
{
    (void)arg;
}

static void copies_go_there_and_back(void **state)
{
    rig r;
    (void)state;

    rig_open(&r, "sim:1ms");
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_OK);
    assert_int_equal(dpl_event_record(r.e, r.a), DPL_OK);
    assert_int_equal(dpl_stream_wait(r.b, r.e), DPL_OK);
    assert_int_equal(dpl_copy_to_host(r.b, r.back, r.dev, BIG), DPL_OK);
    assert_int_equal(dpl_copy_to_host(r.b, r.back, r.dev, 0), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.b), DPL_OK);
    assert_memory_equal(r.host, r.back, BIG);
    rig_close(&r);
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

static void a_stream_keeps_its_order(void **state)
{
    rig r;
    log l = { 0 };
    (void)state;

    rig_open(&r, "sim:1ms");
    for (int i = 0; i < 200; i++) assert_int_equal(dpl_stream_launch(r.a, note, &l, 0), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    assert_int_equal(l.next, 200);
    for (int i = 0; i < 200; i++) assert_int_equal(l.seen[i], i);
    rig_close(&r);
}

static void time_is_modelled(void **state)
{
    rig r;
    int64_t start;
    (void)state;

    rig_open(&r, "sim:1ms,bus=6553600"); /* 65536 bytes take 10 ms */
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
    rig_close(&r);
}

static void host_is_not_blocked(void **state)
{
    rig r;
    int64_t start;
    int runs = 0;
    (void)state;

    rig_open(&r, "sim:1ms");
    start = dpl_now_ns();
    dpl_stream_launch(r.a, nothing, NULL, 300 * MS);
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
    rig_close(&r);
}

static void destroying_a_stream_waits(void **state)
{
    rig r;
    int runs = 0;
    (void)state;

    rig_open(&r, "sim:1ms");
    for (int i = 0; i < 5; i++) dpl_stream_launch(r.a, add_one, &runs, 2 * MS);
    dpl_event_record(r.e, r.a);
    dpl_event_destroy(&r.e); /* its point is still on its way */
    dpl_stream_destroy(&r.a);
    assert_int_equal(runs, 5);
    rig_close(&r);
}

static void an_event_never_recorded_is_no_wait(void **state)
{
    rig r;
    (void)state;

    rig_open(&r, "sim:1ms");
    assert_int_equal(dpl_event_query(r.e), 1);
    assert_int_equal(dpl_event_sync(r.e), DPL_OK);
    assert_int_equal(dpl_stream_wait(r.a, r.e), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    rig_close(&r);
}

/* A wait holds on to what was recorded when it was queued, even if the event moves on, and a later
 * record that passes early does not release it. */
static void a_wait_keeps_its_record(void **state)
{
    rig r;
    int64_t start;
    (void)state;

    rig_open(&r, "sim:1ms");
    start = dpl_now_ns();
    dpl_stream_launch(r.a, nothing, NULL, 30 * MS);
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
    rig_close(&r);
}

static void events_can_be_used_many_times(void **state)
{
    rig r;
    int count = 0;
    (void)state;

    rig_open(&r, "sim:0ms,bus=100G");
    for (int i = 0; i < 2000; i++) { /* a ping-pong: each stream waits for the other */
        dpl_stream *from = i % 2 ? r.b : r.a, *to = i % 2 ? r.a : r.b;

        dpl_stream_launch(from, add_one, &count, 0);
        dpl_event_record(i % 3 ? r.e : r.f, from);
        dpl_stream_wait(to, i % 3 ? r.e : r.f);
    }
    dpl_stream_sync(r.a);
    dpl_stream_sync(r.b);
    assert_int_equal(count, 2000);
    rig_close(&r);
}

static void devices_wait_for_each_other(void **state)
{
    rig r[2];
    int count = 0;
    (void)state;

    rig_open(&r[0], "sim:1ms");
    rig_open(&r[1], "sim:2ms");
    for (int i = 0; i < 100; i++) {
        dpl_stream_launch(r[i % 2].a, add_one, &count, 0);
        dpl_event_record(r[i % 2].e, r[i % 2].a);
        dpl_stream_wait(r[1 - i % 2].a, r[i % 2].e);
    }
    dpl_stream_sync(r[0].a);
    dpl_stream_sync(r[1].a);
    assert_int_equal(count, 100);
    rig_close(&r[0]);
    rig_close(&r[1]);
}

/* --- planted races: this program again, as a child, under TSan --- */

static void pause_ms(long ms)
{
    const struct timespec ts = { .tv_nsec = ms * MS };

    nanosleep(&ts, NULL); /* the work is over by now, but nobody may know: that is the point */
}

static void sum(void *arg)
{
    const uint8_t *p = arg;
    int total = 0;

    for (int i = 0; i < BIG; i++) total += p[i];
    if (total == 1) abort(); /* the reads must not be optimised away */
}

/* Right when wait is 1, a race when it is 0. */
static void host_reads(rig *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_stream_launch(r->a, nothing, NULL, 0); /* queueing more must not order the host either */
    if (wait) dpl_event_sync(r->e);
    sum(r->dev);
}

static void host_rewrites(rig *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    while (wait && !dpl_event_query(r->e)) pause_ms(1);
    memset(r->host, 1, BIG);
}

static void other_stream_reads(rig *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    if (wait) dpl_stream_wait(r->b, r->e);
    dpl_stream_launch(r->b, sum, r->dev, 0);
    dpl_stream_sync(r->b);
    dpl_stream_sync(r->a);
}

static void event_too_early(rig *r, int wait)
{
    dpl_event_record(r->e, r->a);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    if (wait) dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_event_sync(r->e);
    sum(r->dev);
}

/* a waits for b's event and writes; that a has looked does not tell b anything. */
static void waiter_is_not_waited_for(rig *r, int wait)
{
    dpl_event_record(r->e, r->b);
    dpl_stream_wait(r->a, r->e);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->f, r->a);
    pause_ms(20);
    if (wait) dpl_stream_wait(r->b, r->f);
    dpl_event_record(r->e, r->b);
    dpl_stream_launch(r->b, sum, r->dev, 0);
    dpl_stream_sync(r->b);
}

static void (*const plants[])(rig *r, int wait) = { host_reads, host_rewrites, other_stream_reads,
                                                    event_too_early, waiter_is_not_waited_for };

static int run_plant(const char *which, int wait)
{
    rig r;

    rig_open(&r, "sim:1ms,bus=100G");
    plants[atoi(which)](&r, wait);
    rig_close(&r);
    return 0;
}

static int child(size_t plant, int wait)
{
    char which[8], waits[2] = { wait ? '1' : '0' };
    char *argv[] = { (char *)"planted", which, waits, NULL };
    char *envp[] = { (char *)"TSAN_OPTIONS=exitcode=66 log_path=/dev/null", NULL };
    pid_t pid;
    int status;

    snprintf(which, sizeof which, "%zu", plant);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, envp), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void tsan_sees_a_missing_wait(void **state)
{
    (void)state;
    if (!UNDER_TSAN) skip();
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        if (child(i, 0) != 66) fail_msg("planted race %zu was not seen", i);
        if (child(i, 1) != 0) fail_msg("case %zu with its wait was reported", i);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_there_and_back),
        cmocka_unit_test(a_stream_keeps_its_order),
        cmocka_unit_test(time_is_modelled),
        cmocka_unit_test(host_is_not_blocked),
        cmocka_unit_test(destroying_a_stream_waits),
        cmocka_unit_test(an_event_never_recorded_is_no_wait),
        cmocka_unit_test(a_wait_keeps_its_record),
        cmocka_unit_test(events_can_be_used_many_times),
        cmocka_unit_test(devices_wait_for_each_other),
        cmocka_unit_test(tsan_sees_a_missing_wait),
    };

    if (argc == 3) return run_plant(argv[1], argv[2][0] == '1');
    return cmocka_run_group_tests(tests, NULL, NULL);
}
