/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the parts that a batch is split into, as the loader makes them. */
#include "trainer/run.h"

/* Samples of process `rank` in a batch: shares differ by at most one. */
static int64_t share_of(int64_t batch, int rank, int world)
{
    return batch / world + (rank < batch % world);
}

static int64_t weight_of(const dpt_run *r, int i)
{
    return r->weight ? r->weight[i] : 1;
}

static int64_t total_weight(const dpt_run *r)
{
    int64_t total = 0;

    for (int i = 0; i < r->devices; i++) total += weight_of(r, i);
    return total;
}

/* Parts of n samples: largest remainder, ties to the first. */
static void split(const dpt_run *r, int64_t n, int *part)
{
    const int64_t total = total_weight(r);
    int64_t left = n;

    for (int i = 0; i < r->devices; i++) {
        part[i] = (int)(n * weight_of(r, i) / total);
        left -= part[i];
    }
    for (; left > 0; left--) {
        int best = -1;
        int64_t most = -1;
        for (int i = 0; i < r->devices; i++) {
            const int64_t rest = n * weight_of(r, i) - total * part[i];
            if (rest > most) {
                most = rest;
                best = i;
            }
        }
        part[best]++;
    }
}

int dpt_run_parts(dpt_run *r, dpl_text *why)
{
    const int64_t batch = r->opt->load.batch;
    const int64_t most = share_of(batch, 0, r->world);
    const int64_t total = total_weight(r);

    split(r, share_of(batch, r->rank, r->world), r->part);
    for (int i = 0; i < r->devices; i++) /* of any share, so not of the largest one split up */
        r->part_most[i] = (int)((most * weight_of(r, i) + total - 1) / total);
    for (int i = 0; i < r->devices; i++)
        if (!r->part[i])
            return dpl_fail(why, DPT_EXIT_USAGE,
                            "--batch %d with --split %s: device %d would get nothing; raise the "
                            "batch or the weight",
                            r->opt->load.batch, r->opt->split ? r->opt->split : "even", i + 1);
    return DPT_EXIT_DONE;
}
