/* SPDX-License-Identifier: Apache-2.0 */
/* One number of convert.h and of mix.h. */
#ifndef DPL_KERNELS_CONVERT_MATH_H
#define DPL_KERNELS_CONVERT_MATH_H

#include "kernels/shared.h"

/** (v / 255 - mean) / std = v * scale + bias, with v a level, 0..255. */
DPL_SHARED float dpl_normal_scale(double std)
{
    return (float)(1 / (255.0 * std));
}
DPL_SHARED float dpl_normal_bias(double mean, double std)
{
    return (float)(-mean / std);
}
DPL_SHARED float dpl_normal(float level, float scale, float bias)
{
    return level * scale + bias;
}

/** w and rest add up to 1. */
DPL_SHARED float dpl_blend(float a, float b, float w, float rest)
{
    return a * w + b * rest;
}

#endif
