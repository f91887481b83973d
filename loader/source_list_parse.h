/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a list file: path<TAB>label lines to samples. The rules are in include/dpload.h. */
#ifndef DPL_LOADER_SOURCE_LIST_PARSE_H
#define DPL_LOADER_SOURCE_LIST_PARSE_H

#include "base/text.h"
#include "loader/index_names.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPL_LIST_NAMES_MAX = 1 << 24, /* different labels */
    DPL_LIST_INDEX_MAX =
        (1 << 20) - 1,       /* without given classes: a slip must not make 10^9 of them */
    DPL_LIST_PATH_MAX = 4095 /* what the kernel takes */
};

/** Starts zeroed. */
typedef struct dpl_list {
    const char *text;     /* the caller's, cut into paths */
    uint32_t *path;       /* [count] into text, each ended by NUL */
    int32_t *label;       /* [count] class index, -1 = unlabelled */
    dpl_name_list titles; /* [classes] in label order */
    uint64_t count;
    size_t path_cap, label_cap;
} dpl_list;

/** Parse len bytes of text, at most 4 GiB; text has room for one more byte, is changed, and must stay
 *  as long as l.
 *  @param name     of the file, for messages
 *  @param classes  [n_classes] names, or NULL
 *  @return DPL_OK; DPL_EDATA ("name:line: what is wrong"), DPL_ENOMEM, DPL_ENOTSUP */
int dpl_list_parse(dpl_list *l, char *text, size_t len, const char *name,
                   const char *const *classes, int n_classes, dpl_text *why);
void dpl_list_fini(dpl_list *l);

#ifdef __cplusplus
}
#endif
#endif
