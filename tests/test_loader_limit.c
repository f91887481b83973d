/* SPDX-License-Identifier: Apache-2.0 */
/* dpl_limit_measure(): counts what it measured, leaves the loader as it was, refuses what it must.
 * Nothing here depends on how fast anything is. */
#include "tests/loaderutil.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static uint64_t next_hash(dpl_loader *l, uint64_t *epoch, uint64_t *index)
{
    dpl_batch b;
    uint64_t h;

    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    *epoch = b.epoch;
    *index = b.index;
    h = test_hash(b.part[0].pixels, (size_t)b.part[0].n * test_picture_bytes(&b));
    dpl_release(l, &b, NULL);
    return h;
}

static void check_numbers(const dpl_limit *m, int rounds, uint64_t images)
{
    assert_int_equal(m->rounds, rounds);
    assert_int_equal(m->images, images);
    assert_true(m->images_per_s > 0 && m->bare_per_s > 0);
    assert_true(m->ratio_min > 0 && m->ratio_min <= m->ratio && m->ratio <= m->ratio_max);
    assert_true(m->cpu_ratio >= 0 && isfinite(m->cpu_ratio));
}

/* 20 samples in batches of 8: three batches an epoch, the last of 4. */
static void position_and_batches_stay(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_limit limit;
    uint64_t epoch, index, want;

    (void)state;
    test_memory_pictures(&m, 20);
    opt = test_loader_options(&m);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    next_hash(l, &epoch, &index);
    want = next_hash(l, &epoch, &index);
    dpl_close(&l);

    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    next_hash(l, &epoch, &index);
    assert_int_equal(dpl_limit_measure(l, 4, 3, &limit), DPL_OK); /* batches 1..12 */
    check_numbers(&limit, 3, 4 * 20);
    assert_true(next_hash(l, &epoch, &index) == want);
    assert_true(epoch == 0 && index == 1);
    dpl_close(&l);
    test_memory_free(&m);
}

static void the_end_of_an_epoch_is_still_told(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_limit limit;
    dpl_batch b;
    uint64_t epoch, index;

    (void)state;
    test_memory_gray(&m, 8);
    opt = test_loader_options(&m);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    next_hash(l, &epoch, &index);
    assert_int_equal(dpl_limit_measure(l, 1, 2, &limit), DPL_OK);
    check_numbers(&limit, 2, 16);
    assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    next_hash(l, &epoch, &index);
    assert_true(epoch == 1 && index == 0);
    dpl_close(&l);
    test_memory_free(&m);
}

static void what_cannot_be_measured_is_refused(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    dpl_limit limit;
    dpl_batch b;

    (void)state;
    test_memory_gray(&m, 8);
    opt = test_loader_options(&m);
    opt.epochs = 2;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_limit_measure(l, 0, 1, &limit), DPL_EINVAL);
    assert_int_equal(dpl_limit_measure(l, 1, 0, &limit), DPL_EINVAL);
    assert_int_equal(dpl_limit_measure(l, 1, 1001, &limit), DPL_EINVAL);
    assert_int_equal(dpl_limit_measure(l, 3, 1, &limit), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "last epoch"));
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(dpl_limit_measure(l, 1, 1, &limit), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "held"));
    dpl_release(l, &b, NULL);
    assert_int_equal(dpl_limit_measure(l, 1, 1, &limit), DPL_OK);
    dpl_cancel(l);
    assert_int_equal(dpl_limit_measure(l, 1, 1, &limit), DPL_ECANCELED);
    dpl_close(&l);
    test_memory_free(&m);
}

static void *measure_long(void *arg)
{
    dpl_limit limit;

    return (void *)(intptr_t)dpl_limit_measure(arg, 8, 1000, &limit);
}

static void cancel_ends_it(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_loader *l;
    pthread_t t;
    void *got;

    (void)state;
    test_memory_pictures(&m, 64);
    opt = test_loader_options(&m);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(pthread_create(&t, NULL, measure_long, l), 0);
    for (dpl_stats st = { .size = sizeof st }; st.batches < 3;) dpl_stats_get(l, &st);
    dpl_cancel(l);
    pthread_join(t, &got);
    assert_int_equal((int)(intptr_t)got, DPL_ECANCELED);
    dpl_close(&l);
    test_memory_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(position_and_batches_stay),
        cmocka_unit_test(the_end_of_an_epoch_is_still_told),
        cmocka_unit_test(what_cannot_be_measured_is_refused),
        cmocka_unit_test(cancel_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
