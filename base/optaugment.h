/* SPDX-License-Identifier: Apache-2.0 */
/* The augmentations of dpl_options as rows of an option table; optloader.h includes them among the
 * loader's. Names as in torchvision's and timm's training scripts where those have one. */
#ifndef DPL_BASE_OPTAUGMENT_H
#define DPL_BASE_OPTAUGMENT_H

#include "base/optparse.h"
#include "dpload.h"

/** Rows for a struct TYPE that holds a dpl_options as member M. */
/* clang-format off */
#define DPL_AUGMENT_OPT_ROWS(TYPE, M)                                                                                \
    { "train-crop", 0, NULL, DPL_OPT_CHOICE, offsetof(TYPE, M.crop), 0, 0, "resized|random", "NAME",                 \
      "random crop: resized (a random box), or random (a window of the padded picture) [resized]", "Augmentation", 0 }, \
    { "crop-resize", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.crop_resize), 0, 65536, NULL, "PIXELS",                  \
      "--train-crop random: short side before the crop; 0 = as it is [0]", NULL, 0 },                                \
    { "crop-padding", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.crop_padding), 0, 8192, NULL, "PIXELS",                 \
      "--train-crop random: pixels added on each side [0]", NULL, 0 },                                               \
    { "fill", 0, NULL, DPL_OPT_THREE, offsetof(TYPE, M.fill), 0, 255, NULL, "R,G,B",                                 \
      "colour where padding, rotation and affine maps leave no picture [0,0,0]", NULL, 0 },                          \
    { "vflip", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.vflip), 0, 1, NULL, "P",                                    \
      "probability of a vertical flip [0]", NULL, 0 },                                                               \
    { "auto-augment", 0, "aa", DPL_OPT_CHOICE, offsetof(TYPE, M.auto_augment), 0, 0, "none|ra|ta_wide|imagenet", "NAME", \
      "none, ra (RandAugment), ta_wide (TrivialAugmentWide) or imagenet (AutoAugment) [none]", NULL, 0 },            \
    { "ra-ops", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.ra_ops), 0, 16, NULL, "N",                                    \
      "RandAugment: operations per picture [2]", NULL, 0 },                                                          \
    { "ra-magnitude", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.ra_magnitude), 0, 30, NULL, "N",                        \
      "RandAugment: their strength [9]", NULL, 0 },                                                                  \
    { "color-jitter", 0, "colour-jitter", DPL_OPT_FOUR, offsetof(TYPE, M.color_jitter), 0, 100, NULL, "B,C,S,H",     \
      "change brightness, contrast and saturation by up to these shares, and hue by up to H of the circle (0.5 at most), in random order [0,0,0,0]", NULL, 0 }, \
    { "grayscale", 0, "greyscale", DPL_OPT_DOUBLE, offsetof(TYPE, M.grayscale), 0, 1, NULL, "P",                     \
      "probability of a grey picture [0]", NULL, 0 },                                                                \
    { "blur", 0, "gaussian-blur", DPL_OPT_DOUBLE, offsetof(TYPE, M.blur), 0, 1, NULL, "P",                           \
      "probability of Gaussian blur [0]", NULL, 0 },                                                                 \
    { "blur-kernel", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.blur_kernel), 1, 127, NULL, "PIXELS",                    \
      "its width, odd [23]", NULL, 0 },                                                                              \
    { "blur-sigma", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.blur_sigma_min), 0.0001, 1000, NULL, "LO,HI",            \
      "its strength in pixels [0.1,2]", NULL, 0 },                                                                   \
    { "invert", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.invert), 0, 1, NULL, "P",                                  \
      "probability of inverted colours [0]", NULL, 0 },                                                              \
    { "posterize", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.posterize), 0, 1, NULL, "P",                            \
      "probability of posterizing [0]", NULL, 0 },                                                                   \
    { "posterize-bits", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.posterize_bits), 0, 8, NULL, "N",                     \
      "bits that it keeps [4]", NULL, 0 },                                                                           \
    { "solarize", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.solarize), 0, 1, NULL, "P",                              \
      "probability of solarizing [0]", NULL, 0 },                                                                    \
    { "solarize-threshold", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.solarize_threshold), 0, 256, NULL, "LEVEL",    \
      "levels from here on are inverted [128]", NULL, 0 },                                                           \
    { "sharpness", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.sharpness), 0, 1, NULL, "P",                            \
      "probability of changed sharpness [0]", NULL, 0 },                                                             \
    { "sharpness-factor", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.sharpness_factor), 0, 100, NULL, "FACTOR",       \
      "0 = smooth, 1 = unchanged, 2 = sharp [2]", NULL, 0 },                                                         \
    { "autocontrast", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.autocontrast), 0, 1, NULL, "P",                      \
      "probability of the widest contrast [0]", NULL, 0 },                                                           \
    { "equalize", 0, "equalise", DPL_OPT_DOUBLE, offsetof(TYPE, M.equalize), 0, 1, NULL, "P",                        \
      "probability of an even histogram [0]", NULL, 0 },                                                             \
    { "affine-degrees", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.affine_degrees), 0, 180, NULL, "DEGREES",          \
      "affine map: turn by up to DEGREES either way [0]", NULL, 0 },                                                 \
    { "affine-translate", 0, NULL, DPL_OPT_TWO, offsetof(TYPE, M.affine_translate), 0, 1, NULL, "X,Y",               \
      "affine map: move by up to these shares of width and height [0,0]", NULL, 0 },                                 \
    { "affine-scale", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.affine_scale_min), 0.0001, 1000, NULL, "LO,HI",        \
      "affine map: enlarge by [1,1]", NULL, 0 },                                                                     \
    { "affine-shear", 0, NULL, DPL_OPT_TWO, offsetof(TYPE, M.affine_shear), 0, 89, NULL, "X,Y",                      \
      "affine map: shear by up to these degrees either way [0,0]", NULL, 0 },                                        \
    { "rotate-once", 0, NULL, DPL_OPT_FLAG, offsetof(TYPE, M.rotate_once), 0, 0, NULL, NULL,                         \
      "crop, flips, affine map and rotation as one resample by --rotate-filter, before all else [off]", NULL, 0 },   \
    { "random-erase", 0, "random-erasing reprob", DPL_OPT_DOUBLE, offsetof(TYPE, M.random_erase), 0, 1, NULL, "P",   \
      "probability of an erased box [0]", NULL, 0 },                                                                 \
    { "erase-scale", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.erase_scale_min), 0.0001, 1, NULL, "LO,HI",             \
      "its share of the picture's area [0.02,0.33]", NULL, 0 },                                                      \
    { "erase-ratio", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.erase_ratio_min), 0.0001, 1000, NULL, "LO,HI",          \
      "its height / width [0.3,3.3]", NULL, 0 },                                                                     \
    { "erase-value", 0, NULL, DPL_OPT_THREE, offsetof(TYPE, M.erase_value), -1000000, 1000000, NULL, "R,G,B",        \
      "its normalised colour; 0 = the mean [0,0,0]", NULL, 0 },                                                      \
    { "erase-mode", 0, "remode", DPL_OPT_CHOICE, offsetof(TYPE, M.erase_mode), 0, 0, "const|rand|pixel", "NAME",       \
      "const (--erase-value), rand (a random colour for each box) or pixel (random throughout) [const]", NULL, 0 }, \
    { "mixup", 0, "mixup-alpha", DPL_OPT_DOUBLE, offsetof(TYPE, M.mixup), 0, 1000, NULL, "ALPHA",                    \
      "blend each picture with the next of its batch, weight from Beta(ALPHA,ALPHA) [0]", NULL, 0 },                 \
    { "cutmix", 0, "cutmix-alpha", DPL_OPT_DOUBLE, offsetof(TYPE, M.cutmix), 0, 1000, NULL, "ALPHA",                 \
      "paste a box of the next picture, area from Beta(ALPHA,ALPHA); both: one per batch [0]", NULL, 0 }

/** Their names, for a program that takes them by name. */
#define DPL_AUGMENT_OPT_NAMES \
    "train-crop", "crop-resize", "crop-padding", "fill", "vflip", "auto-augment", "ra-ops", \
    "ra-magnitude", "color-jitter", "grayscale", "blur", "blur-kernel", "blur-sigma", "invert", \
    "posterize", "posterize-bits", "solarize", "solarize-threshold", "sharpness", \
    "sharpness-factor", "autocontrast", "equalize", "affine-degrees", "affine-translate", \
    "affine-scale", "affine-shear", "rotate-once", "random-erase", "erase-scale", "erase-ratio", "erase-value", "erase-mode", \
    "mixup", "cutmix"
/* clang-format on */

#endif
