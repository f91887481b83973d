/* SPDX-License-Identifier: Apache-2.0 */
/* A run on simulated devices: batches are loaded and uploaded as for an accelerator, a step is its
 * modelled time. Nothing is learned; what comes out is how fast the loader feeds such a device, and
 * the share of its time that the device stands without data. */
#include "base/alloc.h"
#include "base/clock.h"
#include "device/device.h"
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sim_device {
    dpl_device *device;
    dpl_stream *stream;
    dpl_event *done[2]; /* of the last step and the one before */
} sim_device;

/* A step computes nothing: its time is the model's. */
static void compute(void *arg)
{
    (void)arg;
}

static void close_devices(sim_device *d, int n)
{
    for (int i = 0; d && i < n; i++) {
        dpl_stream_destroy(&d[i].stream);
        dpl_event_destroy(&d[i].done[0]);
        dpl_event_destroy(&d[i].done[1]);
        dpl_device_close(&d[i].device);
    }
    free(d);
}

static int open_devices(const dpt_run *r, sim_device **out, dpl_text *why)
{
    sim_device *d = dpl_calloc((size_t)r->devices, sizeof *d);
    int err = DPL_OK;

    *out = d;
    if (!d) return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    for (int i = 0; i < r->devices && !err; i++) {
        err = dpl_device_open(&d[i].device, r->device[i], why);
        if (!err) err = dpl_stream_create(d[i].device, &d[i].stream, "compute", why);
        for (int k = 0; k < 2 && !err; k++) err = dpl_event_create(d[i].device, &d[i].done[k], why);
    }
    return dpt_exit_of(err);
}

static int sync_all(sim_device *d, int n, dpl_text *why)
{
    for (int i = 0; i < n; i++)
        if (dpl_stream_sync(d[i].stream))
            return dpl_fail(why, DPT_EXIT_DEVICE, "%s: a queued step failed",
                            dpl_device_name(d[i].device));
    return DPT_EXIT_DONE;
}

/* The modelled time of one step of all devices together. */
static double step_s(const sim_device *d, int n)
{
    long long most = 0;

    for (int i = 0; i < n; i++)
        if (dpl_device_step_ns(d[i].device) > most) most = dpl_device_step_ns(d[i].device);
    return (double)most / 1e9;
}

/* Queue the steps of a batch, then let the host run one step ahead of the devices, as a trainer
 * that queues kernels does. */
static int launch(dpt_run *r, sim_device *d, const dpl_batch *b, dpl_text *why)
{
    const int turn = (int)(r->progress.step & 1);

    for (int i = 0; i < b->parts; i++) {
        if (b->part[i].n)
            dpl_stream_launch(d[i].stream, compute, NULL, dpl_device_step_ns(d[i].device));
        dpl_event_record(d[i].done[turn], d[i].stream);
    }
    for (int i = 0; i < r->devices; i++)
        if (dpl_event_sync(d[i].done[!turn]))
            return dpl_fail(why, DPT_EXIT_DEVICE, "%s: a step failed", r->device[i]);
    r->progress.step++;
    return DPT_EXIT_DONE;
}

/* The devices are busy for the modelled time of each step; the rest of the time they stand without
 * data. *began: when the first batch was there, for the first epoch: filling the pipeline once is no
 * starvation. */
static int simulate_epoch(dpt_run *r, sim_device *d, dpt_pass *pass, int64_t *began, dpl_text *why)
{
    const double busy = step_s(d, r->devices);
    void *streams[256];
    int64_t last = *began;
    int rc = DPT_EXIT_DONE;

    for (int i = 0; i < r->devices; i++) streams[i] = d[i].stream;
    dpt_report_begin(r->report, pass);
    while (!rc && !dpt_loop_steps_done(r)) {
        dpt_sums sums = { 0 };
        double time = busy; /* the end of the first step is not seen before the second */
        dpl_batch b;
        const int err = dpt_loop_next(r, r->train, streams, &b, pass);
        int64_t now;

        if (err == DPL_EOF || err == DPL_ECANCELED) break;
        if (err) return dpt_loop_data_error(r, r->train, err, why);
        if (!r->progress.step) *began = dpl_now_ns();
        rc = launch(r, d, &b, why);
        now = dpl_now_ns();
        sums.n = b.n;
        if (pass->steps) time = (double)(now - last) / 1e9;
        dpt_pass_step(pass, &sums, b.planned, time, time > busy ? time - busy : 0, busy);
        last = now;
        dpl_release(r->train, &b, streams);
        dpt_loop_name_bad(r, r->train, &r->named_train);
        dpt_report_step(r->report, pass);
    }
    return rc;
}

/* The last steps are still queued when the loop ends; their time belongs to the epoch. */
static int finish_epoch(dpt_run *r, sim_device *d, dpt_pass *pass, int64_t began, dpl_text *why)
{
    const double busy = (double)pass->steps * step_s(d, r->devices);
    char a[32], b[32], most[64] = "";
    int rc = sync_all(d, r->devices, why);

    if (rc) return rc;
    pass->time = (double)(dpl_now_ns() - began) / 1e9;
    pass->wait = pass->time > busy ? pass->time - busy : 0;
    pass->compute = busy;
    if (busy > 0)
        snprintf(most, sizeof most, " (%.0f without waiting)", (double)pass->images_here / busy);
    dpt_report_result(r->report,
                      "epoch %lld/%lld (simulated): %s images in %s, %.0f images/s%s, waiting for "
                      "data %.1f %% of the time",
                      (long long)pass->epoch + 1, (long long)pass->epochs,
                      dpt_format_count(a, (uint64_t)pass->images_here),
                      dpt_format_seconds(b, pass->time), dpt_pass_rate(pass), most,
                      100 * dpt_pass_wait_share(pass));
    r->last_train = *pass;
    return DPT_EXIT_DONE;
}

int dpt_loop_simulate(dpt_run *r, dpl_text *why)
{
    sim_device *d = NULL;
    int rc = open_devices(r, &d, why);

    for (int e = 0; !rc && e < r->opt->epochs && !dpt_loop_steps_done(r); e++) {
        int64_t began = dpl_now_ns();
        dpt_pass pass;

        dpt_loop_train_pass(r, &pass);
        pass.kind = DPT_PASS_SIM;
        rc = simulate_epoch(r, d, &pass, &began, why);
        dpt_report_wipe(r->report);
        if (!rc && pass.steps) rc = finish_epoch(r, d, &pass, began, why);
        if (dpt_interrupt_signal()) break;
        r->progress.epoch++;
    }
    if (d) sync_all(d, r->devices, NULL);
    dpt_run_note_stats(r);
    dpl_close(&r->train); /* its copies wait on these streams */
    close_devices(d, r->devices);
    if (!rc && dpt_interrupt_signal()) rc = dpt_interrupt_fail(why);
    return rc;
}
