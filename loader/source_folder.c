/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with one sub-folder per class. The index holds names relative to the class's folder and
 * one offset per sample; paths are put together when they are needed. */
#include "base/alloc.h"
#include "base/files.h"
#include "base/thread.h"
#include "loader/index.h"
#include "loader/source.h"
#include "loader/source_walk.h"

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
    dpl_index index;
    dpl_name_list titles;          /* [classes] in label order */
    const char **class_names;      /* [classes] into titles */
    const dpl_index_class **class; /* [classes] in the index; NULL = no such folder */
    uint64_t *class_first;         /* [classes + 1] */
    dpl_text index_text;
} folder;

/* Files of other picture formats count as pictures too, by their names: as bad ones. */
#if defined(DPL_HAVE_WEBP)
static const char accepted[] = "jpg, jpeg, png, webp";
#else
static const char accepted[] = "jpg, jpeg, png";
#endif

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
    const int32_t c = folder_label(&f->base, i);
    const dpl_index_class *in = f->class[c];

    snprintf(buf, len, "%s%s%s/%s", root ? root : "", root ? "/" : "", f->class_names[c],
             in->names + in->offset[i - f->class_first[c]]);
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
    free(f->class);
    free(f->class_first);
    dpl_index_fini(&f->index);
    dpl_name_list_free(&f->titles);
    free(s->subset);
    free(s->class_counts);
    free(f);
}

/* The place of a folder in the index, or NULL. */
static const dpl_index_class *find_class(const dpl_index *x, const char *title)
{
    uint64_t lo = 0, hi = x->classes;

    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(x->of[mid].title, title);

        if (!order) return &x->of[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The classes in label order are the caller's: no other folder may be there. */
static int use_classes(folder *f, const dpl_options *opt, dpl_text *why)
{
    dpl_name_list known = { 0 };
    int err = DPL_OK;

    for (int c = 0; c < opt->n_classes && !err; c++) {
        err = dpl_name_list_add(&f->titles, "", opt->classes[c]);
        if (!err) err = dpl_name_list_add(&known, "", opt->classes[c]);
    }
    if (!err) dpl_name_list_sort(&known);
    for (uint64_t k = 0; k < f->index.classes && !err; k++)
        if (dpl_name_list_find(&known, f->index.of[k].title) < 0)
            err = dpl_fail(why, DPL_EDATA,
                           "%s/%s: this class is not among the %d classes in use; remove the "
                           "folder, or train with it",
                           f->root, f->index.of[k].title, opt->n_classes);
    dpl_name_list_free(&known);
    return err;
}

static int no_classes(const folder *f, dpl_text *why)
{
    if (f->index.loose_pictures)
        return dpl_fail(why, DPL_EDATA,
                        "%s: %llu pictures but no class folders; put the pictures of each class "
                        "into a sub-folder of their own",
                        f->root, (unsigned long long)f->index.loose_pictures);
    return dpl_fail(why, DPL_EDATA,
                    "%s: no pictures found (accepted: %s); expected one sub-folder per class",
                    f->root, accepted);
}

/* Where each class's samples begin. */
static int place_classes(folder *f, dpl_text *why)
{
    const size_t classes = (size_t)f->titles.count;

    f->class_names = dpl_calloc(classes, sizeof *f->class_names);
    f->class = dpl_calloc(classes, sizeof *f->class);
    f->class_first = dpl_calloc(classes + 1, sizeof *f->class_first);
    f->base.class_counts = dpl_calloc(classes, sizeof *f->base.class_counts);
    if (!f->class_names || !f->class || !f->class_first || !f->base.class_counts) return DPL_ENOMEM;
    for (size_t c = 0; c < classes; c++) {
        const char *title = f->class_names[c] = dpl_name_at(&f->titles, c);
        const dpl_index_class *in = f->class[c] = find_class(&f->index, title);

        if (in && !in->count)
            return dpl_fail(why, DPL_EDATA,
                            "%s/%s: this class folder holds no pictures (accepted: %s); add some "
                            "or remove the folder",
                            f->root, title, accepted);
        f->base.class_counts[c] = in ? in->count : 0;
        f->class_first[c + 1] = f->class_first[c] + f->base.class_counts[c];
    }
    f->base.classes = (int)classes;
    return DPL_OK;
}

/* From the index to classes and samples. */
static int settle(folder *f, const dpl_options *opt, dpl_text *why)
{
    const dpl_index *x = &f->index;
    int err = DPL_OK;

    if (!x->classes) return no_classes(f, why);
    if (opt->classes) err = use_classes(f, opt, why);
    for (uint64_t k = 0; !err && !opt->classes && k < x->classes; k++)
        err = dpl_name_list_add(&f->titles, "", x->of[k].title);
    dpl_name_list_trim(&f->titles);
    if (!err) err = place_classes(f, why);
    if (!err && x->ignored_example) {
        f->ignored_example = dpl_path_join(f->root, x->ignored_example);
        if (!f->ignored_example) err = DPL_ENOMEM;
    }
    return err == DPL_ENOMEM ? dpl_fail(why, err, "%s: no memory for the classes", f->root) : err;
}

static void publish(folder *f)
{
    dpl_samples *s = &f->base;

    s->total = s->count = f->class_first[s->classes];
    s->class_names = f->class_names;
    s->ignored_files = f->index.ignored;
    s->ignored_example = f->ignored_example;
    s->index_bytes =
        sizeof *f + f->index.bytes + dpl_name_list_bytes(&f->titles) +
        (size_t)s->classes * (sizeof *f->class_names + sizeof *f->class + 2 * sizeof(uint64_t));
}

/* --- listing, or an index file --- */

static int list_tree(folder *f, const dpl_options *opt, dpl_text *why)
{
    const int threads = opt->workers ? opt->workers : dpl_cpus_usable(NULL);

    return dpl_index_list(&f->index, f->root_fd, f->root, threads, opt->index != NULL, why);
}

static void note(folder *f, dpl_index_use use, const char *what, const char *text)
{
    f->base.index_use = use;
    f->base.index_text = f->index_text.s;
    dpl_fail(&f->index_text, 0, "%s%s", text, what);
}

/* Whatever an index file is worth, the samples are those that listing the tree gives. */
static int get_index(folder *f, const dpl_options *opt, dpl_text *why)
{
    dpl_text found = { "" }, written = { "" };
    dpl_index_file file;
    int err;

    if (!opt->index) return list_tree(f, opt, why);
    file = dpl_index_load(&f->index, opt->index, f->root_fd, &found);
    if (file == DPL_INDEX_FILE_GOOD) {
        note(f, DPL_INDEX_USED, ": used, no folder changed", opt->index);
        return DPL_OK;
    }
    if (file == DPL_INDEX_FILE_FOREIGN)
        return dpl_fail(why, DPL_EIO, "index %s; name an index file, or one that is not there yet",
                        found.s);
    if ((err = list_tree(f, opt, why))) return err;
    if (dpl_index_save(&f->index, opt->index, &written))
        note(f, DPL_INDEX_NOT_WRITTEN, "; all folders were listed", written.s);
    else
        note(f, DPL_INDEX_WRITTEN, "; all folders were listed, and the index written", found.s);
    dpl_stamps_free(&f->index.stamps);
    return DPL_OK;
}

int dpl_samples_open_folder(dpl_samples **out, const dpl_options *opt, dpl_text *why)
{
    static const dpl_samples_ops ops = { folder_read, folder_label, folder_name, folder_close };
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
    if ((err = get_index(f, opt, why)) || (err = settle(f, opt, why))) goto done;
    publish(f);
    *out = &f->base;
    f = NULL;
done:
    if (f) folder_close(&f->base);
    return err;
}
