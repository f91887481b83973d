/* SPDX-License-Identifier: Apache-2.0 */
/* An open checkpoint file with its tensors by name, without what wraps the names. */
#ifndef DPT_TRAINER_CHECKPOINT_SOURCE_H
#define DPT_TRAINER_CHECKPOINT_SOURCE_H

#include "trainer/graph.h"
#include "trainer/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpt_ckpt_wrap {
    DPT_CKPT_PLAIN,
    DPT_CKPT_WRAPPED /* "module." and "_orig_mod." before names are ignored */
} dpt_ckpt_wrap;

typedef struct dpt_ckpt_entry {
    const char *name; /* unwrapped; the file's */
    const dpt_st_tensor *t;
    int used; /* 1 = the graph has it */
} dpt_ckpt_entry;

typedef struct dpt_ckpt_source {
    const char *path; /* the caller's */
    dpt_st_file *file;
    dpt_ckpt_entry *entry; /* [n], sorted by name */
    size_t n;
} dpt_ckpt_source;

/** Open and sort. s may be closed after an error too.
 *  @return DPL_OK, DPL_EIO, DPL_EDATA (also: two tensors of one unwrapped name), DPL_ENOMEM */
int dpt_ckpt_open(dpt_ckpt_source *s, const char *path, dpt_ckpt_wrap wrap, dpl_text *why);
void dpt_ckpt_close(dpt_ckpt_source *s); /* an s of zeros is fine */

/** The tensor whose name is prefix and name; "" = none. @return NULL: not there */
dpt_ckpt_entry *dpt_ckpt_find(const dpt_ckpt_source *s, const char *prefix, const char *name);

/** p, behind prefix, must be there as float32 of its shape; it counts as used then.
 *  @return DPL_OK, DPL_EDATA */
int dpt_ckpt_check(const dpt_ckpt_source *s, const dpt_graph *g, const char *prefix,
                   const dpt_param *p, dpl_text *why);

/** DPL_EDATA when the file has a tensor that nothing asked for. */
int dpt_ckpt_check_unused(const dpt_ckpt_source *s, const dpt_graph *g, dpl_text *why);

/** 1 when p is the weight or the bias of the classifier. */
int dpt_ckpt_is_head(const dpt_graph *g, const dpt_param *p);

/** The file's number of classes when its classifier differs from that of g in nothing else; its tensors
 *  count as used then. 0: it does not differ, or in more than that. */
int64_t dpt_ckpt_other_classes(const dpt_ckpt_source *s, const dpt_graph *g);

/** num_batches_tracked of the first batch norm that has one, else 0; all of them count as used.
 *  @return DPL_OK, DPL_EDATA, DPL_ENOMEM */
int dpt_ckpt_tracked(const dpt_ckpt_source *s, const dpt_graph *g, int64_t *out, dpl_text *why);

/** DPL_EDATA with the text on another number of classes. */
int dpt_ckpt_refuse_classes(const char *path, int64_t found, int expected, dpl_text *why);

/** Copy what dpt_ckpt_check() found good to its place in flat. */
void dpt_ckpt_copy(const dpt_ckpt_source *s, const char *prefix, const dpt_param *p, float *flat);

#ifdef __cplusplus
}
#endif
#endif
