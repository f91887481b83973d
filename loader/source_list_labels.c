/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a list file: a table of the different ones, then one meaning for all of them. */
#include "loader/source_list_labels.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/source_list_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

/* FNV-1a */
static uint64_t hash_of(const char *s)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);

    for (; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
    return h ^ (h >> 32);
}

/* The slot of a label, or the empty one where it belongs. */
static uint32_t *slot_of(const dpl_labels *l, const char *label)
{
    size_t at = (size_t)hash_of(label) & (l->slots - 1);

    while (l->slot[at] && strcmp(dpl_name_at(&l->text, l->slot[at] - 1), label) != 0)
        at = (at + 1) & (l->slots - 1);
    return &l->slot[at];
}

static int grow_slots(dpl_labels *l)
{
    uint32_t *old = l->slot;
    const size_t slots = l->slots ? 2 * l->slots : FIRST_SLOTS;

    if (!(l->slot = dpl_calloc(slots, sizeof *l->slot))) {
        l->slot = old;
        return DPL_ENOMEM;
    }
    l->slots = slots;
    free(old);
    for (uint64_t k = 0; k < l->text.count; k++)
        *slot_of(l, dpl_name_at(&l->text, k)) = (uint32_t)k + 1;
    return DPL_OK;
}

int dpl_labels_add(dpl_labels *l, const char *label, uint64_t line, uint32_t *place)
{
    uint32_t *slot;
    int err;

    if (2 * l->text.count >= l->slots && (err = grow_slots(l))) return err;
    slot = slot_of(l, label);
    if (!*slot) {
        if (l->text.count >= DPL_LIST_NAMES_MAX) return DPL_ENOTSUP;
        if (dpl_grow((void **)&l->line, &l->line_cap, (size_t)l->text.count + 1, sizeof *l->line))
            return DPL_ENOMEM;
        if ((err = dpl_name_list_add(&l->text, "", label))) return err;
        l->line[l->text.count - 1] = line;
        *slot = (uint32_t)l->text.count;
    }
    *place = *slot - 1;
    return DPL_OK;
}

/* A decimal number without leading zeros: its value, at most INT32_MAX; else -1. */
static int32_t index_of(const char *s)
{
    int64_t v = 0;

    if (!*s || (s[0] == '0' && s[1])) return -1;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return -1;
        v = v * 10 + (*s - '0');
        if (v > INT32_MAX) v = INT32_MAX;
    }
    return (int32_t)v;
}

/* Are all labels indices? bad: the first that is none. */
static int all_indices(dpl_labels *l, uint64_t *bad)
{
    for (uint64_t k = 0; k < l->text.count; k++) {
        if ((l->meaning[k] = index_of(dpl_name_at(&l->text, k))) >= 0) continue;
        *bad = k;
        return 0;
    }
    return 1;
}

static int check_range(const dpl_labels *l, int32_t end, const char *name, dpl_text *why)
{
    for (uint64_t k = 0; k < l->text.count; k++)
        if (l->meaning[k] >= end)
            return dpl_fail(why, DPL_EDATA, "%s:%llu: label %.64s: expected 0..%d", name,
                            (unsigned long long)l->line[k], dpl_name_at(&l->text, k), end - 1);
    return DPL_OK;
}

/* Every label gets the place of its name among `classes`. bad: the first that is none of them.
 * @return DPL_OK, DPL_EDATA, or no memory */
static int look_up_names(dpl_labels *l, const char *const *classes, int n_classes, uint64_t *bad)
{
    dpl_labels known = { 0 };
    int32_t *number = dpl_calloc((size_t)n_classes, sizeof *number);
    uint32_t place;
    int err = number ? DPL_OK : DPL_ENOMEM;

    for (int c = 0; c < n_classes && !err; c++) {
        const uint64_t before = known.text.count;

        err = dpl_labels_add(&known, classes[c], 0, &place);
        if (!err && known.text.count > before) number[place] = c;
    }
    for (uint64_t k = 0; !err && k < l->text.count; k++) {
        const uint32_t at = *slot_of(&known, dpl_name_at(&l->text, k));

        if (at) {
            l->meaning[k] = number[at - 1];
        } else {
            *bad = k;
            err = DPL_EDATA;
        }
    }
    free(number);
    dpl_labels_fini(&known);
    return err;
}

static int settle_known(dpl_labels *l, dpl_name_list *titles, const char *name,
                        const char *const *classes, int n_classes, dpl_text *why)
{
    uint64_t no_name = 0, no_index = 0;
    int err = look_up_names(l, classes, n_classes, &no_name);

    if (err && err != DPL_EDATA) return err;
    if (err && !all_indices(l, &no_index))
        return dpl_fail(why, DPL_EDATA,
                        "%s:%llu: label %.128s is not among the %d classes in use, and the labels "
                        "are not all numbers",
                        name, (unsigned long long)l->line[no_name], dpl_name_at(&l->text, no_name),
                        n_classes);
    if (err && (err = check_range(l, n_classes, name, why))) return err;
    for (int c = 0; c < n_classes && !err; c++) err = dpl_name_list_add(titles, "", classes[c]);
    return err;
}

/* Classes are 0 .. the largest label. */
static int settle_indices(const dpl_labels *l, dpl_name_list *titles, const char *name,
                          dpl_text *why)
{
    int err = check_range(l, DPL_LIST_INDEX_MAX + 1, name, why);
    int32_t most = -1;

    for (uint64_t k = 0; !err && k < l->text.count; k++)
        if (l->meaning[k] > most) most = l->meaning[k];
    for (int32_t c = 0; c <= most && !err; c++) {
        char digits[12];

        snprintf(digits, sizeof digits, "%d", c);
        err = dpl_name_list_add(titles, "", digits);
    }
    return err;
}

/* Classes are the different labels, sorted. */
static int settle_names(dpl_labels *l, dpl_name_list *titles)
{
    int err = DPL_OK;

    for (uint64_t k = 0; !err && k < l->text.count; k++)
        err = dpl_name_list_add(titles, "", dpl_name_at(&l->text, k));
    if (err) return err;
    dpl_name_list_sort(titles);
    for (uint64_t k = 0; k < l->text.count; k++)
        l->meaning[k] = (int32_t)dpl_name_list_find(titles, dpl_name_at(&l->text, k));
    return DPL_OK;
}

int dpl_labels_settle(dpl_labels *l, dpl_name_list *titles, const char *name,
                      const char *const *classes, int n_classes, dpl_text *why)
{
    uint64_t bad = 0;

    if (!(l->meaning = dpl_calloc((size_t)l->text.count, sizeof *l->meaning))) return DPL_ENOMEM;
    if (classes) return settle_known(l, titles, name, classes, n_classes, why);
    if (all_indices(l, &bad)) return settle_indices(l, titles, name, why);
    return settle_names(l, titles);
}

void dpl_labels_fini(dpl_labels *l)
{
    dpl_name_list_free(&l->text);
    free(l->line);
    free(l->slot);
    free(l->meaning);
    memset(l, 0, sizeof *l);
}
