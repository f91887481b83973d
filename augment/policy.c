/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic policies: tables of magnitudes, and what is drawn. */
#include "augment/policy.h"

#include <math.h>

int dpl_policy_signed(dpl_policy_name name)
{
    return name >= DPL_AUTO_SHEAR_X && name <= DPL_AUTO_SHARPNESS;
}

static int has_magnitude(dpl_policy_name name)
{
    return name >= DPL_AUTO_SHEAR_X && name <= DPL_AUTO_SOLARIZE;
}

/* Number i of n numbers evenly spread from start to end, counted from the nearer end and rounded
 * once, as most of torch.linspace's are. */
static float spread(float start, float end, int n, int i)
{
    const float step = (end - start) / (float)(n - 1);
    return i < n / 2 ? fmaf(step, (float)i, start) : fmaf(-step, (float)(n - 1 - i), end);
}

/* The same for pixels, which are cut off to whole ones: rounded twice, so that a whole number that is
 * meant stays one. */
static float spread_pixels(float end, int n, int i)
{
    const float step = end / (float)(n - 1), part = step * (float)(i < n / 2 ? i : n - 1 - i);
    return i < n / 2 ? part : end - part;
}

/* Magnitude of the last bin: TrivialAugmentWide's, or that of the other two. */
static float largest(dpl_policy policy, dpl_policy_name name, int width, int height)
{
    const int wide = policy == DPL_POLICY_TRIVIAL;
    switch (name) {
    case DPL_AUTO_SHEAR_X:
    case DPL_AUTO_SHEAR_Y: return wide ? 0.99F : 0.3F; /* tangent */
    case DPL_AUTO_TRANSLATE_X: return wide ? 32.0F : (float)(150.0 / 331.0 * width);
    case DPL_AUTO_TRANSLATE_Y: return wide ? 32.0F : (float)(150.0 / 331.0 * height);
    case DPL_AUTO_ROTATE: return wide ? 135.0F : 30.0F; /* degrees */
    default: return wide ? 0.99F : 0.9F;                /* added to a factor of 1 */
    }
}

float dpl_policy_magnitude(dpl_policy policy, dpl_policy_name name, int bin, int width, int height)
{
    const int bins = policy == DPL_POLICY_IMAGENET ? DPL_IMAGENET_BINS : DPL_POLICY_BINS;
    if (!has_magnitude(name)) return 0;
    if (name == DPL_AUTO_SOLARIZE) return spread(255, 0, bins, bin);
    if (name == DPL_AUTO_POSTERIZE) {
        const float lost = policy == DPL_POLICY_TRIVIAL ? 6 : 4;
        return 8 - rintf((float)bin / ((float)(bins - 1) / lost)); /* bits */
    }
    const float end = largest(policy, name, width, height);
    if (name == DPL_AUTO_TRANSLATE_X || name == DPL_AUTO_TRANSLATE_Y)
        return spread_pixels(end, bins, bin);
    return spread(0, end, bins, bin);
}

/* About the top left corner, as in the published policies. */
static dpl_affine shear(double tangent_x, double tangent_y)
{
    const double degree = 180.0 / 3.14159265358979323846;
    return dpl_affine_inverse(&(dpl_affine_params){
        .scale = 1, .shear_x = atan(tangent_x) * degree, .shear_y = atan(tangent_y) * degree });
}

static dpl_affine translation(double x, double y, int width, int height)
{
    return dpl_affine_inverse(&(dpl_affine_params){
        .scale = 1, .tx = trunc(x), .ty = trunc(y), .cx = width * 0.5, .cy = height * 0.5 });
}

void dpl_policy_add(dpl_ops *ops, dpl_policy policy, dpl_policy_name name, int bin, int negative,
                    int width, int height)
{
    static const dpl_op_kind kinds[DPL_AUTO_NAMES] = {
        [DPL_AUTO_SHEAR_X] = DPL_OP_AFFINE,      [DPL_AUTO_SHEAR_Y] = DPL_OP_AFFINE,
        [DPL_AUTO_TRANSLATE_X] = DPL_OP_AFFINE,  [DPL_AUTO_TRANSLATE_Y] = DPL_OP_AFFINE,
        [DPL_AUTO_ROTATE] = DPL_OP_ROTATE,       [DPL_AUTO_BRIGHTNESS] = DPL_OP_BRIGHTNESS,
        [DPL_AUTO_COLOR] = DPL_OP_SATURATION,    [DPL_AUTO_CONTRAST] = DPL_OP_CONTRAST,
        [DPL_AUTO_SHARPNESS] = DPL_OP_SHARPNESS, [DPL_AUTO_POSTERIZE] = DPL_OP_POSTERIZE,
        [DPL_AUTO_SOLARIZE] = DPL_OP_SOLARIZE,   [DPL_AUTO_AUTOCONTRAST] = DPL_OP_AUTOCONTRAST,
        [DPL_AUTO_EQUALIZE] = DPL_OP_EQUALIZE,   [DPL_AUTO_INVERT] = DPL_OP_INVERT,
    };
    const double m = dpl_policy_magnitude(policy, name, bin, width, height);
    const double v = negative ? -m : m;
    if (name == DPL_AUTO_IDENTITY) return;
    dpl_op *op = dpl_ops_add(ops, kinds[name], v);
    if (name == DPL_AUTO_SHEAR_X) op->map = shear(v, 0);
    if (name == DPL_AUTO_SHEAR_Y) op->map = shear(0, v);
    if (name == DPL_AUTO_TRANSLATE_X) op->map = translation(v, 0, width, height);
    if (name == DPL_AUTO_TRANSLATE_Y) op->map = translation(0, v, width, height);
    if (name >= DPL_AUTO_BRIGHTNESS && name <= DPL_AUTO_SHARPNESS) op->value = 1 + v;
}

const dpl_policy_half *dpl_policy_imagenet(int pair)
{
    /* clang-format off */
    static const dpl_policy_half pairs[DPL_IMAGENET_PAIRS][2] = {
        { { DPL_AUTO_POSTERIZE, 0.4, 8 },  { DPL_AUTO_ROTATE, 0.6, 9 } },
        { { DPL_AUTO_SOLARIZE, 0.6, 5 },   { DPL_AUTO_AUTOCONTRAST, 0.6, 0 } },
        { { DPL_AUTO_EQUALIZE, 0.8, 0 },   { DPL_AUTO_EQUALIZE, 0.6, 0 } },
        { { DPL_AUTO_POSTERIZE, 0.6, 7 },  { DPL_AUTO_POSTERIZE, 0.6, 6 } },
        { { DPL_AUTO_EQUALIZE, 0.4, 0 },   { DPL_AUTO_SOLARIZE, 0.2, 4 } },
        { { DPL_AUTO_EQUALIZE, 0.4, 0 },   { DPL_AUTO_ROTATE, 0.8, 8 } },
        { { DPL_AUTO_SOLARIZE, 0.6, 3 },   { DPL_AUTO_EQUALIZE, 0.6, 0 } },
        { { DPL_AUTO_POSTERIZE, 0.8, 5 },  { DPL_AUTO_EQUALIZE, 1.0, 0 } },
        { { DPL_AUTO_ROTATE, 0.2, 3 },     { DPL_AUTO_SOLARIZE, 0.6, 8 } },
        { { DPL_AUTO_EQUALIZE, 0.6, 0 },   { DPL_AUTO_POSTERIZE, 0.4, 6 } },
        { { DPL_AUTO_ROTATE, 0.8, 8 },     { DPL_AUTO_COLOR, 0.4, 0 } },
        { { DPL_AUTO_ROTATE, 0.4, 9 },     { DPL_AUTO_EQUALIZE, 0.6, 0 } },
        { { DPL_AUTO_EQUALIZE, 0.0, 0 },   { DPL_AUTO_EQUALIZE, 0.8, 0 } },
        { { DPL_AUTO_INVERT, 0.6, 0 },     { DPL_AUTO_EQUALIZE, 1.0, 0 } },
        { { DPL_AUTO_COLOR, 0.6, 4 },      { DPL_AUTO_CONTRAST, 1.0, 8 } },
        { { DPL_AUTO_ROTATE, 0.8, 8 },     { DPL_AUTO_COLOR, 1.0, 2 } },
        { { DPL_AUTO_COLOR, 0.8, 8 },      { DPL_AUTO_SOLARIZE, 0.8, 7 } },
        { { DPL_AUTO_SHARPNESS, 0.4, 7 },  { DPL_AUTO_INVERT, 0.6, 0 } },
        { { DPL_AUTO_SHEAR_X, 0.6, 5 },    { DPL_AUTO_EQUALIZE, 1.0, 0 } },
        { { DPL_AUTO_COLOR, 0.4, 0 },      { DPL_AUTO_EQUALIZE, 0.6, 0 } },
        { { DPL_AUTO_EQUALIZE, 0.4, 0 },   { DPL_AUTO_SOLARIZE, 0.2, 4 } },
        { { DPL_AUTO_SOLARIZE, 0.6, 5 },   { DPL_AUTO_AUTOCONTRAST, 0.6, 0 } },
        { { DPL_AUTO_INVERT, 0.6, 0 },     { DPL_AUTO_EQUALIZE, 1.0, 0 } },
        { { DPL_AUTO_COLOR, 0.6, 4 },      { DPL_AUTO_CONTRAST, 1.0, 8 } },
        { { DPL_AUTO_EQUALIZE, 0.8, 0 },   { DPL_AUTO_EQUALIZE, 0.6, 0 } },
    };
    /* clang-format on */
    return pairs[pair];
}

static void draw_imagenet(dpl_ops *ops, dpl_rng *rng, int width, int height)
{
    const dpl_policy_half *half = dpl_policy_imagenet((int)dpl_rng_below(rng, DPL_IMAGENET_PAIRS));
    const double chance[2] = { dpl_rng_unit(rng), dpl_rng_unit(rng) };
    const uint32_t positive[2] = { dpl_rng_below(rng, 2), dpl_rng_below(rng, 2) };
    for (int i = 0; i < 2; i++) {
        if (chance[i] > half[i].p) continue;
        const int negative = dpl_policy_signed(half[i].name) && !positive[i];
        dpl_policy_add(ops, DPL_POLICY_IMAGENET, half[i].name, half[i].bin, negative, width,
                       height);
    }
}

void dpl_policy_draw(dpl_ops *ops, dpl_policy policy, int count, int magnitude, dpl_rng *rng,
                     int width, int height)
{
    if (policy == DPL_POLICY_NONE) return;
    if (policy == DPL_POLICY_IMAGENET) {
        draw_imagenet(ops, rng, width, height);
        return;
    }
    const int trivial = policy == DPL_POLICY_TRIVIAL;
    for (int i = 0; i < (trivial ? 1 : count); i++) {
        const dpl_policy_name name = (dpl_policy_name)dpl_rng_below(rng, DPL_AUTO_INVERT);
        const int bin =
            trivial && has_magnitude(name) ? (int)dpl_rng_below(rng, DPL_POLICY_BINS) : magnitude;
        const int negative = dpl_policy_signed(name) && dpl_rng_below(rng, 2);
        dpl_policy_add(ops, policy, name, bin, negative, width, height);
    }
}
