/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a run. Order matters: the optimizer state goes to a file of a new name, then
 * model.safetensors, which carries that name, replaces the old one, and only when that is on the disk
 * the old state is removed. A kill in between leaves a file too many, never one too few. */
#include "base/alloc.h"
#include "base/files.h"
#include "base/number.h"
#include "dpload.h"
#include "trainer/checkpoint_fields.h"
#include "trainer/safetensors.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { META_MAX = 32, STATE_NAMES = 1000 };

typedef struct tensor_list {
    dpt_st_tensor *t;
    size_t n;
    char **owned; /* names made for the list */
    size_t n_owned;
} tensor_list;

static void list_fini(tensor_list *l)
{
    for (size_t i = 0; i < l->n_owned; i++) free(l->owned[i]);
    free(l->owned);
    free(l->t);
}

static int list_init(tensor_list *l, size_t cap)
{
    memset(l, 0, sizeof *l);
    l->t = dpl_calloc(cap, sizeof *l->t);
    l->owned = dpl_calloc(cap, sizeof *l->owned);
    return l->t && l->owned ? DPL_OK : DPL_ENOMEM;
}

static void list_add(tensor_list *l, const char *name, const dpt_param *p, const float *flat)
{
    dpt_st_tensor *t = &l->t[l->n++];

    t->name = name;
    t->dtype = DPT_ST_F32;
    t->dims = p->dims;
    memcpy(t->shape, p->shape, sizeof p->shape);
    t->data = flat + p->offset;
    t->bytes = p->count * sizeof *flat;
}

static int list_weights(tensor_list *l, const dpt_checkpoint *c)
{
    const dpt_graph *g = c->graph;

    if (list_init(l, (size_t)g->params + 2 * (size_t)g->buffers)) return DPL_ENOMEM;
    for (int i = 0; i < g->params; i++) list_add(l, g->param[i].name, &g->param[i], c->params);
    for (int i = 0; i < g->buffers; i++) {
        const dpt_param *b = &g->buffer[i];
        char *name;

        list_add(l, b->name, b, c->buffers);
        if (i % 2) continue; /* mean and variance share one count */
        if (!(name = dpt_ckpt_renamed(b->name, ".running_mean", ".num_batches_tracked"))) {
            return DPL_ENOMEM;
        }
        l->owned[l->n_owned++] = name;
        l->t[l->n++] = (dpt_st_tensor){ .name = name,
                                        .dtype = DPT_ST_I64,
                                        .data = &c->batches_tracked,
                                        .bytes = sizeof c->batches_tracked };
    }
    return DPL_OK;
}

static int list_state(tensor_list *l, const dpt_checkpoint *c)
{
    const dpt_graph *g = c->graph;
    dpt_ckpt_state states[DPT_CKPT_STATES];
    const int n = dpt_ckpt_states(c->rule, states);

    if (list_init(l, (size_t)n * (size_t)g->params)) return DPL_ENOMEM;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < g->params; i++) {
            char *name;
            if (asprintf(&name, "%s%s", states[k].prefix, g->param[i].name) < 0) return DPL_ENOMEM;
            l->owned[l->n_owned++] = name;
            list_add(l, name, &g->param[i], dpt_ckpt_array(c, &states[k]));
        }
    }
    return DPL_OK;
}

typedef struct meta_list {
    dpt_st_meta m[META_MAX];
    char text[META_MAX][DPL_NUMBER_MAX];
    size_t n;
} meta_list;

static void meta_text(meta_list *l, const char *key, const char *value)
{
    assert(l->n < META_MAX);
    if (value) l->m[l->n++] = (dpt_st_meta){ key, value };
}

static void meta_int(meta_list *l, const char *key, int64_t v)
{
    assert(l->n < META_MAX);
    snprintf(l->text[l->n], sizeof *l->text, "%" PRId64, v);
    meta_text(l, key, l->text[l->n]);
}

static void meta_field(meta_list *l, const dpt_ckpt_field *f, const dpt_progress *p)
{
    const char *at = (const char *)p + f->offset;
    char *text = l->text[l->n];

    assert(l->n < META_MAX);
    switch (f->kind) {
    case DPT_CKPT_INT64: meta_int(l, f->key, *(const int64_t *)at); return;
    case DPT_CKPT_INT: meta_int(l, f->key, *(const int *)at); return;
    case DPT_CKPT_UINT64: snprintf(text, sizeof *l->text, "%" PRIu64, *(const uint64_t *)at); break;
    case DPT_CKPT_DOUBLE: dpl_number_text(*(const double *)at, text, sizeof *l->text); break;
    }
    meta_text(l, f->key, text);
}

/* state and state_crc: name and checksum of the optimizer's file, NULL = weights only */
static int write_model(const dpt_checkpoint *c, const char *path, const char *state,
                       const char *state_crc, dpl_text *why)
{
    char mean[DPT_CKPT_TRIPLE_MAX], std[DPT_CKPT_TRIPLE_MAX], *classes = NULL;
    meta_list meta = { .n = 0 };
    tensor_list list;
    int err = list_weights(&list, c);

    if (!err && c->class_names &&
        !(classes = dpt_ckpt_class_text(c->class_names, c->graph->classes))) {
        err = DPL_ENOMEM;
    }
    if (err) {
        dpl_fail(why, err, "%s: out of memory while saving", path);
        goto done;
    }
    meta_text(&meta, "arch", c->graph->arch);
    meta_text(&meta, "classes", classes);
    meta_int(&meta, "height", c->height);
    meta_int(&meta, "width", c->width);
    if (c->std[0] > 0) {
        dpt_ckpt_triple_text(mean, c->mean);
        dpt_ckpt_triple_text(std, c->std);
        meta_text(&meta, "mean", mean);
        meta_text(&meta, "std", std);
    }
    for (int i = 0; i < DPT_CKPT_FIELDS; i++) meta_field(&meta, &dpt_ckpt_fields[i], &c->progress);
    meta_text(&meta, "optim_file", state);
    meta_text(&meta, "optim_crc32", state_crc);
    meta_text(&meta, "recipe", c->recipe);
    err = dpt_st_write(path, list.t, list.n, meta.m, meta.n, NULL, why);
done:
    free(classes);
    list_fini(&list);
    return err;
}

/* A name that no file has, so that the state of the checkpoint in force is never written over. */
static char *new_state_path(const dpt_checkpoint *c, const char *folder)
{
    char name[96], *path;

    for (int i = 0; i < STATE_NAMES; i++) {
        int n = snprintf(name, sizeof name, "optim-%" PRId64 "-%" PRId64, c->progress.epoch,
                         c->progress.step);
        if (i) n += snprintf(name + n, sizeof name - (size_t)n, "-%d", i);
        snprintf(name + n, sizeof name - (size_t)n, ".safetensors");
        if (!(path = dpl_path_join(folder, name)) || access(path, F_OK)) return path;
        free(path);
    }
    return NULL;
}

static int write_state(const dpt_checkpoint *c, const char *folder, char **path, uint32_t *crc,
                       dpl_text *why)
{
    meta_list meta = { .n = 0 };
    tensor_list list;
    int err;

    meta_text(&meta, "optimizer", dpt_rule_name(c->rule));
    meta_int(&meta, "updates", c->updates);
    if (!(*path = new_state_path(c, folder))) {
        return dpl_fail(why, DPL_EIO, "%s: no free name for the optimizer state", folder);
    }
    if ((err = list_state(&list, c)))
        dpl_fail(why, err, "%s: out of memory while saving", *path);
    else
        err = dpt_st_write(*path, list.t, list.n, meta.m, meta.n, crc, why);
    list_fini(&list);
    return err;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int is_state(const char *name)
{
    const size_t len = strlen(name), end = sizeof ".safetensors" - 1;

    return !strncmp(name, "optim-", 6) && len > end && !strcmp(name + len - end, ".safetensors");
}

/* Remove what killed saves left, and states other than `keep` (NULL: all of them stay). What cannot
 * be removed is tried again after the next save. */
static void remove_stale(const char *folder, const char *keep)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        const int temp = strstr(e->d_name, ".safetensors.tmp-") != NULL;
        if (temp || (keep && is_state(e->d_name) && strcmp(e->d_name, keep))) {
            unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    if (d) closedir(d);
}

/* After a failed save: the model file may be the new one all the same (when only the sync of the
 * folder failed), and then it needs the new state. */
static void remove_unless_needed(const char *state, const char *model)
{
    dpt_st_file *f;
    const char *named = NULL;
    int needed;

    if (dpt_st_open(&f, model, NULL) == DPL_OK) named = dpt_st_meta_get(f, "optim_file");
    needed = f ? named && !strcmp(named, base_name(state)) : !access(model, F_OK);
    dpt_st_close(&f);
    if (!needed) unlink(state);
}

int dpt_checkpoint_save(const dpt_checkpoint *c, const char *folder, const char *name,
                        int with_state, dpl_text *why)
{
    char *path = dpl_path_join(folder, name), *state = NULL, crc_text[9];
    uint32_t crc = 0;
    int err;

    if (!path) return dpl_fail(why, DPL_ENOMEM, "%s/%s: out of memory", folder, name);
    if (with_state && (err = write_state(c, folder, &state, &crc, why))) goto done;
    snprintf(crc_text, sizeof crc_text, "%08" PRIx32, crc);
    err = write_model(c, path, state ? base_name(state) : NULL, state ? crc_text : NULL, why);
    if (err && state) remove_unless_needed(state, path);
    if (!err) remove_stale(folder, state ? base_name(state) : NULL);
done:
    free(path);
    free(state);
    return err;
}
