/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the sample maker: scenes with one coloured shape each, and how they are stored. */
#ifndef TOOLS_DRAWSET_H
#define TOOLS_DRAWSET_H

#include "tools/jpeg_write.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DRAWSET_CLASSES = 6 };

/** "red_ring" …: shape AND colour tell the classes apart. k 0..5, byte-wise sorted. */
const char *drawset_class_name(int k);

/** Draw one w x h scene of class k into rgb [h][w][3]: a function of (seed, subset, index) and the
 *  size alone. */
void drawset_scene(uint8_t *rgb, int w, int h, int k, uint64_t seed, int subset, uint64_t index);

/** Its size: both sides within [lo, hi], at most 4:3 or 3:4; a function of the same numbers. */
void drawset_scene_size(int *w, int *h, int lo, int hi, uint64_t seed, int subset, uint64_t index);

/** Turn an upright picture the way a camera would store it with that EXIF orientation (1..8), so
 *  that it shows upright again. out has h*w pixels; for 5..8 it is h wide and w high. */
void drawset_turn(uint8_t *out, const uint8_t *rgb, int w, int h, int orientation);

/** How picture `index` of the training set is stored: most as usual, some on purpose not.
 *  @return "" for the usual kind, else a word for the file name: "gray", "cmyk", "turned6" … */
const char *drawset_storage(tool_jpeg_spec *spec, uint64_t index, int quality);

#ifdef __cplusplus
}
#endif
#endif
