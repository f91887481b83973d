/* SPDX-License-Identifier: Apache-2.0 */
/* From dpl_options to what pictures are augmented with. */
#ifndef DPL_LOADER_RECIPE_H
#define DPL_LOADER_RECIPE_H

#include "augment/augment.h"
#include "base/text.h"
#include "dpload.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Check the augmentations that come after crop, flip and rotation. @return DPL_OK, DPL_EINVAL */
int dpl_recipe_check(const dpl_options *o, dpl_text *why);

/** The specification that checked options make. */
void dpl_recipe_make(dpl_recipe_spec *s, const dpl_options *o);

/** Levels of a normalised colour: (value * std + mean) * 255, rounded and clipped. */
void dpl_recipe_levels(uint8_t level[3], const float value[3], const dpl_options *o);

#ifdef __cplusplus
}
#endif
#endif
