/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: as many reads under way as there are readers, the same bytes as without them, and
 * every way out while reads hang. */
#include "tests/loaderutil.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A source in memory whose reads can be held at a gate, or take a while each. */
typedef struct slow_source {
    test_memory m;
    dpl_source source;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int gate; /* reads wait here until so many do, once */
    int hold; /* reads wait until this is 0 */
    int sleep_ms, inside, most;
    uint64_t reads;
    uint64_t bad; /* every so manieth sample cannot be read, 0 = none */
} slow_source;

static uint64_t slow_count(void *user)
{
    return ((slow_source *)user)->m.n;
}

static int32_t slow_label(void *user, uint64_t i)
{
    slow_source *s = user;

    return s->m.source.label(&s->m, i);
}

static int64_t slow_read(void *user, uint64_t i, void *buf, size_t cap)
{
    slow_source *s = user;
    const struct timespec pause = { 0, s->sleep_ms * 1000000L };
    const int64_t deadline = dpl_now_ns() + INT64_C(20000000000);

    pthread_mutex_lock(&s->lock);
    s->reads++;
    if (++s->inside > s->most) s->most = s->inside;
    pthread_cond_broadcast(&s->change);
    while ((s->hold || s->most < s->gate) &&
           dpl_cond_wait_until(&s->change, &s->lock, deadline) != ETIMEDOUT) {}
    pthread_mutex_unlock(&s->lock);
    if (s->sleep_ms) nanosleep(&pause, NULL);
    pthread_mutex_lock(&s->lock);
    s->inside--;
    pthread_mutex_unlock(&s->lock);
    if (s->bad && i % s->bad == 0) return -5;
    return s->m.source.read(&s->m, i, buf, cap);
}

static void slow_init(slow_source *s, uint64_t n)
{
    memset(s, 0, sizeof *s);
    test_memory_pictures(&s->m, n);
    s->source = (dpl_source){ s, slow_count, slow_read, slow_label, NULL };
    pthread_mutex_init(&s->lock, NULL);
    dpl_cond_init(&s->change);
}

static void slow_free(slow_source *s)
{
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    test_memory_free(&s->m);
}

static dpl_options slow_options(const slow_source *s, int readers)
{
    dpl_options opt = test_loader_options(&s->m);

    opt.source = &s->source;
    opt.readers = readers;
    return opt;
}

static void set_hold(slow_source *s, int hold)
{
    pthread_mutex_lock(&s->lock);
    s->hold = hold;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

static void wait_inside(slow_source *s, int n)
{
    pthread_mutex_lock(&s->lock);
    while (s->inside < n) pthread_cond_wait(&s->change, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Reads wait for each other: only readers that are all in one at once get any further. */
static void all_readers_read_at_once(void **state)
{
    slow_source s;
    dpl_options opt;
    dpl_loader *l;
    dpl_info info;
    dpl_batch b;
    int64_t since = dpl_now_ns();

    (void)state;
    slow_init(&s, 64);
    s.gate = 12;
    opt = slow_options(&s, 12);
    opt.workers = 1;
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    while (!dpl_next(l, &b, -1)) dpl_release(l, &b, NULL);
    assert_true(dpl_now_ns() - since < INT64_C(20000000000)); /* else the gate gave up */
    assert_int_equal(s.most, 12);
    assert_int_equal(s.reads, 64); /* each sample once */
    dpl_info_get(l, &info);
    assert_int_equal(info.readers, 12);
    assert_true(info.read_ahead_bytes >= 12 << 20);
    dpl_close(&l);
    slow_free(&s);
}

/* 320 reads of 20 ms are 6.4 s one after the other. Only printed: time proves nothing in a test. */
static void slow_reads_are_hidden(void **state)
{
    static const int readers[] = { 0, 8, 32 };

    (void)state;
    for (size_t k = 0; k < sizeof readers / sizeof *readers; k++) {
        slow_source s;
        dpl_options opt;
        dpl_loader *l;
        dpl_batch b;
        dpl_stats st = { .size = sizeof st };
        const int64_t since = dpl_now_ns();

        slow_init(&s, readers[k] ? 320 : 32);
        s.sleep_ms = 20;
        opt = slow_options(&s, readers[k]);
        opt.epochs = 1;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        while (!dpl_next(l, &b, -1)) dpl_release(l, &b, NULL);
        dpl_stats_get(l, &st);
        print_message(
            "%d readers, %d workers, 20 ms a read: %.0f samples/s, most reads at once %d\n",
            readers[k], opt.workers, (double)s.m.n * 1e9 / (double)(dpl_now_ns() - since), s.most);
        assert_true(s.most <= (readers[k] ? readers[k] : opt.workers));
        assert_true(st.read_s >= 0.02 * (double)s.m.n);
        assert_true(readers[k] ? st.read_wait_s > 0 : st.read_wait_s == 0);
        dpl_close(&l);
        slow_free(&s);
    }
}

/* Ranks, a last batch that is too small for all of them, epochs, workers and readers. */
static void bytes_do_not_depend_on_readers(void **state)
{
    static const int readers[] = { 1, 2, 5, 40 };
    test_entry want[61], got[61];
    test_memory m;

    (void)state;
    test_memory_pictures(&m, 57);
    for (int world = 1; world <= 3; world += 2) {
        dpl_options opt = test_loader_options(&m);

        opt.world = world;
        opt.batch = 7;
        assert_int_equal(test_trace(&opt, 1, want, 61), 57);
        for (size_t k = 0; k < 4; k++) {
            opt.readers = readers[k];
            opt.workers = 1 + (int)k;
            opt.prefetch = 4 - (int)k;
            memset(got, 0, sizeof got);
            assert_int_equal(test_trace(&opt, 1, got, 61), 57);
            assert_memory_equal(got, want, 57 * sizeof *got);
        }
    }
    test_memory_free(&m);
}

static uint64_t first_id(dpl_loader *l)
{
    dpl_batch b;
    uint64_t id;

    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    id = b.part[0].ids[0];
    dpl_release(l, &b, NULL);
    return id;
}

/* Moving about while reads hang: what they bring is of a position that was left. */
static void moving_forgets_what_was_read(void **state)
{
    slow_source s;
    dpl_options opt;
    dpl_loader *l;
    uint64_t id[3];

    (void)state;
    slow_init(&s, 40);
    s.sleep_ms = 1;
    opt = slow_options(&s, 3);
    opt.prefetch = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (uint64_t e = 0; e < 3; e++) {
        assert_int_equal(dpl_set_epoch(l, e), DPL_OK);
        id[e] = first_id(l);
    }
    for (uint64_t k = 0; k < 60; k++) {
        const uint64_t e = k * 7 % 3;

        assert_int_equal(dpl_set_epoch(l, e), DPL_OK);
        if (k % 3) assert_true(first_id(l) == id[e]);
    }
    dpl_close(&l);
    slow_free(&s);
}

static void unreadable_samples_are_named(void **state)
{
    slow_source s;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;
    uint64_t n = 0;

    (void)state;
    slow_init(&s, 40);
    s.bad = 8;
    opt = slow_options(&s, 4);
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (; !dpl_next(l, &b, -1); dpl_release(l, &b, NULL)) n += (uint64_t)b.n;
    assert_int_equal(n, 35);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(dpl_bad_get(l, i, &bad), DPL_OK);
        assert_int_equal(bad.id % 8, 0);
        assert_non_null(strstr(bad.reason, "could not read"));
    }
    dpl_close(&l);
    slow_free(&s);
}

static void cancel_and_close_wake_who_waits(void **state)
{
    (void)state;
    for (int close_only = 0; close_only < 2; close_only++) {
        slow_source s;
        dpl_options opt;
        dpl_loader *l;
        dpl_batch b;

        slow_init(&s, 40);
        s.hold = 1;
        opt = slow_options(&s, 2);
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        wait_inside(&s, 2);
        assert_int_equal(dpl_next(l, &b, 1), DPL_ETIMEOUT);
        if (!close_only) {
            dpl_cancel(l); /* does not wait for the reads */
            assert_int_equal(dpl_next(l, &b, -1), DPL_ECANCELED);
        }
        set_hold(&s, 0); /* a read that never comes back would be waited for */
        dpl_close(&l);
        slow_free(&s);
    }
}

/* Files above what a buffer keeps: taken, and given back. */
static void large_files_pass(void **state)
{
    slow_source s;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    uint64_t n = 0;

    (void)state;
    slow_init(&s, 24);
    for (int k = 0; k < s.m.kinds; k += 3) { /* bytes behind the end marker mean nothing */
        const size_t len = (size_t)(5 + k) << 19;
        uint8_t *file = calloc(len, 1);

        assert_non_null(file);
        memcpy(file, s.m.file[k], s.m.len[k]);
        free(s.m.file[k]);
        s.m.file[k] = file;
        s.m.len[k] = len;
    }
    opt = slow_options(&s, 3);
    opt.epochs = 3;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int e = 0; e < 3; e++)
        for (; !dpl_next(l, &b, -1); dpl_release(l, &b, NULL)) n += (uint64_t)b.n;
    assert_int_equal(n, 72);
    dpl_close(&l);
    slow_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_readers_read_at_once),
        cmocka_unit_test(slow_reads_are_hidden),
        cmocka_unit_test(bytes_do_not_depend_on_readers),
        cmocka_unit_test(moving_forgets_what_was_read),
        cmocka_unit_test(unreadable_samples_are_named),
        cmocka_unit_test(cancel_and_close_wake_who_waits),
        cmocka_unit_test(large_files_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
