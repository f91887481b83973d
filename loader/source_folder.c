/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with one sub-folder per class. The index is one block of names relative to the class's
 * folder and one offset per sample; paths are put together when they are needed. */
#include "loader/source_walk.h"

#include "base/alloc.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct folder {
    dpl_samples base; /* first */
    int root_fd;      /* paths are opened from here, also after the process changed its folder */
    char *root;
    char *ignored_example;
    dpl_name_list names;  /* [total] of the samples, relative to their class's folder */
    dpl_name_list titles; /* [classes] */
    const char **class_names;
    uint64_t *class_first; /* [classes + 1] */
} folder;

static const char accepted[] = "jpg, jpeg, png, webp, ppm, bmp, pgm, tif, tiff, gif";

/* The class of a sample: the last one that begins at or before it. */
static int32_t folder_label(const dpl_samples *s, uint64_t i)
{
    const uint64_t *first = ((const folder *)s)->class_first;
    int lo = 0, hi = s->classes;

    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;

        if (first[mid] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static const char *sample_path(const folder *f, uint64_t i, const char *root, char *buf, size_t len)
{
    snprintf(buf, len, "%s%s%s/%s", root ? root : "", root ? "/" : "",
             f->class_names[folder_label(&f->base, i)], dpl_name_at(&f->names, i));
    return buf;
}

static const char *folder_name(const dpl_samples *s, uint64_t i, char *buf, size_t len)
{
    const folder *f = (const folder *)s;

    return sample_path(f, i, f->root, buf, len);
}

static int folder_read(dpl_samples *s, uint64_t i, void **buf, size_t *cap, size_t *len,
                       uint64_t limit, dpl_text *why)
{
    const folder *f = (const folder *)s;
    char path[DPL_PATH_BYTES];

    return dpl_read_file(f->root_fd, sample_path(f, i, NULL, path, sizeof path), buf, cap, len,
                         limit, why);
}

static void folder_close(dpl_samples *s)
{
    folder *f = (folder *)s;

    if (f->root_fd >= 0) close(f->root_fd);
    free(f->root);
    free(f->ignored_example);
    free(f->class_names);
    free(f->class_first);
    dpl_name_list_free(&f->names);
    dpl_name_list_free(&f->titles);
    free(s->subset);
    free(s->class_counts);
    free(f);
}

/* list is sorted. */
static int has_name(const dpl_name_list *list, const char *name)
{
    uint64_t lo = 0, hi = list->count;

    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(dpl_name_at(list, mid), name);

        if (!order) return 1;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

/* The classes in label order are the caller's: no other folder may be there. */
static int use_classes(folder *f, const dpl_name_list *found, const dpl_options *opt, dpl_text *why)
{
    dpl_name_list known = { 0 };
    int err = DPL_OK;

    for (int c = 0; c < opt->n_classes && !err; c++)
        if (dpl_name_list_add(&f->titles, opt->classes[c], "") ||
            dpl_name_list_add(&known, opt->classes[c], ""))
            err = DPL_ENOMEM;
    if (!err) dpl_name_list_sort(&known, 0);
    for (uint64_t k = 0; k < found->count && !err; k++)
        if (!has_name(&known, dpl_name_at(found, k)))
            err = dpl_fail(why, DPL_EDATA,
                           "%s/%s: this class is not among the %d classes in use; remove the "
                           "folder, or train with it",
                           f->root, dpl_name_at(found, k), opt->n_classes);
    dpl_name_list_free(&known);
    return err;
}

static int list_class(folder *f, dpl_walk *walk, const char *title, dpl_text *why)
{
    const uint64_t before = f->names.count;
    const int err = dpl_walk_class(walk, f->root, title, &f->names, why);

    if (err) return err;
    if (f->names.count > before) {
        dpl_name_list_sort(&f->names, before);
        return DPL_OK;
    }
    return dpl_fail(why, DPL_EDATA,
                    "%s/%s: this class folder holds no pictures (accepted: %s); add some or remove "
                    "the folder",
                    f->root, title, accepted);
}

static int no_classes(const folder *f, const dpl_walk *walk, dpl_text *why)
{
    if (walk->loose_pictures)
        return dpl_fail(why, DPL_EDATA,
                        "%s: %llu pictures but no class folders; put the pictures of each class "
                        "into a sub-folder of their own",
                        f->root, (unsigned long long)walk->loose_pictures);
    return dpl_fail(why, DPL_EDATA,
                    "%s: no pictures found (accepted: %s); expected one sub-folder per class",
                    f->root, accepted);
}

/* List every class into the index. found: the sorted folders that are there. */
static int list_classes(folder *f, const dpl_name_list *found, dpl_walk *walk, dpl_text *why)
{
    const size_t classes = (size_t)f->titles.count;
    int err = DPL_OK;

    f->class_names = dpl_calloc(classes, sizeof *f->class_names);
    f->class_first = dpl_calloc(classes + 1, sizeof *f->class_first);
    f->base.class_counts = dpl_calloc(classes, sizeof *f->base.class_counts);
    if (!f->class_names || !f->class_first || !f->base.class_counts) return DPL_ENOMEM;
    for (size_t c = 0; c < classes && !err; c++) {
        f->class_names[c] = dpl_name_at(&f->titles, c);
        f->class_first[c] = f->names.count;
        if (has_name(found, f->class_names[c])) err = list_class(f, walk, f->class_names[c], why);
        f->base.class_counts[c] = f->names.count - f->class_first[c];
    }
    f->class_first[classes] = f->names.count;
    f->base.classes = (int)classes;
    return err;
}

static int list_all(folder *f, const dpl_options *opt, dpl_walk *walk, dpl_text *why)
{
    dpl_name_list found = { 0 };
    int err = dpl_walk_root(walk, f->root, &found, why);

    dpl_name_list_sort(&found, 0);
    if (!err && !found.count) err = no_classes(f, walk, why);
    if (!err && opt->classes) err = use_classes(f, &found, opt, why);
    for (uint64_t k = 0; !err && !opt->classes && k < found.count; k++)
        err = dpl_name_list_add(&f->titles, dpl_name_at(&found, k), "");
    if (!err) err = list_classes(f, &found, walk, why);
    if (err == DPL_ENOMEM) dpl_fail(why, err, "%s: no memory for the list of files", f->root);
    dpl_name_list_free(&found);
    return err;
}

static void publish(folder *f, dpl_walk *walk)
{
    dpl_samples *s = &f->base;

    s->total = s->count = f->names.count;
    s->class_names = f->class_names;
    s->ignored_files = walk->ignored;
    s->ignored_example = f->ignored_example = walk->ignored_example;
    walk->ignored_example = NULL;
    dpl_name_list_trim(&f->names);
    s->index_bytes = sizeof *f + dpl_name_list_bytes(&f->names) + dpl_name_list_bytes(&f->titles) +
                     (size_t)s->classes * (sizeof *f->class_names + 2 * sizeof(uint64_t));
}

int dpl_samples_open_folder(dpl_samples **out, const dpl_options *opt, dpl_text *why)
{
    static const dpl_samples_ops ops = { folder_read, folder_label, folder_name, folder_close };
    dpl_walk walk = { 0 };
    folder *f = dpl_calloc(1, sizeof *f);
    int err = DPL_ENOMEM;

    *out = NULL;
    if (!f) return dpl_fail(why, err, "out of memory");
    f->base.ops = &ops;
    f->root_fd = -1;
    if (!(f->root = dpl_strdup(opt->path))) goto done;
    for (size_t n = strlen(f->root); n > 1 && f->root[n - 1] == '/'; n--) f->root[n - 1] = 0;
    if ((f->root_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        err = dpl_fail(why, DPL_EIO, "%s: %s; expected a folder with one sub-folder per class",
                       f->root, strerror(errno));
        goto done;
    }
    if ((err = list_all(f, opt, &walk, why))) goto done;
    publish(f, &walk);
    *out = &f->base;
    f = NULL;
done:
    free(walk.ignored_example);
    if (f) folder_close(&f->base);
    return err;
}
