/* SPDX-License-Identifier: Apache-2.0 */
/* Planted races: each program without its wait, as a child, under ThreadSanitizer. */
#include "dpload.h"
#include "tests/device_cases.h"

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

enum { MS = 1000000, BIG = TEST_DEVICE_BYTES };

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

/* Right when wait is 1, a race when it is 0. */
static void host_reads(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_stream_launch(r->a, nothing, NULL, 0); /* queueing more must not order the host either */
    if (wait) dpl_event_sync(r->e);
    sum(r->dev);
}

static void host_rewrites(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    while (wait && !dpl_event_query(r->e)) pause_ms(1);
    memset(r->host, 1, BIG);
}

static void other_stream_reads(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    pause_ms(20);
    if (wait) dpl_stream_wait(r->b, r->e);
    dpl_stream_launch(r->b, sum, r->dev, 0);
    dpl_stream_sync(r->b);
    dpl_stream_sync(r->a);
}

/* Two slots' worth of one: the copy of the next batch must wait for who reads the one before. */
static void device_slot_is_overwritten(test_device *r, int wait)
{
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    dpl_event_record(r->e, r->a);
    dpl_stream_wait(r->b, r->e);
    dpl_stream_launch(r->b, sum, r->dev, 0);
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
    sum(r->back);
}

static void event_too_early(test_device *r, int wait)
{
    dpl_event_record(r->e, r->a);
    dpl_copy_to_device(r->a, r->dev, r->host, BIG);
    if (wait) dpl_event_record(r->e, r->a);
    pause_ms(20);
    dpl_event_sync(r->e);
    sum(r->dev);
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
    dpl_stream_launch(r->b, sum, r->dev, 0);
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
    test_device_open(&r, argv[2]);
    plants[atoi(argv[3])](&r, argv[4][0] == '1');
    test_device_close(&r);
    *status = 0;
    return 1;
}

static int child(const char *spec, size_t plant, int wait)
{
    char which[8], waits[2] = { wait ? '1' : '0' };
    char *argv[] = {
        (char *)"test", (char *)"planted", (char *)(uintptr_t)spec, which, waits, NULL
    };
    char *envp[] = { (char *)"TSAN_OPTIONS=exitcode=66 log_path=/dev/null", NULL };
    pid_t pid;
    int status;

    snprintf(which, sizeof which, "%zu", plant);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, envp), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int test_device_has_tsan(void)
{
    return UNDER_TSAN;
}

void test_device_plants(const char *spec)
{
    if (!UNDER_TSAN) skip();
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        if (child(spec, i, 0) != 66) fail_msg("planted race %zu was not seen", i);
        if (child(spec, i, 1) != 0) fail_msg("case %zu with its wait was reported", i);
    }
}
