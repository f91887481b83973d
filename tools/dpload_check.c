/* SPDX-License-Identifier: Apache-2.0 */
/* dpload check: decode every picture as evaluation would, but whole, and list the bad ones. */
#include "base/files.h"
#include "tools/dpload_cli.h"

#include <inttypes.h>
#include <stdlib.h>

/* Resized to a short side of 1 pixel and padded to 256, a picture keeps every row and column as long
 * as one side is no more than 256 times the other: nothing is cropped, so all of it is decoded. */
enum { CHECK_SHORT = 1, CHECK_SIDE = 256, CHECK_BATCH = 16 };

static const dpl_opt rows[] = {
    CLI_OPT_SUBSET("auto or all: everything; or only train/ or val/ [auto]"),
    CLI_OPT_VERBOSE,
    CLI_OPT_END,
};
static const char *const loader_rows[] = { "workers",        "strict", "max-pixels", "max-scans",
                                           "max-file-bytes", "list",   "index",      NULL };
static const cli_command command = {
    .program = "dpload check",
    .summary = "Decode every picture of DIR (of DIR/train and DIR/val) from its first row to its "
               "last, and list the bad ones: path, tab, reason. Control characters in a path are "
               "written as \\n, \\t and \\x1b. Exit code 3 when there are any.",
    .examples = "dpload check imagenet\ndpload check --strict imagenet > bad.tsv\n"
                "dpload check --list val.txt\n",
    .own = rows,
    .loader = loader_rows,
};

typedef struct totals {
    uint64_t pictures, bad, warned, ignored;
} totals;

static int drain(dpl_loader *l)
{
    int err;

    do {
        dpl_batch b;

        err = dpl_next(l, &b, -1);
        if (!err) dpl_release(l, &b, NULL);
    } while (!err);
    return err == DPL_EOF ? DPL_OK : err;
}

static int list_bad(const dpl_loader *l, totals *t)
{
    dpl_bad *list;
    dpl_info info;
    dpl_text reason;
    size_t n;
    int err;

    if ((err = cli_bad_list(l, &list, &n))) return err;
    for (size_t i = 0; i < n; i++) {
        const int warned = list[i].kind == DPL_BAD_WARNED;

        dpl_print_visible(stdout, list[i].path); /* one line per picture, whatever its name */
        printf("\t%s%s\n", warned ? "warning: " : "",
               cli_words(&reason, DPL_EDATA, list[i].reason));
        t->warned += (uint64_t)warned;
        t->bad += (uint64_t)!warned;
    }
    dpl_info_get(l, &info);
    t->pictures += info.samples;
    t->ignored += info.ignored_files;
    free(list);
    return DPL_OK;
}

/* @return exit code; CLI_DONE also when pictures are bad */
static int check_folder(const char *path, const cli_options *o, totals *t)
{
    dpl_options opt = o->loader;
    dpl_loader *l;
    int err;

    opt.path = path;
    if ((err = dpl_open(&l, &opt))) return cli_fail_loader(err, NULL);
    if (o->verbose || o->loader.index) {
        cli_options say = *o;

        say.loader = opt;
        cli_announce(l, &say, stderr);
    }
    err = drain(l);
    if (!err) err = list_bad(l, t);
    if (err) err = cli_fail_loader(err, l);
    dpl_close(&l);
    return err;
}

static void set_up(cli_options *o)
{
    o->loader.recipe = DPL_EVAL;
    o->loader.width = o->loader.height = CHECK_SIDE;
    o->loader.resize = CHECK_SHORT;
    o->loader.batch = CHECK_BATCH;
    o->loader.shuffle = 0;
    o->loader.epochs = 1;
    o->loader.max_bad = 1;
}

/* The folders that hold classes: DIR/train, DIR/val, or DIR. */
static int check_all(const char *dir, const cli_options *o, totals *t)
{
    static const char *const names[] = { "train", "val" };
    int code = CLI_DONE;

    for (int i = 0; i < 2 && !code; i++) {
        char *path;

        if (o->subset == (i ? CLI_TRAIN : CLI_VAL)) continue;
        if (!(path = dpl_path_join(dir, names[i]))) return cli_fail(DPL_ENOMEM, "out of memory");
        code = check_folder(path, o, t);
        free(path);
    }
    return code;
}

int cli_check(int argc, char **argv)
{
    cli_options o = { .size = 0 };
    totals t = { 0 };
    dpl_text why = { "" };
    const char *dir;
    int code;

    dpl_options_init(&o.loader, sizeof o.loader);
    if (cli_parse(&command, argc, argv, &o, &dir, &code)) return code;
    set_up(&o);
    if (!o.loader.list && cli_has_both(dir)) {
        if (o.loader.index && o.subset != CLI_TRAIN && o.subset != CLI_VAL)
            return cli_fail(DPL_EINVAL, "--index holds the listing of one folder: add --subset "
                                        "train or --subset val");
        code = check_all(dir, &o, &t);
    } else if (o.subset == CLI_TRAIN || o.subset == CLI_VAL) {
        dpl_fail(&why, DPL_EINVAL, "--subset %s: %s has no train/ and val/",
                 o.subset == CLI_VAL ? "val" : "train", o.loader.list ? o.loader.list : dir);
        return cli_fail(DPL_EINVAL, why.s);
    } else {
        code = check_folder(dir, &o, &t);
    }
    if (code) return code;
    printf("%" PRIu64 " pictures: %" PRIu64 " decoded in full (%" PRIu64
           " with a warning), %" PRIu64 " bad; %" PRIu64 " other files ignored\n",
           t.pictures, t.pictures - t.bad, t.warned, t.bad, t.ignored);
    return t.bad ? CLI_DATA : CLI_DONE;
}
