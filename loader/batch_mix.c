/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and cutmix over the samples of a slot. In place and in order: sample k is mixed while sample
 * k + 1 is still as it was. What the last one needs is the halo: the next rank's first sample,
 * prepared here too, or a copy of the first one when this rank has the whole batch. */
#include "loader/batch_mix.h"

#include "loader/loader.h"

#include <string.h>

int dpl_mix_plan_batch(const dpl_loader *l, uint64_t epoch, uint64_t index, dpl_mix_plan *m)
{
    const uint64_t rest = l->steps.samples - index * l->steps.batch;
    const uint64_t size = rest < l->steps.batch ? rest : l->steps.batch;
    uint64_t first, n;

    dpl_mix_draw(m, &l->opt, epoch, index);
    if (size < 2) m->kind = DPL_MIX_NONE; /* nothing to mix with */
    dpl_steps_rank(&l->steps, index, l->opt.rank, l->opt.world, &first, &n);
    return m->kind != DPL_MIX_NONE && n && n < size;
}

/* One sample: place `at` of part p. */
typedef struct cursor {
    dpl_slot_part *part;
    int p, at;
} cursor;

/* Behind the last sample of the last part is the halo's. */
static cursor after(const dpl_loader *l, const dpl_slot *s, cursor c)
{
    if (++c.at < s->part[c.p].planned) return c;
    c.at = 0;
    do c.p++;
    while (c.p < l->lanes && !s->part[c.p].planned);
    c.part = &s->part[c.p];
    return c;
}

static void *pixels_of(const dpl_loader *l, cursor c)
{
    return c.part->pixels + (size_t)c.at * l->picture_bytes;
}

/* This rank has the whole batch: its first sample follows its last. */
static void copy_first(const dpl_loader *l, dpl_slot_part *halo, cursor first)
{
    halo->labels[0] = first.part->labels[first.at];
    halo->bad[0] = first.part->bad[first.at];
    if (!halo->bad[0]) memcpy(halo->pixels, pixels_of(l, first), l->picture_bytes);
}

void dpl_mix_slot(const dpl_loader *l, dpl_slot *s)
{
    dpl_slot_part *halo = &s->part[l->lanes];
    cursor c = after(l, s, (cursor){ s->part, 0, -1 });

    if (!halo->planned) copy_first(l, halo, c);
    for (int k = 0; k < s->total; k++) {
        const cursor next = after(l, s, c);

        if (!c.part->bad[c.at] && !next.part->bad[next.at]) {
            dpl_mix_pictures(&s->mix, &l->opt, &l->kernels, pixels_of(l, c), pixels_of(l, next));
            c.part->labels2[c.at] = next.part->labels[next.at];
            c.part->mix[c.at] = s->mix.share;
        }
        c = next;
    }
}
