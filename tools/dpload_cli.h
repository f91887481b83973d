/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of dpload share: options, finding train/ and val/, errors and exit codes. */
#ifndef TOOLS_DPLOAD_CLI_H
#define TOOLS_DPLOAD_CLI_H

#include "base/optparse.h"
#include "base/text.h"
#include "dpload.h"

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_DATA = 3, CLI_DEVICE = 4 };

typedef enum cli_subset { CLI_AUTO = 0, CLI_TRAIN = 1, CLI_VAL = 2, CLI_ALL = 3 } cli_subset;

/** Options of all subcommands; each offers those it uses. */
typedef struct cli_options {
    dpl_options loader;
    int size; /* width and height */
    cli_subset subset;
    int verbose, json, hash;
    int batches;      /* end after so many, 0 = all */
    const char *step; /* modelled time of a training step */
    const char *output;
    int columns, rows;
    int limit, rounds; /* measure beside the decoder, so many times */
} cli_options;

#define CLI_AT(field) offsetof(cli_options, field)
#define CLI_OPT_SIZE(text)                                                                         \
    {                                                                                              \
        "size", 0, "img-size", DPL_OPT_INT, CLI_AT(size), 1, 8192, NULL, "N", text, NULL, 1        \
    }
#define CLI_OPT_RECIPE                                                                             \
    {                                                                                              \
        "recipe", 0, NULL, DPL_OPT_CHOICE, CLI_AT(loader.recipe), 0, 0, "train|eval", "NAME",      \
            "train: random crop, flip …; eval: resize, centre crop [train]", NULL, 1               \
    }
#define CLI_OPT_SUBSET(text)                                                                       \
    {                                                                                              \
        "subset", 0, NULL, DPL_OPT_CHOICE, CLI_AT(subset), 0, 0, "auto|train|val|all", "NAME",     \
            text, NULL, 1                                                                          \
    }
#define CLI_OPT_VERBOSE                                                                            \
    {                                                                                              \
        "verbose", 'v', NULL, DPL_OPT_COUNT, CLI_AT(verbose), 0, 0, NULL, NULL,                    \
            "say how much memory the loader takes", NULL, 0                                        \
    }
#define CLI_OPT_END                                                                                \
    {                                                                                              \
        NULL, 0, NULL, DPL_OPT_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL, 0                            \
    }

/** A subcommand's command line. */
typedef struct cli_command {
    const char *program, *summary, *examples;
    const dpl_opt *own; /* rows of its own */
    const char *const
        *loader; /* names of the loader's rows it takes, NULL at the end; NULL = all */
} cli_command;

/** Parse; options start from o. *dir is the one operand, without slashes at its end;
 *  NULL when it is left out, as it may be with a list.
 *  @return CLI_DONE to go on, else *code is what to exit with (0 after -h) */
int cli_parse(const cli_command *c, int argc, char **argv, cli_options *o, const char **dir,
              int *code);

/** The folder that a loader is opened on. */
typedef struct cli_data {
    char *path;     /* NULL: a list without a folder */
    char **classes; /* of train/ when path is val/, so that labels mean the same; else NULL */
    int n_classes;
} cli_data;

/** 1 when dir holds train/ and val/. */
int cli_has_both(const char *dir);
/** Choose by o->subset, else by recipe, and set path, classes and subset of o->loader. dir may be NULL
 *  with a list.
 *  @return DPL_OK, DPL_EINVAL, DPL_EIO, DPL_ENOMEM */
int cli_data_choose(cli_data *d, const char *dir, cli_options *o, dpl_text *why);
void cli_data_free(cli_data *d);

/** "uint8", "float32", "bfloat16", "float16". */
const char *cli_dtype_name(dpl_dtype t);
/** Bytes of one number. */
size_t cli_dtype_bytes(dpl_dtype t);
/** "dpload: text" on stderr. @return the exit code for status */
int cli_fail(int status, const char *text);
/** A text of the library with the names of options as they are typed, in *out. @return its text */
const char *cli_words(dpl_text *out, int status, const char *text);
/** cli_fail() with dpl_error_text(l), in these words. */
int cli_fail_loader(int status, const dpl_loader *l);
/** After dpl_open(): one line on what was opened; with verbose also what memory it takes. */
void cli_announce(const dpl_loader *l, const cli_options *o, FILE *out);
/** Bad pictures on stderr, at most 10, sorted by sample. */
void cli_name_bad(const dpl_loader *l);
/** All bad and warned samples, bad ones first, each sorted by sample. free() *out.
 *  @return DPL_OK or DPL_ENOMEM */
int cli_bad_list(const dpl_loader *l, dpl_bad **out, size_t *n);
/** exit code, or CLI_FAILED when stdout could not take everything (disk full, closed). */
int cli_end(int code);

enum { CLI_CAPTION_MAX = 128 };
/** What dpload show writes below picture i: its class, or both and their weights.
 *  @return how many lines */
int cli_caption(char line[2][CLI_CAPTION_MAX], const dpl_part *p, int i, const dpl_info *info);

int cli_bench(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_show(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
