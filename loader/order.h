/* SPDX-License-Identifier: Apache-2.0 */
/* Which sample is where: pure functions of (seed, epoch, position), O(1) memory at any size, and the
 * arithmetic that splits batches over ranks and parts. */
#ifndef DPL_LOADER_ORDER_H
#define DPL_LOADER_ORDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A keyed bijection over [0, n), n >= 1: a balanced Feistel network over the smallest even number of
 *  bits that holds n (at least 8), walked until it lands inside. */
typedef struct dpl_permutation {
    uint64_t n;
    int half_bits;
    uint32_t key[8];
} dpl_permutation;

void dpl_permutation_init(dpl_permutation *p, uint64_t n, uint64_t seed, uint64_t epoch);
/** The same for another purpose (a dpl_purpose of base/rng.h) and one of many streams of it. */
void dpl_permutation_init_for(dpl_permutation *p, uint64_t n, uint64_t seed, uint64_t epoch,
                              uint64_t stream, int purpose);
/** pos in [0, n) to its sample in [0, n). */
uint64_t dpl_permutation_at(const dpl_permutation *p, uint64_t pos);

/** Split n items over k weights (NULL = even) into out[k], in order, sum n. Sizes are within one of
 *  n * weight / total (largest remainder, ties to the first). */
void dpl_split(uint64_t n, const int *weight, int k, uint64_t *out);

/** The steps of an epoch. */
typedef struct dpl_steps {
    uint64_t samples; /* of the data set, all ranks */
    uint64_t batch;   /* global */
    uint64_t count;   /* batches per epoch, the same on every rank */
    uint64_t dropped; /* samples left out by drop_last; never all of them: a data set smaller than a
                         batch is one short batch */
} dpl_steps;
void dpl_steps_init(dpl_steps *s, uint64_t samples, uint64_t batch, int drop_last);

/** Positions [*first, *first + *n) of this rank in batch `index`. */
void dpl_steps_rank(const dpl_steps *s, uint64_t index, int rank, int world, uint64_t *first,
                    uint64_t *n);

#ifdef __cplusplus
}
#endif
#endif
