/* SPDX-License-Identifier: Apache-2.0 */
/* The random transforms that come after crop, flip and rotation have been drawn. */
#ifndef DPL_AUGMENT_RANDOM_OPS_H
#define DPL_AUGMENT_RANDOM_OPS_H

#include "augment/augment.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Draw the vertical flip, the operations and the erased part into the plan. */
void dpl_random_ops_draw(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
