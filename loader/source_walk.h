/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tree of class folders, and the compact list of names that it fills. Open time only, one
 * thread. */
#ifndef DPL_LOADER_SOURCE_WALK_H
#define DPL_LOADER_SOURCE_WALK_H

#include "base/text.h"
#include "loader/source.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_PATH_BYTES = 8192 }; /* the kernel takes 4096; longer ones are refused by name */

/** Names in one block. Starts zeroed. */
typedef struct dpl_name_list {
    char *block;
    size_t block_len, block_cap;
    size_t *offset; /* [count] */
    size_t offset_cap;
    uint64_t count;
} dpl_name_list;

/** Append prefix + name. @return DPL_OK or DPL_ENOMEM */
int dpl_name_list_add(dpl_name_list *l, const char *prefix, const char *name);
/** Sort entries first .. count - 1 by their bytes. */
void dpl_name_list_sort(dpl_name_list *l, uint64_t first);
/** Give unused memory back. */
void dpl_name_list_trim(dpl_name_list *l);
size_t dpl_name_list_bytes(const dpl_name_list *l);
void dpl_name_list_free(dpl_name_list *l);
static inline const char *dpl_name_at(const dpl_name_list *l, uint64_t i)
{
    return l->block + l->offset[i];
}

/** What was met besides samples. Starts zeroed. */
typedef struct dpl_walk {
    uint64_t ignored; /* files that are no pictures by name; hidden ones and junk not counted */
    char *ignored_example;   /* path of the first, malloc'd */
    uint64_t loose_pictures; /* pictures directly in the root, part of `ignored` */
} dpl_walk;

/** Is this a picture by its name? jpg jpeg png webp ppm bmp pgm tif tiff gif, any case. */
int dpl_is_picture_name(const char *name);

/** Names of the class folders of root, unsorted. @return DPL_OK, DPL_EIO, DPL_ENOMEM */
int dpl_walk_root(dpl_walk *w, const char *root, dpl_name_list *titles, dpl_text *why);
/** Pictures below root/title at any depth, unsorted, relative to it. Links are followed; a folder
 *  that is its own ancestor is not entered again. @return DPL_OK, DPL_EIO, DPL_EDATA, DPL_ENOMEM */
int dpl_walk_class(dpl_walk *w, const char *root, const char *title, dpl_name_list *names,
                   dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
