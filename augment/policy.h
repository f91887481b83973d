/* SPDX-License-Identifier: Apache-2.0 */
/* The automatic policies of torchvision: RandAugment, TrivialAugmentWide, AutoAugment for ImageNet. */
#ifndef DPL_AUGMENT_POLICY_H
#define DPL_AUGMENT_POLICY_H

#include "augment/ops.h"
#include "base/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_policy {
    DPL_POLICY_NONE = 0,
    DPL_POLICY_RAND,    /* RandAugment, 31 magnitudes */
    DPL_POLICY_TRIVIAL, /* TrivialAugmentWide, 31 magnitudes */
    DPL_POLICY_IMAGENET /* AutoAugment, 10 magnitudes */
} dpl_policy;

/** What a policy draws from, in the order of torchvision's tables. */
typedef enum dpl_policy_name {
    DPL_AUTO_IDENTITY,
    DPL_AUTO_SHEAR_X,
    DPL_AUTO_SHEAR_Y,
    DPL_AUTO_TRANSLATE_X,
    DPL_AUTO_TRANSLATE_Y,
    DPL_AUTO_ROTATE,
    DPL_AUTO_BRIGHTNESS,
    DPL_AUTO_COLOR,
    DPL_AUTO_CONTRAST,
    DPL_AUTO_SHARPNESS,
    DPL_AUTO_POSTERIZE,
    DPL_AUTO_SOLARIZE,
    DPL_AUTO_AUTOCONTRAST,
    DPL_AUTO_EQUALIZE,
    DPL_AUTO_INVERT, /* AutoAugment only */
    DPL_AUTO_NAMES
} dpl_policy_name;

enum { DPL_POLICY_BINS = 31, DPL_IMAGENET_BINS = 10, DPL_IMAGENET_PAIRS = 25 };

/** Does the sign of the magnitude count? */
int dpl_policy_signed(dpl_policy_name name);

/** The magnitude of bin `bin` for a picture of width x height, in single precision as
 *  torch.linspace on a processor with AVX2; pixels of a translation within one unit in the last
 *  place, but the same when cut off to whole ones. 0 for what has none. */
float dpl_policy_magnitude(dpl_policy policy, dpl_policy_name name, int bin, int width, int height);

/** Append the operation of this name at this bin; the identity appends nothing. */
void dpl_policy_add(dpl_ops *ops, dpl_policy policy, dpl_policy_name name, int bin, int negative,
                    int width, int height);

/** One half of a pair of AutoAugment's policy: with probability p, name at bin. */
typedef struct dpl_policy_half {
    dpl_policy_name name;
    double p;
    int bin;
} dpl_policy_half;
const dpl_policy_half *dpl_policy_imagenet(int pair); /**< two halves; pair 0..24 */

/** Draw the operations for one picture and append them. RandAugment: count times one of 14 at bin
 *  `magnitude`; the others use neither. */
void dpl_policy_draw(dpl_ops *ops, dpl_policy policy, int count, int magnitude, dpl_rng *rng,
                     int width, int height);

#ifdef __cplusplus
}
#endif
#endif
