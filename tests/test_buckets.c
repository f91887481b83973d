/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients are cut from the end, between parameters, and each float lies in one bucket. */
#include "trainer/cuda/buckets.h"

#include "tests/testutil.h"

#include <string.h>

enum { MAX_PARAMS = 256 };

/* Parameters of those many floats, one behind the other. */
static void lay_out(dpt_graph *g, dpt_param *param, const size_t *count, int n)
{
    size_t at = 0;

    memset(param, 0, sizeof *param * (size_t)n);
    for (int i = 0; i < n; i++) {
        param[i].offset = at;
        param[i].count = count[i];
        at += count[i];
    }
    *g = (dpt_graph){ .param = param, .params = n, .param_floats = at };
}

/* Expected borders are worked out by hand: floats of four bytes, limits in bytes. */
static void buckets_are_cut_where_they_are_full(void **state)
{
    static const size_t count[] = { 10, 20, 30, 40, 50 };
    static const struct {
        size_t first, bytes;
        int n;
        size_t from[5];
    } cases[] = {
        { 200, 200, 3, { 100, 30, 0 } }, /* 50 | 40 + 30 | 20 + 10: the last one is not full */
        { 201, 200, 3, { 60, 10, 0 } },  /* 50 is one byte short of the first limit */
        { 4, 4, 5, { 100, 60, 30, 10, 0 } },
        { 4, 1000, 2, { 100, 0 } },
        { 1000, 4, 1, { 0 } }, /* 150 floats are less than the first one could hold */
        { 0, 0, 5, { 100, 60, 30, 10, 0 } },
    };
    dpt_param param[5];
    dpt_graph g;

    (void)state;
    lay_out(&g, param, count, 5);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dpt_bucket got[5];
        size_t to = 150;

        if (dpt_buckets_cut(&g, cases[k].first, cases[k].bytes, got) != cases[k].n)
            fail_msg("case %zu: not %d buckets", k, cases[k].n);
        for (int i = 0; i < cases[k].n; i++) {
            if (got[i].from != cases[k].from[i] || got[i].to != to)
                fail_msg("case %zu, bucket %d: %zu to %zu", k, i, got[i].from, got[i].to);
            to = cases[k].from[i];
        }
    }
}

/* With the limits of PyTorch's DistributedDataParallel. 25,557,032 parameters of 4 bytes are 97.5 MiB:
 * the classifier alone (2,049,000) fills the first bucket. */
static void a_resnet50_travels_in_five_pieces(void **state)
{
    dpt_bucket got[MAX_PARAMS];
    dpt_graph *g;
    int n;

    (void)state;
    assert_int_equal(dpt_graph_build(&g, "resnet50", 1000, 224, 224, NULL), 0);
    assert_true(g->params <= MAX_PARAMS);
    n = dpt_buckets_cut(g, DPT_BUCKET_FIRST, DPT_BUCKET_BYTES, got);
    assert_int_equal(g->param_floats, 25557032);
    assert_int_equal(got[0].to - got[0].from, 2049000); /* fc.weight, and fc.bias behind it */
    assert_int_equal(got[0].to, 25557032);
    assert_int_equal(got[n - 1].from, 0);
    for (int i = 0; i < n; i++) {
        const size_t bytes = (got[i].to - got[i].from) * 4;

        if (i) assert_int_equal(got[i].to, got[i - 1].from);
        if (i && i < n - 1) assert_in_range(bytes, DPT_BUCKET_BYTES, DPT_BUCKET_BYTES + 9437184);
    }
    assert_int_equal(n, 5);
    dpt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_cut_where_they_are_full),
        cmocka_unit_test(a_resnet50_travels_in_five_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
