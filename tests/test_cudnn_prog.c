/* SPDX-License-Identifier: Apache-2.0 */
/* Networks lowered for cuDNN, run on the host: they compute what the reference backend computes, their
 * memory plan gives no byte to two tensors at once, and gradients are announced once each, from the end. */
#include "tests/backend_cases.h"
#include "tests/cudnn_interpreter.h"
#include "tests/testutil.h"
#include "trainer/graph_make.h"

#include "base/alloc.h"
#include "dpload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void build(dpt_cu_prog *p, const dpt_graph *g, dpt_gpu_type type, int n, int train)
{
    dpl_text why = { "" };

    if (dpt_cu_prog_build(p, g, type, n, train, &why)) fail_msg("%s", why.s);
}

static void near_each(const float *a, const float *b, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - b[i]);

        if (!(off <= tolerance * (1 + fabs((double)b[i])))) {
            fail_msg("value %zu of %zu is %g, not %g", i, n, (double)a[i], (double)b[i]);
        }
    }
}

static void ready_falls_to_zero(const test_ready *r, size_t floats)
{
    size_t last = floats;

    assert_true(r->n > 0);
    for (int i = 0; i < r->n; i++) {
        assert_true(r->from[i] < last);
        last = r->from[i];
    }
    assert_int_equal(last, 0);
}

/* Train and evaluate a case with the program and with the reference. */
static void same_as_reference(test_case *c, test_case *want, double tolerance)
{
    dpt_exec *e = test_exec(&dpt_backend_ref, want->g, want->step.n, 1);
    dpl_text why = { "" };
    dpt_cu_prog p;
    test_ready ready = { .n = 0 };

    assert_int_equal(dpt_backend_ref.train(e, &want->step, &why), DPL_OK);
    build(&p, c->g, DPT_GPU_FP32, c->step.n, 1);
    test_interpret(&p, &c->step, &ready);
    ready_falls_to_zero(&ready, c->g->param_floats);
    assert_true(fabs(c->step.sums.loss - want->step.sums.loss) <=
                tolerance * fabs(want->step.sums.loss));
    assert_int_equal(c->step.sums.top1, want->step.sums.top1);
    assert_int_equal(c->step.sums.n, want->step.sums.n);
    test_same_gradients(c->g, c->grads, want->grads, tolerance);
    near_each(c->stats, want->stats, c->g->buffer_floats, tolerance);
    dpt_cu_prog_fini(&p);
    assert_int_equal(dpt_backend_ref.evaluate(e, &want->step, &why), DPL_OK);
    build(&p, c->g, DPT_GPU_FP32, c->step.n, 0);
    test_interpret(&p, &c->step, &ready);
    assert_true(fabs(c->step.sums.loss - want->step.sums.loss) <=
                tolerance * fabs(want->step.sums.loss));
    assert_int_equal(c->step.sums.top5, want->step.sums.top5);
    dpt_cu_prog_fini(&p);
    dpt_backend_ref.destroy(&e);
}

static void network(const char *arch, int classes, int side, int n, double tolerance)
{
    test_case c, want;

    test_case_make(&c, arch, classes, side, side, n);
    test_case_make(&want, arch, classes, side, side, n);
    same_as_reference(&c, &want, tolerance);
    test_case_free(&c);
    test_case_free(&want);
}

static void tinynet_computes_what_the_reference_does(void **state)
{
    (void)state;
    network("tinynet", 10, 33, 3, 1e-5); /* odd maps, classes that need padding */
}

static void resnet18_computes_what_the_reference_does(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    network("resnet18", 7, 32, 4, 1e-3);
}

static void resnet50_computes_what_the_reference_does(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    /* with 4 samples the last batch norms see 4 values, and moving a pixel by 1e-7 moves gradients by 4 % */
    network("resnet50", 7, 32, 8, 1e-3);
}

/* What no model has yet: tensors with three readers, adds without ReLU, both sides of an add alike, batch
 * norms alone, and a convolution with bias whose output is read twice. */
static dpt_graph *odd_graph(void)
{
    dpt_maker m = { .err = DPL_OK };
    const dpt_conv_spec plain = { .channels = 8, .k = 3, .stride = 1, .pad = 1 };
    const dpt_conv_spec biased = { .channels = 8, .k = 1, .stride = 1, .bias = 1 };
    int a, b, c;

    m.g = dpl_calloc(1, sizeof *m.g);
    assert_non_null(m.g);
    m.g->arch = dpl_strdup("odd");
    m.g->classes = 5;
    assert_int_equal(dpl_grow((void **)&m.g->tensor, &m.tensor_cap, 1, sizeof *m.g->tensor), 0);
    m.g->tensor[m.g->tensors++] = (dpt_shape){ 3, 9, 7 };
    a = dpt_make_conv(&m, 0, "stem", &plain);
    b = dpt_make_relu(&m, dpt_make_bn(&m, a, "bn0"));
    c = dpt_make_bn(&m, dpt_make_conv(&m, b, "conv1", &plain), "bn1");
    a = dpt_make_add(&m, c, b);
    c = dpt_make_conv(&m, b, "conv2", &biased);
    a = dpt_make_relu(&m, dpt_make_add(&m, a, c));
    b = dpt_make_add(&m, dpt_make_relu(&m, c), dpt_make_add(&m, a, b));
    b = dpt_make_add(&m, b, b);
    c = dpt_make_bn(&m, b, "bn2");
    b = dpt_make_maxpool(&m, dpt_make_relu(&m, dpt_make_add(&m, b, c)), 3, 2, 1);
    dpt_make_linear(&m, dpt_make_avgpool(&m, b), "fc", 5);
    assert_int_equal(m.err, DPL_OK);
    return m.g;
}

static void what_cannot_be_fused_runs_unfused(void **state)
{
    test_case c, want;

    (void)state;
    test_case_fill(&c, odd_graph(), 3);
    test_case_fill(&want, odd_graph(), 3);
    same_as_reference(&c, &want, 1e-4);
    test_case_free(&c);
    test_case_free(&want);
}

/* One value per channel has no variance: 0, not infinity. */
static void a_single_value_has_no_variance(void **state)
{
    test_case c;
    dpt_cu_prog p;
    test_ready ready = { .n = 0 };
    const dpt_graph *g;

    (void)state;
    test_case_make(&c, "resnet18", 3, 32, 32, 1);
    g = c.g;
    build(&p, g, DPT_GPU_FP32, 1, 1);
    test_interpret(&p, &c.step, &ready);
    assert_string_equal(g->buffer[g->buffers - 1].name, "layer4.1.bn2.running_var");
    for (size_t i = 0; i < g->buffer[g->buffers - 1].count; i++) {
        assert_true(c.stats[g->buffer[g->buffers - 1].offset + i] == 0);
    }
    dpt_cu_prog_fini(&p);
    test_case_free(&c);
}

static void no_overlap(const dpt_cu_prog *p)
{
    for (size_t i = 0; i < p->tensors; i++) {
        const dpt_cu_tensor *a = &p->tensor[i];

        if (a->at != DPT_CU_ARENA || a->first < 0) continue;
        assert_true(a->offset + a->bytes <= p->bytes[DPT_CU_ARENA]);
        assert_int_equal(a->offset % 256, 0);
        for (size_t k = 0; k < i; k++) {
            const dpt_cu_tensor *b = &p->tensor[k];

            if (b->at != DPT_CU_ARENA || b->first < 0) continue;
            if (a->first > b->last || b->first > a->last) continue;
            if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes) {
                fail_msg("%s: tensors %zu and %zu share bytes while both are needed", p->g->arch, i,
                         k);
            }
        }
    }
}

/* Every network, odd sizes and class counts: it lowers, keys fit, memory is apart, and a program for fewer
 * samples fits into the places of the larger one. */
static void every_network_lowers(void **state)
{
    static const int side[] = { 32, 33, 224 }, classes[] = { 1, 1000, 1001 };

    (void)state;
    for (const char *const *arch = dpt_graph_archs(); *arch; arch++) {
        for (int k = 0; k < 6; k++) {
            dpt_graph *g;
            dpt_cu_prog p, fewer;
            char key[DPT_CU_KEY];
            int local[DPT_CU_LOCAL];
            dpl_text why;

            assert_int_equal(
                dpt_graph_build(&g, *arch, classes[k / 2], side[k / 2], side[k / 2] + 1, &why), 0);
            build(&p, g, k % 2 ? DPT_GPU_BF16 : DPT_GPU_FP32, 16, k % 2);
            no_overlap(&p);
            for (size_t i = 0; i < p.ops; i++) assert_true(dpt_cu_key(&p, i, key, local) >= 0);
            build(&fewer, g, p.type, 5, p.train);
            assert_int_equal(fewer.tensors, p.tensors);
            dpt_cu_prog_place_as(&fewer, &p);
            no_overlap(&fewer);
            dpt_cu_prog_fini(&fewer);
            dpt_cu_prog_fini(&p);
            dpt_graph_destroy(&g);
        }
    }
}

static int graphs(const dpt_cu_prog *p, const char *pass)
{
    int n = 0;

    for (size_t i = 0; i < p->ops; i++) {
        n += p->op[i].what == DPT_CU_GRAPH && strcmp(p->op[i].pass, pass) == 0;
    }
    return n;
}

/* ResNet-18 has 20 convolutions, 20 batch norms, 8 adds, 17 ReLUs: after fusion nothing of the last two is
 * left, and no gradient is summed by an operation of its own. */
static void resnets_are_fused_whole(void **state)
{
    dpt_graph *g;
    dpt_cu_prog p;
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_graph_build(&g, "resnet18", 1000, 224, 224, &why), 0);
    build(&p, g, DPT_GPU_BF16, 8, 1);
    assert_int_equal(graphs(&p, "forward"), 20 + 20 + 1 + 1 + 1); /* max pool, average, fc */
    assert_int_equal(graphs(&p, "backward"), 20 + 1 + 1);
    assert_int_equal(graphs(&p, "backward weights"), 21);
    assert_int_equal(graphs(&p, "backward data"), 20); /* not of the pictures */
    assert_int_equal(graphs(&p, "backward sum"), 1);   /* before the max pool, which cannot add */
    assert_int_equal(graphs(&p, "backward relu"), 0);
    dpt_cu_prog_fini(&p);
    dpt_graph_destroy(&g);
}

static void sizes_that_overflow_are_refused(void **state)
{
    dpt_graph *g;
    dpt_cu_prog p;
    dpl_text why = { "" };

    (void)state;
    assert_int_equal(dpt_graph_build(&g, "resnet18", 10, 16384, 16384, &why), 0);
    assert_int_equal(dpt_cu_prog_build(&p, g, DPT_GPU_FP32, 2147483647, 1, &why), DPL_ENOMEM);
    assert_non_null(strstr(why.s, "resnet18 for 2147483647 samples"));
    dpt_cu_prog_fini(&p);
    dpt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tinynet_computes_what_the_reference_does),
        cmocka_unit_test(resnet18_computes_what_the_reference_does),
        cmocka_unit_test(resnet50_computes_what_the_reference_does),
        cmocka_unit_test(what_cannot_be_fused_runs_unfused),
        cmocka_unit_test(a_single_value_has_no_variance),
        cmocka_unit_test(every_network_lowers),
        cmocka_unit_test(resnets_are_fused_whole),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
