/* SPDX-License-Identifier: Apache-2.0 */
/* The files a run leaves beside its checkpoints: log.csv, one row per epoch; log.jsonl, one object
 * per step and per evaluation; args.json, what was asked and found. Written line by line and flushed,
 * so that a killed run leaves whole lines. */
#ifndef DPT_TRAINER_RUNLOG_H
#define DPT_TRAINER_RUNLOG_H

#include "trainer/checkpoint.h"
#include "trainer/cli.h"
#include "trainer/report.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_runlog {
    FILE *csv, *jsonl; /* NULL = not open: what is written then goes nowhere */
    char *folder;
} dpt_runlog;

/** Open both logs in an existing folder. at NULL: start them anew. Else go on behind a checkpoint:
 *  what the logs hold beyond it is cut off, so that no step is there twice.
 *  @return DPL_OK, DPL_EIO, DPL_ENOMEM; why */
int dpt_runlog_open(dpt_runlog *l, const char *folder, const dpt_progress *at, dpl_text *why);
/** @return DPL_OK, or DPL_EIO when a line could not be written (disk full …); why */
int dpt_runlog_close(dpt_runlog *l, dpl_text *why);

/** One optimizer step. @return DPL_OK or DPL_EIO; why */
int dpt_runlog_step(dpt_runlog *l, const dpt_pass *p, int64_t step, dpl_text *why);
/** One evaluation over all validation pictures. */
int dpt_runlog_eval(dpt_runlog *l, const dpt_pass *val, int64_t step, dpl_text *why);

/** What an epoch came to. val->batch 0 = not evaluated. */
typedef struct dpt_epoch_row {
    const dpt_pass *train, *val;
    uint64_t refused, warned; /* files so far */
    int64_t step;             /* optimizer steps so far */
    double seconds;           /* training and evaluation, here */
} dpt_epoch_row;
int dpt_runlog_epoch(dpt_runlog *l, const dpt_epoch_row *row, dpl_text *why);

/** What the data was, for args.json. */
typedef struct dpt_runlog_data {
    const char *train_path, *val_path; /* val_path NULL = none */
    const dpl_info *train, *val;
    const char *backend; /* as chosen */
    int argc;
    char **argv;
} dpt_runlog_data;
/** Write folder/args.json. @return DPL_OK, DPL_EIO, DPL_ENOMEM; why */
int dpt_runlog_args(const char *folder, const dpt_cli *cli, const dpt_runlog_data *d,
                    dpl_text *why);

/** All options as a JSON object in new memory, or NULL. free() it. */
char *dpt_runlog_options(const dpt_cli *cli);
/** 1 when a resumed run takes option `name` from args.json. */
int dpt_runlog_is_taken(const char *name);

/** The options of the run in `folder` that decide what it computes, as "--name=value" arguments; the
 *  caller frees each and the array. No args.json there: from `recipe`, the JSON text that the
 *  checkpoint carries; without it (NULL): none.
 *  @return DPL_OK, DPL_EDATA (damaged), DPL_ENOMEM; why */
int dpt_runlog_saved(const char *folder, const char *recipe, char ***out, int *n, dpl_text *why);
void dpt_runlog_saved_free(char **args, int n);

#ifdef __cplusplus
}
#endif
#endif
