/* SPDX-License-Identifier: Apache-2.0 */
/* --devices and --split: which devices share a batch, and in which parts. */
#include "base/alloc.h"
#include "device/device.h"
#include "trainer/run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Open each device once to check its spec, and see whether all are of one kind. */
static int check_devices(dpt_run *r, dpl_text *why)
{
    dpl_device_kind first = DPL_DEVICE_CPU;

    for (int i = 0; i < r->devices; i++) {
        dpl_device *d = NULL;
        dpl_device_kind kind;
        int err = dpl_device_open(&d, r->device[i], why);

        if (err) {
            dpl_text_prefix(why, "--devices %s", r->opt->devices);
            return dpt_exit_of(err);
        }
        kind = dpl_device_get_kind(d);
        dpl_device_close(&d);
        if (i && kind != first)
            return dpl_fail(why, DPT_EXIT_USAGE,
                            "--devices %s: %s and %s cannot share a batch: a simulated device "
                            "computes nothing; use devices of one kind",
                            r->opt->devices, r->device[0], r->device[i]);
        first = kind;
    }
    r->sim = first == DPL_DEVICE_SIM;
    if (r->sim && !dpt_cli_given(r->cli, "epochs")) r->opt->epochs = 1; /* nothing is learned */
    return DPT_EXIT_DONE;
}

static int refuse_cuda(const dpt_run *r, dpl_text *why)
{
    for (int i = 0; i < r->devices; i++)
        if (!strncmp(r->device[i], "cuda", 4))
            return dpl_fail(why, DPT_EXIT_DEVICE,
                            "--devices %s: this build trains on the CPU only (no CUDA backend); "
                            "use --devices cpu, or sim:38ms to model an accelerator",
                            r->opt->devices);
    return DPT_EXIT_DONE;
}

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

int dpt_run_devices(dpt_run *r, dpl_text *why)
{
    int rc;

    r->device_text = strcmp(r->opt->devices, "auto") ? r->opt->devices : "cpu";
    r->devices = dpl_device_list_parse(&r->device, r->device_text, why);
    if (r->devices < 0) {
        rc = r->devices;
        r->devices = 0;
        return dpt_exit_of(rc);
    }
    if ((rc = refuse_cuda(r, why)) || (rc = check_devices(r, why))) return rc;
    if (r->opt->load.batch < r->devices)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--batch %d over %d devices: a batch needs at least one picture per "
                        "device; use --batch %d or fewer devices",
                        r->opt->load.batch, r->devices, r->devices);
    r->part = dpl_calloc((size_t)r->devices, sizeof *r->part);
    r->part_most = dpl_calloc((size_t)r->devices, sizeof *r->part_most);
    if (!r->part || !r->part_most) return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    if ((rc = parse_split(r, why)) || (rc = dpt_run_parts(r, why))) return rc;
    if (r->sim && (r->opt->resume || r->opt->evaluate || r->opt->output))
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--devices %s: a simulated device learns nothing, so there is no %s; leave "
                        "it out",
                        r->opt->devices,
                        r->opt->evaluate ? "--evaluate"
                        : r->opt->resume ? "--resume"
                                         : "--output");
    return DPT_EXIT_DONE;
}
