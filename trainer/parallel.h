/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel replicas on the devices of one process. Each replica is a thread with its share of
 * the processors and its own dpt_exec; parameters are shared. A step: every replica computes the
 * gradient of its part (already weighted by 1 / global samples), then each reduces and updates its
 * own slice of the flat arrays, in replica order: one global gradient, bit-reproducible. */
#ifndef DPT_TRAINER_PARALLEL_H
#define DPT_TRAINER_PARALLEL_H

#include "base/text.h"
#include "trainer/backend.h"
#include "trainer/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_team dpt_team;

typedef struct dpt_team_options {
    const dpt_backend *backend;
    const dpt_graph *graph;
    int replicas;
    const int *max_n; /* [replicas] largest part of each */
    int threads;      /* compute threads over all replicas; 0 = usable processors. Each replica gets
                          its share, at least 1 */
    float *params, *momentum, *buffers; /* caller's; written by dpt_team_train only */
    const int *cancel;                  /* as in dpt_exec_options, of every replica */
} dpt_team_options;

/** Start the replica threads and build their execs. Blocks until all are ready.
 *  @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ENOTSUP; why */
int dpt_team_create(dpt_team **out, const dpt_team_options *opt, dpl_text *why);
void dpt_team_destroy(dpt_team **t);

/** One part per replica; see dpt_step for the meaning. n = 0 is fine for some. */
typedef struct dpt_team_part {
    const float *pixels;
    const int32_t *labels;
    int n;
    const int32_t *labels2; /* soft labels with mix, or NULL */
    const float *mix;
} dpt_team_part;

/** One optimizer step over all parts. All parts together must hold at least one sample.
 *  running statistics: r = 0.9 r + 0.1 * mean over replicas of batch statistics, weighted by samples.
 *  sums: over all replicas. Blocks. @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE; why. DPL_ECANCELED
 *  when a replica was canceled, whatever became of the others. After all of these the parameters,
 *  momentum and running statistics are as before; an update that has begun is finished. */
int dpt_team_train(dpt_team *t, const dpt_team_part *part, const dpt_sgd *sgd, dpt_sums *sums,
                   dpl_text *why);

/** Forward only with running statistics. Blocks. @return as dpt_team_train() */
int dpt_team_evaluate(dpt_team *t, const dpt_team_part *part, dpt_sums *sums, dpl_text *why);

/** Threads of replica r, and lines of its exec's describe(). */
int dpt_team_threads(const dpt_team *t, int r);
const char *dpt_team_describe(dpt_team *t, int i, int *fallback);

#ifdef __cplusplus
}
#endif
#endif
