/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel a step at some moment from another thread, as a signal would: the weights are those before
 * the step or behind it, and the returned value says which. */
#include "trainer/team.h"

#include "dpload.h"
#include "tests/team_step.h"
#include "tests/testutil.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPLICAS = 3, BATCH = 16, SIZE = 8, PIXELS = 3 * SIZE * SIZE };

static const int split[REPLICAS] = { 6, 5, 5 };
static const dpt_update sgd = { .lr = 0.05, .momentum = 0.9, .first = 1 };
static float pixels[BATCH * PIXELS];
static int32_t labels[BATCH];

typedef struct run {
    dpt_graph *g;
    dpt_team *t;
    dpt_team_part part[REPLICAS];
    float *params, *momentum, *start, *after, *zeros; /* params owns them all */
    size_t bytes;                                     /* of each */
    int word;
    unsigned delay_us;
} run;

static void set_up(run *r)
{
    dpl_text why = { "" };
    dpt_team_options opt = { .backend = &dpt_backend_ref, .replicas = REPLICAS, .max_n = split };
    int at = 0;

    memset(r, 0, sizeof *r);
    for (int i = 0; i < BATCH * PIXELS; i++) pixels[i] = (float)(i % 17) / 8 - 1;
    for (int i = 0; i < BATCH; i++) labels[i] = i % 3;
    for (int i = 0; i < REPLICAS; at += split[i++])
        r->part[i] =
            (dpt_team_part){ .pixels = pixels + at * PIXELS, .labels = labels + at, .n = split[i] };
    assert_int_equal(dpt_graph_build(&r->g, "tinynet", 3, SIZE, SIZE, &why), DPL_OK);
    r->bytes = r->g->param_floats * sizeof(float);
    r->params = calloc(5, r->bytes);
    assert_non_null(r->params);
    r->momentum = r->params + r->g->param_floats;
    r->start = r->momentum + r->g->param_floats;
    r->after = r->start + r->g->param_floats;
    r->zeros = r->after + r->g->param_floats;
    dpt_graph_init(r->g, 1, r->start, NULL);
    opt.graph = r->g;
    opt.params = r->params;
    opt.momentum = r->momentum;
    opt.cancel = &r->word;
    if (dpt_team_create(&r->t, &opt, &why)) fail_msg("%s", why.s);
}

static void *cancel_later(void *arg)
{
    run *r = arg;

    usleep(r->delay_us);
    __atomic_store_n(&r->word, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* One step from the start. @return what it returned */
static int step(run *r, dpt_sums *sums)
{
    dpl_text why;

    memcpy(r->params, r->start, r->bytes);
    memset(r->momentum, 0, r->bytes);
    return test_team_step(r->t, r->part, &sgd, BATCH, sums, &why);
}

static void a_canceled_step_never_was(void **state)
{
    run r;
    dpt_sums sums;

    (void)state;
    set_up(&r);
    assert_int_equal(step(&r, &sums), DPL_OK);
    memcpy(r.after, r.params, r.bytes);
    assert_memory_not_equal(r.start, r.after, r.bytes);
    for (unsigned i = 0; i < 40; i++) {
        pthread_t thread;
        int err;

        __atomic_store_n(&r.word, 0, __ATOMIC_SEQ_CST);
        r.delay_us = 250 * i;
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &r), 0);
        err = step(&r, &sums);
        pthread_join(thread, NULL);
        assert_true(err == DPL_OK || err == DPL_ECANCELED);
        assert_memory_equal(r.params, err ? r.start : r.after, r.bytes);
        assert_int_equal(sums.n, err ? 0 : BATCH);
        if (err) assert_memory_equal(r.momentum, r.zeros, r.bytes);
    }
    dpt_team_destroy(&r.t);
    dpt_graph_destroy(&r.g);
    free(r.params);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_canceled_step_never_was) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
