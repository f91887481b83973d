/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and checking dpl_options. */
#ifndef DPL_LOADER_OPTIONS_H
#define DPL_LOADER_OPTIONS_H

#include "base/text.h"
#include "dpload.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Epochs are 0 .. DPL_EPOCHS_MAX - 1: what a random stream's key holds (base/rng.h). */
#define DPL_EPOCHS_MAX (UINT64_C(1) << 28)

/** The caller's options over the defaults, whatever size the caller's struct has.
 *  @return DPL_OK, DPL_EINVAL */
int dpl_options_take(dpl_options *out, const dpl_options *opt, dpl_text *why);

/** The range of one int of dpl_options. */
typedef struct dpl_int_rule {
    const char *name;
    size_t offset;
    int min, max;
} dpl_int_rule;

/** Check n ranges; the first that does not hold is named. @return DPL_OK, DPL_EINVAL */
int dpl_check_ints(const dpl_options *o, const dpl_int_rule *rule, size_t n, dpl_text *why);

/** Everything that can be told without opening anything. @return DPL_OK, DPL_EINVAL */
int dpl_options_check(const dpl_options *o, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
