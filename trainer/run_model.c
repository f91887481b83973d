/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a run: graph, weights (new or from a checkpoint), replicas, and its checkpoints. */
#include "base/alloc.h"
#include "base/clock.h"
#include "trainer/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int allocate(dpt_run *r, dpl_text *why)
{
    const size_t p = r->graph->param_floats, b = r->graph->buffer_floats;
    const int two = r->opt->opt == DPT_RULE_ADAMW; /* arrays of state */

    r->params = dpl_alloc_aligned(p, sizeof(float));
    r->momentum = dpl_alloc_aligned(p, sizeof(float));
    if (two) r->second = dpl_alloc_aligned(p, sizeof(float));
    r->buffers = dpl_alloc_aligned(b ? b : 1, sizeof(float));
    if (!r->params || !r->momentum || !r->buffers || (two && !r->second))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory for %s: %zu parameters",
                        r->graph->arch, p);
    memset(r->momentum, 0, p * sizeof(float));
    if (two) memset(r->second, 0, p * sizeof(float));
    return DPT_EXIT_DONE;
}

static void fill_checkpoint(dpt_run *r, dpt_checkpoint *c)
{
    memset(c, 0, sizeof *c);
    c->graph = r->graph;
    c->params = r->params;
    c->rule = (dpt_rule)r->opt->opt;
    c->momentum = r->momentum;
    c->second = r->second;
    c->updates = r->updates;
    c->buffers = r->buffers;
    c->batches_tracked = r->batches_tracked;
    c->progress = r->progress;
    c->class_names = dpt_run_class_names(r);
    c->height = c->width = r->opt->size;
    memcpy(c->mean, r->opt->load.mean, sizeof c->mean);
    memcpy(c->std, r->opt->load.std, sizeof c->std);
}

static int load(dpt_run *r, dpl_text *why)
{
    const int whole = !r->opt->evaluate;
    dpt_checkpoint c;
    int err;

    fill_checkpoint(r, &c);
    if (!whole) c.momentum = c.second = NULL;
    if ((err = dpt_checkpoint_load(&c, r->opt->resume, whole, why)))
        return err == DPL_ENOMEM ? DPT_EXIT_FAILED : DPT_EXIT_DATA;
    r->batches_tracked = c.batches_tracked;
    if (!whole) return DPT_EXIT_DONE;
    if (c.progress.seed != r->opt->load.seed)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--seed %llu: the run in %s has seed %llu; order and augmentation would "
                        "change: leave --seed out",
                        (unsigned long long)r->opt->load.seed, r->opt->resume,
                        (unsigned long long)c.progress.seed);
    if (c.progress.epoch > r->opt->epochs)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--epochs %d: the run in %s has made %lld already; give as many or more",
                        r->opt->epochs, r->opt->resume, (long long)c.progress.epoch);
    r->progress = c.progress;
    r->updates = c.updates;
    r->resumed = 1;
    return DPT_EXIT_DONE;
}

/* A run of its own that begins with the weights of a file. */
static int begin_with(dpt_run *r, dpl_text *why)
{
    dpt_checkpoint_notes notes;
    dpt_checkpoint c;
    int err;

    fill_checkpoint(r, &c);
    if ((err = dpt_checkpoint_weights(&c, r->opt->weights, &notes, why))) {
        dpl_text_prefix(why, "--weights");
        return err == DPL_ENOMEM ? DPT_EXIT_FAILED : DPT_EXIT_DATA;
    }
    r->batches_tracked = c.batches_tracked;
    dpt_report_note(r->report, "=> loaded weights '%s'", r->opt->weights);
    if (*notes.head.s) dpt_report_note(r->report, "weights: %s", notes.head.s);
    if (*notes.input.s) dpt_report_warn(r->report, "--weights: %s", notes.input.s);
    return DPT_EXIT_DONE;
}

/* The loader goes on at the position of the checkpoint. */
static int place_loader(dpt_run *r, dpl_text *why)
{
    const dpl_state st = { (uint64_t)r->progress.epoch, r->progress.sample, r->train_info.samples,
                           r->progress.seed };
    const int err = dpl_state_set(r->train, &st);

    if (!err && r->progress.sample && r->progress.samples &&
        r->progress.samples != r->train_info.samples)
        dpt_report_warn(r->report,
                        "--resume %s: the epoch under way began with %llu pictures, there are %llu "
                        "now: in the rest of it some come twice, others not at all",
                        r->opt->resume, (unsigned long long)r->progress.samples,
                        (unsigned long long)r->train_info.samples);
    if (!err) return DPT_EXIT_DONE;
    dpl_fail(why, err, "--resume %s: %s", r->opt->resume, dpl_error_text(r->train));
    return err == DPL_EINVAL ? DPT_EXIT_DATA : dpt_exit_of(err);
}

/* No part is larger than the whole data, however large a batch was asked for. */
static void limit_parts(dpt_run *r)
{
    const uint64_t train = r->train ? r->train_info.samples : 0;
    const uint64_t val = r->val ? r->val_info.samples : 0;
    const uint64_t most = train > val ? train : val;

    for (int i = 0; i < r->devices; i++)
        if ((uint64_t)r->part_most[i] > most) r->part_most[i] = (int)most;
}

static int create_team(dpt_run *r, dpl_text *why)
{
    dpt_team_options t = { .graph = r->graph,
                           .max_n = r->part_most,
                           .rule = (dpt_rule)r->opt->opt,
                           .params = r->params,
                           .momentum = r->momentum,
                           .second = r->second,
                           .updates = &r->updates,
                           .buffers = r->buffers,
                           .rank = r->rank,
                           .world = r->world,
                           .address = r->address,
                           .digest = r->world > 1 ? dpt_run_digest(r) : 0 };

    return dpt_run_make_team(r, &t, &r->team, why);
}

/* An operation on reference code is many times slower and otherwise silent. */
static void self_check(dpt_run *r)
{
    char names[512] = "";
    size_t at = 0;
    int found = 0;

    if (r->backend && !strcmp(r->backend->name, "ref")) {
        dpt_report_warn(r->report, "backend ref is plain C for checking, far slower than oneDNN%s",
                        strcmp(r->opt->backend, "ref") ? ": this build has no other" : "");
        return;
    }
    for (int i = 0;; i++) {
        int fallback = 0;
        const char *line = dpt_team_describe(r->team, i, &fallback);

        if (!line) break;
        if (!fallback) continue;
        if (found++ < 4 && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? "; " : "", line);
    }
    if (found)
        dpt_report_warn(r->report,
                        "%d operations run on slow reference code of %s: %s%s; choose another "
                        "--size (a multiple of 32) or a newer %s",
                        found, r->cuda ? "cuDNN" : r->backend->name, names, found > 4 ? "; …" : "",
                        r->cuda ? "cuDNN" : "oneDNN");
}

const char *dpt_run_backend_name(const dpt_run *r)
{
    return r->backend ? r->backend->name : "cuda";
}

int dpt_run_model(dpt_run *r, dpl_text *why)
{
    int rc;

    if (!r->cuda && !(r->backend = dpt_backend_find(r->opt->backend, why))) return DPT_EXIT_USAGE;
    rc = dpt_graph_build(&r->graph, r->opt->arch, dpt_run_classes(r), r->opt->size, r->opt->size,
                         why);
    if (rc) return dpt_exit_of(rc);
    r->progress = (dpt_progress){ .best_top1 = -1, .best_epoch = -1, .seed = r->opt->load.seed };
    if ((rc = allocate(r, why))) return rc;
    dpt_graph_init(r->graph, r->opt->load.seed, r->params, r->buffers);
    if (r->opt->weights && (rc = begin_with(r, why))) return rc;
    if (r->opt->resume && (rc = load(r, why))) return rc;
    if (r->resumed && (rc = place_loader(r, why))) return rc;
    r->progress.samples = r->train_info.samples;
    limit_parts(r);
    if ((rc = create_team(r, why))) return rc;
    self_check(r);
    return DPT_EXIT_DONE;
}

static int save(dpt_run *r, const char *name, int with_state, dpl_text *why)
{
    dpt_checkpoint c;
    const int64_t began = dpl_now_ns();
    char *recipe;
    int err;

    if ((err = dpt_team_fetch(r->team, why))) {
        dpl_text_prefix(why, "not saved");
        return dpt_exit_of(err);
    }
    if (r->rank) return DPT_EXIT_DONE; /* process 0 has the same and writes it */
    fill_checkpoint(r, &c);
    if (!(recipe = dpt_runlog_options(r->cli)))
        return dpl_fail(why, DPT_EXIT_FAILED, "not saved: out of memory");
    c.recipe = recipe;
    err = dpt_checkpoint_save(&c, r->folder, name, with_state, why);
    free(recipe);
    if (err) {
        dpl_text_prefix(why, "not saved");
        return DPT_EXIT_FAILED;
    }
    dpt_report_detail(r->report, "saved %s/%s in %.2f s", r->folder, name,
                      (double)(dpl_now_ns() - began) / 1e9);
    return DPT_EXIT_DONE;
}

int dpt_run_save(dpt_run *r, dpl_text *why)
{
    const int rc = save(r, "model.safetensors", 1, why);

    if (!rc && !r->rank) r->saved = 1;
    return rc;
}

int dpt_run_save_best(dpt_run *r, dpl_text *why)
{
    return save(r, "best.safetensors", 0, why);
}
