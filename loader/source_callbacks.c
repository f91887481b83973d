/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from the caller's own functions. */
#include "base/alloc.h"
#include "loader/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUFFER = 256 << 10, READ_TRIES = 4, MAX_CLASSES = 1 << 24, NAME_BYTES = 12 };

typedef struct callbacks {
    dpl_samples base; /* first */
    dpl_source source;
    const char **names; /* [classes] into name_block */
    char *name_block;
} callbacks;

static int callbacks_read(dpl_samples *s, uint64_t i, void **buf, size_t *cap, size_t *len,
                          uint64_t limit, dpl_text *why)
{
    const dpl_source *src = &((callbacks *)s)->source;

    if (dpl_reserve(buf, cap, FIRST_BUFFER)) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    for (int try = 0; try < READ_TRIES; try++) {
        const int64_t n = src->read(src->user, i, *buf, *cap);

        if (n < 0)
            return dpl_fail(why, DPL_EIO, "the source could not read it (%lld)", (long long)n);
        if ((uint64_t)n > limit)
            return dpl_fail(why, DPL_EDATA, "%lld bytes, the limit is %llu (max_file_bytes)",
                            (long long)n, (unsigned long long)limit);
        *len = (size_t)n;
        if (*len <= *cap) return DPL_OK;
        if (dpl_reserve(buf, cap, *len)) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    }
    return dpl_fail(why, DPL_EDATA, "the source gives another length each time it is asked");
}

static int32_t callbacks_label(const dpl_samples *s, uint64_t i)
{
    const dpl_source *src = &((const callbacks *)s)->source;

    return src->label(src->user, i);
}

static const char *callbacks_name(const dpl_samples *s, uint64_t i, char *buf, size_t len)
{
    const dpl_source *src = &((const callbacks *)s)->source;
    const char *name = src->name ? src->name(src->user, i) : NULL;

    if (name) return name;
    snprintf(buf, len, "sample %llu", (unsigned long long)i);
    return buf;
}

static void callbacks_close(dpl_samples *s)
{
    callbacks *c = (callbacks *)s;

    free(s->subset);
    free(s->class_counts);
    free(c->names);
    free(c->name_block);
    free(c);
}

/* Class names: the caller's, or the numbers. */
static int make_names(callbacks *c, const dpl_options *opt)
{
    const size_t n = (size_t)c->base.classes;
    size_t bytes = 0, at = 0;

    for (size_t k = 0; k < n; k++) bytes += opt->classes ? strlen(opt->classes[k]) + 1 : NAME_BYTES;
    c->names = dpl_calloc(n, sizeof *c->names);
    c->name_block = dpl_calloc(bytes, 1);
    c->base.class_counts = dpl_calloc(n, sizeof *c->base.class_counts);
    if (!c->names || !c->name_block || !c->base.class_counts) return DPL_ENOMEM;
    for (size_t k = 0; k < n; k++) {
        c->names[k] = c->name_block + at;
        if (opt->classes)
            at += (size_t)snprintf(c->name_block + at, bytes - at, "%s", opt->classes[k]) + 1;
        else
            at += (size_t)snprintf(c->name_block + at, bytes - at, "%zu", k) + 1;
    }
    c->base.class_names = c->names;
    c->base.index_bytes = sizeof *c + bytes + n * (sizeof *c->names + sizeof(uint64_t));
    return DPL_OK;
}

/* Ask for every label once: the number of classes, and nonsense, must be known before training. */
static int scan_labels(callbacks *c, const dpl_options *opt, dpl_text *why)
{
    const int limit = opt->classes ? opt->n_classes : MAX_CLASSES;
    int32_t most = -1;

    for (uint64_t i = 0; i < c->base.total; i++) {
        const int32_t label = callbacks_label(&c->base, i);

        if (label < -1 || label >= limit)
            return dpl_fail(why, DPL_EDATA, "sample %llu has label %d: expected -1..%d (%s)",
                            (unsigned long long)i, label, limit - 1,
                            opt->classes ? "n_classes" : "the largest supported");
        if (label > most) most = label;
    }
    c->base.classes = opt->classes ? opt->n_classes : most + 1;
    if (make_names(c, opt)) return dpl_fail(why, DPL_ENOMEM, "no memory for the class names");
    for (uint64_t i = 0; i < c->base.total; i++) {
        const int32_t label = callbacks_label(&c->base, i);

        if (label >= c->base.classes)
            return dpl_fail(why, DPL_EDATA, "sample %llu gives another label each time",
                            (unsigned long long)i);
        if (label >= 0) c->base.class_counts[label]++;
    }
    return DPL_OK;
}

int dpl_samples_open_callbacks(dpl_samples **out, const dpl_options *opt, dpl_text *why)
{
    static const dpl_samples_ops ops = { callbacks_read, callbacks_label, callbacks_name,
                                         callbacks_close };
    const dpl_source *src = opt->source;
    callbacks *c;
    int err;

    *out = NULL;
    if (!src->count || !src->read || !src->label)
        return dpl_fail(why, DPL_EINVAL, "source: count, read and label must be set");
    if (!(c = dpl_calloc(1, sizeof *c))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    c->base.ops = &ops;
    c->source = *src;
    c->base.total = c->base.count = src->count(src->user);
    err = c->base.total ? scan_labels(c, opt, why)
                        : dpl_fail(why, DPL_EDATA, "source: count gives 0 samples");
    if (err)
        callbacks_close(&c->base);
    else
        *out = &c->base;
    return err;
}
