/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend against PyTorch, and what every backend has to do at the edges. */
#include "tests/backend_cases.h"
#include "tests/testutil.h"

#include "dpload.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const dpt_backend *const ref = &dpt_backend_ref;

static void training_matches_pytorch(void **state)
{
    (void)state;
    test_against_pytorch(ref, "tinynet", "train", 1e-5);
    if (!TEST_UNDER_TSAN) test_against_pytorch(ref, "resnet18", "train", 1e-4);
}

static void evaluation_matches_pytorch(void **state)
{
    (void)state;
    test_against_pytorch(ref, "tinynet", "eval", 1e-5);
    if (!TEST_UNDER_TSAN) test_against_pytorch(ref, "resnet18", "eval", 1e-5);
}

/* The gradient is the slope of the loss: independent of every other implementation. */
static void gradients_match_finite_differences(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;
    const float step = 1e-3f;

    (void)state;
    test_case_make(&c, "tinynet", 5, 8, 9, 2);
    e = test_exec(ref, c.g, 2, 1);
    assert_int_equal(ref->train(e, &c.step, &why), DPL_OK);
    for (int i = 0; i < c.g->params; i++) {
        const dpt_param *p = &c.g->param[i];
        double along = 0, square = 0, up;
        float *v = c.params + p->offset;
        const float *grad = c.grads + p->offset;

        for (size_t j = 0; j < p->count; j++) square += (double)grad[j] * grad[j];
        for (size_t j = 0; j < p->count; j++) v[j] += step * grad[j] / (float)sqrt(square);
        assert_int_equal(ref->evaluate(e, &c.step, &why), DPL_OK);
        up = c.step.sums.loss;
        for (size_t j = 0; j < p->count; j++) v[j] -= 2 * step * grad[j] / (float)sqrt(square);
        assert_int_equal(ref->evaluate(e, &c.step, &why), DPL_OK);
        for (size_t j = 0; j < p->count; j++) v[j] += step * grad[j] / (float)sqrt(square);
        along = (up - c.step.sums.loss) / (2 * (double)step) * c.step.grad_scale;
        if (!(fabs(along - sqrt(square)) <= 5e-3 * sqrt(square))) {
            fail_msg("%s: slope %.6g, gradient %.6g", p->name, along, sqrt(square));
        }
    }
    ref->destroy(&e);
    test_case_free(&c);
}

static void no_samples_give_zeros(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;

    (void)state;
    test_case_make(&c, "resnet18", 5, 32, 32, 0);
    e = test_exec(ref, c.g, 2, 1);
    assert_int_equal(ref->train(e, &c.step, &why), DPL_OK);
    for (size_t i = 0; i < c.g->param_floats; i++) assert_true(c.grads[i] == 0);
    for (size_t i = 0; i < c.g->buffer_floats; i++) assert_true(c.stats[i] == 0);
    assert_true(c.step.sums.loss == 0 && c.step.sums.n == 0);
    assert_int_equal(ref->evaluate(e, &c.step, &why), DPL_OK);
    assert_true(c.step.sums.loss == 0 && c.step.sums.n == 0);
    ref->destroy(&e);
    test_case_free(&c);
}

/* A sample alone in a layer with 1 x 1 maps has no variance: defined, not NaN. */
static void one_sample_with_one_pixel_maps_stays_finite(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&c, "resnet18", 5, 32, 32, 1);
    e = test_exec(ref, c.g, 1, 1);
    assert_int_equal(ref->train(e, &c.step, &why), DPL_OK);
    assert_true(isfinite(c.step.sums.loss));
    for (size_t i = 0; i < c.g->param_floats; i++) assert_true(isfinite(c.grads[i]));
    for (size_t i = 0; i < c.g->buffer_floats; i++) assert_true(isfinite(c.stats[i]));
    ref->destroy(&e);
    test_case_free(&c);
}

static void a_nan_in_one_picture_is_not_hidden(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;

    (void)state;
    test_case_make(&c, "tinynet", 5, 16, 16, 2);
    e = test_exec(ref, c.g, 2, 1);
    c.pixels[5] = NAN;
    assert_int_equal(ref->train(e, &c.step, &why), DPL_OK);
    assert_true(isnan(c.step.sums.loss));
    assert_true(isnan(c.grads[0]));
    ref->destroy(&e);
    test_case_free(&c);
}

static void a_canceled_call_ends_between_layers(void **state)
{
    (void)state;
    test_canceled_calls(ref);
}

static void bad_calls_are_refused(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;
    const dpt_exec_options none = { .max_n = 0, .threads = 1 };

    (void)state;
    test_case_make(&c, "tinynet", 5, 16, 16, 3);
    e = test_exec(ref, c.g, 3, 1);
    c.labels[2] = 5;
    assert_int_equal(ref->train(e, &c.step, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "sample 2 of the batch has label 5"));
    c.labels[2] = -1;
    assert_int_equal(ref->evaluate(e, &c.step, &why), DPL_EINVAL);
    c.labels[2] = 0;
    c.step.n = 4;
    assert_int_equal(ref->train(e, &c.step, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "4 samples"));
    ref->destroy(&e);
    assert_int_equal(ref->create(&e, c.g, &none, &why), DPL_EINVAL);
    assert_null(e);
    ref->destroy(&e);
    test_case_free(&c);
}

static void says_that_it_is_the_slow_one(void **state)
{
    test_case c;
    dpt_exec *e;
    int fallback = 0;

    (void)state;
    test_case_make(&c, "tinynet", 5, 16, 16, 1);
    e = test_exec(ref, c.g, 1, 2);
    assert_non_null(strstr(ref->describe(e, 0, &fallback), "one thread"));
    assert_int_equal(fallback, 1);
    assert_null(ref->describe(e, 1, &fallback));
    ref->destroy(&e);
    test_case_free(&c);
}

typedef struct replica {
    test_case c;
    dpt_exec *e;
    int err;
} replica;

static void *run_replica(void *arg)
{
    replica *r = arg;
    dpl_text why;

    r->err = ref->train(r->e, &r->c.step, &why);
    return NULL;
}

static void execs_in_parallel_threads_do_not_meet(void **state)
{
    enum { N = 3 };
    replica r[N];
    pthread_t t[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        test_case_make(&r[i].c, "tinynet", 5, 16, 16, 2);
        r[i].e = test_exec(ref, r[i].c.g, 2, 1);
        assert_int_equal(pthread_create(&t[i], NULL, run_replica, &r[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(r[i].err, DPL_OK);
        assert_memory_equal(r[i].c.grads, r[0].c.grads, r[0].c.g->param_floats * sizeof(float));
    }
    for (int i = 0; i < N; i++) {
        ref->destroy(&r[i].e);
        test_case_free(&r[i].c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_matches_pytorch),
        cmocka_unit_test(evaluation_matches_pytorch),
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(no_samples_give_zeros),
        cmocka_unit_test(one_sample_with_one_pixel_maps_stays_finite),
        cmocka_unit_test(a_nan_in_one_picture_is_not_hidden),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(a_canceled_call_ends_between_layers),
        cmocka_unit_test(says_that_it_is_the_slow_one),
        cmocka_unit_test(execs_in_parallel_threads_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
