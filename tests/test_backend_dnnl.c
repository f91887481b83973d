/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN backend against PyTorch and against the reference backend. */
#include "tests/backend_cases.h"
#include "tests/testutil.h"

#include "dpload.h"
#include "trainer/graph_make.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DPT_HAVE_DNNL

static const dpt_backend *const ref = &dpt_backend_ref, *const dnnl = &dpt_backend_dnnl;

static void run_train(dpt_exec *e, test_case *c)
{
    dpl_text why = { "" };

    if (dnnl->train(e, &c->step, &why)) fail_msg("train: %s", why.s);
}

static void logits_match_pytorch(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_against_pytorch(dnnl, "tinynet", "eval", 1e-5);
    test_against_pytorch(dnnl, "resnet18", "eval", 1e-4);
    test_against_pytorch(dnnl, "resnet34", "eval", 1e-4);
    test_against_pytorch(dnnl, "resnet50", "eval", 1e-4);
}

/* The deep bottleneck net at random weights amplifies rounding: PyTorch's own float32 differs from its
 * float64 by up to 0.025 of the norm, for ResNet-18 by 2e-6. */
static void training_matches_pytorch(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_against_pytorch(dnnl, "tinynet", "train", 1e-5);
    test_against_pytorch(dnnl, "resnet18", "train", 1e-4);
    test_against_pytorch(dnnl, "resnet50", "train", 5e-2);
}

/* a and b: the same case twice, freed here. */
static void check_case_against_ref(test_case *a, test_case *b, double tolerance)
{
    const int n = a->step.n;
    float *logits = calloc((size_t)n * (size_t)a->g->classes, 2 * sizeof *logits);
    float *want = logits + (size_t)n * (size_t)a->g->classes;
    dpl_text why;
    dpt_exec *x = test_exec(dnnl, a->g, n, 2), *y = test_exec(ref, b->g, n, 1);

    assert_non_null(logits);
    run_train(x, a);
    assert_int_equal(ref->train(y, &b->step, &why), DPL_OK);
    if (!(fabs(a->step.sums.loss - b->step.sums.loss) <= tolerance * b->step.sums.loss)) {
        fail_msg("loss %.9g, reference %.9g", a->step.sums.loss, b->step.sums.loss);
    }
    assert_int_equal(a->step.sums.top1, b->step.sums.top1);
    test_same_gradients(a->g, a->grads, b->grads, tolerance);
    for (size_t i = 0; i < a->g->buffer_floats; i++) {
        assert_true(fabs(a->stats[i] - b->stats[i]) <= tolerance * (1 + fabs(b->stats[i])));
    }
    assert_int_equal(dnnl->logits(x, &a->step, logits, &why), DPL_OK);
    assert_int_equal(ref->logits(y, &b->step, want, &why), DPL_OK);
    for (int i = 0; i < n * a->g->classes; i++) {
        assert_true(fabs(logits[i] - want[i]) <= tolerance * (1 + fabs(want[i])));
    }
    dnnl->destroy(&x);
    ref->destroy(&y);
    free(logits);
    test_case_free(a);
    test_case_free(b);
}

static void check_against_ref(const char *arch, int height, int width, int n, double tolerance)
{
    test_case a, b;

    test_case_make(&a, arch, 7, height, width, n);
    test_case_make(&b, arch, 7, height, width, n);
    check_case_against_ref(&a, &b, tolerance);
}

static int odd_conv(dpt_maker *m, int in, const char *name, int channels, int bias)
{
    const dpt_conv_spec spec = {
        .channels = channels, .k = 3, .stride = 1, .pad = 1, .bias = bias
    };

    return dpt_make_conv(m, in, name, &spec);
}

/* What the networks do not do: sums of two ReLUs without a ReLU behind, tensors with four readers,
 * a tensor added to itself, padded pooling of a batch norm without ReLU, and a linear layer on maps. */
static dpt_graph *odd_graph(int channels)
{
    dpt_maker m = { .err = DPL_OK };
    int a, b, sum, t;

    assert_non_null(m.g = calloc(1, sizeof *m.g));
    assert_non_null(m.g->arch = strdup("odd"));
    assert_non_null(m.g->tensor = calloc(m.tensor_cap = 4, sizeof *m.g->tensor));
    m.g->tensor[m.g->tensors++] = (dpt_shape){ 3, 11, 9 };
    m.g->classes = 6;
    a = dpt_make_relu(&m, odd_conv(&m, 0, "a", channels, 1));
    b = dpt_make_relu(&m, odd_conv(&m, 0, "b", channels, 0));
    sum = dpt_make_add(&m, a, b);
    t = dpt_make_bn(&m, sum, "n1");
    t = dpt_make_add(&m, t, odd_conv(&m, sum, "c", channels, 0));
    t = dpt_make_add(&m, sum, dpt_make_relu(&m, t));
    t = dpt_make_add(&m, t, sum);
    t = dpt_make_add(&m, t, t);
    t = dpt_make_maxpool(&m, dpt_make_bn(&m, t, "n2"), 3, 2, 1);
    dpt_make_linear(&m, dpt_make_relu(&m, t), "fc", m.g->classes);
    assert_int_equal(m.err, DPL_OK);
    return m.g;
}

static void unusual_networks_match_the_reference(void **state)
{
    static const int channels[] = { 1, 5, 8, 16, 24 };

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        test_case a, b;

        test_case_fill(&a, odd_graph(channels[i]), 3);
        test_case_fill(&b, odd_graph(channels[i]), 3);
        check_case_against_ref(&a, &b, 1e-4);
    }
}

static void training_matches_the_reference(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    check_against_ref("tinynet", 16, 16, 4, 1e-5);
    check_against_ref("tinynet", 21, 13, 3, 1e-5); /* pooling drops a row and a column */
    check_against_ref("tinynet", 9, 40, 1, 1e-5);
    check_against_ref("resnet18", 37, 50, 3, 1e-4);
}

static void no_convolution_falls_back(void **state)
{
    static const char *const archs[] = { "resnet18", "resnet50", "tinynet" };
    static const int sides[] = { 224, 128, 64 };

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    for (int a = 0; a < 3; a++) {
        for (int i = 0; i < 3; i++) {
            dpt_graph *g;
            dpl_text why;
            dpt_exec *e;
            const char *line;
            int fallback = 0, lines = 0, convs = 0;

            assert_int_equal(dpt_graph_build(&g, archs[a], 1000, sides[i], sides[i], &why), DPL_OK);
            e = test_exec(dnnl, g, 8, 1);
            while ((line = dnnl->describe(e, lines, &fallback))) {
                lines++;
                convs += strncmp(line, "conv ", 5) == 0;
                if (fallback) fail_msg("%s at %d: %s", archs[a], sides[i], line);
            }
            assert_int_equal(convs, a == 0 ? 20 : a == 1 ? 53 : 4);
            assert_non_null(strstr(dnnl->describe(e, 1, &fallback), "backward weights "));
            assert_null(strstr(dnnl->describe(e, 1, &fallback), "backward data "));
            assert_non_null(strstr(dnnl->describe(e, 2, &fallback), "backward data "));
            dnnl->destroy(&e);
            dpt_graph_destroy(&g);
        }
    }
}

/* Every activation and gradient once would be 3.9 GiB: buffers whose lives do not meet share bytes. */
static void memory_for_a_usual_batch_is_bounded(void **state)
{
    dpt_graph *g;
    dpl_text why;
    dpt_exec *e;
    const char *line;
    double mib = 0;
    int fallback;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    assert_int_equal(dpt_graph_build(&g, "resnet18", 1000, 224, 224, &why), DPL_OK);
    e = test_exec(dnnl, g, 64, 1);
    line = strstr(dnnl->describe(e, 0, &fallback), "threads, ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "threads, %lf MiB", &mib), 1);
    assert_true(mib > 200 && mib < 2048);
    dnnl->destroy(&e);
    dpt_graph_destroy(&g);
}

static void every_batch_size_gives_what_a_fresh_exec_gives(void **state)
{
    enum { MAX = 9 }; /* more sizes than plans are kept */
    test_case c;
    dpt_exec *e, *fresh;
    float *kept;
    size_t bytes;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&c, "tinynet", 5, 16, 20, MAX);
    bytes = c.g->param_floats * sizeof *kept;
    kept = malloc(bytes);
    assert_non_null(kept);
    e = test_exec(dnnl, c.g, MAX, 1);
    for (int round = 0; round < 2; round++) {
        for (c.step.n = MAX; c.step.n >= 1; c.step.n--) {
            run_train(e, &c);
            assert_int_equal(c.step.sums.n, c.step.n);
            memcpy(kept, c.grads, bytes);
            fresh = test_exec(dnnl, c.g, c.step.n, 1);
            run_train(fresh, &c);
            assert_memory_equal(kept, c.grads, bytes);
            dnnl->destroy(&fresh);
        }
    }
    dnnl->destroy(&e);
    free(kept);
    test_case_free(&c);
}

static void logits_do_not_depend_on_the_other_samples(void **state)
{
    enum { N = 5, CLASSES = 7 };
    test_case c;
    dpl_text why;
    dpt_exec *e;
    float all[N * CLASSES], some[N * CLASSES];

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&c, "resnet18", CLASSES, 40, 40, N);
    e = test_exec(dnnl, c.g, N, 1);
    run_train(e, &c); /* leaves its own things in the shared memory */
    assert_int_equal(dnnl->logits(e, &c.step, all, &why), DPL_OK);
    for (c.step.n = 1; c.step.n < N; c.step.n++) {
        assert_int_equal(dnnl->logits(e, &c.step, some, &why), DPL_OK);
        for (int i = 0; i < c.step.n * CLASSES; i++) {
            assert_true(fabsf(all[i] - some[i]) <= 1e-5f * (1 + fabsf(all[i])));
        }
    }
    dnnl->destroy(&e);
    test_case_free(&c);
}

static void parts_add_up_to_the_whole(void **state)
{
    test_case c;
    dpt_exec *e;
    double *sum, loss = 0;

    (void)state;
    test_case_make(&c, "tinynet", 5, 16, 16, 7); /* no batch norm: exact but for rounding */
    sum = calloc(c.g->param_floats, sizeof *sum);
    assert_non_null(sum);
    e = test_exec(dnnl, c.g, 7, 1);
    for (int part = 0; part < 3; part++) {
        static const int from[] = { 0, 5, 5 }, n[] = { 5, 0, 2 };

        c.step.pixels = c.pixels + (size_t)from[part] * 3 * 16 * 16;
        c.step.labels = c.labels + from[part];
        c.step.n = n[part];
        run_train(e, &c);
        loss += c.step.sums.loss;
        for (size_t i = 0; i < c.g->param_floats; i++) sum[i] += c.grads[i];
    }
    c.step.pixels = c.pixels;
    c.step.labels = c.labels;
    c.step.n = 7;
    run_train(e, &c);
    assert_true(fabs(loss - c.step.sums.loss) < 1e-6 * loss);
    for (size_t i = 0; i < c.g->param_floats; i++) assert_true(fabs(sum[i] - c.grads[i]) < 1e-6);
    dnnl->destroy(&e);
    free(sum);
    test_case_free(&c);
}

static void no_samples_give_zeros(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;
    float out;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&c, "resnet18", 5, 32, 32, 0);
    e = test_exec(dnnl, c.g, 2, 1);
    run_train(e, &c);
    for (size_t i = 0; i < c.g->param_floats; i++) assert_true(c.grads[i] == 0);
    for (size_t i = 0; i < c.g->buffer_floats; i++) assert_true(c.stats[i] == 0);
    assert_true(c.step.sums.loss == 0 && c.step.sums.n == 0);
    assert_int_equal(dnnl->evaluate(e, &c.step, &why), DPL_OK);
    assert_true(c.step.sums.loss == 0 && c.step.sums.n == 0);
    assert_int_equal(dnnl->logits(e, &c.step, &out, &why), DPL_OK);
    dnnl->destroy(&e);
    test_case_free(&c);
}

static void one_sample_with_one_pixel_maps_stays_finite(void **state)
{
    test_case c;
    dpt_exec *e;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&c, "resnet18", 5, 32, 32, 1);
    e = test_exec(dnnl, c.g, 1, 1);
    run_train(e, &c);
    assert_true(isfinite(c.step.sums.loss));
    for (size_t i = 0; i < c.g->param_floats; i++) assert_true(isfinite(c.grads[i]));
    for (size_t i = 0; i < c.g->buffer_floats; i++) assert_true(isfinite(c.stats[i]));
    dnnl->destroy(&e);
    test_case_free(&c);
}

/* oneDNN's ReLU makes 0 of NaN: a lost network must show all the same. */
static void nan_is_not_hidden(void **state)
{
    static const char *const archs[] = { "tinynet", "resnet18" };

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    for (int i = 0; i < 2; i++) {
        test_case c;
        dpl_text why;
        dpt_exec *e;

        test_case_make(&c, archs[i], 5, 32, 32, 2);
        e = test_exec(dnnl, c.g, 2, 1);
        run_train(e, &c);
        assert_true(isfinite(c.step.sums.loss));
        c.pixels[5] = NAN;
        run_train(e, &c);
        assert_true(isnan(c.step.sums.loss));
        c.pixels[5] = 0;
        assert_int_equal(dnnl->evaluate(e, &c.step, &why), DPL_OK);
        assert_true(isfinite(c.step.sums.loss));
        c.params[3] = NAN;
        assert_int_equal(dnnl->evaluate(e, &c.step, &why), DPL_OK);
        assert_true(isnan(c.step.sums.loss));
        dnnl->destroy(&e);
        test_case_free(&c);
    }
}

static void a_canceled_call_ends_between_layers(void **state)
{
    (void)state;
    test_canceled_calls(dnnl);
}

static void bad_calls_are_refused(void **state)
{
    test_case c;
    dpl_text why;
    dpt_exec *e;
    const dpt_exec_options none = { .max_n = 1, .threads = 0 };

    (void)state;
    test_case_make(&c, "tinynet", 5, 16, 16, 3);
    e = test_exec(dnnl, c.g, 3, 1);
    c.labels[1] = 5;
    assert_int_equal(dnnl->train(e, &c.step, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "sample 1 of the batch has label 5"));
    c.labels[1] = -1;
    assert_int_equal(dnnl->evaluate(e, &c.step, &why), DPL_EINVAL);
    c.labels[1] = 0;
    c.step.n = 4;
    assert_int_equal(dnnl->train(e, &c.step, &why), DPL_EINVAL);
    c.step.n = 3;
    run_train(e, &c); /* still usable */
    dnnl->destroy(&e);
    assert_int_equal(dnnl->create(&e, c.g, &none, &why), DPL_EINVAL);
    assert_null(e);
    dnnl->destroy(&e);
    test_case_free(&c);
}

static void two_runs_are_bit_equal(void **state)
{
    test_case a, b;
    dpt_exec *x, *y;

    (void)state;
    if (TEST_UNDER_TSAN) skip();
    test_case_make(&a, "resnet18", 5, 64, 64, 4);
    test_case_make(&b, "resnet18", 5, 64, 64, 4);
    x = test_exec(dnnl, a.g, 4, 2);
    y = test_exec(dnnl, b.g, 4, 2);
    run_train(x, &a);
    run_train(x, &a);
    run_train(y, &b);
    assert_memory_equal(a.grads, b.grads, a.g->param_floats * sizeof(float));
    assert_memory_equal(a.stats, b.stats, a.g->buffer_floats * sizeof(float));
    assert_true(a.step.sums.loss == b.step.sums.loss);
    dnnl->destroy(&x);
    dnnl->destroy(&y);
    test_case_free(&a);
    test_case_free(&b);
}

typedef struct replica {
    test_case c;
    pthread_t thread;
    char text[256];
} replica;

/* An exec belongs to one thread: that makes it, too. */
static void *run_replica(void *arg)
{
    const dpt_exec_options opt = { .max_n = 3, .threads = 1 };
    replica *r = arg;
    dpl_text why = { "" };
    dpt_exec *e;

    for (int i = 0; i < 3 && !*r->text; i++) {
        if (dnnl->create(&e, r->c.g, &opt, &why) || dnnl->train(e, &r->c.step, &why)) {
            snprintf(r->text, sizeof r->text, "%.200s", why.s);
        }
        dnnl->destroy(&e);
    }
    return NULL;
}

static void execs_in_parallel_threads_do_not_meet(void **state)
{
    enum { N = 3 };
    replica r[N];

    (void)state;
    memset(r, 0, sizeof r);
    for (int i = 0; i < N; i++) {
        test_case_make(&r[i].c, "tinynet", 5, 24, 24, 3);
        assert_int_equal(pthread_create(&r[i].thread, NULL, run_replica, &r[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(r[i].thread, NULL);
        assert_string_equal(r[i].text, "");
        assert_memory_equal(r[i].c.grads, r[0].c.grads, r[0].c.g->param_floats * sizeof(float));
    }
    for (int i = 0; i < N; i++) test_case_free(&r[i].c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_match_pytorch),
        cmocka_unit_test(training_matches_pytorch),
        cmocka_unit_test(training_matches_the_reference),
        cmocka_unit_test(unusual_networks_match_the_reference),
        cmocka_unit_test(no_convolution_falls_back),
        cmocka_unit_test(memory_for_a_usual_batch_is_bounded),
        cmocka_unit_test(every_batch_size_gives_what_a_fresh_exec_gives),
        cmocka_unit_test(logits_do_not_depend_on_the_other_samples),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(no_samples_give_zeros),
        cmocka_unit_test(one_sample_with_one_pixel_maps_stays_finite),
        cmocka_unit_test(nan_is_not_hidden),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(a_canceled_call_ends_between_layers),
        cmocka_unit_test(two_runs_are_bit_equal),
        cmocka_unit_test(execs_in_parallel_threads_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void onednn_is_not_built_in(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(onednn_is_not_built_in) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
