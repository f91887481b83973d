/* SPDX-License-Identifier: Apache-2.0 */
/* A run of dptrain: its devices, data, model and files, put together step by step from the options.
 * Every function returns a dpt_exit and, unless it is DPT_EXIT_DONE, the text of what went wrong. */
#ifndef DPT_TRAINER_RUN_H
#define DPT_TRAINER_RUN_H

#include "dpload.h"
#include "trainer/backend.h"
#include "trainer/checkpoint.h"
#include "trainer/cli.h"
#include "trainer/graph.h"
#include "trainer/launcher.h"
#include "trainer/report.h"
#include "trainer/runlog.h"
#include "trainer/team.h"

#include <dirent.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_run {
    dpt_cli *cli;
    dpt_options *opt; /* of cli */
    dpt_report *report;
    int argc;
    char **argv; /* as the program got them, for args.json */

    /* devices */
    const char *device_text; /* the list as the loader takes it; of the same allocation as: */
    char **device;           /* [devices] */
    int devices;
    int *weight;    /* [devices], or NULL = even */
    int *part;      /* [devices] samples of each in a full batch */
    int *part_most; /* [devices] no batch gives a device more than this */
    int sim;        /* 1 = simulated: nothing is learned */
    int cuda;       /* 1 = all are NVIDIA GPUs */
    int *gpu;       /* [devices] their numbers among the visible ones, or NULL */
    int split_auto; /* 1 = --split auto: weights are measured before the first step */

    /* processes that share the run */
    dpt_launcher launcher;
    int rank, world;     /* of this one; world 1 = alone */
    int local_rank;      /* among those of this machine; -1 = not known */
    int stopping;        /* 1 = all agreed to stop: some process got a signal */
    const char *address; /* "host:port" where they meet, or NULL */

    /* data */
    char *train_path, *val_path; /* NULL = none */
    int listed;                  /* 1 = these are lists, not folders */
    int subsets;                 /* 1 = both are parts of one folder or list (--val-split) */
    const char *val_index;       /* index file of val_path, or NULL */
    dpl_loader *train, *val;
    dpl_info train_info, val_info;
    uint64_t named_train, named_val; /* entries of the bad lists already named */

    /* model */
    const dpt_backend *backend; /* of CPU replicas, else NULL */
    dpt_graph *graph;
    float *params, *momentum, *buffers;
    float *second;   /* AdamW, else NULL */
    int64_t updates; /* as dpt_team_options.updates */
    dpt_team *team;
    dpt_checkpoint_peek peek; /* of the checkpoint that is resumed */
    dpt_progress progress;
    int64_t batches_tracked;
    int resumed; /* 1 = progress comes from a checkpoint */
    int saved;   /* 1 = a checkpoint of this process is on disk */

    /* files */
    char *resume_folder;  /* that holds the checkpoint of --resume */
    char **saved_options; /* of its run; opt points into them */
    int n_saved_options;
    char *folder;       /* NULL = nothing is written: --evaluate, or process 0 does it */
    DIR *folder_locked; /* the same, open and locked: no other run writes there; NULL = not */
    dpt_runlog log;

    /* results */
    dpt_pass last_train, last_val;
    dpl_stats train_stats, val_stats; /* as dpt_run_note_stats() found them */
    int64_t started_ns;
} dpt_run;

/** Look at --resume: where it lies, and the options its run was started with. Parses again. */
int dpt_run_resume(dpt_run *r, dpl_text *why);
/** Which of several processes this one is: what options and launcher say. From here on only process 0
 *  reports. */
int dpt_run_processes(dpt_run *r, dpl_text *why);
/** Tell NCCL where the processes meet, unless the user has. It reads that from the environment, which may
 *  only be changed as long as no other thread looks something up in it, as decoders do; and behind
 *  what --split auto measures by itself. */
int dpt_run_meet(const dpt_run *r, dpl_text *why);
/** A check sum of what all processes must have in common: classes, numbers of pictures, options that
 *  decide what is computed, and where the run goes on. */
uint64_t dpt_run_digest(const dpt_run *r);
/** Loader threads of this process; 0 = one per usable core. The processes of a machine share them. */
int dpt_run_workers(const dpt_run *r);
/** Device list, split, sizes of the parts. */
int dpt_run_devices(dpt_run *r, dpl_text *why);
/** The part of it that is about --split. */
int dpt_run_split(dpt_run *r, dpl_text *why);
/** Refuse options that this kind of device does not have. What a resumed run brings along from others
 *  counts only where it decides what is computed. */
int dpt_run_check_kind(const dpt_run *r, dpl_text *why);
/** Sizes of the parts, by the weights. */
int dpt_run_parts(dpt_run *r, dpl_text *why);
/** 1 = pictures come as uint8 NHWC, which GPUs normalise: a quarter of the floats. 0 = as finished
 *  floats, NCHW: what the CPU's backends take; GPUs too when pictures are blended or erased, which is
 *  done to normalised pixels and would be rounded to bytes. */
int dpt_run_bytes(const dpt_run *r);
/** Make a team over all devices of this process. The caller sets graph, max_n, rule, the arrays and
 *  the processes; the rest is filled in here. */
int dpt_run_make_team(const dpt_run *r, dpt_team_options *t, dpt_team **out, dpl_text *why);
/** Find train and val. */
int dpt_run_find(dpt_run *r, dpl_text *why);
/** Open the loaders over them. */
int dpt_run_data(dpt_run *r, dpl_text *why);
/** Graph, initial or loaded weights, team; the self-check of the backend. */
int dpt_run_model(dpt_run *r, dpl_text *why);
/** Refuse a run folder that holds something else, before any work is done. */
int dpt_run_folder_check(const dpt_run *r, dpl_text *why);
/** Choose, create and probe the run folder, open the logs, write args.json. */
int dpt_run_folder(dpt_run *r, dpl_text *why);
/** The first lines: what was understood. */
void dpt_run_first_lines(dpt_run *r);

/** Save the run's state as model.safetensors of the run folder. */
int dpt_run_save(dpt_run *r, dpl_text *why);
/** Save the weights alone as best.safetensors. */
int dpt_run_save_best(dpt_run *r, dpl_text *why);

/** Train to the end, to --steps or to a signal. */
int dpt_run_train(dpt_run *r, dpl_text *why);
/** Evaluate the loaded weights. */
int dpt_run_evaluate(dpt_run *r, dpl_text *why);
/** Note the counters of the loaders that are open. */
void dpt_run_note_stats(dpt_run *r);
/** The results as one JSON object; code: what the run ends with. */
void dpt_run_result(const dpt_run *r, int code, FILE *out);

/** Give back what a run holds; the steps under way are given up. */
void dpt_run_release(dpt_run *r);
/** The whole program after the command line was parsed. */
int dpt_run_main(dpt_cli *cli, int argc, char **argv, dpt_report *report, dpl_text *why);

/** What computes: "dnnl", "ref", or "cuda". */
const char *dpt_run_backend_name(const dpt_run *r);

/** Labels of the run: the training map, or the checkpoint's when only evaluating. */
const char *const *dpt_run_class_names(const dpt_run *r);
int dpt_run_classes(const dpt_run *r);

#ifdef __cplusplus
}
#endif
#endif
