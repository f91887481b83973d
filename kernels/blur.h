/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian blur of 8-bit RGB, as torchvision's GaussianBlur. That one sums the products with a
 * two-dimensional kernel; here rows and columns are blurred one after the other, in single precision
 * and not rounded in between. The results are rounded half to even in both, and differ by 1 where the
 * exact value is within some 1e-5 of a half (docs/augment.md has the measured share). */
#ifndef DPL_KERNELS_BLUR_H
#define DPL_KERNELS_BLUR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_BLUR_RADIUS_MAX = 63 };

/** Weights of the pixels at distance 0..radius: exp(-d^2 / 2 sigma^2), all 2 radius + 1 summing to 1.
 *  half [radius + 1]; radius 0..DPL_BLUR_RADIUS_MAX; sigma > 0. */
void dpl_blur_weights(float *half, int radius, double sigma);

/** Floats of scratch that a picture of this width needs. */
size_t dpl_blur_scratch(int width, int radius);

/** px [height][width][3] packed, changed in place; sides >= 1; past the edges the picture is mirrored
 *  about its outermost pixels (as often as it takes, where torchvision refuses a picture that is not
 *  larger than the radius). Variants match bit for bit. */
typedef void dpl_blur_fn(uint8_t *px, int width, int height, const float *half, int radius,
                         float *scratch);
dpl_blur_fn dpl_blur_c, dpl_blur_avx2;

/** What variants replace. */
typedef struct dpl_blur_steps {
    /** out[i] = half[0] low[0][i] + sum over d of half[d] (low[d][i] + high[d][i]), d = 1..radius */
    void (*weigh)(float *out, const float *const *low, const float *const *high, const float *half,
                  int radius, size_t n);
    void (*widen)(float *out, const uint8_t *in, size_t n); /* bytes to floats */
    void (*round)(uint8_t *out, const float *in, size_t n); /* of 0..255, half to even */
} dpl_blur_steps;
void dpl_blur_with(uint8_t *px, int width, int height, const float *half, int radius,
                   float *scratch, const dpl_blur_steps *steps);
extern const dpl_blur_steps dpl_blur_steps_c;

#ifdef __cplusplus
}
#endif
#endif
