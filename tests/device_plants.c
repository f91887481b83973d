/* SPDX-License-Identifier: Apache-2.0 */
/* Planted races: each program without its wait, as a child, under ThreadSanitizer; over the fake
 * CUDA runtime also where there is no sanitizer, by its clocks. */
#include "dpload.h"
#include "tests/device_cases.h"
#include "tests/fake/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { MS = 1000000, BIG = TEST_DEVICE_BYTES, BY_CLOCKS = 65, BY_TSAN = 66 };

static const fake_cuda *clocks; /* NULL = another kind of device */

static void pause_ms(long ms)
{
    const struct timespec ts = { .tv_nsec = ms * MS };

    nanosleep(&ts, NULL); /* the work is over by now, but nobody may know: that is the point */
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Stands for a kernel: it reads the device's memory, which is the host's on these devices. */
static void sum(void *arg)
{
    const uint8_t *p = arg;
    int total = 0;

    for (int i = 0; i < BIG; i++) total += p[i];
    if (total == 1) abort(); /* the reads must not be optimised away */
}

/* The same on a stream and by the host, told to the clocks. */
static void sum_on(dpl_stream *s, uint8_t *dev)
{
    dpl_stream_launch(s, sum, dev, 0);
    if (clocks) clocks->stream_uses(dpl_stream_native(s), dev, BIG, 0, "kernel");
}

static void sum_here(uint8_t *p)
{
    if (clocks) clocks->host_uses(p, BIG, 0, "sum");
    sum(p);
}

/* Right when wait is 1, a race when it is 0. */
static void host_reads(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_stream_launch(r->a, nothing, NULL, 0); /* queueing more must not order the host either */
    if (wait) dpl_event_sync(r->e);
    sum_here(r->dev);
}

/* The slot is filled again. */
static void host_rewrites(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    while (wait && !dpl_event_query(r->e)) pause_ms(1);
    if (clocks) clocks->host_uses(r->host, BIG, 1, "fill");
    memset(r->host, 1, BIG);
}

/* The consumer. */
static void other_stream_reads(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    if (wait) dpl_stream_wait(r->b, r->e);
    sum_on(r->b, r->dev);
    dpl_stream_sync(r->b);
    dpl_stream_sync(r->a);
}

/* Two slots' worth of one: the copy of the next batch must wait for who reads the one before. */
static void device_slot_is_overwritten(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    dpl_stream_wait(r->b, r->e);
    sum_on(r->b, r->dev);
    dpl_event_record(r->f, r->b);
    if (wait) dpl_stream_wait(r->a, r->f);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_stream_sync(r->a);
    dpl_stream_sync(r->b);
}

static void result_is_read_early(test_device *r, int wait)
{
    dpl_copy_to_host(r->a, r->back, r->dev, BIG);
    pause_ms(20);
    if (wait) dpl_stream_sync(r->a);
    sum_here(r->back);
}

static void event_too_early(test_device *r, int wait)
{
    dpl_event_record(r->e, r->a);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    if (wait) dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_event_sync(r->e);
    sum_here(r->dev);
}

/* a waits for b's event and writes; that a has looked does not tell b anything. */
static void waiter_is_not_waited_for(test_device *r, int wait)
{
    dpl_event_record(r->e, r->b);
    dpl_stream_wait(r->a, r->e);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->f, r->a);
    pause_ms(20);
    if (wait) dpl_stream_wait(r->b, r->f);
    dpl_event_record(r->e, r->b);
    sum_on(r->b, r->dev);
    dpl_stream_sync(r->b);
}

static void (*const plants[])(test_device *r, int wait) = {
    host_reads,           host_rewrites,   other_stream_reads,      device_slot_is_overwritten,
    result_is_read_early, event_too_early, waiter_is_not_waited_for
};

int test_device_plant_main(int argc, char **argv, int *status)
{
    test_device r;

    if (argc != 5 || strcmp(argv[1], "planted") != 0) return 0;
    if (!strncmp(argv[2], "cuda", 4)) clocks = test_fake_cuda();
    test_device_open(&r, argv[2]);
    plants[atoi(argv[3])](&r, argv[4][0] == '1');
    test_device_close(&r);
    *status = clocks && !UNDER_TSAN && clocks->faults() ? BY_CLOCKS : 0;
    return 1;
}

static int child(const char *spec, size_t plant, int wait)
{
    char which[8], waits[2] = { wait ? '1' : '0' };
    char *argv[] = {
        (char *)"test", (char *)"planted", (char *)(uintptr_t)spec, which, waits, NULL
    };
    char *envp[] = { (char *)"TSAN_OPTIONS=exitcode=66 log_path=/dev/null", NULL };

    snprintf(which, sizeof which, "%zu", plant);
    return test_run_self(argv, envp, 1); /* what the clocks find is also a line there */
}

int test_device_has_tsan(void)
{
    return UNDER_TSAN;
}

void test_device_plants(const char *spec)
{
    const int seen = UNDER_TSAN ? BY_TSAN : BY_CLOCKS;

    if (!UNDER_TSAN && strncmp(spec, "cuda", 4) != 0) skip();
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        if (child(spec, i, 0) != seen) fail_msg("planted race %zu was not seen", i);
        if (child(spec, i, 1) != 0) fail_msg("case %zu with its wait was reported", i);
    }
}
