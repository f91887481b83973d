/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pictures are: DIR/train and DIR/val, parts of DIR, or lists; and the loaders over them. */
#include "base/alloc.h"
#include "base/files.h"
#include "trainer/run.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder of class folders, and not a class that happens to be called "train". */
static int has_subfolder(const char *path)
{
    DIR *d = opendir(path);
    int found = 0;

    if (!d) return 0;
    for (struct dirent *e; !found && (e = readdir(d));) {
        char *sub = e->d_name[0] == '.' ? NULL : dpl_path_join(path, e->d_name);
        found = sub && is_folder(sub);
        free(sub);
    }
    closedir(d);
    return found;
}

static int check_dir(const char *dir, dpl_text *why)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return dpl_fail(why, DPT_EXIT_DATA,
                        "%s: %s; give a folder with one sub-folder of pictures per class, or with "
                        "train/ and val/ of such",
                        dir, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return dpl_fail(why, DPT_EXIT_DATA,
                        "%s: not a folder; give a folder with one sub-folder of pictures per class",
                        dir);
    return DPT_EXIT_DONE;
}

/* Both names are there, or one alone is clearly half of a pair. */
static int find_layout(dpt_run *r, dpl_text *why)
{
    const dpt_options *o = r->opt;
    char *train = dpl_path_join(o->dir, "train"), *val = dpl_path_join(o->dir, "val");
    int has_train, has_val, rc = DPT_EXIT_DONE;

    if (!train || !val) {
        rc = dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
        goto done;
    }
    has_train = is_folder(train);
    has_val = is_folder(val);
    if (has_train && has_val && o->load.val_split > 0) {
        rc = dpl_fail(why, DPT_EXIT_USAGE,
                      "--val-split %g: %s has train/ and val/ already; leave the option out, or "
                      "give DIR as %s",
                      o->load.val_split, o->dir, train);
    } else if (has_train && has_val) {
        r->train_path = train;
        r->val_path = val;
        r->val_index = o->val_index;
        train = val = NULL;
    } else if (has_train && has_subfolder(train)) {
        rc = dpl_fail(why, DPT_EXIT_DATA,
                      "%s: has train/ but no val/; add val/, or train on %s with --val-split 10%%",
                      o->dir, train);
    } else if (has_val && has_subfolder(val) && !o->evaluate) {
        rc =
            dpl_fail(why, DPT_EXIT_DATA, "%s: has val/ but no train/: nothing to train on", o->dir);
    } else if (has_val && has_subfolder(val)) {
        r->val_path = val;
        r->val_index = o->val_index;
        val = NULL;
    } else if (o->val_index) {
        rc =
            dpl_fail(why, DPT_EXIT_USAGE,
                     "--val-index %s: %s has no val/ with a listing of its own; --index holds that "
                     "of %s",
                     o->val_index, o->dir, o->dir);
    } else {
        r->subsets = o->load.val_split > 0;
        r->val_index = o->load.index;
        if (!o->evaluate || r->subsets) r->train_path = dpl_strdup(o->dir);
        if (o->evaluate || r->subsets) r->val_path = dpl_strdup(o->dir);
        if (!r->train_path && !r->val_path) rc = dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    }
done:
    free(train);
    free(val);
    return rc;
}

/* Lists in place of folders: DIR is only where relative paths begin. */
static int find_lists(dpt_run *r, dpl_text *why)
{
    const dpt_options *o = r->opt;
    const char *train = o->load.list, *val = o->val_list;

    r->listed = 1;
    r->subsets = o->load.val_split > 0;
    if (!val && (o->evaluate || r->subsets)) val = train;
    if (val == train && !r->subsets) train = NULL; /* only to be measured on */
    if ((train && !(r->train_path = dpl_strdup(train))) ||
        (val && !(r->val_path = dpl_strdup(val))))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    return DPT_EXIT_DONE;
}

static void common_options(const dpt_run *r, dpl_options *o, dpl_recipe recipe)
{
    *o = r->opt->load;
    o->recipe = recipe;
    o->devices = r->device_text;
    o->split = r->weight;
    o->n_split = r->weight ? r->devices : 0;
    o->width = o->height = r->opt->size;
    o->resize = r->opt->resize;
    o->workers = dpt_run_workers(r);
    o->rank = r->rank;
    o->world = r->world;
    o->dtype = dpt_run_bytes(r) ? DPL_UINT8 : DPL_FLOAT32;
    o->layout = dpt_run_bytes(r) ? DPL_NHWC : DPL_NCHW;
    if (!r->subsets) o->val_split = 0;
}

static void set_source(const dpt_run *r, dpl_options *o, const char *path)
{
    o->path = r->listed ? r->opt->dir : path;
    o->list = r->listed ? path : NULL;
}

/* Lists may leave labels out; a loss needs them. */
static int check_labels(const dpt_run *r, const char *path, const dpl_info *d, dpl_text *why)
{
    uint64_t labelled = 0;

    for (int c = 0; c < d->classes; c++) labelled += d->class_counts[c];
    if (!r->listed || labelled == d->samples) return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_DATA,
                    "list %s: %llu of %llu pictures have no label; put it behind a tab, or leave "
                    "them out",
                    path, (unsigned long long)(d->samples - labelled),
                    (unsigned long long)d->samples);
}

static int open_train(dpt_run *r, dpl_text *why)
{
    dpl_options o;
    int err;

    common_options(r, &o, DPL_TRAIN);
    set_source(r, &o, r->train_path);
    o.epochs = (uint64_t)r->opt->epochs;
    if (r->subsets) o.subset = DPL_SUBSET_TRAIN;
    if ((err = dpl_open(&r->train, &o)))
        return dpt_cli_loader_failed(dpt_exit_of(err), err, NULL, why);
    dpl_info_get(r->train, &r->train_info);
    return check_labels(r, r->train_path, &r->train_info, why);
}

static int open_val(dpt_run *r, dpl_text *why)
{
    dpl_options o;
    int err;

    common_options(r, &o, DPL_EVAL);
    set_source(r, &o, r->val_path);
    o.index = r->val_index;
    o.shuffle = 0;
    o.drop_last = 0; /* every picture counts */
    o.epochs = 0;
    o.classes = dpt_run_class_names(r);
    o.n_classes = o.classes ? dpt_run_classes(r) : 0;
    if (r->subsets) o.subset = DPL_SUBSET_VAL;
    if ((err = dpl_open(&r->val, &o))) /* its options were fine for train: the data is not */
        return dpt_cli_loader_failed(err == DPL_EINVAL ? DPT_EXIT_DATA : dpt_exit_of(err), err,
                                     NULL, why);
    dpl_info_get(r->val, &r->val_info);
    return check_labels(r, r->val_path, &r->val_info, why);
}

const char *const *dpt_run_class_names(const dpt_run *r)
{
    if (r->train) return r->train_info.class_names;
    if (r->opt->evaluate && r->peek.class_names) return (const char *const *)r->peek.class_names;
    return r->val ? r->val_info.class_names : NULL;
}

int dpt_run_classes(const dpt_run *r)
{
    if (r->train) return r->train_info.classes;
    if (r->opt->evaluate && r->peek.class_names) return r->peek.classes;
    return r->val ? r->val_info.classes : 0;
}

int dpt_run_find(dpt_run *r, dpl_text *why)
{
    int rc;

    if (r->opt->load.list || r->opt->val_list) return find_lists(r, why);
    if ((rc = check_dir(r->opt->dir, why))) return rc;
    return find_layout(r, why);
}

int dpt_run_data(dpt_run *r, dpl_text *why)
{
    int rc;

    if (r->opt->evaluate && r->peek.class_names) { /* the checkpoint knows the labels */
        free(r->train_path);
        r->train_path = NULL;
    }
    if (r->train_path && (rc = open_train(r, why))) return rc;
    if (r->sim || !r->val_path) return DPT_EXIT_DONE;
    rc = open_val(r, why);
    if (!rc && r->opt->evaluate) dpl_close(&r->train); /* it was there for its class names */
    return rc;
}
