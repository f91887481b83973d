/* SPDX-License-Identifier: Apache-2.0 */
/* The different labels of a list, each with the line where it was met first, and what they mean. */
#ifndef DPL_LOADER_SOURCE_LIST_LABELS_H
#define DPL_LOADER_SOURCE_LIST_LABELS_H

#include "base/text.h"
#include "loader/index_names.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Starts zeroed. */
typedef struct dpl_labels {
    dpl_name_list text; /* the different labels, in the order they were met */
    uint64_t *line;     /* [text.count] first line of each */
    size_t line_cap;
    uint32_t *slot;   /* [slots] hash table of places + 1; 0 = empty */
    size_t slots;     /* a power of two, or 0 */
    int32_t *meaning; /* [text.count] class index of each; made by dpl_labels_settle() */
} dpl_labels;

/** The place of a label, added when it is new.
 *  @return DPL_OK, DPL_ENOMEM, DPL_ENOTSUP (too many different ones) */
int dpl_labels_add(dpl_labels *l, const char *label, uint64_t line, uint32_t *place);

/** Decide whether labels are names or indices, and fill l->meaning and titles (the classes in label
 *  order). @return DPL_OK, DPL_EDATA, DPL_ENOMEM, DPL_ENOTSUP; why: for DPL_EDATA */
int dpl_labels_settle(dpl_labels *l, dpl_name_list *titles, const char *name,
                      const char *const *classes, int n_classes, dpl_text *why);

void dpl_labels_fini(dpl_labels *l);

#ifdef __cplusplus
}
#endif
#endif
