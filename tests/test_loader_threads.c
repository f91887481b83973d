/* SPDX-License-Identifier: Apache-2.0 */
/* Timeouts, cancel, close and fork: nothing waits for ever, whatever the moment. */
#include "base/clock.h"
#include "base/rng.h"
#include "tests/loaderutil.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms)
{
    const struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&ts, NULL);
}

/* A source whose reads wait until the gate opens. */
typedef struct gated {
    test_memory m;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int open;
} gated;

static uint64_t gated_count(void *user)
{
    return ((gated *)user)->m.n;
}

static int64_t gated_read(void *user, uint64_t i, void *buf, size_t cap)
{
    gated *g = user;

    pthread_mutex_lock(&g->lock);
    while (!g->open) pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return g->m.source.read(&g->m, i, buf, cap);
}

static int32_t gated_label(void *user, uint64_t i)
{
    (void)user;
    (void)i;
    return 0;
}

static dpl_source gated_init(gated *g, uint64_t n)
{
    test_memory_gray(&g->m, n);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->opened, NULL);
    g->open = 0;
    return (dpl_source){ g, gated_count, gated_read, gated_label, NULL };
}

static void gated_open(gated *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = 1;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

static void gated_fini(gated *g)
{
    test_memory_free(&g->m);
    pthread_cond_destroy(&g->opened);
    pthread_mutex_destroy(&g->lock);
}

static void timeouts_are_kept(void **state)
{
    gated g;
    const dpl_source src = gated_init(&g, 20);
    dpl_options opt = test_loader_options(&g.m);
    dpl_stats st = { .size = sizeof st };
    dpl_loader *l;
    dpl_batch b;
    int64_t start;

    (void)state;
    opt.source = &src;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    start = dpl_now_ns();
    assert_int_equal(dpl_next(l, &b, 0), DPL_ETIMEOUT);
    assert_true(dpl_now_ns() - start < 500000000);
    assert_int_equal(dpl_next(l, &b, 30), DPL_ETIMEOUT);
    assert_true(dpl_now_ns() - start >= 30000000);
    assert_null(b.slot);
    gated_open(&g);
    assert_int_equal(dpl_next(l, &b, 20000), DPL_OK); /* nothing was lost by the timeouts */
    assert_int_equal(b.index, 0);
    assert_int_equal(b.n, 8);
    dpl_stats_get(l, &st);
    assert_true(st.wait_s >= 0.03);
    assert_true(st.late >= 1);
    dpl_close(&l);
    gated_fini(&g);
}

static void *cancel_soon(void *arg)
{
    sleep_ms(20);
    dpl_cancel(arg);
    return NULL;
}

static void cancel_ends_a_blocked_next(void **state)
{
    gated g;
    const dpl_source src = gated_init(&g, 20);
    dpl_options opt = test_loader_options(&g.m);
    pthread_t t;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    opt.source = &src;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(pthread_create(&t, NULL, cancel_soon, l), 0);
    assert_int_equal(dpl_next(l, &b, -1), DPL_ECANCELED);
    pthread_join(t, NULL);
    assert_int_equal(dpl_next(l, &b, 0), DPL_ECANCELED); /* and every later one */
    assert_int_equal(dpl_set_epoch(l, 0), DPL_ECANCELED);
    gated_open(&g);
    dpl_close(&l);
    gated_fini(&g);
}

typedef struct canceler {
    dpl_loader *l;
    long us;
} canceler;

static void *cancel_later(void *arg)
{
    const canceler *c = arg;
    const struct timespec ts = { 0, c->us * 1000 };
    dpl_stats st = { .size = sizeof st };
    dpl_bad bad;

    nanosleep(&ts, NULL);
    dpl_stats_get(c->l, &st); /* other calls that may overlap */
    dpl_bad_get(c->l, 0, &bad);
    dpl_sample_name(c->l, 0);
    dpl_cancel(c->l);
    return NULL;
}

/* Open, take some batches, move, cancel, close at random moments; alarm() ends a hang. */
static void close_never_hangs(void **state)
{
    test_memory m;
    dpl_rng rng;

    (void)state;
    alarm(100);
    test_memory_gray(&m, 50);
    dpl_rng_init(&rng, 1, 0, 0, DPL_RNG_INIT);
    for (int round = 0; round < 150; round++) {
        dpl_options opt = test_loader_options(&m);
        const int takes = (int)dpl_rng_below(&rng, 12), cancels = (int)dpl_rng_below(&rng, 2);
        canceler c;
        pthread_t t;
        dpl_batch held[8] = { { 0 } };

        opt.workers = 1 + (int)dpl_rng_below(&rng, 4);
        opt.prefetch = 1 + (int)dpl_rng_below(&rng, 3);
        opt.epochs = dpl_rng_below(&rng, 3);
        opt.devices = round % 3 ? "cpu,cpu" : "sim:0.1ms";
        assert_int_equal(dpl_open(&c.l, &opt), DPL_OK);
        c.us = (long)dpl_rng_below(&rng, 3000);
        if (cancels) assert_int_equal(pthread_create(&t, NULL, cancel_later, &c), 0);
        for (int k = 0; k < takes; k++) {
            dpl_batch *b = &held[dpl_rng_below(&rng, 2)];

            dpl_release(c.l, b, NULL);
            if (dpl_next(c.l, b, (int)dpl_rng_below(&rng, 3) - 1) == DPL_ECANCELED) break;
            if (dpl_rng_below(&rng, 4) == 0) dpl_set_epoch(c.l, dpl_rng_below(&rng, 3));
        }
        if (cancels) pthread_join(t, NULL);
        dpl_close(&c.l); /* with or without batches held */
    }
    test_memory_free(&m);
    alarm(0);
}

static int threads_now(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    int n = -1;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    fclose(f);
    return n;
}

static void threads_are_as_many_as_asked_and_end_with_close(void **state)
{
    const int before = threads_now();
    test_memory m;
    dpl_options opt;
    dpl_loader *l;

    (void)state;
    test_memory_gray(&m, 20);
    opt = test_loader_options(&m);
    opt.workers = 5;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(threads_now(), before + 5);
    dpl_close(&l);
    for (int k = 0; k < 100 && threads_now() != before; k++) sleep_ms(5); /* joined, being reaped */
    assert_int_equal(threads_now(), before);
    test_memory_free(&m);
}

static void a_forked_child_is_told(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b, other;
    int status;
    pid_t child;

    (void)state;
    test_memory_gray(&m, 100);
    opt = test_loader_options(&m);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    if (!(child = fork())) {
        dpl_state st = { 0 };
        int bad = 0;

        alarm(20);
        bad |= (dpl_next(l, &other, -1) != DPL_EFORK) << 0;
        bad |= !strstr(dpl_error_text(l), "process") << 1;
        bad |= (dpl_set_epoch(l, 0) != DPL_EFORK) << 2;
        bad |= (dpl_state_set(l, &st) != DPL_EFORK) << 3;
        dpl_release(l, &b, NULL);
        dpl_cancel(l);
        dpl_close(&l);
        bad |= (l != NULL) << 4;
        _exit(bad);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    dpl_release(l, &b, NULL);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK); /* the parent's goes on */
    dpl_close(&l);
    test_memory_free(&m);
}

static void *run_one(void *arg)
{
    test_entry trace[50];

    assert_int_equal(test_trace(arg, 1, trace, 50), 50);
    return NULL;
}

static void two_loaders_live_side_by_side(void **state)
{
    test_memory m;
    dpl_options opt;
    pthread_t t;

    (void)state;
    test_memory_pictures(&m, 50);
    opt = test_loader_options(&m);
    assert_int_equal(pthread_create(&t, NULL, run_one, &opt), 0);
    run_one(&opt);
    pthread_join(t, NULL);
    test_memory_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_kept),
        cmocka_unit_test(cancel_ends_a_blocked_next),
        cmocka_unit_test(close_never_hangs),
        cmocka_unit_test(threads_are_as_many_as_asked_and_end_with_close),
        cmocka_unit_test(a_forked_child_is_told),
        cmocka_unit_test(two_loaders_live_side_by_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
