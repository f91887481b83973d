/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_team.h: the devices, the data, the stand-in for the loader. */
#include "tests/gpu_team.h"

#include "dpload.h"
#include "trainer/graph_make.h"
#include "trainer/trainer_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float mean[3] = { 0.485f, 0.456f, 0.406f }, deviation[3] = { 0.229f, 0.224f, 0.225f };

/* --- the network --- */

/* Batch norm, a residual, 4,000 parameters: with pieces of 4 KiB they travel in three. */
static void slimnet(dpt_maker *m)
{
    static const dpt_conv_spec narrow = { .channels = 8, .k = 3, .stride = 2, .pad = 1 };
    static const dpt_conv_spec wide = { .channels = 16, .k = 3, .stride = 2, .pad = 1 };
    static const dpt_conv_spec same = { .channels = 16, .k = 3, .stride = 1, .pad = 1 };
    int t = dpt_make_bn(m, dpt_make_conv(m, 0, "conv1", &narrow), "bn1");
    int branch;

    t = dpt_make_conv(m, dpt_make_relu(m, t), "conv2", &wide);
    t = dpt_make_relu(m, dpt_make_bn(m, t, "bn2"));
    branch = dpt_make_bn(m, dpt_make_conv(m, t, "conv3", &same), "bn3");
    t = dpt_make_relu(m, dpt_make_add(m, branch, t));
    dpt_make_linear(m, dpt_make_avgpool(m, t), "fc", TEST_CLASSES);
}

dpt_graph *test_gpus_graph(const test_gpu_case *c)
{
    dpt_maker m = { .g = NULL };
    dpl_text why = { "" };
    dpt_graph *g;

    if (strcmp(c->arch, "slimnet") != 0) {
        if (dpt_graph_build(&g, c->arch, TEST_CLASSES, c->size, c->size, &why))
            fail_msg("%s", why.s);
        return g;
    }
    assert_non_null(m.g = calloc(1, sizeof *m.g));
    assert_non_null(m.g->tensor = calloc(m.tensor_cap = 8, sizeof *m.g->tensor));
    assert_non_null(m.g->arch = strdup(c->arch));
    m.g->classes = TEST_CLASSES;
    m.g->tensor[m.g->tensors++] = (dpt_shape){ 3, c->size, c->size };
    slimnet(&m);
    assert_int_equal(m.err, 0);
    return m.g;
}

void test_gpus_momentum(const dpt_graph *g, float *momentum)
{
    for (size_t i = 0; i < g->param_floats; i++) momentum[i] = (float)(i % 7) / 8 - 0.375f;
}

void test_gpus_second(const dpt_graph *g, float *second)
{
    for (size_t i = 0; i < g->param_floats; i++) second[i] = (float)(i % 5) / 8 + 0.25f;
}

/* --- what is there --- */

int test_gpus_there(int n)
{
    const dpt_trainer_plugin *plugin;
    dpl_device *d;
    int there = 0;

    if (dpt_plugin_cuda(&plugin, NULL)) return 0;
    for (; there < n; there++) {
        if (dpl_device_open(&d, test_format("cuda:%d", there), NULL)) break;
        dpl_device_close(&d);
    }
    return there == n;
}

int test_gpus_slow(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return 1;
#elif defined(__has_feature)
    return __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
    return 0;
#endif
}

double test_gpus_tolerance(void)
{
    return test_fake_cuda() ? 2e-5 : 2e-2;
}

/* --- opening and closing --- */

static size_t picture(const test_gpu_case *c)
{
    return 3 * (size_t)c->size * (size_t)c->size;
}

static void make_slot(test_gpus *g, test_gpu_slot *s)
{
    for (int p = 0; p < g->c.gpus; p++) {
        const size_t n = (size_t)g->max_n[p], values = n * picture(&g->c);
        const size_t bytes = g->c.bytes ? values : values * sizeof(float);

        assert_int_equal(dpl_event_create(g->device[p], &s->copied[p], NULL), DPL_OK);
        assert_int_equal(dpl_event_create(g->device[p], &s->released[p], NULL), DPL_OK);
        assert_non_null(s->host[p] = dpl_device_host_alloc(g->device[p], bytes));
        assert_non_null(s->dev[p] = dpl_device_alloc(g->device[p], bytes));
        assert_non_null(s->labels[p] = dpl_device_host_alloc(g->device[p], n * 12));
        s->labels2[p] = s->labels[p] + n;
        s->mix[p] = (float *)(void *)(s->labels2[p] + n);
    }
}

static void drop_slot(test_gpus *g, test_gpu_slot *s)
{
    for (int p = 0; p < g->c.gpus; p++) {
        dpl_event_destroy(&s->copied[p]);
        dpl_event_destroy(&s->released[p]);
        dpl_device_host_free(g->device[p], s->host[p]);
        dpl_device_free(g->device[p], s->dev[p]);
        dpl_device_host_free(g->device[p], s->labels[p]);
    }
}

static float *floats(size_t n)
{
    float *p = calloc(n + 1, sizeof *p);

    assert_non_null(p);
    return p;
}

void test_gpus_open(test_gpus *g, const test_gpu_case *c)
{
    dpl_text why = { "" };

    memset(g, 0, sizeof *g);
    g->c = *c;
    g->graph = test_gpus_graph(c);
    g->params = floats(g->graph->param_floats);
    g->momentum = floats(g->graph->param_floats);
    g->second = floats(g->graph->param_floats);
    g->buffers = floats(g->graph->buffer_floats);
    g->updates = c->updates;
    dpt_graph_init(g->graph, 1, g->params, g->buffers);
    test_gpus_momentum(g->graph, g->momentum);
    test_gpus_second(g->graph, g->second);
    for (int p = 0; p < c->gpus; p++) {
        g->gpu[p] = c->rank * c->gpus + p;
        g->max_n[p] = c->n[g->gpu[p]] ? c->n[g->gpu[p]] : 1;
        if (dpl_device_open(&g->device[p], test_format("cuda:%d", g->gpu[p]), &why))
            fail_msg("%s", why.s);
        assert_int_equal(dpl_stream_create(g->device[p], &g->copy[p], "copy", NULL), DPL_OK);
    }
    for (int k = 0; k < TEST_SLOTS; k++) make_slot(g, &g->slot[k]);
}

void test_gpus_options(test_gpus *g, dpt_team_options *opt)
{
    const dpt_trainer_plugin *plugin;
    dpl_text why = { "" };

    if (dpt_plugin_cuda(&plugin, &why)) fail_msg("%s", why.s);
    *opt = (dpt_team_options){ .ops = plugin->team,
                               .graph = g->graph,
                               .replicas = g->c.gpus,
                               .max_n = g->max_n,
                               .rule = g->c.rule,
                               .params = g->params,
                               .momentum = g->momentum,
                               .second = g->c.rule == DPT_RULE_ADAMW ? g->second : NULL,
                               .updates = &g->updates,
                               .buffers = g->buffers,
                               .cancel = g->c.cancel,
                               .gpu = g->gpu,
                               .amp = g->c.amp,
                               .bytes = g->c.bytes,
                               .bucket_bytes = strcmp(g->c.arch, "slimnet") ? 0 : 4096,
                               .rank = g->c.rank,
                               .world = g->c.world ? g->c.world : 1,
                               .address = g->c.world ? "127.0.0.1:29400" : NULL,
                               .timeout_ms = g->c.timeout_ms ? g->c.timeout_ms : 30000 };
    memcpy(opt->mean, mean, sizeof mean);
    memcpy(opt->std, deviation, sizeof deviation);
}

int test_gpus_start(test_gpus *g, dpl_text *why)
{
    dpt_team_options opt;

    test_gpus_options(g, &opt);
    return dpt_team_create(&g->team, &opt, why);
}

void test_gpus_close(test_gpus *g)
{
    dpt_team_destroy(&g->team);
    for (int k = 0; k < TEST_SLOTS; k++) drop_slot(g, &g->slot[k]);
    for (int p = 0; p < g->c.gpus; p++) {
        dpl_stream_destroy(&g->copy[p]);
        dpl_device_close(&g->device[p]);
    }
    dpt_graph_destroy(&g->graph);
    free(g->params);
    free(g->momentum);
    free(g->second);
    free(g->buffers);
}

/* --- data --- */

static uint32_t next(uint32_t *x)
{
    return *x = *x * 1664525 + 1013904223;
}

/* (v / 255 - mean) / std, rounded as the loader does. */
static void normalise(const uint8_t *level, float *out, size_t size)
{
    for (size_t c = 0; c < 3; c++) {
        const float scale = (float)(1 / (255.0 * (double)deviation[c]));
        const float bias = (float)(-(double)mean[c] / (double)deviation[c]);

        for (size_t v = 0; v < size; v++)
            out[c * size + v] = (float)level[3 * v + c] * scale + bias;
    }
}

void test_gpus_data(test_gpu_data *d, const test_gpu_case *c, int k, int first, int n)
{
    const size_t values = picture(c);

    d->level = malloc((size_t)n * values + 1);
    d->normal = floats((size_t)n * values);
    d->labels = calloc((size_t)n + 1, sizeof *d->labels);
    d->labels2 = calloc((size_t)n + 1, sizeof *d->labels2);
    d->mix = floats((size_t)n);
    assert_true(d->level && d->labels && d->labels2);
    for (int i = 0; i < n; i++) {
        uint32_t x = (uint32_t)(1000 * k + first + i + 1) * 2654435761u;
        uint8_t *level = d->level + (size_t)i * values;

        for (size_t v = 0; v < values; v++) level[v] = (uint8_t)(next(&x) >> 24);
        normalise(level, d->normal + (size_t)i * values, values / 3);
        d->labels[i] = (int32_t)(next(&x) >> 16) % TEST_CLASSES;
        d->labels2[i] = (int32_t)(next(&x) >> 16) % TEST_CLASSES;
        d->mix[i] = (float)(next(&x) >> 24) / 256;
    }
}

void test_gpus_data_free(test_gpu_data *d)
{
    free(d->level);
    free(d->normal);
    free(d->labels);
    free(d->labels2);
    free(d->mix);
}

int test_gpus_planned(const test_gpu_case *c)
{
    int n = c->refused;

    for (int p = 0; p < test_gpus_all(c); p++) n += c->n[p];
    return n;
}

int test_gpus_all(const test_gpu_case *c)
{
    return c->gpus * (c->world ? c->world : 1);
}

const dpt_team_part *test_gpus_parts(test_gpus *g, int k, dpt_team_part part[TEST_GPUS])
{
    const test_gpu_slot *s = &g->slot[k % TEST_SLOTS];

    for (int p = 0; p < g->c.gpus; p++) {
        part[p] =
            (dpt_team_part){ .pixels = s->dev[p], .labels = s->labels[p], .n = g->c.n[g->gpu[p]] };
        if (!g->c.soft) continue;
        part[p].labels2 = s->labels2[p];
        part[p].mix = s->mix[p];
    }
    return part;
}

static void feed_part(test_gpus *g, test_gpu_slot *s, int k, int p, int first)
{
    const size_t n = (size_t)g->c.n[g->gpu[p]], values = n * picture(&g->c);
    const size_t bytes = g->c.bytes ? values : values * sizeof(float);
    test_gpu_data d;

    assert_int_equal(dpl_event_sync(s->released[p]), DPL_OK);
    test_gpus_data(&d, &g->c, k, first, (int)n);
    memcpy(s->host[p], g->c.bytes ? (void *)d.level : (void *)d.normal, bytes);
    memcpy(s->labels[p], d.labels, n * sizeof *d.labels);
    memcpy(s->labels2[p], d.labels2, n * sizeof *d.labels2);
    memcpy(s->mix[p], d.mix, n * sizeof *d.mix);
    test_gpus_data_free(&d);
    if (bytes) dpl_copy_to_device(g->copy[p], s->dev[p], s->host[p], bytes);
    dpl_event_record(s->copied[p], g->copy[p]);
    if (g->team) dpl_native_wait(dpt_team_streams(g->team)[p], s->copied[p]);
}

const dpt_team_part *test_gpus_feed(test_gpus *g, int k, dpt_team_part part[TEST_GPUS])
{
    int first = 0;

    for (int q = 0; q < g->gpu[0]; q++) first += g->c.n[q]; /* other processes' */
    for (int p = 0; p < g->c.gpus; first += g->c.n[g->gpu[p++]])
        feed_part(g, &g->slot[k % TEST_SLOTS], k, p, first);
    return test_gpus_parts(g, k, part);
}

void test_gpus_release(test_gpus *g, int k)
{
    for (int p = 0; p < g->c.gpus; p++)
        dpl_native_record(g->slot[k % TEST_SLOTS].released[p], dpt_team_streams(g->team)[p]);
}

dpt_update test_gpus_sgd(int k)
{
    return (dpt_update){
        .lr = 0.05 / (k + 1), .momentum = 0.9, .weight_decay = 1e-3, .nesterov = 1, .first = k == 0
    };
}

int test_gpus_submit(test_gpus *g, int k, const dpt_update *sgd, dpl_text *why)
{
    dpt_team_part part[TEST_GPUS];
    const dpt_team_step s = { .part = test_gpus_feed(g, k, part),
                              .update = *sgd,
                              .planned = test_gpus_planned(&g->c) };
    const int err = dpt_team_submit(g->team, &s, why);

    if (!err) test_gpus_release(g, k);
    return err;
}

/* --- planted bugs --- */

int test_gpus_child(const char *name, const char *plant)
{
    char *argv[] = { (char *)"test", (char *)"planted", (char *)(uintptr_t)name, NULL };
    char *envp[] = { (char *)"TSAN_OPTIONS=exitcode=66 report_thread_leaks=0 log_path=/dev/null",
                     (char *)"ASAN_OPTIONS=detect_leaks=0", (char *)"FAKE_CUDA_DEVICES=3",
                     (char *)(uintptr_t)test_format("REF_EXEC_PLANT=%s", plant), NULL };

    return test_run_self(argv, envp, *plant != 0); /* it will be reported */
}
