/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of training: next batch, one step over all devices, count, log. */
#include "base/clock.h"
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <math.h>
#include <string.h>

enum { WAIT_MS = 100, MAX_DEVICES = 256 };

int dpt_loop_next(dpt_run *r, dpl_loader *l, void *const *streams, dpl_batch *b,
                  const dpt_pass *pass)
{
    for (;;) {
        int rc;

        if (dpt_interrupt_signal()) return DPL_ECANCELED;
        rc = dpl_next_on(l, b, streams, WAIT_MS);
        if (rc != DPL_ETIMEOUT) return rc;
        dpt_report_tick(r->report, pass);
    }
}

void dpt_loop_name_bad(dpt_run *r, dpl_loader *l, uint64_t *named)
{
    dpl_bad bad;

    for (; dpl_bad_get(l, *named, &bad) == DPL_OK; ++*named)
        dpt_report_note(r->report, "dptrain: %s: %s: %s",
                        bad.kind == DPL_BAD_REFUSED ? "refused" : "used, but damaged", bad.path,
                        bad.reason);
}

int dpt_loop_data_error(dpt_run *r, dpl_loader *l, int status, dpl_text *why)
{
    dpt_loop_name_bad(r, l, l == r->train ? &r->named_train : &r->named_val);
    return dpl_fail(why, dpt_exit_of(status), "%s", dpl_error_text(l));
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

/* The step is done: where a checkpoint of this moment goes on. */
static void advance(dpt_run *r, const dpt_pass *pass, const dpl_batch *b, int stepped)
{
    dpt_progress *p = &r->progress;

    p->sample = b->first + (uint64_t)b->planned;
    p->step += stepped;
    r->batches_tracked += stepped;
    p->train_loss = pass->total.loss;
    p->train_top1 = pass->total.top1;
    p->train_top5 = pass->total.top5;
    p->train_n = pass->total.n;
}

static int diverged(const dpt_run *r, const dpt_sums *sums, const dpt_pass *pass, dpl_text *why)
{
    const int kept = r->saved || r->resumed;

    return dpl_fail(
        why, DPT_EXIT_FAILED,
        "the loss is %s at step %lld (epoch %lld, lr %g): training diverged; lower --lr "
        "or use --warmup. %s%s",
        isnan(sums->loss) ? "not a number" : "infinite", (long long)r->progress.step + 1,
        (long long)pass->epoch + 1, pass->lr,
        kept ? "The last good checkpoint is kept: " : "No checkpoint had been saved yet",
        !kept      ? ""
        : r->saved ? r->folder
                   : r->opt->resume);
}

/* One optimizer step; canceled, it leaves no trace, and a resumed run makes it again. t0: when the wait for the batch began; t1: when it was there. */
static int step(dpt_run *r, dpt_pass *pass, const dpl_batch *b, int64_t t0, int64_t t1,
                dpl_text *why)
{
    dpt_team_part part[MAX_DEVICES];
    dpt_sgd sgd = { learning_rate(r, b), r->opt->momentum, r->opt->weight_decay, r->opt->nesterov,
                    r->progress.step == 0 };
    dpt_team_result result;
    int64_t t2;
    int err;

    for (int i = 0; i < b->parts; i++)
        part[i] = (dpt_team_part){ .pixels = b->part[i].pixels,
                                   .labels = b->part[i].labels,
                                   .labels2 = b->part[i].labels2,
                                   .mix = b->part[i].mix,
                                   .n = b->part[i].n };
    pass->lr = sgd.lr;
    err = dpt_team_submit(r->team,
                          &(dpt_team_step){ .part = part, .sgd = sgd, .planned = b->planned }, why);
    if (!err) err = dpt_team_collect(r->team, &result, why);
    if (err == DPL_ECANCELED) return DPT_EXIT_DONE; /* the signal ends the loop */
    if (err) return dpt_exit_of(err);
    if (!isfinite(result.sums.loss)) return diverged(r, &result.sums, pass, why);
    t2 = dpl_now_ns();
    dpt_pass_step(pass, &result.sums, b->planned, (double)(t2 - t0) / 1e9, (double)(t1 - t0) / 1e9,
                  (double)(t2 - t1) / 1e9);
    advance(r, pass, b, 1);
    if (dpt_runlog_step(&r->log, pass, r->progress.step, why)) return DPT_EXIT_FAILED;
    dpt_report_step(r->report, pass);
    return DPT_EXIT_DONE;
}

/* Every picture of the batch was refused: nothing to learn from, the position moves on. */
static void skip(dpt_run *r, dpt_pass *pass, const dpl_batch *b)
{
    pass->batch++;
    pass->images += (uint64_t)b->planned;
    advance(r, pass, b, 0);
}

static int save_is_due(const dpt_run *r, const dpt_pass *pass)
{
    return r->opt->save_freq && !dpt_interrupt_signal() &&
           (uint64_t)r->progress.step % r->opt->save_freq == 0 &&
           pass->batch < pass->batches; /* a signal and the end of the epoch save anyway */
}

static void end_epoch(dpt_run *r)
{
    r->progress.epoch++;
    r->progress.sample = 0;
    r->progress.evaluated = 0;
}

int dpt_loop_train(dpt_run *r, dpt_pass *pass, dpl_text *why)
{
    int rc = DPT_EXIT_DONE;

    dpt_report_begin(r->report, pass);
    while (!rc && !dpt_interrupt_signal() && !dpt_loop_steps_done(r)) {
        const int64_t t0 = dpl_now_ns();
        dpl_batch b;
        const int err = dpt_loop_next(r, r->train, NULL, &b, pass);

        if (err == DPL_EOF || err == DPL_ECANCELED) break;
        if (err) {
            rc = dpt_loop_data_error(r, r->train, err, why);
            break;
        }
        if (b.n)
            rc = step(r, pass, &b, t0, dpl_now_ns(), why);
        else
            skip(r, pass, &b);
        dpl_release(r->train, &b, NULL);
        dpt_loop_name_bad(r, r->train, &r->named_train);
        if (!rc && save_is_due(r, pass)) rc = dpt_run_save(r, why);
    }
    if (!rc && pass->batch == pass->batches) end_epoch(r);
    dpt_report_wipe(r->report);
    return rc;
}
