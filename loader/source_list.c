/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from a list file; its rules are in include/dpload.h. The text of the file stays in memory
 * and is the list of paths. */
#include "base/alloc.h"
#include "base/files.h"
#include "loader/source.h"
#include "loader/source_list_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct listed {
    dpl_samples base; /* first */
    int root_fd;      /* relative paths are opened from here */
    char *root;
    char *text; /* of the file */
    size_t text_len;
    dpl_list list;
    const char **class_names; /* [classes] */
} listed;

static const char *path_of(const listed *s, uint64_t i)
{
    return s->list.text + s->list.path[i];
}

static int32_t list_label(const dpl_samples *s, uint64_t i)
{
    return ((const listed *)s)->list.label[i];
}

static const char *list_name(const dpl_samples *s, uint64_t i, char *buf, size_t len)
{
    const listed *l = (const listed *)s;
    const char *path = path_of(l, i);

    if (*path == '/') return path;
    snprintf(buf, len, "%s/%s", l->root, path);
    return buf;
}

static int list_read(dpl_samples *s, uint64_t i, void **buf, size_t *cap, size_t *len,
                     uint64_t limit, dpl_text *why)
{
    const listed *l = (const listed *)s;

    return dpl_read_file(l->root_fd, path_of(l, i), buf, cap, len, limit, why);
}

static void list_close(dpl_samples *s)
{
    listed *l = (listed *)s;

    if (l->root_fd >= 0) close(l->root_fd);
    free(l->root);
    dpl_list_fini(&l->list);
    free(l->text);
    free(l->class_names);
    free(s->subset);
    free(s->class_counts);
    free(l);
}

/* Where relative paths begin: options.path, or the folder that the list is in. */
static int open_root(listed *l, const dpl_options *opt, dpl_text *why)
{
    const char *slash = strrchr(opt->list, '/');

    if (opt->path)
        l->root = dpl_strdup(opt->path);
    else if (slash)
        l->root = strndup(opt->list, slash == opt->list ? 1 : (size_t)(slash - opt->list));
    else
        l->root = dpl_strdup(".");
    if (!l->root) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    for (size_t n = strlen(l->root); n > 1 && l->root[n - 1] == '/'; n--) l->root[n - 1] = 0;
    if ((l->root_fd = open(l->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) return DPL_OK;
    return dpl_fail(why, DPL_EIO, "%s: %s; expected the folder where the paths of %s begin",
                    l->root, strerror(errno), opt->list);
}

static int read_text(listed *l, const dpl_options *opt, dpl_text *why)
{
    void *bytes = NULL;
    char *text;
    size_t cap = 0;
    int err = dpl_read_file(AT_FDCWD, opt->list, &bytes, &cap, &l->text_len, UINT32_MAX, why);

    if (err) {
        dpl_text_prefix(why, "list %s", opt->list);
    } else if ((text = realloc(bytes, l->text_len + 1))) { /* room for the last path's end */
        l->text = text;
        bytes = NULL;
    } else {
        err = dpl_fail(why, DPL_ENOMEM, "list %s: out of memory", opt->list);
    }
    free(bytes);
    return err;
}

static int name_classes(listed *l, dpl_text *why)
{
    dpl_samples *s = &l->base;
    const size_t classes = (size_t)l->list.titles.count;

    l->class_names = dpl_calloc(classes, sizeof *l->class_names);
    s->class_counts = dpl_calloc(classes, sizeof *s->class_counts);
    if (!l->class_names || !s->class_counts)
        return dpl_fail(why, DPL_ENOMEM, "no memory for the classes");
    for (size_t c = 0; c < classes; c++) l->class_names[c] = dpl_name_at(&l->list.titles, c);
    for (uint64_t i = 0; i < l->list.count; i++)
        if (l->list.label[i] >= 0) s->class_counts[l->list.label[i]]++;
    s->classes = (int)classes;
    s->class_names = l->class_names;
    s->total = s->count = l->list.count;
    s->index_bytes = sizeof *l + l->text_len + l->list.path_cap * sizeof *l->list.path +
                     l->list.label_cap * sizeof *l->list.label +
                     dpl_name_list_bytes(&l->list.titles) +
                     classes * (sizeof *l->class_names + sizeof *s->class_counts);
    return DPL_OK;
}

int dpl_samples_open_list(dpl_samples **out, const dpl_options *opt, dpl_text *why)
{
    static const dpl_samples_ops ops = { list_read, list_label, list_name, list_close };
    listed *l = dpl_calloc(1, sizeof *l);
    int err;

    *out = NULL;
    if (!l) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    l->base.ops = &ops;
    l->root_fd = -1;
    if (!(err = read_text(l, opt, why)) && !(err = open_root(l, opt, why)) &&
        !(err = dpl_list_parse(&l->list, l->text, l->text_len, opt->list, opt->classes,
                               opt->n_classes, why)))
        err = name_classes(l, why);
    if (err)
        list_close(&l->base);
    else
        *out = &l->base;
    return err;
}
