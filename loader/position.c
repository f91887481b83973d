/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of batches to epochs and back: pure arithmetic, so that epochs overlap and a position is
 * the whole state. */
#include "loader/loader.h"

#include "loader/options.h"

#include <unistd.h>

void dpl_position_of(const dpl_loader *l, uint64_t seq, uint64_t *epoch, uint64_t *index)
{
    const uint64_t at = l->base_index + seq;

    *epoch = l->base_epoch + at / l->steps.count;
    *index = at % l->steps.count;
}

uint64_t dpl_batch_position(const dpl_loader *l, uint64_t index, uint64_t pos)
{
    const uint64_t begin = index * l->steps.batch, rest = l->steps.samples - begin;
    const uint64_t size = rest < l->steps.batch ? rest : l->steps.batch;

    return pos < begin + size ? pos : begin;
}

uint64_t dpl_sample_at(const dpl_loader *l, const dpl_permutation *order, uint64_t pos)
{
    return dpl_samples_index(l->samples, l->opt.shuffle ? dpl_permutation_at(order, pos) : pos);
}

int dpl_epoch_exists(const dpl_loader *l, uint64_t epoch)
{
    return epoch < (l->opt.epochs ? l->opt.epochs : DPL_EPOCHS_MAX);
}

int dpl_loader_foreign(const dpl_loader *l)
{
    return l->pid != getpid();
}
