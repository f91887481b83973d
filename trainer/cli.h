/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain's command line: the options, what they mean together, and the exit codes. */
#ifndef DPT_TRAINER_CLI_H
#define DPT_TRAINER_CLI_H

#include "base/optparse.h"
#include "base/text.h"
#include "dpload.h"
#include "trainer/optim.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a run ends with. Functions of the program return one of these; 0 is success. */
typedef enum dpt_exit {
    DPT_EXIT_DONE = 0,
    DPT_EXIT_FAILED = 1, /* diverged, out of memory, could not save */
    DPT_EXIT_USAGE = 2,
    DPT_EXIT_DATA = 3,
    DPT_EXIT_DEVICE = 4,
    DPT_EXIT_STOPPED = 75,     /* SIGTERM, SIGUSR1 or SIGHUP, checkpoint saved */
    DPT_EXIT_INTERRUPTED = 130 /* SIGINT; saved, unless it came twice or before the first step */
} dpt_exit;

/** The exit code that stands for a library status. */
int dpt_exit_of(int status);

enum { DPT_COLOR_AUTO, DPT_COLOR_ALWAYS, DPT_COLOR_NEVER };

/** Values of the options as the table fills them; strings are borrowed from argv, the environment or
 *  the options of a resumed run. */
typedef struct dpt_options {
    dpl_options load; /* the loader's rows; path, parts and sizes are set by dpt_setup */
    const char *dir;  /* NULL: lists only */
    const char *val_list, *val_index; /* of training: load.list, load.index */
    const char *arch;
    int epochs;
    uint64_t steps;          /* 0 = no limit */
    int opt;                 /* dpt_rule */
    double lr, weight_decay; /* below 0 while parsing: not said, each rule has its own default */
    double momentum;
    int nesterov;
    double betas[2], eps, trust;
    int sched; /* dpt_schedule_kind */
    double step_size, gamma, warmup;
    int size, resize;
    const char *devices, *split;
    int threads;
    const char *backend;
    int amp;                     /* dpt_amp */
    int rank, world, local_rank; /* -1 = not said */
    const char *master_addr, *dist_url;
    int master_port; /* 0 = not said */
    const char *output;
    int force;
    const char *resume, *weights;
    int evaluate;
    int print_freq;
    uint64_t save_freq; /* steps, 0 = at epoch ends only */
    int quiet, verbose, json;
    int color;
    const char *progress;
    int print_config, version;
} dpt_options;

enum { DPT_CLI_MAX = 128 }; /* room for one flag per table row */

/** A parsed command line. */
typedef struct dpt_cli {
    dpt_options opt;
    char given[DPT_CLI_MAX]; /* 1 = set by argv or the environment */
    char **held;             /* argv made of a resumed run's options; opt may point into it */
    int n_held;
} dpt_cli;

/** The table, for help, --print-config, args.json and tests. */
const dpl_opt_spec *dpt_cli_spec(void);
/** Position of option `name` in the table; the name must be there. */
int dpt_cli_index(const char *name);
/** 1 when option `name` was set by argv or the environment. */
int dpt_cli_given(const dpt_cli *c, const char *name);

/** Defaults, environment, argv, then the checks that need no files.
 *  saved / n_saved: options of a resumed run as "--name=value", below argv in rank; NULL = none.
 *  @return DPT_EXIT_DONE: go on, or *helped is 1: help was written to out; DPT_EXIT_USAGE: why */
int dpt_cli_parse(dpt_cli *c, int argc, char **argv, char *const *saved, int n_saved, FILE *out,
                  int *helped, dpl_text *why);
void dpt_cli_fini(dpt_cli *c);

/* --- cli_optim.c: --opt and the options that belong to one or two of its rules --- */

/** Fill in what was not said. */
void dpt_cli_optim_defaults(dpt_options *o);
/** Refuse options of another rule, and values that cannot be. @return dpt_exit */
int dpt_cli_optim_check(const dpt_cli *c, dpl_text *why);
/** The step that the options ask for, without lr and first. */
dpt_update dpt_cli_update(const dpt_options *o);
/** "SGD lr 0.1 (step), momentum 0.9, weight decay 0.0001" */
void dpt_cli_optim_text(const dpt_options *o, char *buf, size_t len);

/** What dpl_error_text(l) says, with the names of options as they are typed. @return code */
int dpt_cli_loader_failed(int code, int status, const dpl_loader *l, dpl_text *why);
/** The reason of a bad sample in these words, in *out. @return its text */
const char *dpt_cli_words(dpl_text *out, const char *text);

/** One line per option: its value, and whether it was set or is the default. */
void dpt_cli_print_config(const dpt_cli *c, FILE *out);

/** The value of --progress: -1 = auto, 0 = none, else seconds. @return 0, or -1 when it is neither */
int dpt_cli_progress(const char *text, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
