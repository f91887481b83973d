/* SPDX-License-Identifier: Apache-2.0 */
/* Making a team of the kind that a run's devices are: the CPU's replicas, or the plug-in's GPUs. */
#include "base/alloc.h"
#include "base/files.h"
#include "trainer/interrupt.h"
#include "trainer/run.h"
#include "trainer/trainer_plugin.h"

#include <stdlib.h>
#include <string.h>

enum { COLLECTIVE_MS = 600000 }; /* as PyTorch waits for NCCL */

/* Where built plans of GPU kernels are kept from one run to the next: $XDG_CACHE_HOME/dptrain, or
 * ~/.cache/dptrain. A run goes on without. @return new memory, or NULL */
static char *cache_folder(const dpt_run *r)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    dpl_text why;
    char *path = NULL;

    if (base && *base == '/')
        path = dpl_path_join(base, "dptrain");
    else if (home && *home == '/')
        path = dpl_path_join(home, ".cache/dptrain");
    if (path && dpl_make_folder(path, &why)) {
        dpt_report_detail(r->report, "GPU kernels are not kept for the next run: %s", why.s);
        free(path);
        path = NULL;
    }
    return path;
}

int dpt_run_bytes(const dpt_run *r)
{
    const dpl_options *o = &r->opt->load;

    return r->sim || (r->cuda && o->mixup <= 0 && o->random_erase <= 0);
}

static void gpu_options(const dpt_run *r, dpt_team_options *t)
{
    t->gpu = r->gpu;
    t->amp = (dpt_amp)r->opt->amp;
    t->bytes = dpt_run_bytes(r);
    memcpy(t->mean, r->opt->load.mean, sizeof t->mean);
    memcpy(t->std, r->opt->load.std, sizeof t->std);
    t->timeout_ms = COLLECTIVE_MS;
}

int dpt_run_make_team(const dpt_run *r, dpt_team_options *t, dpt_team **out, dpl_text *why)
{
    const dpt_trainer_plugin *plugin = NULL;
    char *cache = NULL;
    int err = DPL_OK;

    *out = NULL;
    t->replicas = r->devices;
    t->cancel = dpt_interrupt_cancel();
    t->backend = r->backend;
    t->threads = r->opt->threads;
    if (r->cuda && !(err = dpt_plugin_cuda(&plugin, why))) {
        t->ops = plugin->team;
        t->cache = cache = cache_folder(r);
        gpu_options(r, t);
    }
    if (!err) err = dpt_team_create(out, t, why);
    free(cache);
    if (err == DPL_ECANCELED && dpt_interrupt_signal()) return dpt_interrupt_fail(why);
    return err == DPL_EINVAL ? DPT_EXIT_FAILED : dpt_exit_of(err);
}
