/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tree of class folders. Open time only; each dpl_walk and list belongs to one thread. */
#ifndef DPL_LOADER_SOURCE_WALK_H
#define DPL_LOADER_SOURCE_WALK_H

#include "base/text.h"
#include "loader/index_names.h"
#include "loader/source.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_PATH_BYTES = 8192 }; /* the kernel takes 4096; longer ones are refused by name */

/** A tree, and what was met besides samples. The caller sets the first three and zeroes the rest. */
typedef struct dpl_walk {
    const char *root; /* for messages */
    int root_fd;
    int stamped; /* 1 = keep `stamps` */
    dpl_stamps stamps;
    uint64_t ignored; /* files that are no pictures by name; hidden ones and junk not counted */
    char *ignored_example;   /* path of the first, relative to the root, malloc'd */
    uint64_t loose_pictures; /* pictures directly in the root, part of `ignored` */
} dpl_walk;

/** Is this a picture by its name? jpg jpeg png webp ppm bmp pgm tif tiff gif, any case. */
int dpl_is_picture_name(const char *name);

/** Names of the class folders of the root, unsorted. @return as dpl_walk_class() */
int dpl_walk_root(dpl_walk *w, dpl_name_list *titles, dpl_text *why);
/** Pictures below root/title at any depth, unsorted, relative to it. Links are followed; a folder
 *  that is its own ancestor is not entered again.
 *  @return DPL_OK, DPL_EIO, DPL_EDATA; DPL_ENOMEM and DPL_ENOTSUP (too many names) without a text */
int dpl_walk_class(dpl_walk *w, const char *title, dpl_name_list *names, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
