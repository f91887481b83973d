/* SPDX-License-Identifier: Apache-2.0 */
/* Networks by formula against PyTorch; see backend_cases.h. */
#include "tests/backend_cases.h"

#include "dpload.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, LINE = 1024 };

/* As noise() in make_model_vectors.py: 24 bits, a function of (stream, index). */
static double noise(uint64_t stream, uint64_t i)
{
    uint64_t x = (i + stream * 0x10000019u) * 0x9E3779B97F4A7C15u;

    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return (double)(x >> 40) / (1 << 23) - 1;
}

static int ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

static void fill(float *v, const dpt_param *p, uint64_t stream)
{
    double fan = 1;

    for (int d = 1; d < p->dims; d++) fan *= (double)p->shape[d];
    for (size_t i = 0; i < p->count; i++) {
        const double u = noise(stream, i);
        double x;

        if (ends_with(p->name, "running_var")) {
            x = 1 + 0.5 * u;
        } else if (ends_with(p->name, "running_mean") || ends_with(p->name, "bias")) {
            x = 0.1 * u;
        } else {
            x = p->dims == 1 ? 1 + 0.25 * u : sqrt(6 / fan) * u;
        }
        v[p->offset + i] = (float)x;
    }
}

static float *floats(size_t n)
{
    float *v = malloc((n + 1) * sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++) v[i] = NAN;
    return v;
}

void test_case_fill(test_case *c, dpt_graph *g, int n)
{
    const dpt_shape in = g->tensor[0];
    const size_t size = (size_t)in.c * (size_t)in.h * (size_t)in.w * (size_t)n;

    c->g = g;
    c->params = floats(g->param_floats);
    c->grads = floats(g->param_floats);
    c->buffers = floats(g->buffer_floats);
    c->stats = floats(g->buffer_floats);
    c->pixels = floats(size);
    c->labels = malloc(((size_t)n + 1) * sizeof *c->labels);
    assert_non_null(c->labels);
    for (int i = 0; i < g->params; i++) fill(c->params, &g->param[i], 1 + (uint64_t)i);
    for (int i = 0; i < g->buffers; i++) fill(c->buffers, &g->buffer[i], 1000 + (uint64_t)i);
    for (size_t i = 0; i < size; i++) c->pixels[i] = (float)(2 * noise(5000, i));
    for (int i = 0; i < n; i++) c->labels[i] = (i * 7 + 1) % g->classes;
    c->step = (dpt_step){ .pixels = c->pixels,
                          .labels = c->labels,
                          .n = n,
                          .params = c->params,
                          .buffers = c->buffers,
                          .grad_scale = 1.0 / 16,
                          .grads = c->grads,
                          .batch_stats = c->stats };
}

void test_case_make(test_case *c, const char *arch, int classes, int height, int width, int n)
{
    dpl_text why = { "" };
    dpt_graph *g;

    if (dpt_graph_build(&g, arch, classes, height, width, &why)) fail_msg("build: %s", why.s);
    test_case_fill(c, g, n);
}

void test_case_free(test_case *c)
{
    free(c->params);
    free(c->grads);
    free(c->buffers);
    free(c->stats);
    free(c->pixels);
    free(c->labels);
    dpt_graph_destroy(&c->g);
}

dpt_exec *test_exec(const dpt_backend *b, const dpt_graph *g, int max_n, int threads)
{
    const dpt_exec_options opt = { .max_n = max_n, .threads = threads };
    dpt_exec *e;
    dpl_text why = { "" };

    if (b->create(&e, g, &opt, &why) != DPL_OK) fail_msg("create: %s", why.s);
    return e;
}

static dpt_exec *exec_with(const dpt_backend *b, const dpt_graph *g, const int *cancel)
{
    const dpt_exec_options opt = { .max_n = 3, .threads = 2, .cancel = cancel };
    dpt_exec *e;
    dpl_text why = { "" };

    if (b->create(&e, g, &opt, &why) != DPL_OK) fail_msg("create: %s", why.s);
    return e;
}

void test_canceled_calls(const dpt_backend *b)
{
    test_case want, c;
    float logits[3 * 5];
    int word = 1;
    dpt_exec *e, *plain;
    dpl_text why;

    test_case_make(&want, "tinynet", 5, 16, 16, 3);
    test_case_make(&c, "tinynet", 5, 16, 16, 3);
    plain = test_exec(b, want.g, 3, 2);
    e = exec_with(b, c.g, &word);
    assert_int_equal(b->train(e, &c.step, &why), DPL_ECANCELED);
    assert_non_null(strstr(why.s, "canceled"));
    assert_int_equal(b->evaluate(e, &c.step, &why), DPL_ECANCELED);
    assert_int_equal(b->logits(e, &c.step, logits, &why), DPL_ECANCELED);
    word = 0;
    assert_int_equal(b->train(e, &c.step, &why), DPL_OK);
    assert_int_equal(b->train(plain, &want.step, &why), DPL_OK);
    assert_memory_equal(c.grads, want.grads, c.g->param_floats * sizeof(float));
    assert_memory_equal(c.stats, want.stats, c.g->buffer_floats * sizeof(float));
    assert_true(c.step.sums.loss == want.step.sums.loss);
    b->destroy(&e);

    /* The word is a gradient of the last layer: it cancels as soon as backward has come by there. */
    memset(c.grads, 0, c.g->param_floats * sizeof(float));
    e = exec_with(b, c.g, (const int *)(const void *)&c.grads[c.g->param_floats - 1]);
    assert_int_equal(b->train(e, &c.step, &why), DPL_ECANCELED);
    assert_true(c.grads[c.g->param_floats - 1] != 0);
    assert_true(c.grads[0] == 0 && want.grads[0] != 0);
    b->destroy(&e);
    b->destroy(&plain);
    test_case_free(&c);
    test_case_free(&want);
}

static const dpt_param *find(const dpt_param *list, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) return &list[i];
    }
    fail_msg("PyTorch has %s, the graph has not", name);
    return NULL;
}

/* rest: norm, then evenly spaced values */
static void check_summary(const dpt_param *p, const float *flat, char *rest, double tolerance)
{
    const float *v = flat + p->offset;
    const double want_norm = strtod(rest, &rest);
    double square = 0;

    for (size_t i = 0; i < p->count; i++) square += (double)v[i] * v[i];
    if (!(fabs(sqrt(square) - want_norm) <= tolerance * want_norm)) {
        fail_msg("%s: norm %.9g, PyTorch %.9g", p->name, sqrt(square), want_norm);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const double want = strtod(rest, &rest);
        const float got = v[(size_t)i * (p->count - 1) / (SAMPLES - 1)];

        if (!(fabs(got - want) <= tolerance * want_norm)) {
            fail_msg("%s: sample %d is %.9g, PyTorch %.9g, norm %.9g", p->name, i, got, want,
                     want_norm);
        }
    }
}

static void check_logits(const float *got, int classes, char *rest, double tolerance)
{
    double want[64], most = 0;

    assert_true(classes <= 64);
    for (int j = 0; j < classes; j++) {
        want[j] = strtod(rest, &rest);
        most = fmax(most, fabs(want[j]));
    }
    for (int j = 0; j < classes; j++) {
        if (!(fabs(got[j] - want[j]) <= tolerance * most)) {
            fail_msg("logit %d is %.9g, PyTorch %.9g", j, got[j], want[j]);
        }
    }
}

static int check_file(FILE *f, const test_case *c, const float *logits, double tolerance)
{
    char line[LINE], name[64];
    int lines = 0, used;
    double loss;
    int top1, top5;

    for (; fgets(line, sizeof line, f); lines++) {
        if (sscanf(line, "sums %lf %d %d", &loss, &top1, &top5) == 3) {
            if (!(fabs(c->step.sums.loss - loss) <= tolerance * loss)) {
                fail_msg("loss %.9g, PyTorch %.9g", c->step.sums.loss, loss);
            }
            assert_int_equal(c->step.sums.top1, top1);
            assert_int_equal(c->step.sums.top5, top5);
            assert_int_equal(c->step.sums.n, c->step.n);
        } else if (strncmp(line, "logits ", 7) == 0) {
            check_logits(logits, c->g->classes, line + 7, tolerance);
            logits += c->g->classes;
        } else if (sscanf(line, "grad %63s%n", name, &used) == 1) {
            check_summary(find(c->g->param, c->g->params, name), c->grads, line + used, tolerance);
        } else if (sscanf(line, "stat %63s%n", name, &used) == 1) {
            check_summary(find(c->g->buffer, c->g->buffers, name), c->stats, line + used,
                          tolerance);
        } else {
            fail_msg("line not understood: %s", line);
        }
    }
    return lines;
}

void test_against_pytorch(const dpt_backend *b, const char *arch, const char *mode,
                          double tolerance)
{
    char path[128];
    int h, w, n, classes, want_lines;
    dpl_text why = { "" };
    dpt_exec *e;
    test_case c;
    float *logits;
    FILE *f;

    snprintf(path, sizeof path, "tests/data/model_%s_%s.txt", arch, mode);
    if (!(f = fopen(path, "r"))) fail_msg("%s is missing: run in the source folder", path);
    assert_int_equal(fscanf(f, "case %d %d %d %d\n", &h, &w, &n, &classes), 4);
    test_case_make(&c, arch, classes, h, w, n);
    e = test_exec(b, c.g, n, 1);
    logits = floats((size_t)n * (size_t)classes);
    if (strcmp(mode, "train") == 0) {
        if (b->train(e, &c.step, &why)) fail_msg("train: %s", why.s);
        want_lines = 1 + c.g->params + c.g->buffers;
    } else {
        if (b->evaluate(e, &c.step, &why)) fail_msg("evaluate: %s", why.s);
        if (b->logits(e, &c.step, logits, &why)) fail_msg("logits: %s", why.s);
        want_lines = 1 + n;
    }
    assert_int_equal(check_file(f, &c, logits, tolerance), want_lines);
    fclose(f);
    free(logits);
    b->destroy(&e);
    assert_null(e);
    test_case_free(&c);
}

void test_same_gradients(const dpt_graph *g, const float *a, const float *b, double tolerance)
{
    for (int i = 0; i < g->params; i++) {
        const dpt_param *p = &g->param[i];
        double square = 0, most = 0;

        for (size_t j = p->offset; j < p->offset + p->count; j++) {
            square += (double)b[j] * b[j];
            if (!(fabs(a[j] - (double)b[j]) <= most)) most = fabs(a[j] - (double)b[j]);
        }
        if (!(most <= tolerance * sqrt(square))) {
            fail_msg("%s: differs by %.3g, norm %.6g", p->name, most, sqrt(square));
        }
    }
}
