/* SPDX-License-Identifier: Apache-2.0 */
/* The first lines of a run: what was understood, in words. */
#include "base/cpu.h"
#include "base/thread.h"
#include "trainer/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *plural(long long n)
{
    return n == 1 ? "" : "s";
}

/* snprintf behind what is in buf already; what does not fit is left out. */
static void add(char *buf, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *buf, size_t len, const char *format, ...)
{
    const size_t at = strlen(buf);
    va_list ap;

    va_start(ap, format);
    vsnprintf(buf + at, len - at, format, ap);
    va_end(ap);
}

/* "cuda:0, cuda:1), batch 64 per step: each GPU gets 32 of the global batch" */
static void add_gpus(const dpt_run *r, char *s, size_t len)
{
    const int gpus = r->devices * r->world;
    int same = r->opt->load.batch % gpus == 0;

    for (int i = 0; i < r->devices; i++) {
        add(s, len, "%s%s", i ? ", " : "", r->device[i]);
        if (r->part[i] != r->part[0]) same = 0;
    }
    if (r->world > 1) add(s, len, "; one of %d processes, %d GPUs in all", r->world, gpus);
    add(s, len, "), batch %d per step: ", r->opt->load.batch);
    if (same) {
        add(s, len, "each GPU gets %d of the global batch", r->part[0]);
        return;
    }
    add(s, len, "of the global batch %s ", r->world > 1 ? "these GPUs get" : "the GPUs get");
    for (int i = 0; i < r->devices; i++) add(s, len, "%s%d", i ? " + " : "", r->part[i]);
}

/* "2 loader threads, 2 devices (cpu, cpu; 1 compute thread each), batch 64 per step = 32 + 32" */
static void line_split(const dpt_run *r, const dpl_info *info)
{
    char s[4096] = "";
    const int same =
        !r->team || dpt_team_threads(r->team, 0) == dpt_team_threads(r->team, r->devices - 1);

    add(s, sizeof s, "%d loader thread%s", info->workers, plural(info->workers));
    if (info->readers) add(s, sizeof s, " + %d that read", info->readers);
    add(s, sizeof s, ", %d %s%s (", r->devices, r->cuda ? "GPU" : "device", plural(r->devices));
    if (r->cuda) {
        add_gpus(r, s, sizeof s);
        dpt_report_note(r->report, "%s", s);
        return;
    }
    for (int i = 0; i < r->devices; i++) add(s, sizeof s, "%s%s", i ? ", " : "", r->device[i]);
    if (r->team && same) {
        const int t = dpt_team_threads(r->team, 0);
        add(s, sizeof s, "; %d compute thread%s%s", t, plural(t), r->devices > 1 ? " each" : "");
    } else if (r->team) {
        add(s, sizeof s, "; compute threads ");
        for (int i = 0; i < r->devices; i++)
            add(s, sizeof s, "%s%d", i ? " + " : "", dpt_team_threads(r->team, i));
    }
    add(s, sizeof s, "), batch %d per step", r->opt->load.batch);
    for (int i = 0; r->devices > 1 && i < r->devices; i++)
        add(s, sizeof s, "%s%d", i ? " + " : " = ", r->part[i]);
    dpt_report_note(r->report, "%s", s);
}

static void line_data(const dpt_run *r, const char *what, const char *path, const dpl_info *d)
{
    char a[32], names[512] = "";
    int named = 0;

    for (; named < d->classes && strlen(names) < 60; named++)
        add(names, sizeof names, "%s%s", named ? ", " : "", d->class_names[named]);
    dpt_report_note(r->report, "%s %s: %s picture%s, %d class%s (%s%s)", what, path,
                    dpt_format_count(a, d->samples), plural((long long)d->samples), d->classes,
                    d->classes == 1 ? "" : "es", names, named < d->classes ? ", …" : "");
    if (d->ignored_files)
        dpt_report_note(
            r->report, "%s %s: %llu file%s ignored that %s no picture by name, such as %s", what,
            path, (unsigned long long)d->ignored_files, plural((long long)d->ignored_files),
            d->ignored_files == 1 ? "is" : "are", d->ignored_example ? d->ignored_example : "?");
    if (d->index_text) dpt_report_note(r->report, "%s %s: index %s", what, path, d->index_text);
    if (d->dropped)
        dpt_report_note(r->report, "%s %s: --drop-last leaves out %llu pictures of each epoch",
                        what, path, (unsigned long long)d->dropped);
}

/* Classes without a validation picture: not an error, but worth knowing. */
static void line_missing(const dpt_run *r)
{
    char names[512] = "";
    int missing = 0;

    for (int i = 0; i < r->val_info.classes; i++) {
        if (r->val_info.class_counts[i]) continue;
        if (missing++ < 8)
            add(names, sizeof names, "%s%s", *names ? ", " : "", r->val_info.class_names[i]);
    }
    if (missing)
        dpt_report_note(r->report, "val %s: no pictures of %d of %d classes: %s%s", r->val_path,
                        missing, r->val_info.classes, names, missing > 8 ? ", …" : "");
}

static void line_model(const dpt_run *r)
{
    const dpt_graph *g = r->graph;
    const char *by = dpl_cpu_name(dpl_cpu_flags());
    char a[32];
    int fallback;

    if (r->cuda) by = dpt_team_describe(r->team, 0, &fallback); /* how many, in which numbers */
    dpt_report_note(r->report,
                    "model: %s parameters, input 3 x %d x %d, %d classes, backend %s (%s)",
                    dpt_format_count(a, g->param_floats), r->opt->size, r->opt->size, g->classes,
                    dpt_run_backend_name(r), by ? by : "?");
    if (r->cuda && !dpt_run_bytes(r))
        dpt_report_detail(r->report, "pictures reach the GPUs as floats, not bytes: --mixup and "
                                     "--random-erase change normalised pixels");
}

static void lines_memory(const dpt_run *r, const char *what, const dpl_info *d)
{
    char a[32], b[32], c[32], e[32];

    dpt_report_detail(
        r->report,
        "memory: %s loader %s slots + %s scratch (%d threads) + %s read ahead + %s index", what,
        dpt_format_bytes(a, (double)d->slot_bytes),
        dpt_format_bytes(b, (double)d->scratch_bytes * d->workers), d->workers,
        dpt_format_bytes(e, (double)d->read_ahead_bytes),
        dpt_format_bytes(c, (double)d->index_bytes));
}

static void lines_verbose(const dpt_run *r)
{
    const char *why = "";
    const int cores = dpl_cpus_usable(&why);
    const int two = r->opt->opt == DPT_RULE_ADAMW; /* arrays beside the weights */
    char a[32], b[32];

    dpt_report_detail(r->report, "cores: %d usable (%s)", cores, why);
    if (r->train) lines_memory(r, "train", &r->train_info);
    if (r->val) lines_memory(r, "val", &r->val_info);
    if (!r->graph) return;
    dpt_report_detail(r->report, "memory: weights, %s and buffers %s, gradients %s per device",
                      two ? "moments" : "momentum",
                      dpt_format_bytes(a, 4.0 * ((two ? 3 : 2) * (double)r->graph->param_floats +
                                                 (double)r->graph->buffer_floats)),
                      dpt_format_bytes(b, 4.0 * (double)r->graph->param_floats));
    if (!r->report->verbose) return;
    for (int i = 0;; i++) {
        int fallback = 0;
        const char *line = dpt_team_describe(r->team, i, &fallback);

        if (!line) break;
        dpt_report_detail(r->report, "%s%s", line, fallback ? " (slow reference code)" : "");
    }
}

static void line_plan(const dpt_run *r)
{
    const dpt_options *o = r->opt;
    char optim[256];

    dpt_cli_optim_text(o, optim, sizeof optim);
    dpt_report_note(r->report, "train: %d epoch%s of %llu step%s, %s, seed %llu", o->epochs,
                    plural(o->epochs), (unsigned long long)r->train_info.batches,
                    plural((long long)r->train_info.batches), optim,
                    (unsigned long long)o->load.seed);
    if (r->folder) dpt_report_note(r->report, "output: %s", r->folder);
}

void dpt_run_first_lines(dpt_run *r)
{
    const int cores = dpl_cpus_usable(NULL);

    line_split(r, r->train ? &r->train_info : &r->val_info);
    if (r->train)
        line_data(r, r->subsets ? "train part of" : "train", r->train_path, &r->train_info);
    if (r->val) {
        line_data(r, r->subsets ? "val part of" : "val", r->val_path, &r->val_info);
        line_missing(r);
    } else if (!r->sim) {
        dpt_report_note(r->report,
                        "val: none, so accuracy is not measured; %s--val-split 10%% sets pictures "
                        "apart for it",
                        r->listed ? "--val-list names pictures, or " : "");
    }
    if (r->sim)
        dpt_report_note(r->report,
                        "simulated devices: steps are modelled time; nothing is learned, "
                        "no model is written");
    if (r->graph) line_model(r);
    if (r->train && !r->sim) line_plan(r);
    if (r->graph && !r->cuda && r->opt->threads > cores)
        dpt_report_warn(r->report,
                        "--threads %d: more than the %d usable core%s; steps take longer",
                        r->opt->threads, cores, plural(cores));
    lines_verbose(r);
}
