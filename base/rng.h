/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A stream is a pure function of its key and has no shared state, so that what
 * a sample gets does not depend on which thread asks, or when. */
#ifndef DPL_BASE_RNG_H
#define DPL_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One Philox4x32-10 block: out = f(counter, key). Test vectors: Random123 kat_vectors. */
void dpl_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** What a stream is for. Values are part of the data format: never renumber. */
typedef enum dpl_purpose {
    DPL_RNG_AUGMENT = 1,
    DPL_RNG_ORDER = 2,
    DPL_RNG_SPLIT = 3,
    DPL_RNG_INIT = 4, /* weights; sample = parameter index */
    DPL_RNG_DROPOUT = 5,
    DPL_RNG_MIX = 6,
    DPL_RNG_ERASE = 7 /* values, not the box */
} dpl_purpose;

typedef struct dpl_rng {
    uint32_t key[2], counter[4], block[4];
    int used; /* numbers of block already given out, 4 = none left */
} dpl_rng;

/** A stream keyed by (seed, epoch, sample, purpose). epoch must be below 2^28. */
void dpl_rng_init(dpl_rng *r, uint64_t seed, uint64_t epoch, uint64_t sample, dpl_purpose purpose);

/** 32 random bits. */
uint32_t dpl_rng_u32(dpl_rng *r);

/** Uniform in [0, 1), 53 random bits. */
double dpl_rng_unit(dpl_rng *r);

/** Uniform in [lo, hi). */
double dpl_rng_uniform(dpl_rng *r, double lo, double hi);

/** Uniform integer in [0, n), without bias; n >= 1. */
uint32_t dpl_rng_below(dpl_rng *r, uint32_t n);

/** Normal with mean 0 and deviation 1 (Box-Muller; draws two numbers, uses one result). */
double dpl_rng_normal(dpl_rng *r);

/** n of them in single precision, from 32 random bits each: |v| < 6.7. Two at a time from two numbers;
 *  n odd: the last one's partner is dropped. */
void dpl_rng_normals(dpl_rng *r, float *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
