/* SPDX-License-Identifier: Apache-2.0 */
/* --split: the parts of a batch that the devices of this process get. */
#include "base/alloc.h"
#include "trainer/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "3,1" to weights, one per device. */
static int parse_split(dpt_run *r, dpl_text *why)
{
    const char *s = r->opt->split;
    int n = 0;

    if (!s) return DPT_EXIT_DONE;
    if (!strcmp(s, "auto")) { /* measured later */
        r->split_auto = 1;
        return DPT_EXIT_DONE;
    }
    if (!(r->weight = dpl_calloc((size_t)r->devices, sizeof *r->weight)))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    for (;; s++) {
        char *end;
        long w;

        errno = 0;
        w = strtol(s, &end, 10);
        if (end == s || errno || w < 1 || w > 1000000 || (*end && *end != ','))
            return dpl_fail(why, DPT_EXIT_USAGE,
                            "--split %s: give auto, or one whole number from 1 to 1000000 per "
                            "device, such as 3,1",
                            r->opt->split);
        if (n < r->devices) r->weight[n] = (int)w;
        n++;
        s = end;
        if (!*s) break;
    }
    if (n != r->devices)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--split %s has weights for %d, but --devices %s names %d: give one weight "
                        "per device",
                        r->opt->split, n, r->device_text, r->devices);
    return DPT_EXIT_DONE;
}

static int check_batch(const dpt_run *r, dpl_text *why)
{
    const int world = r->world > 1 ? r->world : 1;
    const int64_t devices = (int64_t)r->devices * world;

    if (r->opt->load.batch >= devices) return DPT_EXIT_DONE;
    if (world > 1)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--batch %d over %d processes of %d devices: a batch needs at least one "
                        "picture per device; use --batch %lld or fewer devices",
                        r->opt->load.batch, world, r->devices, (long long)devices);
    return dpl_fail(
        why, DPT_EXIT_USAGE,
        "--batch %d over %d devices: a batch needs at least one picture per device; use "
        "--batch %d or fewer devices",
        r->opt->load.batch, r->devices, r->devices);
}

int dpt_run_split(dpt_run *r, dpl_text *why)
{
    int rc;

    if ((rc = check_batch(r, why))) return rc;
    r->part = dpl_calloc((size_t)r->devices, sizeof *r->part);
    r->part_most = dpl_calloc((size_t)r->devices, sizeof *r->part_most);
    if (!r->part || !r->part_most) return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    if ((rc = parse_split(r, why))) return rc;
    return dpt_run_parts(r, why);
}
