/* SPDX-License-Identifier: Apache-2.0 */
/* Compact lists of names, and stamps that tell whether a folder's list of names is still the same. */
#ifndef DPL_LOADER_INDEX_NAMES_H
#define DPL_LOADER_INDEX_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Names in one block of at most 4 GiB. Starts zeroed. */
typedef struct dpl_name_list {
    char *block;
    size_t block_len, block_cap;
    uint32_t *offset; /* [count] */
    size_t offset_cap;
    uint64_t count;
} dpl_name_list;

/** Append prefix + name. @return DPL_OK, DPL_ENOMEM, DPL_ENOTSUP (more than 4 GiB of names) */
int dpl_name_list_add(dpl_name_list *l, const char *prefix, const char *name);
/** Sort by bytes. */
void dpl_name_list_sort(dpl_name_list *l);
/** Is name among those of a sorted list? @return its place, or -1 */
int64_t dpl_name_list_find(const dpl_name_list *l, const char *name);
/** Give unused memory back. */
void dpl_name_list_trim(dpl_name_list *l);
size_t dpl_name_list_bytes(const dpl_name_list *l);
void dpl_name_list_free(dpl_name_list *l);
static inline const char *dpl_name_at(const dpl_name_list *l, uint64_t i)
{
    return l->block + l->offset[i];
}

/** What tells whether a folder's list of names is still the same. */
typedef struct dpl_stamp {
    uint64_t ino;
    int64_t mtime_ns, ctime_ns;
} dpl_stamp;

/** Folders that were listed. Starts zeroed. */
typedef struct dpl_stamps {
    dpl_name_list path; /* relative to the root; the root itself is "." */
    dpl_stamp *stamp;   /* [path.count] */
    size_t cap;
} dpl_stamps;

dpl_stamp dpl_stamp_of(const struct stat *st);
int dpl_stamps_add(dpl_stamps *s, const char *path, const dpl_stamp *stamp);
void dpl_stamps_free(dpl_stamps *s);

#ifdef __cplusplus
}
#endif
#endif
