/* SPDX-License-Identifier: Apache-2.0 */
/* args.json: what a run was asked and what it found, and how a resumed run takes its options. */
#include "trainer/runlog.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/files.h"
#include "base/json_out.h"
#include "base/thread.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options that do not change what is computed, or name files: a resumed run does not take them. */
static const char *const not_taken[] = {
    "index",   "val-index",    "workers",     "prefetch",    "threads",   "output",  "force",
    "resume",  "evaluate",     "print-freq",  "progress",    "color",     "json",    "quiet",
    "verbose", "print-config", "version",     "max-bad",     "save-freq", "steps",   "rank",
    "world",   "local-rank",   "master-addr", "master-port", "dist-url",  "weights", NULL
};

static void write_data(dpl_json *j, const char *key, const char *path, const dpl_info *d)
{
    if (!path) return;
    dpl_json_object(j, key);
    dpl_json_string(j, "path", path);
    dpl_json_uint(j, "pictures", d->samples);
    dpl_json_uint(j, "ignored_files", d->ignored_files);
    dpl_json_array(j, "counts");
    for (int i = 0; i < d->classes; i++) dpl_json_uint(j, NULL, d->class_counts[i]);
    dpl_json_end(j);
    dpl_json_end(j);
}

static void write_options(dpl_json *j, const char *key, const dpt_cli *cli)
{
    const dpl_opt *o = dpt_cli_spec()->opts;
    char value[1024];

    dpl_json_object(j, key);
    for (; o->name; o++) {
        const char *s = value;

        if (o->type == DPL_OPT_STRING) /* of any length, or NULL */
            memcpy(&s, (const char *)&cli->opt + o->offset, sizeof s);
        else
            dpl_opt_format(o, &cli->opt, value, sizeof value);
        dpl_json_string(j, o->name, s);
    }
    dpl_json_end(j);
}

char *dpt_runlog_options(const dpt_cli *cli)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    dpl_json j;

    if (!f) return NULL;
    dpl_json_begin(&j, f);
    write_options(&j, NULL, cli);
    if (!fclose(f)) return text;
    free(text);
    return NULL;
}

static void write_all(FILE *f, const dpt_cli *cli, const dpt_runlog_data *d)
{
    char host[256] = "";
    dpl_json j;

    gethostname(host, sizeof host - 1);
    dpl_json_begin(&j, f);
    dpl_json_object(&j, NULL);
    dpl_json_string(&j, "program", "dptrain");
    dpl_json_string(&j, "version", DPL_VERSION);
    dpl_json_string(&j, "compiler", __VERSION__);
    dpl_json_string(&j, "backend", d->backend);
    dpl_json_string(&j, "host", host);
    dpl_json_int(&j, "cores", dpl_cpus_usable(NULL));
    dpl_json_string(&j, "cpu", dpl_cpu_name(dpl_cpu_flags()));
    dpl_json_array(&j, "command");
    for (int i = 0; i < d->argc; i++) dpl_json_string(&j, NULL, d->argv[i]);
    dpl_json_end(&j);
    write_options(&j, "options", cli);
    dpl_json_array(&j, "classes");
    for (int i = 0; i < d->train->classes; i++) dpl_json_string(&j, NULL, d->train->class_names[i]);
    dpl_json_end(&j);
    write_data(&j, "train", d->train_path, d->train);
    write_data(&j, "val", d->val_path, d->val);
    dpl_json_end(&j);
    fputc('\n', f);
}

int dpt_runlog_args(const char *folder, const dpt_cli *cli, const dpt_runlog_data *d, dpl_text *why)
{
    char *path = dpl_path_join(folder, "args.json");
    dpl_replace out = { 0 };
    int err;

    if (!path) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    if (!(err = dpl_replace_open(&out, path, why))) {
        write_all(out.f, cli, d);
        err = dpl_replace_commit(&out, why);
    }
    free(path);
    return err;
}

int dpt_runlog_is_taken(const char *name)
{
    for (int i = 0; not_taken[i]; i++)
        if (!strcmp(not_taken[i], name)) return 0;
    return 1;
}

/* "--name=value", "--name", "--no-name", or NULL with *err set. */
static char *as_argument(const dpl_opt *o, const char *value, int *err)
{
    char *s = NULL;
    int n;

    if (o->type == DPL_OPT_FLAG)
        n = asprintf(&s, strcmp(value, "0") != 0 && strcmp(value, "off") != 0 ? "--%s" : "--no-%s",
                     o->name);
    else
        n = asprintf(&s, "--%s=%s", o->name, value);
    if (n >= 0) return s;
    *err = DPL_ENOMEM;
    return NULL;
}

int dpt_runlog_saved(const char *folder, const char *recipe, char ***out, int *n, dpl_text *why)
{
    char *path = dpl_path_join(folder, "args.json");
    json_error_t at;
    json_t *all = NULL, *options;
    int err = DPL_OK;

    *n = 0;
    if (!(*out = dpl_calloc(DPT_CLI_MAX, sizeof **out)) || !path) {
        err = DPL_ENOMEM;
        goto done;
    }
    if (access(path,
               F_OK)) { /* the checkpoint was moved away from its folder: it carries them too */
        options = all = recipe ? json_loads(recipe, 0, &at) : NULL;
    } else {
        all = json_load_file(path, 0, &at);
        options = json_object_get(all, "options");
        if (!json_is_object(options)) {
            err = dpl_fail(why, DPL_EDATA, "%s: not the options of a run: %s (line %d)", path,
                           all ? "no \"options\"" : at.text, all ? 1 : at.line);
            goto done;
        }
    }
    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name && !err; o++) {
        const char *value = json_string_value(json_object_get(options, o->name));
        if (value && dpt_runlog_is_taken(o->name) && ((*out)[*n] = as_argument(o, value, &err)))
            (*n)++;
    }
done:
    if (err == DPL_ENOMEM) dpl_fail(why, err, "out of memory");
    json_decref(all);
    free(path);
    return err;
}

void dpt_runlog_saved_free(char **args, int n)
{
    for (int i = 0; args && i < n; i++) free(args[i]);
    free(args);
}
