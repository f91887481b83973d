/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a data-parallel step: sum what the replicas found, update what they share. */
#ifndef DPT_TRAINER_PARALLEL_REDUCE_H
#define DPT_TRAINER_PARALLEL_REDUCE_H

#include "trainer/graph.h"
#include "trainer/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_reduce_part {
    float *grads; /* [param_floats]; overwritten by the sum in the first part */
    const float *batch_stats;
    double share; /* of the step's samples; shares add up to 1 */
} dpt_reduce_part;

typedef struct dpt_reduce {
    const dpt_graph *graph;
    dpt_reduce_part *part; /* [parts] of replicas with samples, in replica order */
    int parts;
    dpt_update update;
    int64_t step; /* ADAMW: 1, 2, … of updates */
    float *params, *buffers;
    float *momentum, *second; /* momentum: ADAMW's first moment; second: its second, else NULL */
    double *norms;            /* LARS: [dpt_reduce_norm_count()] for sums of squares, else NULL */
} dpt_reduce;

/** floats rounded up to whole cache lines: what slices begin at. */
size_t dpt_reduce_padded(size_t floats);

/** Doubles of dpt_reduce.norms. */
size_t dpt_reduce_norm_count(const dpt_graph *g);

/** LARS only, before any slice is updated: sum the gradients of share k of n of the blocks, and their
 *  squares. A block belongs to one tensor, and its place does not depend on n. */
void dpt_reduce_norms(const dpt_reduce *r, int k, int n);

/** Slice k of n of the flat arrays. Slices do not overlap and may run at once, in any thread; each
 *  number is summed over the parts in their order, and norms over the blocks in theirs, so that the
 *  result has the same bits whatever n is and who comes first. */
void dpt_reduce_slice(const dpt_reduce *r, int k, int n);

#ifdef __cplusplus
}
#endif
#endif
