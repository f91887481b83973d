/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts that saving and loading a checkpoint share. */
#ifndef DPT_TRAINER_CHECKPOINT_FIELDS_H
#define DPT_TRAINER_CHECKPOINT_FIELDS_H

#include "base/number.h"
#include "trainer/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DPT_CKPT_MODEL "model.safetensors"

/* An array of an optimizer's state, by what stands before the names of its tensors. */
typedef struct dpt_ckpt_state {
    const char *prefix; /* "momentum.", or as PyTorch calls it: "exp_avg.", "exp_avg_sq." */
    size_t offset;      /* of its float * in dpt_checkpoint */
} dpt_ckpt_state;

enum { DPT_CKPT_STATES = 2 };
/** @return how many arrays the rule has */
int dpt_ckpt_states(dpt_rule rule, dpt_ckpt_state out[DPT_CKPT_STATES]);
float *dpt_ckpt_array(const dpt_checkpoint *c, const dpt_ckpt_state *s);

typedef enum dpt_ckpt_kind {
    DPT_CKPT_INT64,
    DPT_CKPT_UINT64,
    DPT_CKPT_INT,
    DPT_CKPT_DOUBLE
} dpt_ckpt_kind;

/** One number of dpt_progress under its metadata key. */
typedef struct dpt_ckpt_field {
    const char *key;
    dpt_ckpt_kind kind;
    size_t offset;
} dpt_ckpt_field;

/* Those from NEEDED on came later: 0 where a file lacks them. */
enum { DPT_CKPT_NEEDED = 11, DPT_CKPT_FIELDS = 12 };
extern const dpt_ckpt_field dpt_ckpt_fields[DPT_CKPT_FIELDS];

/** name with its ending `from` replaced by `to`, in new memory; NULL: out of memory, or another
 *  ending. free() it. */
char *dpt_ckpt_renamed(const char *name, const char *from, const char *to);

/** The class names as a JSON list; NULL: out of memory. free() it. Equal lists give equal texts, also
 *  when a name is not UTF-8. */
char *dpt_ckpt_class_text(const char *const *names, int n);

enum { DPT_CKPT_TRIPLE_MAX = 4 * DPL_NUMBER_MAX };
/** Three floats as a JSON list, with the digits a person typed: 0.485, not 0.48500001430511475. */
void dpt_ckpt_triple_text(char buf[DPT_CKPT_TRIPLE_MAX], const float v[3]);

/** folder of path + "/" + name; NULL: out of memory. free() it. */
char *dpt_ckpt_beside(const char *path, const char *name);

/** path itself or, when it is a folder, path/model.safetensors; NULL: out of memory. free() it. */
char *dpt_ckpt_file(const char *path);

#ifdef __cplusplus
}
#endif
#endif
