/* SPDX-License-Identifier: Apache-2.0 */
/* Save and load of a run. model.safetensors holds weights and buffers under torchvision's names and
 * loads into PyTorch with strict=True; optimizer state lies in a second file whose name
 * model.safetensors carries, so that the rename of model.safetensors is the moment a checkpoint comes
 * into being: a kill at any time leaves the old pair or the new one. */
#ifndef DPT_TRAINER_CHECKPOINT_H
#define DPT_TRAINER_CHECKPOINT_H

#include "base/text.h"
#include "trainer/graph.h"
#include "trainer/optim.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a run stands; every field is saved. */
typedef struct dpt_progress {
    int64_t epoch;     /* whole epochs done (training part) */
    uint64_t sample;   /* position within the epoch that comes next, over all ranks */
    int64_t step;      /* optimizer steps done since the start */
    int evaluated;     /* 1 = the last whole epoch has been evaluated */
    double train_loss; /* sums of the epoch under way … */
    int64_t train_n, train_top1, train_top5;
    double best_top1; /* percent, -1 = none */
    int64_t best_epoch;
    uint64_t seed;
    uint64_t samples; /* training pictures that sample counts in; 0 = not known */
} dpt_progress;

typedef struct dpt_checkpoint {
    const dpt_graph *graph;
    float *params;           /* [param_floats] */
    dpt_rule rule;           /* whose state is saved, or must be there */
    float *momentum;         /* [param_floats]; may be NULL unless the state is saved or needed */
    float *second;           /* [param_floats] ADAMW: second moments, as momentum; else NULL */
    int64_t updates;         /* of the optimizer, as dpt_team_options.updates */
    float *buffers;          /* [buffer_floats] */
    int64_t batches_tracked; /* num_batches_tracked of every batch norm */
    dpt_progress progress;
    const char *const *class_names; /* [graph->classes]; on load: those of the run, to be checked */
    int height, width;
    float mean[3], std[3]; /* of the input, for the record; std[0] = 0: not said */
    const char *recipe;    /* JSON text of the options, for the record; may be NULL */
} dpt_checkpoint;

/** Save as folder/name (name: "model.safetensors", "best.safetensors"); with_state = 0: weights only.
 *  The folder must exist and belong to this run alone: temporary files that a killed save left are
 *  removed from it and, with_state, optimizer states that no checkpoint needs any more.
 *  @return DPL_OK, DPL_EIO (old checkpoint untouched), DPL_ENOMEM; why */
int dpt_checkpoint_save(const dpt_checkpoint *c, const char *folder, const char *name,
                        int with_state, dpl_text *why);

/** Load for --resume (need_state = 1: optimizer state and position must be there) or for
 *  --evaluate (0: progress stays as it is). path: the .safetensors file or the run folder that holds
 *  model.safetensors. A plain torchvision file (no metadata of ours) is fine for need_state = 0,
 *  without num_batches_tracked or with names behind "module." or "_orig_mod." too.
 *  On an error nothing of c has changed.
 *  @return DPL_OK; DPL_EDATA (another arch, class count, class list, shape or rule: both are named;
 *          damaged file: expected and found); DPL_EIO (missing); DPL_ENOMEM */
int dpt_checkpoint_load(dpt_checkpoint *c, const char *path, int need_state, dpl_text *why);

/** What whoever starts from a file of weights should know: lines, "" = nothing to say. */
typedef struct dpt_checkpoint_notes {
    dpl_text head;  /* the last layer stays as it was, or its classes have other names */
    dpl_text input; /* the pictures had another size or normalisation */
} dpt_checkpoint_notes;

/** Fill params, buffers and batches_tracked for --weights, from a .safetensors file with torchvision's
 *  names, whoever wrote it; of a run's file its weights alone. When its number of classes is another,
 *  the last layer stays as it is. On an error nothing of c has changed.
 *  @return DPL_OK; DPL_EDATA (another arch, a tensor that is missing, additional, of another shape or
 *          not float32: the first one and how many; damaged file); DPL_EIO; DPL_ENOMEM */
int dpt_checkpoint_weights(dpt_checkpoint *c, const char *path, dpt_checkpoint_notes *notes,
                           dpl_text *why);

/** What a checkpoint says of itself before a graph is built: arch (NULL = not said), classes (0 =
 *  not said), input size (0 = not said), options. Owned by the peek: dpt_checkpoint_peek_free(). */
typedef struct dpt_checkpoint_peek {
    char *arch;
    int classes;
    char **class_names; /* [classes] or NULL */
    int height, width;
    char *recipe; /* JSON text of the options of its run, NULL = not said */
} dpt_checkpoint_peek;
int dpt_checkpoint_peek_open(dpt_checkpoint_peek *p, const char *path, dpl_text *why);
void dpt_checkpoint_peek_free(dpt_checkpoint_peek *p);

#ifdef __cplusplus
}
#endif
#endif
