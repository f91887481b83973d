/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_team.h: the steps of a team, computed on the host. */
#include "dpload.h"
#include "tests/gpu_team.h"
#include "trainer/parallel_reduce.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *floats(size_t n)
{
    float *p = calloc(n + 1, sizeof *p);

    assert_non_null(p);
    return p;
}

void test_twin_open(test_twin *t, const test_gpu_case *c)
{
    memset(t, 0, sizeof *t);
    t->c = *c;
    t->graph = test_gpus_graph(c);
    t->params = floats(t->graph->param_floats);
    t->momentum = floats(t->graph->param_floats);
    t->second = floats(t->graph->param_floats);
    t->buffers = floats(t->graph->buffer_floats);
    assert_non_null(t->norms = calloc(dpt_reduce_norm_count(t->graph), sizeof *t->norms));
    t->updates = c->updates;
    dpt_graph_init(t->graph, 1, t->params, t->buffers);
    test_gpus_momentum(t->graph, t->momentum);
    test_gpus_second(t->graph, t->second);
    for (int p = 0; p < test_gpus_all(c); p++) {
        const dpt_exec_options opt = { .max_n = c->n[p] ? c->n[p] : 1, .threads = 1 };

        assert_int_equal(dpt_backend_ref.create(&t->exec[p], t->graph, &opt, NULL), DPL_OK);
        t->grads[p] = floats(t->graph->param_floats);
        t->stats[p] = floats(t->graph->buffer_floats);
    }
}

void test_twin_close(test_twin *t)
{
    for (int p = 0; p < test_gpus_all(&t->c); p++) {
        dpt_backend_ref.destroy(&t->exec[p]);
        free(t->grads[p]);
        free(t->stats[p]);
    }
    free(t->params);
    free(t->momentum);
    free(t->second);
    free(t->norms);
    free(t->buffers);
    dpt_graph_destroy(&t->graph);
}

/* Run part p of batch k through the network. */
static void run_part(test_twin *t, int k, int p, int first, int train, double scale, dpt_sums *sums)
{
    const size_t n = (size_t)t->c.n[p];
    test_gpu_data d;
    dpt_step s;

    test_gpus_data(&d, &t->c, k, first, (int)n);
    s = (dpt_step){ .pixels = d.normal,
                    .labels = d.labels,
                    .labels2 = t->c.soft ? d.labels2 : NULL,
                    .mix = t->c.soft ? d.mix : NULL,
                    .n = (int)n,
                    .params = t->params,
                    .buffers = t->buffers,
                    .grad_scale = scale,
                    .grads = t->grads[p],
                    .batch_stats = t->stats[p] };
    assert_int_equal(
        (train ? dpt_backend_ref.train : dpt_backend_ref.evaluate)(t->exec[p], &s, NULL), DPL_OK);
    sums->loss += s.sums.loss;
    sums->top1 += s.sums.top1;
    sums->top5 += s.sums.top5;
    sums->n += s.sums.n;
    test_gpus_data_free(&d);
}

void test_twin_step(test_twin *t, int k, const dpt_update *update, dpt_sums *sums)
{
    const int n = test_gpus_planned(&t->c) - t->c.refused;
    dpt_reduce_part part[TEST_GPUS];
    dpt_reduce r = { .graph = t->graph,
                     .part = part,
                     .update = *update,
                     .params = t->params,
                     .momentum = t->momentum,
                     .second = t->second,
                     .norms = t->norms,
                     .buffers = t->buffers };
    int first = 0;

    *sums = (dpt_sums){ 0 };
    for (int p = 0; p < test_gpus_all(&t->c); first += t->c.n[p++]) {
        if (!t->c.n[p]) continue;
        run_part(t, k, p, first, 1, 1.0 / n, sums);
        part[r.parts++] = (dpt_reduce_part){ .grads = t->grads[p],
                                             .batch_stats = t->stats[p],
                                             .share = (double)t->c.n[p] / n };
    }
    if (!n) return;
    r.step = ++t->updates;
    if (update->rule == DPT_RULE_LARS) dpt_reduce_norms(&r, 0, 1);
    dpt_reduce_slice(&r, 0, 1);
}

void test_twin_evaluate(test_twin *t, int k, dpt_sums *sums)
{
    int first = 0;

    *sums = (dpt_sums){ 0 };
    for (int p = 0; p < test_gpus_all(&t->c); first += t->c.n[p++]) {
        if (t->c.n[p]) run_part(t, k, p, first, 0, 0, sums);
    }
}

/* --- comparing --- */

static void compare(const char *what, const float *got, const float *want, size_t n)
{
    double most = 0, off = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]);
        most = fmax(most, fabs((double)want[i]));
        off = d <= off ? off : d; /* NaN is kept */
    }
    if (!(off <= test_gpus_tolerance() * most))
        fail_msg("%s: off by %g, the largest is %g", what, off, most);
}

void test_twin_compare(const test_twin *t, const test_gpus *g)
{
    compare("weights", g->params, t->params, t->graph->param_floats);
    compare("momentum", g->momentum, t->momentum, t->graph->param_floats);
    compare("second moments", g->second, t->second, t->graph->param_floats);
    assert_int_equal(g->updates, t->updates);
    compare("running statistics", g->buffers, t->buffers, t->graph->buffer_floats);
}

void test_twin_compare_sums(const dpt_sums *got, const dpt_sums *want, const char *what)
{
    if (!(fabs(got->loss - want->loss) <= test_gpus_tolerance() * (1 + fabs(want->loss))))
        fail_msg("%s: loss %.9g, the host has %.9g", what, got->loss, want->loss);
    assert_int_equal(got->n, want->n);
    if (!test_fake_cuda()) return; /* on a card a near tie may fall the other way */
    assert_int_equal(got->top1, want->top1);
    assert_int_equal(got->top5, want->top5);
}
