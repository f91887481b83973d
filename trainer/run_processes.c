/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several processes this one is. All of them read the data and the checkpoint and make every
 * step; process 0 alone writes files and says how it goes. */
#include "base/fnv.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HOST and PORT said apart. */
static int join_port(const dpt_options *o, char out[DPT_LAUNCHER_ADDRESS_MAX], dpl_text *why)
{
    char other[DPT_LAUNCHER_ADDRESS_MAX];
    const int another = o->master_port > 1 ? o->master_port - 1 : 2;

    if (!o->master_addr)
        return dpl_fail(why, DPL_EINVAL,
                        "--master-port %d: the port of which machine? Give --master-addr HOST too",
                        o->master_port);
    if (dpt_launcher_join_address(out, "--master-addr", o->master_addr, o->master_port, why) ||
        dpt_launcher_join_address(other, "--master-addr", o->master_addr, another, why))
        return DPL_EINVAL;
    if (strcmp(out, other)) return DPL_OK;
    return dpl_fail(why, DPL_EINVAL,
                    "--master-addr %s with --master-port %d: the port is said twice",
                    o->master_addr, o->master_port);
}

/* *address: what the options say of the meeting place, in out or borrowed, or NULL. */
static int said_address(const dpt_options *o, char out[DPT_LAUNCHER_ADDRESS_MAX],
                        const char **address, dpl_text *why)
{
    static const char tcp[] = "tcp://";
    const char *url = o->dist_url;
    int err;

    *address = o->master_addr;
    if (url && (o->master_addr || o->master_port))
        return dpl_fail(why, DPL_EINVAL,
                        "--dist-url %s with --%s: both say where the processes meet; leave one out",
                        url, o->master_addr ? "master-addr" : "master-port");
    if (o->master_port) {
        if ((err = join_port(o, out, why))) return err;
        *address = out;
    }
    if (!url || !strcmp(url, "env://")) return DPL_OK;
    if (strncmp(url, tcp, sizeof tcp - 1) != 0)
        return dpl_fail(
            why, DPL_EINVAL,
            "--dist-url %s: give tcp://HOST:PORT, or env:// for what the environment says", url);
    *address = url + sizeof tcp - 1;
    return DPL_OK;
}

int dpt_run_processes(dpt_run *r, dpl_text *why)
{
    const dpt_options *o = r->opt;
    dpt_launcher_options said = { .rank = o->rank, .world = o->world, .local_rank = o->local_rank };
    char address[DPT_LAUNCHER_ADDRESS_MAX];

    if (said_address(o, address, &said.address, why) ||
        dpt_launcher_read(&r->launcher, &said, dpt_launcher_environment, NULL, why))
        return DPT_EXIT_USAGE;
    r->rank = r->launcher.rank;
    r->world = r->launcher.world;
    r->local_rank = r->launcher.local_rank;
    if (r->world > 1) r->address = r->launcher.address;
    dpt_report_process(r->report, r->rank, r->world);
    return DPT_EXIT_DONE;
}

int dpt_run_meet(const dpt_run *r, dpl_text *why)
{
    if (!r->address || !setenv("NCCL_COMM_ID", r->address, 0)) return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
}

static void digest_text(uint64_t *sum, const char *s)
{
    *sum = dpl_fnv(*sum, s, strlen(s) + 1); /* its end counts: "a", "b" is not "ab" */
}

/* Of what --weights brought; the file lies elsewhere on other machines. */
static void digest_weights(uint64_t *sum, const dpt_run *r)
{
    *sum = dpl_fnv(*sum, r->params, r->graph->param_floats * sizeof(float));
    *sum = dpl_fnv(*sum, r->buffers, r->graph->buffer_floats * sizeof(float));
}

/* Paths may differ from machine to machine, devices from process to process. */
static int is_own(const char *name)
{
    static const char *const own[] = { "devices", "split", "list", "val-list" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(name, own[i])) return 1;
    return !dpt_runlog_is_taken(name) && strcmp(name, "steps") != 0 &&
           strcmp(name, "save-freq") != 0;
}

uint64_t dpt_run_digest(const dpt_run *r)
{
    const dpt_progress *p = &r->progress;
    const char *const *names = dpt_run_class_names(r);
    uint64_t sum = DPL_FNV_START;
    char text[1024];

    for (int i = 0; names && i < dpt_run_classes(r); i++) digest_text(&sum, names[i]);
    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name; o++) {
        if (is_own(o->name)) continue;
        dpl_opt_format(o, r->opt, text, sizeof text);
        digest_text(&sum, text);
    }
    snprintf(text, sizeof text, "%llu %llu %lld %llu %lld %d %d",
             (unsigned long long)r->train_info.samples, (unsigned long long)r->val_info.samples,
             (long long)p->epoch, (unsigned long long)p->sample, (long long)p->step, p->evaluated,
             r->opt->evaluate);
    digest_text(&sum, text);
    if (r->opt->weights) digest_weights(&sum, r);
    return sum;
}

int dpt_run_workers(const dpt_run *r)
{
    const int said = r->opt->load.workers, here = r->launcher.local_size;
    int each;

    if (said || here < 2) return said;
    each = dpl_cpus_usable(NULL) / here;
    return each > 0 ? each : 1;
}
