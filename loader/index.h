/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a tree of class folders: which pictures are where. Made by listing the tree, or taken
 * from a file that an earlier run wrote; both give the same samples in the same order. */
#ifndef DPL_LOADER_INDEX_H
#define DPL_LOADER_INDEX_H

#include "base/text.h"
#include "loader/index_names.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One class folder and its pictures, sorted by bytes. */
typedef struct dpl_index_class {
    const char *title;      /* name of the folder */
    const char *names;      /* of the pictures, relative to the folder, each ended by NUL */
    const uint32_t *offset; /* [count] into names */
    uint64_t count;
    size_t names_len; /* bytes */
} dpl_index_class;

/** Constant once made. Starts zeroed. */
typedef struct dpl_index {
    dpl_index_class *of; /* [classes], sorted by title, byte-wise */
    uint64_t classes, samples;
    uint64_t ignored, loose_pictures; /* as in dpl_walk */
    const char *ignored_example;      /* relative to the root, or NULL */
    int64_t listed_ns;                /* wall clock when the listing began */
    size_t bytes;                     /* memory that this index takes, mapped pages too */
    /* what the above points into: lists of an index made by listing … */
    dpl_name_list titles, *lists; /* [classes] */
    char *example;
    dpl_stamps stamps; /* of the folders listed, when asked for; not part of bytes */
    /* … or the file */
    void *map;
    size_t map_len;
} dpl_index;

/** List the tree that root_fd stands for, with up to `threads` threads; a class may be empty.
 *  @param root     its path, for messages
 *  @param stamped  1 = keep the stamps, so that the index can be saved
 *  @return DPL_OK, DPL_EIO, DPL_EDATA, DPL_ENOMEM, DPL_ENOTSUP. Of several faults the first in the
 *          order of classes is told, whatever the number of threads. */
int dpl_index_list(dpl_index *x, int root_fd, const char *root, int threads, int stamped,
                   dpl_text *why);

typedef enum dpl_index_file {
    DPL_INDEX_FILE_GOOD,
    DPL_INDEX_FILE_NONE,   /* no such file, or an empty one */
    DPL_INDEX_FILE_STALE,  /* damaged, of another version, or the tree changed: may be replaced */
    DPL_INDEX_FILE_FOREIGN /* another kind of file, or unreadable: must not be replaced */
} dpl_index_file;

/** Map an index file and check all of it: its checksum, its structure, and that no folder of the tree
 *  changed since it was listed. Unless GOOD, x stays empty and why says what is wrong. */
dpl_index_file dpl_index_load(dpl_index *x, const char *path, int root_fd, dpl_text *why);

/** Write an index with stamps; the old file stays until the new one is complete.
 *  @return DPL_OK, DPL_EIO, DPL_ENOMEM */
int dpl_index_save(const dpl_index *x, const char *path, dpl_text *why);

void dpl_index_fini(dpl_index *x);

#ifdef __cplusplus
}
#endif
#endif
