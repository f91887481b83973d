/* SPDX-License-Identifier: Apache-2.0 */
/* Networks against torchvision's keys, shapes and initial distributions. */
#include "tests/testutil.h"

#include "dpload.h"
#include "trainer/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dpt_graph *build(const char *arch, int classes, int side)
{
    dpt_graph *g;
    dpl_text why;

    assert_int_equal(dpt_graph_build(&g, arch, classes, side, side, &why), DPL_OK);
    return g;
}

/* Counted by generating every key of torchvision 0.14 (running statistics as floats). */
static void totals_match_torchvision(void **state)
{
    static const struct {
        const char *arch;
        int keys, params, norms;
        size_t floats, buffer_floats, bytes;
    } want[] = { { "resnet18", 122, 62, 20, 11689512, 9600, 46796608 },
                 { "resnet34", 218, 110, 36, 21797672, 17024, 87259072 },
                 { "resnet50", 320, 161, 53, 25557032, 53120, 102441032 },
                 { "resnet101", 626, 314, 104, 44549160, 105344, 0 },
                 { "resnet152", 932, 467, 155, 60192808, 151424, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        dpt_graph *g = build(want[i].arch, 1000, 224);

        assert_int_equal(g->params, want[i].params);
        assert_int_equal(g->buffers, 2 * want[i].norms);
        assert_int_equal(g->params + g->buffers + want[i].norms, want[i].keys);
        assert_int_equal(g->param_floats, want[i].floats);
        assert_int_equal(g->buffer_floats, want[i].buffer_floats);
        if (want[i].bytes) {
            assert_int_equal(4 * (g->param_floats + g->buffer_floats) + 8 * (size_t)want[i].norms,
                             want[i].bytes);
        }
        dpt_graph_destroy(&g);
        assert_null(g);
    }
}

static void print_param(FILE *f, const dpt_param *p)
{
    fprintf(f, "%s", p->name);
    for (int d = 0; d < p->dims; d++) fprintf(f, " %lld", (long long)p->shape[d]);
    fprintf(f, "\n");
}

/* Our two lists merged as state_dict orders them: running statistics behind their layer's bias. */
static char *keys_text(const dpt_graph *g)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    for (int i = 0; i < g->nodes; i++) {
        const dpt_node *n = &g->node[i];

        if (n->param < 0) continue;
        print_param(f, &g->param[n->param]);
        if (n->bias) print_param(f, &g->param[n->param + 1]);
        if (n->buffer >= 0) {
            const dpt_param *mean = &g->buffer[n->buffer];
            print_param(f, mean);
            print_param(f, mean + 1);
            fprintf(f, "%.*snum_batches_tracked\n",
                    (int)(strlen(mean->name) - strlen("running_mean")), mean->name);
        }
    }
    fclose(f);
    return text;
}

static void keys_and_shapes_match_torchvision(void **state)
{
    static const char *const archs[] = { "resnet18", "resnet50" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t len;
        dpt_graph *g = build(archs[i], 1000, 224);
        char *got = keys_text(g);
        uint8_t *want = test_read_file(test_format("tests/data/model_keys_%s.txt", archs[i]), &len);

        assert_int_equal(strlen(got), len);
        assert_memory_equal(got, want, len);
        free(want);
        free(got);
        dpt_graph_destroy(&g);
    }
}

static void flat_arrays_are_tiled_without_gaps(void **state)
{
    const char *const *arch = dpt_graph_archs();

    (void)state;
    for (; *arch; arch++) {
        dpt_graph *g = build(*arch, 10, 64);
        size_t at = 0;

        for (int i = 0; i < g->params; i++) {
            assert_int_equal(g->param[i].offset, at);
            assert_int_equal(g->param[i].decay, 1);
            at += g->param[i].count;
        }
        assert_int_equal(at, g->param_floats);
        at = 0;
        for (int i = 0; i < g->buffers; i++) {
            assert_int_equal(g->buffer[i].offset, at);
            at += g->buffer[i].count;
        }
        assert_int_equal(at, g->buffer_floats);
        assert_int_equal(g->tensor[g->node[g->nodes - 1].out].c, 10);
        dpt_graph_destroy(&g);
    }
}

/* Sizes as PyTorch gives them for a picture that is neither square nor even. */
static void shapes_follow_the_picture(void **state)
{
    dpt_graph *g;
    dpl_text why;
    const dpt_shape *s;

    (void)state;
    assert_int_equal(dpt_graph_build(&g, "resnet18", 7, 101, 67, &why), DPL_OK);
    assert_int_equal(g->tensor[0].h, 101);
    assert_int_equal(g->tensor[0].w, 67);
    s = &g->tensor[g->node[0].out];
    assert_int_equal(s->h, 51);
    assert_int_equal(s->w, 34);
    s = &g->tensor[g->node[g->nodes - 3].out]; /* before the global pool */
    assert_int_equal(s->c, 512);
    assert_int_equal(s->h, 4);
    assert_int_equal(s->w, 3);
    dpt_graph_destroy(&g);
}

static void bad_requests_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *arch;
        int classes, side;
        const char *says;
    } bad[] = {
        { "resnet19", 10, 64, "resnet152 tinynet" }, { NULL, 10, 64, "unknown network" },
        { "resnet18", 0, 64, "0 classes" },          { "resnet18", 10, 31, "at least 32 x 32" },
        { "tinynet", 10, 7, "at least 8 x 8" },      { "tinynet", 10, 1 << 20, "too large" }
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dpt_graph *g = (dpt_graph *)1;
        dpl_text why = { "" };

        assert_int_equal(
            dpt_graph_build(&g, bad[i].arch, bad[i].classes, bad[i].side, bad[i].side, &why),
            DPL_EINVAL);
        assert_null(g);
        assert_non_null(strstr(why.s, bad[i].says));
        dpt_graph_destroy(&g);
    }
}

static void node_names_are_layer_names(void **state)
{
    dpt_graph *g = build("resnet18", 10, 64);
    char buf[64];

    (void)state;
    assert_string_equal(dpt_graph_node_name(g, 0, buf, sizeof buf), "conv1");
    assert_string_equal(dpt_graph_node_name(g, 3, buf, sizeof buf), "maxpool 3");
    assert_string_equal(dpt_graph_node_name(g, 4, buf, sizeof buf), "layer1.0.conv1");
    assert_string_equal(dpt_graph_node_name(g, g->nodes - 1, buf, sizeof buf), "fc");
    dpt_graph_destroy(&g);
}

static const dpt_param *find(const dpt_graph *g, const char *name)
{
    for (int i = 0; i < g->params; i++) {
        if (strcmp(g->param[i].name, name) == 0) return &g->param[i];
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static double deviation(const float *v, size_t n, double *mean)
{
    double sum = 0, square = 0;

    for (size_t i = 0; i < n; i++) {
        sum += v[i];
        square += (double)v[i] * v[i];
    }
    *mean = sum / (double)n;
    return sqrt(square / (double)n - *mean * *mean);
}

static void check_normal(const dpt_graph *g, const float *params, const char *name, double want)
{
    const dpt_param *p = find(g, name);
    double mean;
    const double got = deviation(params + p->offset, p->count, &mean);

    assert_true(fabs(got / want - 1) < 4 / sqrt(2.0 * (double)p->count)); /* 4 sigma */
    assert_true(fabs(mean) < 4 * want / sqrt((double)p->count));
}

static void initial_weights_have_torchvisions_distributions(void **state)
{
    dpt_graph *g = build("resnet18", 1000, 224);
    float *params = malloc(g->param_floats * sizeof *params);
    float *buffers = malloc(g->buffer_floats * sizeof *buffers);
    const dpt_param *p;
    float most = 0;
    double mean;

    (void)state;
    assert_non_null(params);
    assert_non_null(buffers);
    dpt_graph_init(g, 1, params, buffers);
    check_normal(g, params, "conv1.weight", sqrt(2.0 / (64 * 49)));
    check_normal(g, params, "layer3.0.conv1.weight", sqrt(2.0 / (256 * 9)));
    check_normal(g, params, "layer4.0.downsample.0.weight", sqrt(2.0 / 512));
    p = find(g, "fc.weight"); /* uniform: bound 1 / sqrt(512), deviation bound / sqrt(3) */
    for (size_t i = 0; i < p->count; i++) most = fmaxf(most, fabsf(params[p->offset + i]));
    assert_true(most <= 1 / sqrt(512) && most > 0.999 / sqrt(512));
    assert_true(fabs(deviation(params + p->offset, p->count, &mean) * sqrt(3 * 512) - 1) < 0.01);
    p = find(g, "fc.bias");
    assert_true(fabs(deviation(params + p->offset, p->count, &mean) * sqrt(3 * 512) - 1) < 0.1);
    p = find(g, "layer2.1.bn2.weight"); /* torchvision: no zero-initialised residual */
    assert_true(params[p->offset] == 1 && params[p->offset + 127] == 1);
    p = find(g, "layer2.1.bn2.bias");
    assert_true(params[p->offset] == 0 && params[p->offset + 127] == 0);
    assert_true(buffers[0] == 0 && buffers[63] == 0);   /* bn1.running_mean */
    assert_true(buffers[64] == 1 && buffers[127] == 1); /* bn1.running_var */
    free(params);
    free(buffers);
    dpt_graph_destroy(&g);
}

static void initial_weights_depend_on_the_seed_only(void **state)
{
    dpt_graph *g = build("tinynet", 10, 32);
    const size_t bytes = g->param_floats * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), none;

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(g->buffer_floats, 0);
    dpt_graph_init(g, 7, a, &none);
    dpt_graph_init(g, 7, b, &none);
    assert_memory_equal(a, b, bytes);
    dpt_graph_init(g, 8, b, &none);
    assert_memory_not_equal(a, b, bytes);
    free(a);
    free(b);
    dpt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_match_torchvision),
        cmocka_unit_test(keys_and_shapes_match_torchvision),
        cmocka_unit_test(flat_arrays_are_tiled_without_gaps),
        cmocka_unit_test(shapes_follow_the_picture),
        cmocka_unit_test(bad_requests_are_refused_with_a_reason),
        cmocka_unit_test(node_names_are_layer_names),
        cmocka_unit_test(initial_weights_have_torchvisions_distributions),
        cmocka_unit_test(initial_weights_depend_on_the_seed_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
