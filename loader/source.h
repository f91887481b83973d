/* SPDX-License-Identifier: Apache-2.0 */
/* Where samples come from: one interface for a folder tree, the caller's own functions, and later
 * lists, tar shards and packs. Reading is thread-safe; everything else happens at open. */
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

/* Every implementation starts with this; constant after open. */
struct dpl_samples {
    const dpl_samples_ops *ops;
    uint64_t count;
    int classes;
    const char *const *class_names; /* [classes] */
    const uint64_t *class_counts;   /* [classes] */
    uint64_t ignored_files;
    const char *ignored_example; /* or NULL */
    size_t index_bytes;
};

/** Open what opt names (path or source), with its subset applied. Blocks for the listing.
 *  @return DPL_OK, DPL_EINVAL, DPL_EIO, DPL_EDATA, DPL_ENOMEM; why: what was asked, found, to do */
int dpl_samples_open(dpl_samples **out, const dpl_options *opt, dpl_text *why);

int dpl_samples_open_folder(dpl_samples **out, const dpl_options *opt, dpl_text *why);
int dpl_samples_open_callbacks(dpl_samples **out, const dpl_options *opt, dpl_text *why);
void dpl_samples_close(dpl_samples **s);

#ifdef __cplusplus
}
#endif
#endif
