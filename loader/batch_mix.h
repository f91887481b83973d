/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and cutmix over a whole batch: what is drawn for it, and its way over the samples of a slot.
 * Sample p of the global batch is mixed with sample p + 1, the last with the first, as they were
 * before mixing; everything is a pure function of (seed, epoch, batch index), so that bytes depend on
 * no split over ranks and devices. */
#ifndef DPL_LOADER_BATCH_MIX_H
#define DPL_LOADER_BATCH_MIX_H

#include "base/rng.h"
#include "dpload.h"
#include "kernels/kernels.h"
#include "kernels/mix.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_mix_kind { DPL_MIX_NONE, DPL_MIX_BLEND, DPL_MIX_PASTE } dpl_mix_kind;

/** What one global batch gets. */
typedef struct dpl_mix_plan {
    dpl_mix_kind kind;
    int weight;   /* DPL_MIX_BLEND: of the sample itself, 0..DPL_MIX_ONE */
    dpl_rect box; /* DPL_MIX_PASTE: what comes from the next sample */
    float share;  /* weight of the sample's own label, 0..1 */
} dpl_mix_plan;

/** Beta(alpha, alpha), alpha > 0, in 0..1. */
double dpl_mix_beta(dpl_rng *rng, double alpha);
/** Cutmix as torchvision's references: a box of half sizes int(0.5 sqrt(1 - lambda) size) around
 *  (x, y), clipped to the picture. */
dpl_mix_plan dpl_mix_box(double lambda, int x, int y, int width, int height);
/** Mixup; lambda becomes the nearest multiple of 2^-15. */
dpl_mix_plan dpl_mix_blend(double lambda);

/** Draw for batch `index` of an epoch. opt->mixup and cutmix are alphas, 0 = off; with both on each
 *  batch is mixed either way with probability 1/2. Evaluation is never mixed. */
void dpl_mix_draw(dpl_mix_plan *m, const dpl_options *opt, uint64_t epoch, uint64_t index);

/** Does a loader with these options mix at all? */
int dpl_mix_is_on(const dpl_options *opt);

/** Mix picture b into a; both [height][width][3] or [3][height][width] as the options say. */
void dpl_mix_pictures(const dpl_mix_plan *m, const dpl_options *opt, const dpl_kernels *k, void *a,
                      const void *b);

#ifdef __cplusplus
}
#endif
#endif
