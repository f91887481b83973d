/* SPDX-License-Identifier: Apache-2.0 */
/* log.csv and log.jsonl: appending, and cutting what a resumed run will write again. */
#include "trainer/runlog.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/json_out.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The first columns are those of timm's summary.csv. */
static const char header[] = "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,train_top1,"
                             "train_top5,images,seconds,images_per_second,wait_share,refused,"
                             "warned,steps\n";

/* 1 = this line of log.jsonl belongs to what the checkpoint holds. */
static int keep_object(const char *line, const dpt_progress *at)
{
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const int64_t evaluated = at->epoch - (at->evaluated ? 0 : 1); /* epochs with an evaluation */
    const json_t *epoch = json_object_get(o, "epoch"), *step = json_object_get(o, "step");
    int keep = json_is_integer(epoch) && json_is_integer(step); /* a cut line is neither */

    if (keep && json_object_get(o, "val.loss"))
        keep = json_integer_value(epoch) < evaluated;
    else if (keep)
        keep = json_integer_value(step) <= at->step;
    json_decref(o);
    return keep;
}

static int keep_row(const char *line, const dpt_progress *at)
{
    char *end;
    const long long epoch = strtoll(line, &end, 10);

    return end != line && *end == ',' && line[strlen(line) - 1] == '\n' &&
           epoch < at->epoch - (at->evaluated ? 0 : 1);
}

/* Rewrite a log with only the lines that are to stay. A log that is not there stays so. */
static int cut(const char *path, int is_csv, const dpt_progress *at, dpl_text *why)
{
    FILE *f = fopen(path, "re");
    dpl_replace out = { 0 };
    char *line = NULL;
    size_t cap = 0;
    int err;

    if (!f && errno == ENOENT) return DPL_OK;
    if (!f) return dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
    if ((err = dpl_replace_open(&out, path, why))) goto done;
    if (is_csv) fputs(header, out.f);
    while (getline(&line, &cap, f) > 0)
        if (is_csv ? keep_row(line, at) : keep_object(line, at)) fputs(line, out.f);
    if (ferror(f)) {
        err = dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
        goto done;
    }
    err = dpl_replace_commit(&out, why);
done:
    dpl_replace_abort(&out);
    free(line);
    fclose(f);
    return err;
}

static int open_log(FILE **out, const char *folder, const char *name, const dpt_progress *at,
                    dpl_text *why)
{
    char *path = dpl_path_join(folder, name);
    int err = DPL_OK;

    if (!path) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    if (at) err = cut(path, !strcmp(name, "log.csv"), at, why);
    if (!err && !(*out = fopen(path, at ? "ae" : "we")))
        err = dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
    free(path);
    return err;
}

int dpt_runlog_open(dpt_runlog *l, const char *folder, const dpt_progress *at, dpl_text *why)
{
    int err;

    memset(l, 0, sizeof *l);
    if (!(l->folder = dpl_strdup(folder))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    if ((err = open_log(&l->csv, folder, "log.csv", at, why))) goto fail;
    if ((err = open_log(&l->jsonl, folder, "log.jsonl", at, why))) goto fail;
    fseek(l->csv, 0, SEEK_END);
    if (ftell(l->csv) == 0) fputs(header, l->csv);
    if (fflush(l->csv)) {
        err = dpl_fail(why, DPL_EIO, "%s/log.csv: %s", folder, strerror(errno));
        goto fail;
    }
    return DPL_OK;
fail:
    dpt_runlog_close(l, NULL);
    return err;
}

int dpt_runlog_close(dpt_runlog *l, dpl_text *why)
{
    int err = DPL_OK;

    if (l->csv && fclose(l->csv))
        err = dpl_fail(why, DPL_EIO, "%s/log.csv: %s", l->folder, strerror(errno));
    if (l->jsonl && fclose(l->jsonl))
        err = dpl_fail(why, DPL_EIO, "%s/log.jsonl: %s", l->folder, strerror(errno));
    free(l->folder);
    memset(l, 0, sizeof *l);
    return err;
}

/* End a line; a log that cannot be written ends the run, loudly. */
static int end_line(dpt_runlog *l, FILE *f, const char *name, dpl_text *why)
{
    if (f == l->jsonl) fputc('\n', f);
    if (fflush(f) || ferror(f))
        return dpl_fail(why, DPL_EIO, "%s/%s: %s", l->folder, name, strerror(errno));
    return DPL_OK;
}

int dpt_runlog_step(dpt_runlog *l, const dpt_pass *p, int64_t step, dpl_text *why)
{
    dpl_json j;

    if (!l->jsonl) return DPL_OK;
    dpl_json_begin(&j, l->jsonl);
    dpl_json_object(&j, NULL);
    dpl_json_int(&j, "epoch", p->epoch);
    dpl_json_uint(&j, "batch", p->batch - 1);
    dpl_json_int(&j, "step", step);
    dpl_json_int(&j, "train.images", p->last.n);
    dpl_json_number(&j, "train.loss", dpt_mean_loss(&p->last));
    dpl_json_number(&j, "train.top1", dpt_percent(p->last.top1, p->last.n));
    dpl_json_number(&j, "train.lr", p->lr);
    dpl_json_number(&j, "train.total_ips", p->last_time > 0 ? (double)p->last.n / p->last_time : 0);
    dpl_json_number(&j, "train.data_time", p->last_wait);
    dpl_json_number(&j, "train.compute_time", p->last_time - p->last_wait);
    dpl_json_end(&j);
    return end_line(l, l->jsonl, "log.jsonl", why);
}

int dpt_runlog_eval(dpt_runlog *l, const dpt_pass *val, int64_t step, dpl_text *why)
{
    dpl_json j;

    if (!l->jsonl) return DPL_OK;
    dpl_json_begin(&j, l->jsonl);
    dpl_json_object(&j, NULL);
    dpl_json_int(&j, "epoch", val->epoch);
    dpl_json_int(&j, "step", step);
    dpl_json_int(&j, "val.images", val->total.n);
    dpl_json_number(&j, "val.loss", dpt_mean_loss(&val->total));
    dpl_json_number(&j, "val.top1", dpt_percent(val->total.top1, val->total.n));
    dpl_json_number(&j, "val.top5", dpt_percent(val->total.top5, val->total.n));
    dpl_json_number(&j, "val.total_ips", dpt_pass_rate(val));
    dpl_json_end(&j);
    return end_line(l, l->jsonl, "log.jsonl", why);
}

int dpt_runlog_epoch(dpt_runlog *l, const dpt_epoch_row *row, dpl_text *why)
{
    const dpt_pass *t = row->train;
    const dpt_sums *v = &row->val->total;

    if (!l->csv) return DPL_OK;
    fprintf(l->csv, "%lld,%.9g,", (long long)t->epoch, dpt_mean_loss(&t->total));
    if (row->val->batch)
        fprintf(l->csv, "%.9g,%.6g,%.6g,", dpt_mean_loss(v), dpt_percent(v->top1, v->n),
                dpt_percent(v->top5, v->n));
    else
        fputs(",,,", l->csv);
    fprintf(l->csv, "%.9g,%.6g,%.6g,%lld,%.3f,%.2f,%.4f,%llu,%llu,%lld\n", t->lr,
            dpt_percent(t->total.top1, t->total.n), dpt_percent(t->total.top5, t->total.n),
            (long long)t->total.n, row->seconds, dpt_pass_rate(t), dpt_pass_wait_share(t),
            (unsigned long long)row->refused, (unsigned long long)row->warned,
            (long long)row->step);
    return end_line(l, l->csv, "log.csv", why);
}
