/* SPDX-License-Identifier: Apache-2.0 */
/* Which folder a subcommand works on: train/ or val/ of DIR, or DIR itself. */
#include "base/alloc.h"
#include "base/files.h"
#include "tools/dpload_cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static int is_folder(const char *dir, const char *name)
{
    char *path = dpl_path_join(dir, name);
    struct stat st;
    const int yes = path && !stat(path, &st) && S_ISDIR(st.st_mode);

    free(path);
    return yes;
}

int cli_has_both(const char *dir)
{
    return is_folder(dir, "train") && is_folder(dir, "val");
}

/* Hidden entries and what desktop systems leave behind are no classes, as for the loader. */
static int may_be_class(const struct dirent *e)
{
    return e->d_name[0] != '.' && strcasecmp(e->d_name, "__MACOSX") != 0 &&
           strcasecmp(e->d_name, "lost+found") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Class folders of dir, byte-wise sorted, as the loader maps them to labels. */
static int list_classes(cli_data *d, const char *dir, dpl_text *why)
{
    struct dirent **entries;
    const int n = scandir(dir, &entries, may_be_class, by_bytes);
    int err = DPL_OK;

    if (n < 0) return dpl_fail(why, DPL_EIO, "%s: %s", dir, strerror(errno));
    if (!(d->classes = dpl_calloc((size_t)n, sizeof *d->classes))) err = DPL_ENOMEM;
    for (int i = 0; i < n; i++) {
        if (!err && is_folder(dir, entries[i]->d_name)) {
            d->classes[d->n_classes] = dpl_strdup(entries[i]->d_name);
            if (d->classes[d->n_classes])
                d->n_classes++;
            else
                err = DPL_ENOMEM;
        }
        free(entries[i]);
    }
    free(entries);
    return err ? dpl_fail(why, err, "out of memory for the list of classes") : DPL_OK;
}

/* DIR with train/ and val/ */
static int choose_folder(cli_data *d, const char *dir, cli_options *o, dpl_text *why)
{
    char *train;
    int err = DPL_OK;

    if (o->loader.val_split > 0) {
        return dpl_fail(why, DPL_EINVAL, "--val-split: %s has train/ and val/ already", dir);
    }
    if (o->subset == CLI_ALL) {
        return dpl_fail(why, DPL_EINVAL, "--subset all: %s has train/ and val/, choose one", dir);
    }
    if (o->subset == CLI_AUTO) o->subset = o->loader.recipe == DPL_EVAL ? CLI_VAL : CLI_TRAIN;
    if (!(d->path = dpl_path_join(dir, o->subset == CLI_VAL ? "val" : "train"))) {
        return dpl_fail(why, DPL_ENOMEM, "out of memory");
    }
    if (o->subset == CLI_TRAIN) return DPL_OK;
    if (!(train = dpl_path_join(dir, "train"))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    err = list_classes(d, train, why);
    free(train);
    return err;
}

/* A folder with the class folders in it, or a list: all of it, or a share. name: for messages. */
static int choose_share(const char *name, cli_options *o, dpl_text *why)
{
    if (!(o->loader.val_split > 0) && (o->subset == CLI_TRAIN || o->subset == CLI_VAL)) {
        return dpl_fail(
            why, DPL_EINVAL,
            "--subset %s: %s has no train/ and val/; --val-split 10%% sets a share apart",
            o->subset == CLI_VAL ? "val" : "train", name);
    }
    if (o->subset == CLI_AUTO && o->loader.val_split > 0) {
        o->subset = o->loader.recipe == DPL_EVAL ? CLI_VAL : CLI_TRAIN;
    }
    if (o->subset == CLI_TRAIN) o->loader.subset = DPL_SUBSET_TRAIN;
    if (o->subset == CLI_VAL) o->loader.subset = DPL_SUBSET_VAL;
    return DPL_OK;
}

int cli_data_choose(cli_data *d, const char *dir, cli_options *o, dpl_text *why)
{
    int err;

    *d = (cli_data){ NULL, NULL, 0 };
    if (!o->loader.list && cli_has_both(dir)) {
        err = choose_folder(d, dir, o, why);
    } else {
        err = choose_share(o->loader.list ? o->loader.list : dir, o, why);
        if (!err && dir && !(d->path = dpl_strdup(dir)))
            err = dpl_fail(why, DPL_ENOMEM, "out of memory");
    }
    o->loader.path = d->path;
    o->loader.classes = (const char *const *)d->classes;
    o->loader.n_classes = d->n_classes;
    return err;
}

void cli_data_free(cli_data *d)
{
    for (int i = 0; i < d->n_classes; i++) free(d->classes[i]);
    free(d->classes);
    free(d->path);
    *d = (cli_data){ NULL, NULL, 0 };
}
