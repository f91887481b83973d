/* SPDX-License-Identifier: Apache-2.0 */
/* Options, errors and exit codes of dpload; see dpload_cli.h. */
#include "tools/dpload_cli.h"

#include "base/alloc.h"
#include "base/optloader.h"
#include "base/optnames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 128 };

static const dpl_opt loader_rows[] = { DPL_SOURCE_OPT_ROWS(cli_options, loader),
                                       DPL_LOADER_OPT_ROWS(cli_options, loader), CLI_OPT_END };

static int is_listed(const char *const *names, const char *name)
{
    if (!names) return 1;
    for (; *names; names++) {
        if (!strcmp(*names, name)) return 1;
    }
    return 0;
}

/* What the command that runs offers: set once, by cli_parse(). */
static dpl_opt table[ROWS_MAX];

/* The command's own rows, then the loader's that it takes. */
static void make_table(const cli_command *c)
{
    int n = 0;

    for (const dpl_opt *o = c->own; o->name; o++) table[n++] = *o;
    for (const dpl_opt *o = loader_rows; o->name; o++) {
        if (is_listed(c->loader, o->name) && n < ROWS_MAX - 1) table[n++] = *o;
    }
    table[n] = (dpl_opt)CLI_OPT_END;
}

/* DIR, or with a list also none. */
static int take_dir(const cli_command *c, const cli_options *o, int n, char **operands,
                    const char **dir, dpl_text *why)
{
    size_t len;

    *dir = NULL;
    if (!n && o->loader.list) return DPL_OK;
    if (n != 1)
        return dpl_fail(why, DPL_EINVAL, "%s: %s DIR (%s -h)",
                        n ? "more than one folder" : "the folder is missing", c->program,
                        c->program);
    len = strlen(*operands);
    while (len > 1 && (*operands)[len - 1] == '/') (*operands)[--len] = '\0';
    *dir = *operands;
    return DPL_OK;
}

int cli_parse(const cli_command *c, int argc, char **argv, cli_options *o, const char **dir,
              int *code)
{
    const dpl_opt_spec spec = {
        .program = c->program,
        .usage = "[options] DIR",
        .summary = c->summary,
        .examples = c->examples,
        .see = "More: --help",
        .env = "DPLOAD_",
        .opts = table,
    };
    dpl_text why = { "" };
    int operand, got;

    make_table(c);
    got = dpl_opt_parse(&spec, argc, argv, o, NULL, &operand, stdout, &why);
    *code = CLI_DONE;
    if (got == DPL_OPT_HELPED) return -1;
    if (got == DPL_OPT_RUN) got = take_dir(c, o, argc - operand, argv + operand, dir, &why);
    if (got != DPL_OPT_RUN) {
        *code = cli_fail(got, why.s);
        return -1;
    }
    if (o->size) o->loader.width = o->loader.height = o->size;
    return CLI_DONE;
}

int cli_fail(int status, const char *text)
{
    fflush(stdout);
    fputs("dpload: ", stderr);
    dpl_print_visible(stderr, text);
    fputc('\n', stderr);
    switch (status) {
    case DPL_EINVAL: return CLI_USAGE;
    case DPL_EIO:
    case DPL_EDATA: return CLI_DATA;
    case DPL_EDEVICE:
    case DPL_ENOTSUP: return CLI_DEVICE;
    default: return CLI_FAILED;
    }
}

const char *cli_words(dpl_text *out, int status, const char *text)
{
    snprintf(out->s, sizeof out->s, "%s", text);
    dpl_opt_name_fields(table, status, out);
    return out->s;
}

int cli_fail_loader(int status, const dpl_loader *l)
{
    dpl_text text;

    return cli_fail(status, cli_words(&text, status, dpl_error_text(l)));
}

int cli_end(int code)
{
    const int lost = fflush(stdout) || ferror(stdout);

    if (lost) fputs("dpload: standard output could not be written\n", stderr);
    return lost && !code ? CLI_FAILED : code;
}

const char *cli_dtype_name(dpl_dtype t)
{
    static const char *const name[] = { "uint8", "float32", "bfloat16", "float16" };

    return name[t];
}

size_t cli_dtype_bytes(dpl_dtype t)
{
    return t == DPL_UINT8 ? 1 : t == DPL_FLOAT32 ? 4 : 2;
}

static double mb(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

void cli_announce(const dpl_loader *l, const cli_options *o, FILE *out)
{
    const dpl_options *p = &o->loader;
    char readers[32] = "";
    dpl_info info;

    dpl_info_get(l, &info);
    if (info.readers) snprintf(readers, sizeof readers, " + %d that read", info.readers);
    fprintf(out,
            "%s: %" PRIu64 " pictures in %d classes; %s recipe, %d x %d %s %s; batch %d, loader "
            "threads %d%s, batches ahead %d, %s\n",
            p->list ? p->list : p->path, info.samples, info.classes,
            p->recipe == DPL_EVAL ? "eval" : "train", p->width, p->height, cli_dtype_name(p->dtype),
            p->layout == DPL_NCHW ? "NCHW" : "NHWC", p->batch, info.workers, readers, info.prefetch,
            info.devices);
    if (info.devices_text && o->verbose) fprintf(out, "no GPU is used: %s\n", info.devices_text);
    if (info.ignored_files) {
        fprintf(out, "%" PRIu64 " other files ignored, for example %s\n", info.ignored_files,
                info.ignored_example ? info.ignored_example : "?");
    }
    if (info.index_text) fprintf(out, "index %s\n", info.index_text);
    if (!o->verbose) return;
    fprintf(
        out,
        "memory: batch slots %.1f MB + scratch %d x %.1f MB + read ahead %.1f MB + index %.2f MB = "
        "%.1f MB at most\n",
        mb(info.slot_bytes), info.workers, mb(info.scratch_bytes), mb(info.read_ahead_bytes),
        mb(info.index_bytes),
        mb(info.slot_bytes + (uint64_t)info.workers * info.scratch_bytes + info.read_ahead_bytes +
           info.index_bytes));
}

/* --- bad pictures --- */

static int by_kind_and_id(const void *a, const void *b)
{
    const dpl_bad *x = a, *y = b;

    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int cli_bad_list(const dpl_loader *l, dpl_bad **out, size_t *n)
{
    size_t cap = 0;
    dpl_bad bad;

    *out = NULL;
    for (*n = 0; dpl_bad_get(l, *n, &bad) == DPL_OK; (*n)++) {
        if (dpl_grow((void **)out, &cap, *n + 1, sizeof **out)) {
            free(*out);
            *out = NULL;
            *n = 0;
            return DPL_ENOMEM;
        }
        (*out)[*n] = bad;
    }
    if (*n) qsort(*out, *n, sizeof **out, by_kind_and_id);
    return DPL_OK;
}

void cli_name_bad(const dpl_loader *l)
{
    enum { NAMED_MAX = 10 };
    dpl_text reason;
    dpl_bad *list;
    size_t n, refused = 0;

    if (cli_bad_list(l, &list, &n)) return;
    while (refused < n && list[refused].kind == DPL_BAD_REFUSED) refused++;
    for (size_t i = 0; i < refused && i < NAMED_MAX; i++) {
        fputs("dpload: left out ", stderr);
        dpl_print_visible(stderr, list[i].path);
        fprintf(stderr, ": %s\n", cli_words(&reason, DPL_EDATA, list[i].reason));
    }
    if (refused > NAMED_MAX) {
        fprintf(stderr, "dpload: and %zu more (dpload check lists all)\n", refused - NAMED_MAX);
    }
    free(list);
}
