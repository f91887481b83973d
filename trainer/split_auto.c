/* SPDX-License-Identifier: Apache-2.0 */
/* Timing the devices of a process one by one; see split_auto.h. */
#include "trainer/split_auto.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "device/device.h"
#include "trainer/interrupt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DISCARDED = 2, /* first calls of a device: it builds kernels, wakes up, fills caches */
    TIMED = 3,     /* the least of these counts: others only disturb */
    CLASSES = 1000 /* the data is not open yet; the last layer takes next to nothing */
};

/* Pictures of one part in the memory of its device. */
typedef struct sample_part {
    dpl_device *device;
    dpl_stream *stream;
    void *pixels, *host; /* host: where they are made, NULL = pixels is host memory */
} sample_part;

typedef struct trial {
    dpt_run *run;
    int n; /* samples of a part */
    dpt_graph *graph;
    dpt_team *team;
    float *params, *momentum, *buffers;
    int32_t *labels;     /* [n] */
    sample_part *part;   /* [devices] */
    dpt_team_part *step; /* [devices] */
    int *most;           /* [devices] n each */
    double *seconds;     /* [devices] */
} trial;

void dpt_split_weights(const double *seconds, int n, int *weight)
{
    double fastest = seconds[0], slowest = seconds[0];

    for (int i = 1; i < n; i++) {
        if (seconds[i] < fastest) fastest = seconds[i];
        if (seconds[i] > slowest) slowest = seconds[i];
    }
    for (int i = 0; i < n; i++) {
        weight[i] = 1;
        if (slowest > 1.05 * fastest) weight[i] = (int)floor(100 * fastest / seconds[i] + 0.5);
        if (weight[i] < 1) weight[i] = 1;
    }
}

/* Different levels from pixel to pixel, of both signs as floats. */
static void make_pixels(void *pixels, size_t n, int bytes)
{
    uint32_t x = 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        if (bytes)
            ((uint8_t *)pixels)[i] = (uint8_t)(x >> 24);
        else
            ((float *)pixels)[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
}

static int make_part(const trial *t, sample_part *p, const char *device, dpl_text *why)
{
    const size_t size = (size_t)t->run->opt->size, pixels = (size_t)t->n * 3 * size * size;
    const int is_bytes = dpt_run_bytes(t->run);
    const size_t len = pixels * (is_bytes ? 1 : sizeof(float));
    int err;

    if ((err = dpl_device_open(&p->device, device, why))) return err;
    if (!(p->pixels = dpl_device_alloc(p->device, len)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory on %s", device);
    if (!dpl_device_has_memory(p->device)) {
        make_pixels(p->pixels, pixels, is_bytes);
        return DPL_OK;
    }
    if (!(p->host = dpl_device_host_alloc(p->device, len)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory for pictures of %s", device);
    make_pixels(p->host, pixels, is_bytes);
    if ((err = dpl_stream_create(p->device, &p->stream, "split", why))) return err;
    if ((err = dpl_copy_to_device(p->stream, p->pixels, p->host, len)) ||
        (err = dpl_stream_sync(p->stream)))
        return dpl_fail(why, err, "%s: %s", device, dpl_device_failure(p->device));
    return DPL_OK;
}

static void free_part(sample_part *p)
{
    if (!p->device) return;
    dpl_stream_destroy(&p->stream);
    if (p->pixels) dpl_device_free(p->device, p->pixels);
    if (p->host) dpl_device_host_free(p->device, p->host);
    dpl_device_close(&p->device);
}

static int allocate(trial *t, dpl_text *why)
{
    const size_t devices = (size_t)t->run->devices;
    const size_t p = t->graph->param_floats, b = t->graph->buffer_floats;

    t->params = dpl_alloc_aligned(p, sizeof(float));
    t->momentum = dpl_calloc(p, sizeof(float));
    t->buffers = dpl_alloc_aligned(b ? b : 1, sizeof(float));
    t->labels = dpl_calloc((size_t)t->n, sizeof *t->labels);
    t->part = dpl_calloc(devices, sizeof *t->part);
    t->step = dpl_calloc(devices, sizeof *t->step);
    t->most = dpl_calloc(devices, sizeof *t->most);
    t->seconds = dpl_calloc(devices, sizeof *t->seconds);
    if (!t->params || !t->momentum || !t->buffers || !t->labels || !t->part || !t->step ||
        !t->most || !t->seconds)
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory for --split auto");
    return DPT_EXIT_DONE;
}

static int set_up(trial *t, dpl_text *why)
{
    dpt_run *r = t->run;
    dpt_team_options o = { .world = 1 };
    int rc, err;

    if (!r->cuda && !(r->backend = dpt_backend_find(r->opt->backend, why))) return DPT_EXIT_USAGE;
    err = dpt_graph_build(&t->graph, r->opt->arch, CLASSES, r->opt->size, r->opt->size, why);
    if (err) return dpt_exit_of(err);
    if ((rc = allocate(t, why))) return rc;
    dpt_graph_init(t->graph, r->opt->load.seed, t->params, t->buffers);
    for (int i = 0; i < t->n; i++) t->labels[i] = i % CLASSES;
    for (int i = 0; i < r->devices; i++) {
        t->most[i] = t->n;
        if ((err = make_part(t, &t->part[i], r->device[i], why))) return dpt_exit_of(err);
    }
    o.graph = t->graph;
    o.max_n = t->most;
    o.params = t->params;
    o.momentum = t->momentum;
    o.buffers = t->buffers;
    return dpt_run_make_team(r, &o, &t->team, why);
}

static void tear_down(trial *t)
{
    dpt_team_destroy(&t->team);
    for (int i = 0; t->part && i < t->run->devices; i++) free_part(&t->part[i]);
    dpt_graph_destroy(&t->graph);
    free(t->params);
    free(t->momentum);
    free(t->buffers);
    free(t->labels);
    free(t->part);
    free(t->step);
    free(t->most);
    free(t->seconds);
}

/* One step with pictures for device k alone. */
static int one_step(trial *t, int k, double *seconds, dpl_text *why)
{
    const dpt_team_step s = { .part = t->step, .update = { .lr = 0 }, .planned = t->n };
    const int64_t began = dpl_now_ns();
    dpt_team_result result;
    int err;

    memset(t->step, 0, (size_t)t->run->devices * sizeof *t->step);
    t->step[k] = (dpt_team_part){ .pixels = t->part[k].pixels, .labels = t->labels, .n = t->n };
    err = dpt_team_submit(t->team, &s, why);
    if (!err) err = dpt_team_collect(t->team, &result, why);
    *seconds = (double)(dpl_now_ns() - began) / 1e9;
    if (dpt_interrupt_signal()) return dpt_interrupt_fail(why);
    return dpt_exit_of(err);
}

static int measure(trial *t, dpl_text *why)
{
    for (int k = 0; k < t->run->devices; k++) {
        for (int i = 0; i < DISCARDED + TIMED; i++) {
            double seconds;
            const int rc = one_step(t, k, &seconds, why);

            if (rc) return rc;
            if (i == DISCARDED || (i > DISCARDED && seconds < t->seconds[k]))
                t->seconds[k] = seconds;
        }
    }
    return DPT_EXIT_DONE;
}

/* "split: 32 pictures take cpu 1.021 s, cpu 0.501 s: weights 49,100 (as with --split 49,100)" */
static void say(const trial *t)
{
    const dpt_run *r = t->run;
    char times[4096] = "", weights[2048] = "";
    size_t at = 0, end = 0;

    for (int i = 0; i < r->devices; i++) {
        if (at < sizeof times)
            at += (size_t)snprintf(times + at, sizeof times - at, "%s%s %.4g ms", i ? ", " : "",
                                   r->device[i], 1e3 * t->seconds[i]);
        if (end < sizeof weights)
            end += (size_t)snprintf(weights + end, sizeof weights - end, "%s%d", i ? "," : "",
                                    r->weight[i]);
    }
    dpt_report_note(r->report, "split: %d pictures take %s: weights %s (as with --split %s)", t->n,
                    times, weights, weights);
}

int dpt_run_split_auto(dpt_run *r, dpl_text *why)
{
    trial t = { .run = r };
    int rc;

    if (r->sim)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--split auto with --devices %s: a simulated step takes the stated time "
                        "whatever the part; give weights, such as 3,1",
                        r->opt->devices);
    if (r->devices == 1) return DPT_EXIT_DONE; /* it gets all of this process's share */
    for (int i = 0; i < r->devices; i++)
        if (r->part[i] > t.n) t.n = r->part[i];
    if ((rc = set_up(&t, why)) || (rc = measure(&t, why))) goto done;
    if (!(r->weight = dpl_calloc((size_t)r->devices, sizeof *r->weight))) {
        rc = dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
        goto done;
    }
    dpt_split_weights(t.seconds, r->devices, r->weight);
    say(&t);
    rc = dpt_run_parts(r, why);
done:
    tear_down(&t);
    return rc;
}
