/* SPDX-License-Identifier: Apache-2.0 */
/* How gradients are cut into pieces that travel while the backward pass is still at work: from the end
 * of the flat array, which is final first, with borders between parameters. A pure function, so that
 * every GPU of every process has the same pieces in the same order. */
#ifndef DPT_TRAINER_CUDA_BUCKETS_H
#define DPT_TRAINER_CUDA_BUCKETS_H

#include "trainer/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in PyTorch's DistributedDataParallel: a small first one, so that sending begins early. */
enum { DPT_BUCKET_FIRST = 1 << 20, DPT_BUCKET_BYTES = 25 << 20 };

typedef struct dpt_bucket {
    size_t from, to; /* floats of the flat array, to is not part of it */
} dpt_bucket;

/** Cut g's parameters. A bucket is full with the parameter that brings it to `bytes` (the first one:
 *  to `first`) or above. @param out [g->params], filled from the end of the flat array
 *  @return number of buckets; together they cover every float once */
int dpt_buckets_cut(const dpt_graph *g, size_t first, size_t bytes, dpt_bucket *out);

#ifdef __cplusplus
}
#endif
#endif
