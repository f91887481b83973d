/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation in two halves: a plan is drawn from random numbers and the size of the picture alone;
 * applying a plan to pixels is deterministic. Parity tests inject plans instead of comparing seeds. */
#ifndef DPL_AUGMENT_AUGMENT_H
#define DPL_AUGMENT_AUGMENT_H

#include "augment/policy.h"
#include "base/rng.h"
#include "kernels/kernels.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** torchvision's RandomAffine about the centre of the picture. */
typedef struct dpl_affine_spec {
    int on; /* 1 = any of these does anything */
    double degrees;
    double translate[2];         /* shares of width and height */
    double scale_min, scale_max; /* > 0 */
    double shear[2];             /* degrees along x and y */
} dpl_affine_spec;

typedef enum dpl_crop_kind {
    DPL_CROPS_RESIZED = 0, /* a random box, resized */
    DPL_CROPS_RANDOM = 1   /* a random window of the padded picture */
} dpl_crop_kind;

/** What to draw from; the values of dpl_options, checked. Zero = off for what comes after `fast`. */
typedef struct dpl_recipe_spec {
    int train;         /* 1 = random resized crop …, 0 = resize short side + centre crop */
    int width, height; /* delivered size */
    int resize;        /* eval: resized short side */
    double scale_min, scale_max, ratio_min, ratio_max;
    double hflip, rotate;
    int rotate_bilinear;
    int filter; /* DPL_RESAMPLE_* */
    int fast;   /* 1 = 16-bit weights and a scaled source are allowed */
    dpl_crop_kind crop;
    int crop_resize;  /* random crop: short side before it, 0 = the picture's own */
    int crop_padding; /* random crop: pixels added on every side */
    uint8_t fill[3];  /* random crop, rotation, affine: where there is no picture */
    double vflip;
    dpl_policy policy;
    int ra_ops, ra_magnitude;
    double color_jitter[4]; /* brightness, contrast, saturation, hue */
    double grayscale;       /* this and the following: probabilities, and what comes with them */
    double blur, blur_sigma_min, blur_sigma_max;
    int blur_kernel; /* odd */
    double invert;
    double posterize, solarize, sharpness, autocontrast, equalize;
    int posterize_bits;
    double solarize_threshold, sharpness_factor;
    dpl_affine_spec affine;
    int rotate_once; /* crop, flips, affine map and rotation are one resample */
    double erase, erase_scale_min, erase_scale_max, erase_ratio_min, erase_ratio_max;
} dpl_recipe_spec;

/** What is done to one picture, unless rotate_once is asked for: crop the box, resize it to resized_w x resized_h, keep the window
 *  (delivered size, may stick out of the resized picture: those pixels are fill), flip, do the operations,
 *  rotate. Erasing comes last, after the conversion to the delivered type: it is the caller's to do.
 *  The filter never reads outside the box (torchvision crops before it resizes).
 *
 *  With rotate_once: crop what the window covers of the box, look every delivered pixel up in it by
 *  dpl_plan_map(), nearest or bilinear, fill where that is outside of it; then do the operations. */
typedef struct dpl_plan {
    int x, y, w, h; /* box in the picture as displayed (after EXIF orientation) */
    int resized_w, resized_h;
    int win_x, win_y; /* top left of the window in the resized picture; may be negative */
    int flip, vflip;
    double angle; /* degrees counter-clockwise, 0 = none */
    dpl_affine
        affine; /* rotate_once: what dpl_affine_inverse() says of the affine map, or identity */
    dpl_ops ops;
    dpl_rect erase; /* in the delivered picture; w 0 = nothing */
} dpl_plan;

/** Draw for a picture of img_w x img_h pixels (>= 1). torchvision's RandomResizedCrop (10 tries,
 *  half-to-even rounding, central fallback) or its Resize + RandomCrop, then the flip, then the angle,
 *  then the rest in the order of application: what is off moves no later draw; or its Resize +
 *  CenterCrop. Sides of the resized picture are at least 1. */
void dpl_plan_draw(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng, int img_w, int img_h);

/** rotate_once: from delivered pixels to pixels of the window's part of the box. Undone one after the
 *  other: the rotation about the centre, the affine map, the vertical and the horizontal flip, the window, the
 *  resizing. It is the matrix for Pillow's img.crop(part).transform((width, height), AFFINE, matrix). */
dpl_affine dpl_plan_map(const dpl_plan *p, const dpl_recipe_spec *s);

/** The part of the picture that applying the plan reads: a sub-rectangle of the box; with rotate_once
 *  what the window covers of it, widened to whole pixels. At least a pixel, also when nothing is read. */
void dpl_plan_region(const dpl_plan *p, const dpl_recipe_spec *s, int *x, int *y, int *w, int *h);

/** Largest of 8, 4, 2, 1 by which the source may be scaled down so that the box is still at least
 *  the resized size; 1 unless s->fast. */
int dpl_plan_denominator(const dpl_plan *p, const dpl_recipe_spec *s);

/** Decoded pixels of a picture: pixel (0, 0) here is pixel (x, y) of the picture scaled by
 *  1/denominator (sizes rounded up). RGB, rows of stride bytes. */
typedef struct dpl_pixels {
    const uint8_t *rgb;
    size_t stride;
    int x, y, w, h;
    int denominator;
} dpl_pixels;

/** Per-thread memory of dpl_plan_apply(); starts zeroed, grows as needed. */
typedef struct dpl_apply_scratch {
    dpl_taps taps_x, taps_y;
    void *rows; /* horizontal pass */
    size_t rows_cap;
    void *image; /* finished 8-bit picture before rotation or conversion */
    size_t image_cap;
    void *blur; /* float rows */
    size_t blur_cap;
} dpl_apply_scratch;
void dpl_apply_scratch_free(dpl_apply_scratch *sc);

/** Apply the plan: out [height][width][3] uint8, packed. src must cover dpl_plan_region() (scaled by
 *  the denominator, outward rounded). @return DPL_OK or DPL_ENOMEM */
int dpl_plan_apply(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                   const dpl_kernels *k, dpl_apply_scratch *sc);

#ifdef __cplusplus
}
#endif
#endif
