/* SPDX-License-Identifier: Apache-2.0 */
/* --json: the results of a run as one object. */
#include "base/clock.h"
#include "base/json_out.h"
#include "trainer/run.h"

static void write_pass(dpl_json *j, const char *key, const dpt_pass *p)
{
    if (!p->batch) return;
    dpl_json_object(j, key);
    dpl_json_int(j, "images", p->total.n);
    if (p->kind != DPT_PASS_SIM) {
        dpl_json_number(j, "loss", dpt_mean_loss(&p->total));
        dpl_json_number(j, "top1", dpt_percent(p->total.top1, p->total.n));
        dpl_json_number(j, "top5", dpt_percent(p->total.top5, p->total.n));
    }
    dpl_json_number(j, "images_per_s", dpt_pass_rate(p));
    dpl_json_number(j, "wait_share", dpt_pass_wait_share(p));
    dpl_json_number(j, "seconds", p->time);
    dpl_json_end(j);
}

void dpt_run_note_stats(dpt_run *r)
{
    r->train_stats.size = sizeof r->train_stats;
    r->val_stats.size = sizeof r->val_stats;
    if (r->train) dpl_stats_get(r->train, &r->train_stats);
    if (r->val) dpl_stats_get(r->val, &r->val_stats);
}

static void write_loader(dpl_json *j, const char *key, const dpl_stats *s)
{
    if (!s->workers) return; /* was not open */
    dpl_json_object(j, key);
    dpl_json_uint(j, "images", s->images);
    dpl_json_uint(j, "refused", s->bad);
    dpl_json_uint(j, "warned", s->warned);
    dpl_json_uint(j, "bytes_read", s->bytes_read);
    dpl_json_number(j, "wait_s", s->wait_s);
    dpl_json_number(j, "worker_busy_s", s->read_s + s->decode_s + s->augment_s);
    dpl_json_number(j, "worker_read_wait_s", s->read_wait_s);
    dpl_json_number(j, "worker_starved_s", s->starved_s);
    dpl_json_number(j, "worker_blocked_s", s->blocked_s);
    dpl_json_int(j, "workers", s->workers);
    dpl_json_end(j);
}

void dpt_run_result(const dpt_run *r, int code, FILE *out)
{
    dpl_json j;

    dpl_json_begin(&j, out);
    dpl_json_object(&j, NULL);
    dpl_json_string(&j, "schema", "dptrain-result/1");
    dpl_json_string(&j, "version", DPL_VERSION);
    dpl_json_int(&j, "exit", code);
    dpl_json_string(&j, "devices", r->device_text);
    dpl_json_bool(&j, "simulated", r->sim);
    dpl_json_int(&j, "processes", r->world);
    dpl_json_int(&j, "batch", r->opt->load.batch);
    dpl_json_int(&j, "epochs", r->progress.epoch);
    dpl_json_int(&j, "steps", r->progress.step);
    dpl_json_number(&j, "seconds", (double)(dpl_now_ns() - r->started_ns) / 1e9);
    write_pass(&j, "train", &r->last_train);
    write_pass(&j, "val", &r->last_val);
    if (r->progress.best_epoch >= 0 && r->graph) {
        dpl_json_number(&j, "best_top1", r->progress.best_top1);
        dpl_json_int(&j, "best_epoch", r->progress.best_epoch);
    }
    write_loader(&j, "train_loader", &r->train_stats);
    write_loader(&j, "val_loader", &r->val_stats);
    dpl_json_string(&j, "output", r->folder);
    dpl_json_end(&j);
    fputc('\n', out);
}
