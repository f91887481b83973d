/* SPDX-License-Identifier: Apache-2.0 */
/* Epoch after epoch: train, evaluate, save, write down, say; and what ends a run early. */
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <string.h>

/* One line per epoch: what it came to. */
static void summarize(dpt_run *r, const dpt_epoch_row *row, const char *note)
{
    const dpt_pass *t = row->train;
    const dpt_sums *v = &row->val->total;
    char val[160] = "", a[32];

    if (row->val->batch) {
        dpt_report_result(r->report, " *   Acc@1 %.3f Acc@5 %.3f", dpt_percent(v->top1, v->n),
                          dpt_percent(v->top5, v->n));
        snprintf(val, sizeof val, ", val loss %.4f top-1 %.2f top-5 %.2f (%lld pictures)",
                 dpt_mean_loss(v), dpt_percent(v->top1, v->n), dpt_percent(v->top5, v->n),
                 (long long)v->n);
    }
    dpt_report_result(r->report,
                      "epoch %lld/%lld%s: %s, %.1f images/s, waiting for data %.1f %%, train loss "
                      "%.4f top-1 %.2f%s; read %lld, %srefused %llu, warned %llu",
                      (long long)t->epoch + 1, (long long)t->epochs, note,
                      dpt_format_seconds(a, row->seconds), dpt_pass_rate(t),
                      100 * dpt_pass_wait_share(t), dpt_mean_loss(&t->total),
                      dpt_percent(t->total.top1, t->total.n), val, (long long)t->total.n,
                      r->world > 1 ? "of process 0: " : "", (unsigned long long)row->refused,
                      (unsigned long long)row->warned);
}

static void count_bad(const dpt_run *r, uint64_t *refused, uint64_t *warned)
{
    dpl_loader *const l[] = { r->train, r->val };

    *refused = *warned = 0;
    for (int i = 0; i < 2; i++) {
        dpl_stats s = { .size = sizeof s };

        if (!l[i]) continue;
        dpl_stats_get(l[i], &s);
        *refused += s.bad;
        *warned += s.warned;
    }
}

/* Nothing learned or nothing measured is no success, however few pictures the cap forgives. */
static int check_usable(const char *path, const dpt_pass *p, uint64_t samples, dpl_text *why)
{
    if (p->total.n || p->batch < p->batches) return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_DATA,
                    "%s: none of the %llu picture%s can be used; `dpload check` tells why", path,
                    (unsigned long long)samples, samples == 1 ? "" : "s");
}

static void start_val_pass(const dpt_run *r, int64_t epoch, dpt_pass *val)
{
    memset(val, 0, sizeof *val);
    val->kind = DPT_PASS_TEST;
    val->epoch = epoch;
    val->epochs = r->opt->epochs;
    val->batches = r->val_info.batches;
    val->images_all = r->val_info.samples;
}

/* Evaluate behind a trained pass, write the epoch down, save. partial: --steps ended it half way.
 * finished: 1 when all of that was done, 0 when it failed or a signal came. */
static int finish_epoch(dpt_run *r, const dpt_pass *train, int partial, int *finished,
                        dpl_text *why)
{
    dpt_progress *p = &r->progress;
    dpt_pass val;
    dpt_epoch_row row = { .train = train, .val = &val, .step = p->step };
    double top1;
    int rc;

    *finished = 0;
    start_val_pass(r, train->epoch, &val);
    if (r->val) {
        if ((rc = dpt_loop_evaluate(r, &val, why)) || dpt_loop_stopping(r)) return rc;
        if ((rc = check_usable(r->val_path, &val, r->val_info.samples, why))) return rc;
        if (dpt_runlog_eval(&r->log, &val, p->step, why)) return DPT_EXIT_FAILED;
    }
    row.seconds = train->time + val.time;
    count_bad(r, &row.refused, &row.warned);
    top1 = dpt_percent(val.total.top1, val.total.n);
    if (!partial) {
        p->evaluated = 1;
        p->train_loss = 0;
        p->train_n = p->train_top1 = p->train_top5 = 0;
        if (r->val && top1 > p->best_top1) {
            p->best_top1 = top1;
            p->best_epoch = train->epoch;
            if ((rc = dpt_run_save_best(r, why))) return rc;
        }
    }
    if (dpt_runlog_epoch(&r->log, &row, why)) return DPT_EXIT_FAILED;
    if ((rc = dpt_run_save(r, why))) return rc;
    r->last_train = *train;
    r->last_val = val;
    summarize(r, &row, partial ? " (ended by --steps)" : "");
    *finished = 1;
    return DPT_EXIT_DONE;
}

/* A signal, here or in another process, ended the loops: the state goes to disk. */
static int stop(dpt_run *r, dpl_text *why)
{
    const int sig = dpt_interrupt_signal();
    int rc = dpt_run_save(r, why);

    if (rc) return rc;
    if (r->rank)
        return dpl_fail(why, dpt_interrupt_exit(sig, 1), "stopped by %s",
                        sig ? dpt_interrupt_name(sig) : "a signal to another process");
    return dpl_fail(why, dpt_interrupt_exit(sig, 1),
                    "stopped by %s: checkpoint saved (epoch %lld, %llu of %llu pictures); go on "
                    "with --resume %s",
                    sig ? dpt_interrupt_name(sig) : "a signal to another process",
                    (long long)r->progress.epoch + 1, (unsigned long long)r->progress.sample,
                    (unsigned long long)r->train_info.samples, r->folder);
}

/* The data ran out of usable pictures: what was learned so far is kept. */
static int keep_and_fail(dpt_run *r, int rc)
{
    dpl_text other; /* the first failure is the one to report */

    if (rc == DPT_EXIT_DATA && r->progress.step > 0 && !dpt_run_save(r, &other))
        dpt_report_note(r->report, "checkpoint saved in %s", r->folder);
    return rc;
}

static int all_done(const dpt_run *r)
{
    const dpt_progress *p = &r->progress;

    return dpt_loop_steps_done(r) || (p->epoch >= r->opt->epochs && p->evaluated);
}

/* Where the result is, for who looks at the end of a long log. */
static void say_saved(const dpt_run *r)
{
    const dpt_progress *p = &r->progress;

    if (p->best_epoch >= 0)
        dpt_report_note(r->report,
                        "saved: %s/model.safetensors; best top-1 %.2f (epoch %lld): "
                        "%s/best.safetensors",
                        r->folder, p->best_top1, (long long)p->best_epoch + 1, r->folder);
    else
        dpt_report_note(r->report, "saved: %s/model.safetensors", r->folder);
}

int dpt_run_train(dpt_run *r, dpl_text *why)
{
    dpt_progress *p = &r->progress;
    dpt_pass pass;
    int rc = DPT_EXIT_DONE, finished = 0;

    if (all_done(r)) {
        dpt_report_note(r->report, "nothing left to do: %lld of %d epochs, %lld steps are done",
                        (long long)p->epoch, r->opt->epochs, (long long)p->step);
        return DPT_EXIT_DONE;
    }
    if (p->epoch > 0 && !p->evaluated) { /* resumed between training and its evaluation */
        dpt_loop_train_pass(r, &pass);
        pass.epoch = p->epoch - 1;
        rc = finish_epoch(r, &pass, 0, &finished, why);
    }
    while (!rc && !dpt_loop_stopping(r) && !all_done(r)) {
        finished = 0;
        dpt_loop_train_pass(r, &pass);
        rc = dpt_loop_train(r, &pass, why);
        if (!rc) rc = check_usable(r->train_path, &pass, r->train_info.samples, why);
        if (!rc && !dpt_loop_stopping(r))
            rc = finish_epoch(r, &pass, pass.batch < pass.batches, &finished, why);
    }
    if (rc) return keep_and_fail(r, rc);
    if (dpt_loop_stopping(r) && !(finished && all_done(r))) return stop(r, why);
    say_saved(r);
    return DPT_EXIT_DONE;
}

int dpt_run_evaluate(dpt_run *r, dpl_text *why)
{
    dpt_pass *val = &r->last_val;
    int rc;

    start_val_pass(r, 0, val);
    val->epochs = 1;
    if ((rc = dpt_loop_evaluate(r, val, why))) return rc;
    if (dpt_loop_stopping(r)) return dpt_interrupt_fail(why);
    if ((rc = check_usable(r->val_path, val, r->val_info.samples, why))) return rc;
    dpt_report_result(r->report, " *   Acc@1 %.3f Acc@5 %.3f",
                      dpt_percent(val->total.top1, val->total.n),
                      dpt_percent(val->total.top5, val->total.n));
    dpt_report_note(r->report, "evaluated %lld pictures, loss %.4f, %.1f images/s",
                    (long long)val->total.n, dpt_mean_loss(&val->total), dpt_pass_rate(val));
    return DPT_EXIT_DONE;
}
