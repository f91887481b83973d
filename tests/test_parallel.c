/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas together do what one device does with the whole batch. */
#include "trainer/team.h"

#include "dpload.h"
#include "tests/fake/linear_backend.h"
#include "tests/team_step.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, MAX_REPLICAS = 8, NET_SIZE = 8, NET_PIXELS = 3 * NET_SIZE * NET_SIZE };

typedef struct split {
    int replicas, n[MAX_REPLICAS]; /* n: samples of each; they add up to BATCH */
} split;

static const split splits[] = {
    { 1, { 16 } },
    { 2, { 8, 8 } },
    { 2, { 12, 4 } },
    { 3, { 6, 5, 5 } },
    { 3, { 16, 0, 0 } },
    { 3, { 0, 15, 1 } },
    { 8, { 2, 2, 2, 2, 2, 2, 2, 2 } },
    { 8, { 0, 0, 9, 0, 1, 0, 6, 0 } },
};
enum { SPLITS = sizeof splits / sizeof *splits };

typedef struct model {
    float params[FAKE_PARAMS], momentum[FAKE_PARAMS], buffers[FAKE_BUFFERS];
} model;

static float pixels[BATCH * FAKE_PIXELS];
static int32_t labels[BATCH], labels2[BATCH];
static float mix[BATCH];

/* Whole pixels 0..3, labels 0..7, weights in steps of 1/8. */
static void linear_start(model *m)
{
    uint32_t x = 7;

    for (int i = 0; i < BATCH * FAKE_PIXELS; i++) {
        x = x * 1664525 + 1013904223;
        pixels[i] = (float)(x >> 30);
    }
    for (int i = 0; i < BATCH; i++) labels[i] = i % 8;
    for (int i = 0; i < FAKE_PARAMS; i++) {
        m->params[i] = (float)(i % 5 - 2) / 8;
        m->momentum[i] = (float)(i % 3) / 4;
    }
    m->buffers[0] = 0.5f;
    m->buffers[1] = 2;
}

static void set_parts(dpt_team_part *part, const split *s, const float *data, size_t sample)
{
    int at = 0;

    for (int r = 0; r < s->replicas; r++) {
        part[r] = (dpt_team_part){ .pixels = data + (size_t)at * sample,
                                   .labels = labels + at,
                                   .n = s->n[r] };
        at += s->n[r];
    }
    assert_int_equal(at, BATCH);
}

static dpt_team *linear_team(model *m, dpt_graph *g, const split *s, int threads)
{
    dpt_team_options opt = { .backend = &fake_linear_backend,
                             .graph = g,
                             .replicas = s->replicas,
                             .max_n = s->n,
                             .threads = threads,
                             .params = m->params,
                             .momentum = m->momentum,
                             .buffers = m->buffers };
    dpt_team *t;
    dpl_text why = { "" };

    fake_linear_graph(g, 2);
    if (dpt_team_create(&t, &opt, &why)) fail_msg("%s", why.s);
    return t;
}

/* The step of the whole batch, from the formulas: p, v, sums. Everything is exact in fp32. */
static void linear_expected(model *m, const dpt_update *sgd, dpt_sums *sums)
{
    double grad[FAKE_PARAMS] = { 0 };

    *sums = (dpt_sums){ .n = BATCH };
    for (int k = 0; k < BATCH; k++) {
        const float *x = pixels + k * FAKE_PIXELS;
        double d = m->params[FAKE_PIXELS] - labels[k];
        for (int i = 0; i < FAKE_PIXELS; i++) d += (double)m->params[i] * (double)x[i];
        for (int i = 0; i < FAKE_PIXELS; i++) grad[i] += d * (double)x[i] / BATCH;
        grad[FAKE_PIXELS] += d / BATCH;
        sums->loss += d * d / 2;
        sums->top1 += fabs(d) < 1;
        sums->top5 += fabs(d) < 5;
    }
    for (int i = 0; i < FAKE_PARAMS; i++) {
        const double decay = i < FAKE_PIXELS ? sgd->weight_decay : 0;
        const double g = grad[i] + decay * (double)m->params[i];
        const double v = sgd->momentum * (double)m->momentum[i] + g;
        m->momentum[i] = (float)v;
        m->params[i] = (float)((double)m->params[i] - sgd->lr * v);
    }
}

static double mean_of(int from, int n, double *var)
{
    double mean = 0;

    for (int k = from; k < from + n; k++) mean += (double)pixels[k * FAKE_PIXELS] / n;
    *var = 0;
    for (int k = from; k < from + n; k++) {
        *var += pow((double)pixels[k * FAKE_PIXELS] - mean, 2) / (n > 1 ? n - 1 : 1);
    }
    return mean;
}

static void a_step_is_the_step_of_the_whole_batch(void **state)
{
    const dpt_update sgd = { .lr = 1.0 / 64, .momentum = 0.5, .weight_decay = 0.25 };

    (void)state;
    for (int k = 0; k < SPLITS; k++) {
        const split *s = &splits[k];
        model m, want;
        dpt_graph g;
        dpt_team *t = linear_team(&m, &g, s, 0);
        dpt_team_part part[MAX_REPLICAS];
        dpt_sums sums, want_sums;
        double mean = 0, var = 0;

        linear_start(&m);
        want = m;
        set_parts(part, s, pixels, FAKE_PIXELS);
        linear_expected(&want, &sgd, &want_sums);
        for (int r = 0, at = 0; r < s->replicas; at += s->n[r++]) {
            double v, mu = mean_of(at, s->n[r], &v);
            mean += s->n[r] * mu / BATCH;
            var += s->n[r] * v / BATCH;
        }
        assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, NULL), DPL_OK);
        assert_memory_equal(m.params, want.params, sizeof m.params);
        assert_memory_equal(m.momentum, want.momentum, sizeof m.momentum);
        assert_true(fabs((double)m.buffers[0] - (0.9 * 0.5 + 0.1 * mean)) < 1e-6);
        assert_true(fabs((double)m.buffers[1] - (0.9 * 2 + 0.1 * var)) < 1e-6);
        assert_true(sums.loss == want_sums.loss);
        assert_int_equal(sums.n, BATCH);
        assert_int_equal(sums.top1, want_sums.top1);
        assert_int_equal(sums.top5, want_sums.top5);

        want = m; /* evaluation adds the same sums and changes nothing */
        linear_expected(&want, &sgd, &want_sums);
        want = m;
        assert_int_equal(dpt_team_evaluate(t, part, &sums, NULL), DPL_OK);
        assert_memory_equal(&m, &want, sizeof m);
        assert_true(fabs(sums.loss - want_sums.loss) <= 1e-12 * want_sums.loss);
        assert_int_equal(sums.top5, want_sums.top5);
        dpt_team_destroy(&t);
        assert_null(t);
    }
}

static void without_momentum_no_buffer_is_needed(void **state)
{
    const dpt_update sgd = { .lr = 0.5, .first = 1 };
    const split s = { 2, { 10, 6 } };
    dpt_team_part part[2];
    dpt_graph g;
    model m, want;
    dpt_sums sums;
    dpt_team_options opt = { .backend = &fake_linear_backend,
                             .graph = &g,
                             .replicas = 2,
                             .max_n = s.n,
                             .params = m.params,
                             .buffers = m.buffers };
    dpt_team *t;

    (void)state;
    fake_linear_graph(&g, 2);
    linear_start(&m);
    want = m;
    set_parts(part, &s, pixels, FAKE_PIXELS);
    linear_expected(&want, &sgd, &sums);
    assert_int_equal(dpt_team_create(&t, &opt, NULL), DPL_OK);
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, NULL), DPL_OK);
    assert_memory_equal(m.params, want.params, sizeof m.params);
    dpt_team_destroy(&t);
}

static void a_failing_replica_stops_the_step_and_nothing_else(void **state)
{
    const dpt_update sgd = { .lr = 1.0 / 64, .momentum = 0.5 };
    const split *s = &splits[3];
    model m, before;
    dpt_graph g;
    dpt_team *t = linear_team(&m, &g, s, 0);
    dpt_team_part part[MAX_REPLICAS];
    dpt_sums sums;
    dpl_text why;

    (void)state;
    linear_start(&m);
    before = m;
    set_parts(part, s, pixels, FAKE_PIXELS);
    labels[8] = labels[12] = FAKE_LABEL_FAILS; /* in the second and the third part */
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_EDEVICE);
    assert_string_equal(why.s, "replica 1: sample 2");
    assert_memory_equal(&m, &before, sizeof m);
    assert_int_equal(sums.n, 0);
    labels[8] = 0;
    assert_int_equal(dpt_team_evaluate(t, part, &sums, &why), DPL_EDEVICE);
    assert_string_equal(why.s, "replica 2: sample 1");
    labels[12] = 4;
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_OK);
    assert_int_equal(sums.n, BATCH);
    dpt_team_destroy(&t);
}

/* One replica stops, the others finish or fail: nothing of the step counts, nobody waits. */
static void a_canceled_replica_cancels_the_step(void **state)
{
    const dpt_update sgd = { .lr = 1.0 / 64, .momentum = 0.5 };
    const split *s = &splits[3];
    model m, before;
    dpt_graph g;
    dpt_team *t = linear_team(&m, &g, s, 0);
    dpt_team_part part[MAX_REPLICAS];
    dpt_sums sums;
    dpl_text why;

    (void)state;
    linear_start(&m);
    before = m;
    set_parts(part, s, pixels, FAKE_PIXELS);
    labels[0] = FAKE_LABEL_FAILS;
    labels[12] = FAKE_LABEL_CANCELS; /* in the third part */
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_ECANCELED);
    assert_string_equal(why.s, "replica 2: this one");
    assert_int_equal(dpt_team_evaluate(t, part, &sums, &why), DPL_ECANCELED);
    assert_memory_equal(&m, &before, sizeof m);
    assert_int_equal(sums.n, 0);
    labels[0] = 0;
    labels[12] = 4;
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_OK);
    assert_int_equal(sums.n, BATCH);
    dpt_team_destroy(&t);
}

static void all_replicas_read_the_word(void **state)
{
    const dpt_update sgd = { .lr = 1.0 / 64 };
    const split *s = &splits[7];
    int word = 0;
    model m;
    dpt_graph g;
    dpt_team_options opt = { .backend = &fake_linear_backend,
                             .graph = &g,
                             .replicas = s->replicas,
                             .max_n = s->n,
                             .params = m.params,
                             .momentum = m.momentum,
                             .buffers = m.buffers,
                             .cancel = &word };
    dpt_team_part part[MAX_REPLICAS];
    dpt_sums sums;
    dpt_team *t;
    dpl_text why;

    (void)state;
    fake_linear_graph(&g, 2);
    linear_start(&m);
    set_parts(part, s, pixels, FAKE_PIXELS);
    assert_int_equal(dpt_team_create(&t, &opt, &why), DPL_OK);
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_OK);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(test_team_step(t, part, &sgd, BATCH, &sums, &why), DPL_ECANCELED);
    assert_string_equal(why.s, "replica 2: all"); /* the first that has samples */
    dpt_team_destroy(&t);
}

static void a_team_that_cannot_be_built_says_why(void **state)
{
    const int max_n[] = { 8, 8 };
    model m;
    dpt_graph g;
    dpt_team_options opt = { .backend = &fake_linear_backend,
                             .graph = &g,
                             .replicas = 2,
                             .max_n = max_n,
                             .params = m.params,
                             .momentum = m.momentum,
                             .buffers = m.buffers };
    dpt_team *t;
    dpl_text why;

    (void)state;
    fake_linear_graph(&g, FAKE_CLASSES_NOT_CREATED);
    assert_int_equal(dpt_team_create(&t, &opt, &why), DPL_ENOTSUP);
    assert_string_equal(why.s, "replica 0: not this one");
    assert_null(t);
    dpt_team_destroy(&t);
}

static void threads_are_shared_out(void **state)
{
    const split *s = &splits[3];
    model m;
    dpt_graph g;
    dpt_team *t = linear_team(&m, &g, s, 7);
    int fallback, fallbacks = 0, i = 0;

    (void)state;
    assert_int_equal(dpt_team_threads(t, 0), 3);
    assert_int_equal(dpt_team_threads(t, 1), 2);
    assert_int_equal(dpt_team_threads(t, 2), 2);
    assert_string_equal(dpt_team_describe(t, 2, &fallback), "up to 5 by 2");
    for (; dpt_team_describe(t, i, &fallback); i++) fallbacks += fallback;
    assert_int_equal(i, 3 * FAKE_LINES);
    assert_int_equal(fallbacks, 3);
    dpt_team_destroy(&t);
    t = linear_team(&m, &g, s, 1);
    assert_int_equal(dpt_team_threads(t, 2), 1);
    dpt_team_destroy(&t);
}

/* Give every part its soft labels: another weight for each sample. */
static void soften(dpt_team_part *part, const split *s)
{
    for (int i = 0; i < BATCH; i++) {
        labels2[i] = (i + 1) % 3;
        mix[i] = (float)i / BATCH;
    }
    for (int r = 0, at = 0; r < s->replicas; at += s->n[r++]) {
        part[r].labels2 = labels2 + at;
        part[r].mix = mix + at;
    }
}

/* Ten steps of tinynet on the reference backend. @return params, to be freed; loss[10] */
static float *train_tinynet(const split *s, int soft, double *loss, size_t *floats)
{
    const dpt_update sgd = { .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4 };
    static float data[BATCH * NET_PIXELS];
    dpt_team_part part[MAX_REPLICAS];
    float *params, *momentum;
    dpt_graph *g;
    dpt_team *t;
    dpl_text why = { "" };
    uint32_t x = 3;

    for (int i = 0; i < BATCH * NET_PIXELS; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < BATCH; i++) labels[i] = i % 3;
    assert_int_equal(dpt_graph_build(&g, "tinynet", 3, NET_SIZE, NET_SIZE, &why), DPL_OK);
    *floats = g->param_floats;
    params = calloc(g->param_floats, sizeof *params);
    momentum = calloc(g->param_floats, sizeof *momentum);
    assert_true(params && momentum);
    dpt_graph_init(g, 1, params, NULL);
    if (dpt_team_create(&t,
                        &(dpt_team_options){ .backend = &dpt_backend_ref,
                                             .graph = g,
                                             .replicas = s->replicas,
                                             .max_n = s->n,
                                             .params = params,
                                             .momentum = momentum },
                        &why)) {
        fail_msg("%s", why.s);
    }
    set_parts(part, s, data, NET_PIXELS);
    if (soft) soften(part, s);
    for (int step = 0; step < 10; step++) {
        dpt_update now = sgd;
        dpt_sums sums;
        now.first = step == 0;
        assert_int_equal(test_team_step(t, part, &now, BATCH, &sums, &why), DPL_OK);
        assert_int_equal(sums.n, BATCH);
        loss[step] = sums.loss / BATCH;
    }
    dpt_team_destroy(&t);
    dpt_graph_destroy(&g);
    free(momentum);
    return params;
}

static void compare_splits(int soft, double *one, double *many, float **params)
{
    static const int compared[] = { 1, 2, 3, 6 }; /* 2, 2 uneven, 3 and 8 replicas */
    size_t floats;

    free(train_tinynet(&splits[0], soft, one, &floats));
    assert_true(one[9] < 0.999 * one[0]); /* it learns */
    for (int k = 0; k < 4; k++) {
        free(*params);
        *params = train_tinynet(&splits[compared[k]], soft, many, &floats);
        for (int i = 0; i < 10; i++) {
            if (!(fabs(many[i] - one[i]) <= 1e-5 * one[i])) {
                fail_msg("split %d, step %d: loss %.9g, one device %.9g", compared[k], i, many[i],
                         one[i]);
            }
        }
    }
}

static void replicas_train_like_one_device(void **state)
{
    double one[10], many[10], again[10];
    size_t floats;
    float *params = NULL, *repeated;

    (void)state;
    compare_splits(0, one, many, &params);
    repeated = train_tinynet(&splits[6], 0, again, &floats); /* the last one, bit for bit */
    assert_memory_equal(repeated, params, floats * sizeof *params);
    assert_memory_equal(again, many, sizeof many);
    free(params);
    free(repeated);
}

static void soft_labels_reach_every_replica(void **state)
{
    double hard[10], one[10], many[10];
    size_t floats;
    float *params = NULL;

    (void)state;
    free(train_tinynet(&splits[0], 0, hard, &floats));
    compare_splits(1, one, many, &params);
    assert_true(fabs(one[0] - hard[0]) > 1e-3);
    free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_step_of_the_whole_batch),
        cmocka_unit_test(without_momentum_no_buffer_is_needed),
        cmocka_unit_test(a_failing_replica_stops_the_step_and_nothing_else),
        cmocka_unit_test(a_canceled_replica_cancels_the_step),
        cmocka_unit_test(all_replicas_read_the_word),
        cmocka_unit_test(a_team_that_cannot_be_built_says_why),
        cmocka_unit_test(threads_are_shared_out),
        cmocka_unit_test(replicas_train_like_one_device),
        cmocka_unit_test(soft_labels_reach_every_replica),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
