/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a checkpoint: everything is checked first, then copied, so that a refused file leaves the
 * caller's numbers as they were. */
#include "base/number.h"
#include "dpload.h"
#include "trainer/checkpoint_fields.h"
#include "trainer/checkpoint_source.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_classes(const dpt_ckpt_source *s, const dpt_checkpoint *c, dpl_text *why)
{
    const char *stored = dpt_st_meta_get(s->file, "classes");
    const int n = c->graph->classes;
    char *own = stored && c->class_names ? dpt_ckpt_class_text(c->class_names, n) : NULL;
    char **list = NULL;
    size_t count = 0, i = 0;
    int err = DPL_OK;

    if (!stored || (own && !strcmp(own, stored))) goto done;
    if (c->class_names && !own) {
        err = dpl_fail(why, DPL_ENOMEM, "%s: out of memory", s->path);
        goto done;
    }
    if ((err = dpt_st_meta_list(s->file, "classes", &list, &count))) {
        dpl_fail(why, err, "%s: its list of classes cannot be read", s->path);
        goto done;
    }
    if (count != (size_t)n) {
        err = dpt_ckpt_refuse_classes(s->path, (int64_t)count, n, why);
        goto done;
    }
    while (own && i < count && !strcmp(list[i], c->class_names[i])) i++;
    if (own && i < count) {
        err = dpl_fail(why, DPL_EDATA, "%s: class %zu of the checkpoint is '%s', of the data '%s'",
                       s->path, i, list[i], c->class_names[i]);
    }
done:
    dpt_st_list_free(&list, count);
    free(own);
    return err;
}

static int check_model(const dpt_ckpt_source *s, const dpt_checkpoint *c, int64_t *tracked,
                       dpl_text *why)
{
    const char *arch = dpt_st_meta_get(s->file, "arch");
    const dpt_graph *g = c->graph;
    int err;

    if (arch && strcmp(arch, g->arch)) {
        return dpl_fail(why, DPL_EDATA, "%s: checkpoint is a %.64s, this run is a %s", s->path,
                        arch, g->arch);
    }
    if ((err = check_classes(s, c, why))) return err;
    for (int i = 0; i < g->params; i++) {
        if ((err = dpt_ckpt_check(s, g, "", &g->param[i], why))) return err;
    }
    for (int i = 0; i < g->buffers; i++) {
        if ((err = dpt_ckpt_check(s, g, "", &g->buffer[i], why))) return err;
    }
    if ((err = dpt_ckpt_tracked(s, g, tracked, why))) return err;
    return dpt_ckpt_check_unused(s, g, why);
}

static int read_double(const char *s, double *out)
{
    if (!strcmp(s, "nan") || !strcmp(s, "inf") || !strcmp(s, "-inf")) { /* a sum may overflow */
        *out = NAN;
        return 0;
    }
    return dpl_parse_double(s, out);
}

static int read_field(const char *s, const dpt_ckpt_field *f, dpt_progress *p)
{
    char *at = (char *)p + f->offset;
    int64_t v;

    switch (f->kind) {
    case DPT_CKPT_INT64: return dpl_parse_int(s, (int64_t *)at);
    case DPT_CKPT_UINT64: return dpl_parse_uint(s, (uint64_t *)at);
    case DPT_CKPT_DOUBLE: return read_double(s, (double *)at);
    case DPT_CKPT_INT: break;
    }
    if (dpl_parse_int(s, &v) || v < INT_MIN || v > INT_MAX) return -1;
    *(int *)at = (int)v;
    return 0;
}

static int read_progress(const dpt_ckpt_source *s, dpt_progress *p, dpl_text *why)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < DPT_CKPT_FIELDS; i++) {
        const dpt_ckpt_field *f = &dpt_ckpt_fields[i];
        const char *text = dpt_st_meta_get(s->file, f->key);
        if (!text && i >= DPT_CKPT_NEEDED) continue;
        if (!text || read_field(text, f, p)) {
            return dpl_fail(why, DPL_EDATA, "%s: its metadata has no usable '%s' (found: %.64s)",
                            s->path, f->key, text ? text : "nothing");
        }
    }
    return DPL_OK;
}

/* path of the optimizer's file, which the model's file names */
static int find_state(const dpt_ckpt_source *s, char **path, dpl_text *why)
{
    const char *name = dpt_st_meta_get(s->file, "optim_file");

    if (!name) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: holds weights only, no optimizer state to resume from; resume from "
                        "the " DPT_CKPT_MODEL " of a run, or begin a run with it by --weights",
                        s->path);
    }
    if (strchr(name, '/')) {
        return dpl_fail(why, DPL_EDATA, "%s: names an optimizer file in another folder: %.200s",
                        s->path, name);
    }
    if (!(*path = dpt_ckpt_beside(s->path, name))) {
        return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", s->path);
    }
    if (access(*path, F_OK)) {
        return dpl_fail(why, DPL_EIO,
                        "%s: its optimizer state %.200s is missing; it must lie beside it", s->path,
                        name);
    }
    return DPL_OK;
}

/* Files without these fields are older than the other rules. */
static int check_rule(const dpt_ckpt_source *state, const dpt_checkpoint *c, int64_t *updates,
                      dpl_text *why)
{
    const char *rule = dpt_st_meta_get(state->file, "optimizer");
    const char *count = dpt_st_meta_get(state->file, "updates");
    const char *own = dpt_rule_name(c->rule);

    if (!rule) rule = dpt_rule_name(DPT_RULE_SGD);
    if (strcmp(rule, own) != 0)
        return dpl_fail(why, DPL_EDATA,
                        "%s: the run was trained with %.64s, which has another state than %s; "
                        "go on with --opt as it was",
                        state->path, rule, own);
    if (count && !dpl_parse_int(count, updates) && *updates >= 0) return DPL_OK;
    if (!count && c->rule == DPT_RULE_SGD) return DPL_OK;
    return dpl_fail(why, DPL_EDATA, "%s: its metadata has no usable 'updates' (found: %.64s)",
                    state->path, count ? count : "nothing");
}

static int check_state(const dpt_ckpt_source *state, const dpt_ckpt_source *model,
                       const dpt_checkpoint *c, int64_t *updates, dpl_text *why)
{
    const char *want = dpt_st_meta_get(model->file, "optim_crc32");
    const char *found = dpt_st_meta_get(state->file, "crc32");
    const dpt_graph *g = c->graph;
    dpt_ckpt_state states[DPT_CKPT_STATES];
    const int n = dpt_ckpt_states(c->rule, states);
    int err;

    if (!want || !found || strcmp(want, found)) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: belongs to another checkpoint: checksum %.8s expected "
                        "by %s, %.8s found",
                        state->path, want ? want : "none", model->path, found ? found : "none");
    }
    err = check_rule(state, c, updates, why);
    for (int i = 0; !err && i < n * g->params; i++)
        err = dpt_ckpt_check(state, g, states[i % n].prefix, &g->param[i / n], why);
    return err ? err : dpt_ckpt_check_unused(state, g, why);
}

static void copy_state(const dpt_ckpt_source *state, const dpt_checkpoint *c)
{
    const dpt_graph *g = c->graph;
    dpt_ckpt_state states[DPT_CKPT_STATES];
    const int n = dpt_ckpt_states(c->rule, states);

    for (int i = 0; i < n * g->params; i++)
        dpt_ckpt_copy(state, states[i % n].prefix, &g->param[i / n],
                      dpt_ckpt_array(c, &states[i % n]));
}

int dpt_checkpoint_load(dpt_checkpoint *c, const char *path, int need_state, dpl_text *why)
{
    char *file = dpt_ckpt_file(path), *state_path = NULL;
    dpt_ckpt_source model = { 0 }, state = { 0 };
    const dpt_graph *g = c->graph;
    dpt_progress progress;
    int64_t tracked = 0, updates = 0;
    int err;

    assert(!need_state || (c->momentum && (c->second || c->rule != DPT_RULE_ADAMW)));
    if (!file) return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    if ((err = dpt_ckpt_open(&model, file, need_state ? DPT_CKPT_PLAIN : DPT_CKPT_WRAPPED, why)))
        goto done;
    if ((err = check_model(&model, c, &tracked, why))) goto done;
    if (need_state) {
        if ((err = find_state(&model, &state_path, why))) goto done;
        if ((err = read_progress(&model, &progress, why))) goto done;
        if ((err = dpt_ckpt_open(&state, state_path, DPT_CKPT_PLAIN, why))) goto done;
        updates = progress.step; /* unless the file says */
        if ((err = check_state(&state, &model, c, &updates, why))) goto done;
        copy_state(&state, c);
        c->progress = progress;
        c->updates = updates;
    }
    for (int i = 0; i < g->params; i++) dpt_ckpt_copy(&model, "", &g->param[i], c->params);
    for (int i = 0; i < g->buffers; i++) dpt_ckpt_copy(&model, "", &g->buffer[i], c->buffers);
    c->batches_tracked = tracked;
done:
    dpt_ckpt_close(&model);
    dpt_ckpt_close(&state);
    free(state_path);
    free(file);
    return err;
}
