/* SPDX-License-Identifier: Apache-2.0 */
/* Opening whatever source the options name, and choosing its subset. */
#include "loader/source.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "loader/order.h"

#include <stdlib.h>

/* Samples of a class (of n) that go to the validation side. */
static uint64_t share_for_val(uint64_t n, double split)
{
    const uint64_t k = (uint64_t)((double)n * split + 0.5);

    if (n < 2) return 0;
    return k < 1 ? 1 : k > n - 1 ? n - 1 : k;
}

typedef struct class_split {
    dpl_permutation order; /* of the class's samples; the first `val` of it are set apart */
    uint64_t size, val, seen;
} class_split;

static void count_classes(const dpl_samples *s, class_split *split, const dpl_options *opt)
{
    for (uint64_t i = 0; i < s->total; i++) split[s->ops->label(s, i) + 1].size++;
    for (int c = 0; c <= s->classes; c++) {
        if (!split[c].size) continue;
        split[c].val = share_for_val(split[c].size, opt->val_split);
        dpl_permutation_init_for(&split[c].order, split[c].size, opt->seed, 0, (uint64_t)c,
                                 DPL_RNG_SPLIT);
    }
}

int dpl_samples_select(dpl_samples *s, const dpl_options *opt, dpl_text *why)
{
    const int want_val = opt->subset == DPL_SUBSET_VAL;
    class_split *split; /* entry 0: unlabelled samples, label -1 */

    if (opt->subset == DPL_SUBSET_ALL || (!want_val && opt->val_split <= 0)) return DPL_OK;
    if (s->total > UINT32_MAX)
        return dpl_fail(why, DPL_ENOTSUP, "val_split: %llu samples, at most %u can be split",
                        (unsigned long long)s->total, UINT32_MAX);
    split = dpl_calloc((size_t)s->classes + 1, sizeof *split);
    s->subset = dpl_calloc((size_t)s->total, sizeof *s->subset);
    if (!split || !s->subset) {
        free(split);
        return dpl_fail(why, DPL_ENOMEM, "no memory for the split of %llu samples",
                        (unsigned long long)s->total);
    }
    count_classes(s, split, opt);
    for (int c = 0; c < s->classes; c++) s->class_counts[c] = 0;
    s->count = 0;
    for (uint64_t i = 0; i < s->total; i++) {
        const int32_t label = s->ops->label(s, i);
        class_split *c = &split[label + 1];

        if ((dpl_permutation_at(&c->order, c->seen++) < c->val) != want_val) continue;
        s->subset[s->count++] = (uint32_t)i;
        if (label >= 0) s->class_counts[label]++;
    }
    free(split);
    s->index_bytes += (size_t)s->total * sizeof *s->subset;
    if (s->count) return DPL_OK;
    return dpl_fail(
        why, DPL_EDATA, "val_split %g of %llu samples leaves none for %s: every class has too few",
        opt->val_split, (unsigned long long)s->total, want_val ? "validation" : "training");
}

int dpl_samples_open(dpl_samples **out, const dpl_options *opt, dpl_text *why)
{
    const int err = opt->source ? dpl_samples_open_callbacks(out, opt, why)
                    : opt->list ? dpl_samples_open_list(out, opt, why)
                                : dpl_samples_open_folder(out, opt, why);
    const int bad = err ? err : dpl_samples_select(*out, opt, why);

    if (bad) dpl_samples_close(out);
    return bad;
}

void dpl_samples_close(dpl_samples **s)
{
    if (*s) (*s)->ops->close(*s);
    *s = NULL;
}
