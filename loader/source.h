/* SPDX-License-Identifier: Apache-2.0 */
/* Where samples come from: one interface for a folder tree, a list file, the caller's own functions,
 * and later tar shards and packs. Reading is thread-safe; everything else happens at open. */
#ifndef DPL_LOADER_SOURCE_H
#define DPL_LOADER_SOURCE_H

#include "base/text.h"
#include "dpload.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_samples dpl_samples; /* an open source */

typedef struct dpl_samples_ops {
    /** Bytes of sample i into *buf (dpl_reserve()d, kept by the caller).
     *  @return DPL_OK, DPL_EIO, DPL_EDATA, DPL_ENOMEM; why: the cause, without the path */
    int (*read)(dpl_samples *s, uint64_t i, void **buf, size_t *cap, size_t *len, uint64_t limit,
                dpl_text *why);
    int32_t (*label)(const dpl_samples *s, uint64_t i);
    /** Path or name of sample i, written to buf when it has to be put together. */
    const char *(*name)(const dpl_samples *s, uint64_t i, char *buf, size_t len);
    void (*close)(dpl_samples *s);
} dpl_samples_ops;

/* Every implementation starts with this; constant after open. The functions of ops take the index
 * in the whole source, [0, total); a subset is a list of such indices. */
struct dpl_samples {
    const dpl_samples_ops *ops;
    uint64_t total;   /* samples of the whole source */
    uint64_t count;   /* samples of the subset */
    uint32_t *subset; /* [count] ascending indices in the source, or NULL = all */
    int classes;
    const char *const *class_names; /* [classes] */
    uint64_t *class_counts;         /* [classes] of the subset; freed by close */
    uint64_t ignored_files;
    const char *ignored_example; /* or NULL */
    size_t index_bytes;
    dpl_index_use index_use; /* of options.index */
    const char *index_text;  /* or NULL */
};

/** Open what opt names (path, list or source), with its subset applied. Blocks for the listing.
 *  @return DPL_OK, DPL_EINVAL, DPL_EIO, DPL_EDATA, DPL_ENOMEM; why: what was asked, found, to do */
int dpl_samples_open(dpl_samples **out, const dpl_options *opt, dpl_text *why);

/** Index in the source of sample k of the subset. */
static inline uint64_t dpl_samples_index(const dpl_samples *s, uint64_t k)
{
    return s->subset ? s->subset[k] : k;
}

/** Keep only opt's subset: per class a share of val_split (rounded, at least 1 and at most all but 1
 *  where the class has 2 or more) goes to DPL_SUBSET_VAL, chosen by the seed alone. */
int dpl_samples_select(dpl_samples *s, const dpl_options *opt, dpl_text *why);

int dpl_samples_open_folder(dpl_samples **out, const dpl_options *opt, dpl_text *why);
int dpl_samples_open_list(dpl_samples **out, const dpl_options *opt, dpl_text *why);
int dpl_samples_open_callbacks(dpl_samples **out, const dpl_options *opt, dpl_text *why);
void dpl_samples_close(dpl_samples **s);

#ifdef __cplusplus
}
#endif
#endif
