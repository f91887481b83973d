/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's options as rows of an option table, for every program that opens a loader: one
 * wording, one set of names and limits. */
#ifndef DPL_BASE_OPTLOADER_H
#define DPL_BASE_OPTLOADER_H

#include "base/optaugment.h"
#include "base/optparse.h"
#include "dpload.h"

/** Rows for a struct TYPE that holds a dpl_options as member M. DIR, the sizes of the picture, the
 *  devices and the recipe are left to the program. */
/* clang-format off */
#define DPL_LOADER_OPT_ROWS(TYPE, M)                                                                                       \
    { "workers", 'j', "num-workers num-threads loader-threads", DPL_OPT_INT, offsetof(TYPE, M.workers), 0, 1024, NULL, "N", \
      "loader threads of this process; 0 = one per usable core [0]", "Loader", 1 },                                        \
    { "batch", 'b', "batch-size", DPL_OPT_INT, offsetof(TYPE, M.batch), 1, 1048576, NULL, "N",                             \
      "pictures per step, over all devices [64]", NULL, 1 },                                                               \
    { "readers", 0, "read-ahead io-threads", DPL_OPT_INT, offsetof(TYPE, M.readers), 0, 1024, NULL, "N",                   \
      "threads that only read files, ahead of the loader threads; 0 = those read themselves [0]", NULL, 0 },               \
    { "prefetch", 0, "prefetch-factor prefetch-queue-depth batches-ahead", DPL_OPT_INT, offsetof(TYPE, M.prefetch), 1, 64, NULL, "N", \
      "batches prepared ahead [3]", NULL, 0 },                                                                             \
    { "seed", 0, NULL, DPL_OPT_UINT64, offsetof(TYPE, M.seed), 0, 0, NULL, "N",                                            \
      "fixes order, augmentation and initial weights [0]", NULL, 0 },                                                      \
    { "shuffle", 0, NULL, DPL_OPT_FLAG, offsetof(TYPE, M.shuffle), 0, 0, NULL, NULL,                                       \
      "another order each epoch; --no-shuffle: source order [on]", NULL, 0 },                                              \
    { "drop-last", 0, NULL, DPL_OPT_FLAG, offsetof(TYPE, M.drop_last), 0, 0, NULL, NULL,                                   \
      "leave out a last batch that is not full [off]", NULL, 0 },                                                          \
    { "val-split", 0, NULL, DPL_OPT_SHARE, offsetof(TYPE, M.val_split), 0, 0.9, NULL, "SHARE",                             \
      "share of each class set apart for validation when DIR has no train/ and val/ [0]", NULL, 0 },                       \
    { "scale", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.scale_min), 0.0001, 1, NULL, "LO,HI",                               \
      "random crop: share of the picture's area [0.08,1]", "Pictures", 0 },                                                \
    { "ratio", 0, NULL, DPL_OPT_PAIR, offsetof(TYPE, M.ratio_min), 0.01, 100, NULL, "LO,HI",                               \
      "random crop: width / height [0.75,1.3333]", NULL, 0 },                                                              \
    { "hflip", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.hflip), 0, 1, NULL, "P",                                          \
      "probability of a horizontal flip [0.5]", NULL, 0 },                                                                 \
    { "rotate", 0, NULL, DPL_OPT_DOUBLE, offsetof(TYPE, M.rotate), 0, 180, NULL, "DEGREES",                                \
      "rotate by a random angle up to DEGREES either way [0]", NULL, 0 },                                                  \
    { "rotate-filter", 0, NULL, DPL_OPT_CHOICE, offsetof(TYPE, M.rotate_filter), 0, 0, "bilinear||nearest", "NAME", \
      "of rotation, affine maps and --auto-augment: bilinear or nearest [nearest]", NULL, 0 },                                                                          \
    { "filter", 0, "interpolation", DPL_OPT_CHOICE, offsetof(TYPE, M.filter), 0, 0, "bilinear|bicubic", "NAME",            \
      "resize filter, antialiased: bilinear or bicubic [bilinear]", NULL, 0 },                                             \
    { "decode", 0, NULL, DPL_OPT_CHOICE, offsetof(TYPE, M.decode), 0, 0, "fast|exact", "MODE",                             \
      "fast, or exact = Pillow's pixels bit for bit; evaluation is always exact [fast]", NULL, 0 },                        \
    { "exif", 0, NULL, DPL_OPT_CHOICE, offsetof(TYPE, M.exif), 0, 0, "ignore|apply", "RULE",                               \
      "EXIF orientation: apply, or ignore as torchvision does [apply]", NULL, 0 },                                         \
    DPL_AUGMENT_OPT_ROWS(TYPE, M),                                                                                             \
    { "max-bad", 0, NULL, DPL_OPT_SHARE, offsetof(TYPE, M.max_bad), 0, 1, NULL, "SHARE",                                   \
      "end when more than this share of the pictures is unusable, but allow 10; 0 = the first ends it [0.1%]", "Bad pictures", 0 }, \
    { "strict", 0, NULL, DPL_OPT_FLAG, offsetof(TYPE, M.strict), 0, 0, NULL, NULL,                                         \
      "a decoder warning makes a picture unusable [off]", NULL, 0 },                                                       \
    { "max-pixels", 0, NULL, DPL_OPT_SIZE, offsetof(TYPE, M.max_pixels), 1, 0, NULL, "N",                                  \
      "larger pictures are refused [178956970]", NULL, 0 },                                                                \
    { "max-scans", 0, NULL, DPL_OPT_INT, offsetof(TYPE, M.max_scans), 1, 100000, NULL, "N",                                \
      "progressive JPEGs with more scans are refused; above 10 megapixels, with proportionally fewer [256]", NULL, 0 },     \
    { "max-file-bytes", 0, NULL, DPL_OPT_SIZE, offsetof(TYPE, M.max_file_bytes), 1, 0, NULL, "BYTES",                      \
      "larger files are refused [512MiB]", NULL, 0 }
/** Rows for what is loaded instead of a plain DIR. */
#define DPL_SOURCE_OPT_ROWS(TYPE, M)                                                                                       \
    { "list", 0, NULL, DPL_OPT_STRING, offsetof(TYPE, M.list), 0, 0, NULL, "FILE",                                         \
      "load the pictures of a text file, a line each: path, tab, label;\nDIR may be left out: relative paths begin in the folder of FILE", "Data", 0 }, \
    { "index", 0, NULL, DPL_OPT_STRING, offsetof(TYPE, M.index), 0, 0, NULL, "FILE",                                       \
      "keep the listing of the folder in FILE, and use it as long as no folder changed [none]", NULL, 0 }
/* clang-format on */

#endif
