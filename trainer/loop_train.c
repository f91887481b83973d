/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of training: next batch, one step over all devices, and, when the devices have done it,
 * count and log. Up to dpt_team_depth() steps are under way, so that a device has the next one while
 * the host waits for data; what belongs to a step waits here until its results are there. */
#include "base/clock.h"
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { WAIT_MS = 100, MAX_DEPTH = 8 };

/* A step that was submitted and is not collected yet. */
typedef struct flight {
    uint64_t first; /* of its batch, as in dpl_batch */
    int planned;
    double lr;
    double wait; /* seconds that the host waited for its batch */
} flight;

/* A step's time is what passes from the moment the step before it was collected to its own: so times
 * add up to the time of the pass, whatever the depth. With none under way it begins when the host
 * asks for the batch. Of that time, a device stands without data what it is not at work, when it can
 * tell; else the host's wait for the batch stands for it, which is exact at depth 1, and an upper
 * bound when other steps are under way meanwhile. */
typedef struct pipeline {
    dpt_run *run;
    dpt_pass *pass;
    flight step[MAX_DEPTH]; /* a ring */
    int oldest, n;
    int64_t mark; /* where the time of the next step to be collected begins */
} pipeline;

int dpt_loop_stopping(const dpt_run *r)
{
    return r->world > 1 ? r->stopping : dpt_interrupt_signal() != 0;
}

int dpt_loop_next(dpt_run *r, dpl_loader *l, void *const *streams, dpl_batch *b,
                  const dpt_pass *pass)
{
    for (;;) {
        int rc;

        if (r->world == 1 && dpt_interrupt_signal()) return DPL_ECANCELED;
        rc = dpl_next_on(l, b, streams, WAIT_MS);
        if (rc != DPL_ETIMEOUT) return rc;
        dpt_report_tick(r->report, pass);
    }
}

void dpt_loop_name_bad(dpt_run *r, dpl_loader *l, uint64_t *named)
{
    dpl_text reason;
    dpl_bad bad;

    for (; dpl_bad_get(l, *named, &bad) == DPL_OK; ++*named)
        dpt_report_note(r->report, "dptrain: %s: %s: %s",
                        bad.kind == DPL_BAD_REFUSED ? "refused" : "used, but damaged", bad.path,
                        dpt_cli_words(&reason, bad.reason));
}

int dpt_loop_data_error(dpt_run *r, dpl_loader *l, int status, dpl_text *why)
{
    dpt_loop_name_bad(r, l, l == r->train ? &r->named_train : &r->named_val);
    return dpt_cli_loader_failed(dpt_exit_of(status), status, l, why);
}

int dpt_loop_steps_done(const dpt_run *r)
{
    return r->opt->steps && (uint64_t)r->progress.step >= r->opt->steps;
}

static double learning_rate(const dpt_run *r, const dpl_batch *b)
{
    const dpt_options *o = r->opt;
    const dpt_schedule s = { .kind = (dpt_schedule_kind)o->sched,
                             .lr = o->lr,
                             .epochs = o->epochs,
                             .step_size = o->step_size,
                             .gamma = o->gamma,
                             .warmup = o->warmup,
                             .warmup_start = 0.01,
                             .min_lr = 0 };

    return dpt_schedule_lr(&s, (int64_t)b->epoch, (double)b->index / (double)r->train_info.batches);
}

void dpt_loop_train_pass(const dpt_run *r, dpt_pass *pass)
{
    const dpt_progress *p = &r->progress;

    memset(pass, 0, sizeof *pass);
    pass->kind = DPT_PASS_TRAIN;
    pass->epoch = p->epoch;
    pass->epochs = r->opt->epochs;
    pass->batches = r->train_info.batches;
    pass->images_all = r->train_info.samples - r->train_info.dropped;
    pass->batch = p->sample / (uint64_t)r->opt->load.batch;
    pass->images = p->sample;
    pass->total = (dpt_sums){ p->train_loss, p->train_top1, p->train_top5, p->train_n };
}

/* The batch is behind us: where a checkpoint of this moment goes on. */
static void advance(dpt_run *r, const dpt_pass *pass, const flight *f, int stepped)
{
    dpt_progress *p = &r->progress;

    p->sample = f->first + (uint64_t)f->planned;
    p->step += stepped;
    r->batches_tracked += stepped;
    p->train_loss = pass->total.loss;
    p->train_top1 = pass->total.top1;
    p->train_top5 = pass->total.top5;
    p->train_n = pass->total.n;
}

/* Every picture of the batch was refused: nothing to learn from, the position moves on. */
static void skip(dpt_run *r, dpt_pass *pass, const flight *f)
{
    pass->batch++;
    pass->images += (uint64_t)f->planned;
    advance(r, pass, f, 0);
}

static int diverged(const dpt_run *r, const dpt_sums *sums, const dpt_pass *pass, dpl_text *why)
{
    const char *kept = r->saved ? r->folder : r->resumed ? r->opt->resume : NULL;

    dpl_fail(
        why, 0,
        "the loss is %s at step %lld (epoch %lld, lr %g): training diverged; lower --lr or use "
        "--warmup",
        isnan(sums->loss) ? "not a number" : "infinite", (long long)r->progress.step + 1,
        (long long)pass->epoch + 1, pass->lr);
    if (!r->rank) {
        const dpl_text found = *why;
        dpl_fail(why, 0, "%s. %s%s", found.s,
                 kept ? "The last good checkpoint is kept: " : "No checkpoint had been saved yet",
                 kept ? kept : "");
    }
    return DPT_EXIT_FAILED;
}

/* The oldest step under way: wait until it is done, count and log it. */
static int collect(pipeline *l, dpl_text *why)
{
    dpt_run *r = l->run;
    dpt_pass *pass = l->pass;
    const flight f = l->step[l->oldest];
    dpt_team_result result;
    double time, wait;
    int64_t now;
    int err = dpt_team_collect(r->team, &result, why);

    l->oldest = (l->oldest + 1) % MAX_DEPTH;
    l->n--;
    if (err) return dpt_exit_of(err);
    r->stopping |= result.stop;
    now = dpl_now_ns();
    time = (double)(now - l->mark) / 1e9;
    l->mark = now;
    if (!result.sums.n) {
        skip(r, pass, &f);
        return DPT_EXIT_DONE;
    }
    pass->lr = f.lr;
    if (!isfinite(result.sums.loss)) return diverged(r, &result.sums, pass, why);
    wait = result.busy_s > 0 ? fmax(0, time - result.busy_s) : f.wait;
    dpt_pass_step(pass, &result.sums, f.planned, time, wait, time - wait);
    advance(r, pass, &f, 1);
    if (dpt_runlog_step(&r->log, pass, r->progress.step, why)) return DPT_EXIT_FAILED;
    dpt_report_step(r->report, pass);
    return DPT_EXIT_DONE;
}

static int drain(pipeline *l, dpl_text *why)
{
    int rc = DPT_EXIT_DONE;

    while (!rc && l->n) rc = collect(l, why);
    return rc;
}

/* Hand in one optimizer step. Canceled, it leaves no trace, and a resumed run makes it again. wait:
 * seconds that the host waited for the batch. */
static int submit(pipeline *l, const dpl_batch *b, double wait, dpl_text *why)
{
    const dpt_run *r = l->run;
    dpt_team_part part[DPT_LOOP_PARTS];
    const flight f = { b->first, b->planned, learning_rate(r, b), wait };
    dpt_team_step s = { .part = part,
                        .update = dpt_cli_update(r->opt),
                        .planned = b->planned,
                        .stop = r->world > 1 && dpt_interrupt_signal() };
    int err;

    s.update.lr = f.lr;
    s.update.first = r->progress.step + l->n == 0;
    dpt_loop_parts(b, part);
    err = dpt_team_submit(r->team, &s, why);
    if (err == DPL_ECANCELED && r->world == 1) return DPT_EXIT_DONE; /* the signal ends the loop */
    if (err) return dpt_exit_of(err);
    l->step[(l->oldest + l->n++) % MAX_DEPTH] = f;
    return DPT_EXIT_DONE;
}

/* A batch without a picture is no step when this process has all of it. Else the others may have some
 * of theirs: every process makes every step. */
static int take(pipeline *l, const dpl_batch *b, double wait, dpl_text *why)
{
    const flight f = { .first = b->first, .planned = b->planned };
    int rc;

    if (b->n || l->run->world > 1) return submit(l, b, wait, why);
    rc = drain(l, why); /* batches are counted in order */
    if (!rc) skip(l->run, l->pass, &f);
    return rc;
}

/* When the steps under way are done. A stop and the end of the epoch save anyway. */
static int save_is_due(const pipeline *l)
{
    const dpt_run *r = l->run;
    const uint64_t steps = (uint64_t)(r->progress.step + l->n);

    return r->opt->save_freq && !dpt_loop_stopping(r) && steps % r->opt->save_freq == 0 &&
           l->pass->batch + (uint64_t)l->n < l->pass->batches;
}

/* With the steps under way. */
static int steps_submitted(const pipeline *l)
{
    const dpt_run *r = l->run;

    return r->opt->steps && (uint64_t)(r->progress.step + l->n) >= r->opt->steps;
}

/* One turn: the next batch into the pipeline, and out of it what has to be done before the one after
 * that. *end: nothing more is to come. */
static int turn(pipeline *l, int *end, dpl_text *why)
{
    dpt_run *r = l->run;
    void *const *streams = dpt_team_streams(r->team);
    const int64_t t0 = dpl_now_ns();
    dpl_batch b;
    int rc, err;

    if (!l->n) l->mark = t0;
    err = dpt_loop_next(r, r->train, streams, &b, l->pass);
    if (err == DPL_EOF || err == DPL_ECANCELED) {
        *end = 1;
        return DPT_EXIT_DONE;
    }
    if (err) {
        rc = drain(l, why);
        return rc ? rc : dpt_loop_data_error(r, r->train, err, why);
    }
    rc = take(l, &b, (double)(dpl_now_ns() - t0) / 1e9, why);
    dpl_release(r->train, &b, streams);
    dpt_loop_name_bad(r, r->train, &r->named_train);
    while (!rc && l->n >= dpt_team_depth(r->team)) rc = collect(l, why);
    if (!rc && (save_is_due(l) || steps_submitted(l))) rc = drain(l, why);
    if (!rc && !l->n && save_is_due(l)) rc = dpt_run_save(r, why);
    return rc;
}

static void end_epoch(dpt_run *r)
{
    r->progress.epoch++;
    r->progress.sample = 0;
    r->progress.evaluated = 0;
}

int dpt_loop_train(dpt_run *r, dpt_pass *pass, dpl_text *why)
{
    pipeline l = { .run = r, .pass = pass };
    int rc = DPT_EXIT_DONE, end = 0;

    assert(dpt_team_depth(r->team) <= MAX_DEPTH);
    dpt_report_begin(r->report, pass);
    while (!rc && !end && !dpt_loop_stopping(r) && !dpt_loop_steps_done(r))
        rc = turn(&l, &end, why);
    if (!rc) rc = drain(&l, why);
    if (!rc && pass->batch == pass->batches) end_epoch(r);
    dpt_report_wipe(r->report);
    return rc;
}
