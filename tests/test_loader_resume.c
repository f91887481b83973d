/* SPDX-License-Identifier: Apache-2.0 */
/* Position: resume at every batch, also with other workers, ranks and batch sizes; moving between
 * epochs. */
#include "tests/loaderutil.h"

#include <stdlib.h>
#include <string.h>

enum { N = 29, EPOCHS = 2 };

typedef struct run {
    test_entry entry[N * EPOCHS];
    uint64_t at;
} run;

/* Append what is delivered from here to the end of EPOCHS epochs; eofs counts DPL_EOF. */
static void drain(dpl_loader *l, run *r, int *eofs)
{
    dpl_batch b;
    int err;

    while (*eofs < EPOCHS) {
        err = dpl_next(l, &b, -1);
        if (err == DPL_EOF) {
            ++*eofs;
            continue;
        }
        assert_int_equal(err, DPL_OK);
        for (int k = 0; k < b.n; k++) {
            const size_t bytes = test_picture_bytes(&b);
            const char *pixels = (const char *)b.part[0].pixels + (size_t)k * bytes;

            assert_true(r->at < N * EPOCHS);
            r->entry[r->at++] =
                (test_entry){ b.part[0].ids[k], test_hash(pixels, bytes), b.part[0].labels[k] };
        }
        dpl_release(l, &b, NULL);
    }
}

static void resume_goes_on_exactly(void **state)
{
    test_memory m;
    run *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);
    dpl_options opt;
    dpl_loader *l;
    int eofs = 0;

    (void)state;
    test_memory_pictures(&m, N);
    opt = test_loader_options(&m);
    opt.epochs = EPOCHS;
    opt.batch = 4;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    drain(l, want, &eofs);
    dpl_close(&l);
    assert_int_equal(want->at, N * EPOCHS);
    for (int calls = 0; calls <= 2 * 9; calls++) { /* 8 batches and 1 DPL_EOF an epoch */
        dpl_state st;
        dpl_batch b;

        opt.workers = 2;
        opt.batch = 4;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        got->at = 0;
        eofs = 0;
        for (int c = 0; c < calls; c++) {
            const int err = dpl_next(l, &b, -1);

            eofs += err == DPL_EOF;
            got->at += err ? 0 : (uint64_t)b.n;
            dpl_release(l, &b, NULL);
        }
        dpl_state_get(l, &st);
        dpl_close(&l);
        assert_int_equal(st.count, N);
        memcpy(got->entry, want->entry, got->at * sizeof *got->entry); /* the part before */
        opt.workers = calls % 2 ? 1 : 5;
        opt.batch =
            st.sample % 2 || !(st.sample % 8) ? 8 : 4; /* another batch size where it fits */
        if (st.sample == N) opt.batch = 6;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        if (dpl_state_set(l, &st)) fail_msg("%s", dpl_error_text(l));
        drain(l, got, &eofs);
        assert_int_equal(got->at, want->at);
        assert_memory_equal(got->entry, want->entry, sizeof want->entry);
        dpl_close(&l);
    }
    free(want);
    free(got);
    test_memory_free(&m);
}

/* Ids of one rank's next batch. */
static int next_ids(dpl_loader *l, uint64_t *ids)
{
    dpl_batch b;
    int n;

    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    n = b.n;
    memcpy(ids, b.part[0].ids, (size_t)n * sizeof *ids);
    dpl_release(l, &b, NULL);
    return n;
}

static void state_of_one_world_fits_another(void **state)
{
    uint64_t want[8], got[8];
    test_memory m;
    dpl_options opt;
    dpl_state st;
    dpl_loader *l;
    int n = 0;

    (void)state;
    test_memory_gray(&m, 64);
    opt = test_loader_options(&m);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int k = 0; k < 3; k++) next_ids(l, want);
    dpl_state_get(l, &st);
    assert_int_equal(next_ids(l, want), 8);
    dpl_close(&l);
    opt.world = 3;
    for (opt.rank = 0; opt.rank < 3; opt.rank++) {
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        assert_int_equal(dpl_state_set(l, &st), DPL_OK);
        n += next_ids(l, got + n);
        dpl_close(&l);
    }
    assert_int_equal(n, 8);
    assert_memory_equal(got, want, sizeof want);
    test_memory_free(&m);
}

static void foreign_states_are_refused(void **state)
{
    test_memory m;
    dpl_options opt;
    dpl_state st, was;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    test_memory_gray(&m, 30);
    opt = test_loader_options(&m);
    opt.epochs = 5;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_state_get(l, &was);
    st = was;
    st.count = 31;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "31 samples, here are 30"));
    st = was;
    st.seed = 9;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    st = was;
    st.sample = 9;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "sample 9"));
    st.sample = 32;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    st = was;
    st.epoch = 6;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    st.epoch = UINT64_MAX;
    st.sample = 30;
    assert_int_equal(dpl_state_set(l, &st), DPL_EINVAL);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(dpl_state_set(l, &was), DPL_EINVAL); /* a batch is held */
    assert_int_equal(dpl_set_epoch(l, 1), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(l), "held"));
    dpl_release(l, &b, NULL);
    assert_int_equal(dpl_state_set(l, &was), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(b.index, 0);
    dpl_close(&l);
    test_memory_free(&m);
}

static void set_epoch_moves_and_is_free_when_next(void **state)
{
    static const uint64_t order[] = { 0, 3, 1, 1, 2 };
    test_entry want[4][N];
    test_memory m;
    dpl_options opt;
    dpl_stats st = { .size = sizeof st };
    dpl_loader *l;
    dpl_batch b;
    uint64_t waste;

    (void)state;
    test_memory_pictures(&m, N);
    opt = test_loader_options(&m);
    for (uint64_t e = 0; e < 4; e++) assert_int_equal(test_trace(&opt, e, want[e], N), N);
    opt.epochs = 4;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (size_t k = 0; k < 5; k++) {
        uint64_t at = 0;

        assert_int_equal(dpl_set_epoch(l, order[k]), DPL_OK);
        if (k == 2) { /* in the middle of an epoch, twice */
            assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
            dpl_release(l, &b, NULL);
            assert_int_equal(dpl_set_epoch(l, order[k]), DPL_OK);
        }
        while (!dpl_next(l, &b, -1)) {
            assert_int_equal(b.epoch, order[k]);
            for (int i = 0; i < b.n; i++)
                assert_int_equal(b.part[0].ids[i], want[order[k]][at++].id);
            dpl_release(l, &b, NULL);
        }
        assert_int_equal(at, N);
    }
    dpl_close(&l);
    /* Nothing that was prepared is thrown away when the epoch comes next anyway. */
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (uint64_t e = 0; e < 4; e++) {
        assert_int_equal(dpl_set_epoch(l, e), DPL_OK);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
            dpl_release(l, &b, NULL);
        } /* DPL_EOF is not fetched: set_epoch stands for it */
    }
    assert_int_equal(dpl_set_epoch(l, 4), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    dpl_stats_get(l, &st);
    waste = st.prepared - st.images;
    assert_int_equal(waste, 0);
    assert_int_equal(dpl_set_epoch(l, 5), DPL_EINVAL);
    dpl_close(&l);
    test_memory_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_goes_on_exactly),
        cmocka_unit_test(state_of_one_world_fits_another),
        cmocka_unit_test(foreign_states_are_refused),
        cmocka_unit_test(set_epoch_moves_and_is_free_when_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
