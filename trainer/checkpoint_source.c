/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a checkpoint file by name, checked against a graph; see checkpoint_source.h. */
#include "trainer/checkpoint_source.h"

#include "base/alloc.h"
#include "dpload.h"
#include "trainer/checkpoint_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* name behind every leading prefix of the list */
static const char *without(const char *name, const char *const *prefix, int n)
{
    for (int i = 0; i < n;) {
        const size_t len = strlen(prefix[i]);
        const int found = !strncmp(name, prefix[i], len);
        if (found) name += len;
        i = found ? 0 : i + 1;
    }
    return name;
}

static const char *unwrapped(const char *name, dpt_ckpt_wrap wrap)
{
    static const char *const wrappers[] = { "module.", "_orig_mod." };

    return wrap == DPT_CKPT_WRAPPED ? without(name, wrappers, 2) : name;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const dpt_ckpt_entry *)a)->name, ((const dpt_ckpt_entry *)b)->name);
}

void dpt_ckpt_close(dpt_ckpt_source *s)
{
    dpt_st_close(&s->file);
    free(s->entry);
    s->entry = NULL;
}

int dpt_ckpt_open(dpt_ckpt_source *s, const char *path, dpt_ckpt_wrap wrap, dpl_text *why)
{
    int err;

    memset(s, 0, sizeof *s);
    s->path = path;
    if ((err = dpt_st_open(&s->file, path, why))) return err;
    s->n = dpt_st_count(s->file);
    if (!(s->entry = dpl_calloc(s->n, sizeof *s->entry))) {
        return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    }
    for (size_t i = 0; i < s->n; i++) {
        const dpt_st_tensor *t = dpt_st_at(s->file, i);
        s->entry[i] = (dpt_ckpt_entry){ unwrapped(t->name, wrap), t, 0 };
    }
    qsort(s->entry, s->n, sizeof *s->entry, compare_entries);
    for (size_t i = 1; i < s->n; i++) {
        if (!compare_entries(&s->entry[i - 1], &s->entry[i])) {
            return dpl_fail(why, DPL_EDATA, "%s: has two tensors for '%.64s'", path,
                            s->entry[i].name);
        }
    }
    return DPL_OK;
}

typedef struct key {
    const char *prefix, *name;
} key;

static int compare_key(const void *a, const void *b)
{
    const key *k = a;
    const char *name = ((const dpt_ckpt_entry *)b)->name;
    const size_t len = strlen(k->prefix);
    const int by_prefix = strncmp(k->prefix, name, len);

    return by_prefix ? by_prefix : strcmp(k->name, name + len);
}

dpt_ckpt_entry *dpt_ckpt_find(const dpt_ckpt_source *s, const char *prefix, const char *name)
{
    const key k = { prefix, name };

    return s->n ? bsearch(&k, s->entry, s->n, sizeof *s->entry, compare_key) : NULL;
}

static void shape_text(char *buf, size_t len, int dims, const int64_t *shape)
{
    size_t at = (size_t)snprintf(buf, len, "[");

    for (int i = 0; i < dims && at < len; i++) {
        at += (size_t)snprintf(buf + at, len - at, "%s%" PRId64, i ? ", " : "", shape[i]);
    }
    if (at < len) snprintf(buf + at, len - at, "]");
}

int dpt_ckpt_refuse_classes(const char *path, int64_t found, int expected, dpl_text *why)
{
    return dpl_fail(why, DPL_EDATA, "%s: checkpoint has %" PRId64 " classes, the data has %d", path,
                    found, expected);
}

int dpt_ckpt_is_head(const dpt_graph *g, const dpt_param *p)
{
    const dpt_node *last = &g->node[g->nodes - 1];
    const ptrdiff_t i = p - g->param;

    return last->op == DPT_LINEAR && (i == last->param || i == last->param + 1);
}

/* 1 when t differs from the classifier's p in nothing but the number of classes */
static int is_other_head(const dpt_graph *g, const dpt_param *p, const dpt_st_tensor *t)
{
    return dpt_ckpt_is_head(g, p) && t->dims == p->dims &&
           (t->dims < 2 || t->shape[1] == p->shape[1]);
}

int64_t dpt_ckpt_other_classes(const dpt_ckpt_source *s, const dpt_graph *g)
{
    const dpt_node *last = &g->node[g->nodes - 1];
    dpt_ckpt_entry *found[2];
    int64_t n;

    if (last->op != DPT_LINEAR) return 0;
    for (int i = 0; i < 2; i++) {
        const dpt_param *p = &g->param[last->param + i];
        found[i] = dpt_ckpt_find(s, "", p->name);
        if (!found[i] || found[i]->t->dtype != DPT_ST_F32 || !is_other_head(g, p, found[i]->t))
            return 0;
    }
    n = found[0]->t->shape[0];
    if (n == g->classes || found[1]->t->shape[0] != n) return 0;
    found[0]->used = found[1]->used = 1;
    return n;
}

int dpt_ckpt_tracked(const dpt_ckpt_source *s, const dpt_graph *g, int64_t *out, dpl_text *why)
{
    *out = 0;
    for (int i = g->buffers - 2; i >= 0; i -= 2) { /* old files have none */
        char *name = dpt_ckpt_renamed(g->buffer[i].name, ".running_mean", ".num_batches_tracked");
        dpt_ckpt_entry *e = name ? dpt_ckpt_find(s, "", name) : NULL;

        free(name);
        if (!name) return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", s->path);
        if (!e) continue;
        e->used = 1;
        if (e->t->dtype != DPT_ST_I64 || e->t->bytes != sizeof *out) {
            return dpl_fail(why, DPL_EDATA, "%s: tensor '%s' is not one int64", s->path, e->name);
        }
        memcpy(out, e->t->data, sizeof *out);
    }
    return DPL_OK;
}

int dpt_ckpt_check(const dpt_ckpt_source *s, const dpt_graph *g, const char *prefix,
                   const dpt_param *p, dpl_text *why)
{
    dpt_ckpt_entry *e = dpt_ckpt_find(s, prefix, p->name);
    char found[200], expected[200];

    if (!e) {
        return dpl_fail(why, DPL_EDATA, "%s: tensor '%s%s' of %s is missing", s->path, prefix,
                        p->name, g->arch);
    }
    e->used = 1;
    if (e->t->dtype != DPT_ST_F32) {
        return dpl_fail(why, DPL_EDATA, "%s: tensor '%s%s' is not float32; convert it to float32",
                        s->path, prefix, p->name);
    }
    if (e->t->dims == p->dims &&
        !memcmp(e->t->shape, p->shape, (size_t)p->dims * sizeof *p->shape)) {
        return DPL_OK;
    }
    if (is_other_head(g, p, e->t))
        return dpt_ckpt_refuse_classes(s->path, e->t->shape[0], g->classes, why);
    shape_text(found, sizeof found, e->t->dims, e->t->shape);
    shape_text(expected, sizeof expected, p->dims, p->shape);
    return dpl_fail(why, DPL_EDATA, "%s: tensor '%s%s' has the shape %s, %s needs %s", s->path,
                    prefix, p->name, found, g->arch, expected);
}

int dpt_ckpt_check_unused(const dpt_ckpt_source *s, const dpt_graph *g, dpl_text *why)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!s->entry[i].used) {
            return dpl_fail(why, DPL_EDATA, "%s: holds a tensor '%.64s', which %s does not have",
                            s->path, s->entry[i].name, g->arch);
        }
    }
    return DPL_OK;
}

void dpt_ckpt_copy(const dpt_ckpt_source *s, const char *prefix, const dpt_param *p, float *flat)
{
    const dpt_ckpt_entry *e = dpt_ckpt_find(s, prefix, p->name);

    assert(e && e->t->bytes == p->count * sizeof *flat);
    memcpy(flat + p->offset, e->t->data, e->t->bytes);
}
