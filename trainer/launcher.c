/* SPDX-License-Identifier: Apache-2.0 */
/* What launchers put into the environment. The names were read from the documentation
 * of torchrun and Slurm, and seen with Open MPI 4.1 and MPICH 4.0. */
#include "trainer/launcher.h"

#include "base/number.h"
#include "dpload.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_MAX = 1 << 20 };

/* Where the names of one launcher are; NULL = it has none. The first two belong together. */
typedef struct family {
    const char *name;
    const char *rank, *world, *local_rank, *local_size, *restarts;
} family;

static const family families[] = {
    [DPT_LAUNCHER_OPTIONS] = { "options", "--rank", "--world", "--local-rank", NULL, NULL },
    [DPT_LAUNCHER_TORCHRUN] = { "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                "TORCHELASTIC_RESTART_COUNT" },
    [DPT_LAUNCHER_OPENMPI] = { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL },
    [DPT_LAUNCHER_MPICH] = { "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                             NULL },
    [DPT_LAUNCHER_SLURM] = { "Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL,
                             "SLURM_RESTART_COUNT" },
    [DPT_LAUNCHER_NONE] = { "no launcher", NULL, NULL, NULL, NULL, NULL },
};

/* One reading. */
typedef struct reader {
    dpt_launcher *out;
    const dpt_launcher_options *opt;
    dpt_launcher_get *lookup;
    void *arg;
    dpl_text *why;
} reader;

const char *dpt_launcher_environment(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

const char *dpt_launcher_name(dpt_launcher_family f)
{
    return families[f].name;
}

/* An empty variable is one that is not set. */
static const char *get(const reader *r, const char *name)
{
    const char *s = name ? r->lookup(r->arg, name) : NULL;

    return s && *s ? s : NULL;
}

/* *out stays as it is where the variable is not set. */
static int get_number(const reader *r, const char *name, int least, int most, int *out)
{
    const char *s = get(r, name);
    uint64_t n;

    if (!s) return DPL_OK;
    if (dpl_parse_uint(s, &n) || n < (unsigned)least || n > (unsigned)most)
        return dpl_fail(r->why, DPL_EINVAL, "%s=\"%s\" is no number from %d to %d", name, s, least,
                        most);
    *out = (int)n;
    return DPL_OK;
}

/* --- numbers --- */

/* Do these numbers fit each other? */
static int check_numbers(const reader *r, const family *f)
{
    const dpt_launcher *l = r->out;

    if (l->rank >= l->world)
        return dpl_fail(r->why, DPL_EINVAL, "%s is %d and %s is %d: ranks count from 0", f->rank,
                        l->rank, f->world, l->world);
    if (l->local_size > l->world)
        return dpl_fail(r->why, DPL_EINVAL,
                        "%s says %d processes on this machine, and %s %d in all", f->name,
                        l->local_size, f->world, l->world);
    if (l->local_rank >= (l->local_size > 0 ? l->local_size : l->world))
        return dpl_fail(r->why, DPL_EINVAL, "%s is %d of %d processes: they count from 0",
                        f->local_rank, l->local_rank, l->local_size > 0 ? l->local_size : l->world);
    return DPL_OK;
}

static int read_numbers(const reader *r, const family *f)
{
    dpt_launcher *l = r->out;
    int err;

    if ((err = get_number(r, f->rank, 0, WORLD_MAX - 1, &l->rank)) ||
        (err = get_number(r, f->world, 1, WORLD_MAX, &l->world)) ||
        (err = get_number(r, f->local_rank, 0, WORLD_MAX - 1, &l->local_rank)) ||
        (err = get_number(r, f->local_size, 1, WORLD_MAX, &l->local_size)) ||
        (err = get_number(r, f->restarts, 0, INT32_MAX, &l->restarts)))
        return err;
    return DPL_OK;
}

/* Is any variable of the family set, and if so all that belong together? */
static int is_there(const reader *r, const family *f, int *there)
{
    const char *const names[] = { f->rank, f->world, f->local_rank, f->local_size };
    const char *set = NULL, *missing = NULL;

    for (int i = 0; i < 4; i++)
        if (!set && get(r, names[i])) set = names[i];
    *there = set != NULL;
    if (!set) return DPL_OK;
    for (int i = 1; i >= 0; i--)
        if (!get(r, names[i])) missing = names[i];
    if (!missing && get(r, f->local_size) && !get(r, f->local_rank)) missing = f->local_rank;
    if (!missing) return DPL_OK;
    return dpl_fail(r->why, DPL_EINVAL, "%s is set as %s does, and %s is not: set it, or unset %s",
                    set, f->name, missing, set);
}

/* --- where we meet --- */

/* MASTER_ADDR and MASTER_PORT, or what the caller has found. */
static int meet_at(const reader *r, const char *host, const char *host_name, int port, int offset)
{
    const char *master = get(r, "MASTER_ADDR");
    int err;

    if (r->opt->address) {
        host_name = "--master-addr";
        host = r->opt->address;
    } else if (master) {
        if ((err = get_number(r, "MASTER_PORT", 1, 65535, &port))) return err;
        if (offset && get(r, "MASTER_PORT")) port += port < 65535 ? 1 : -1;
        host_name = "MASTER_ADDR";
        host = master;
    }
    if (!host)
        return dpl_fail(
            r->why, DPL_EINVAL,
            "%d processes, and nothing says where they meet: give --master-addr HOST[:PORT] "
            "of rank 0's machine, or set MASTER_ADDR",
            r->out->world);
    return dpt_launcher_join_address(r->out->address, host_name, host, port, r->why);
}

static int same_machine(const reader *r)
{
    return r->out->local_size == r->out->world;
}

/* --- families --- */

static int read_options(const reader *r)
{
    const dpt_launcher_options *o = r->opt;
    dpt_launcher *l = r->out;
    int err;

    if (o->rank < 0 || o->world < 0)
        return dpl_fail(r->why, DPL_EINVAL, "--rank and --world go together: %s is missing",
                        o->rank < 0 ? "--rank" : "--world");
    if (o->world < 1 || o->world > WORLD_MAX)
        return dpl_fail(r->why, DPL_EINVAL, "--world %d is no number from 1 to %d", o->world,
                        WORLD_MAX);
    l->rank = o->rank;
    l->world = o->world;
    if ((err = check_numbers(r, &families[DPT_LAUNCHER_OPTIONS]))) return err;
    return l->world > 1 ? meet_at(r, NULL, NULL, DPT_LAUNCHER_PORT, 0) : DPL_OK;
}

/* The agent of torchrun may itself listen on MASTER_PORT: ours is the next one. */
static int read_torchrun(const reader *r)
{
    if (r->out->world == 1) return DPL_OK;
    if (!r->opt->address && (!get(r, "MASTER_ADDR") || !get(r, "MASTER_PORT")))
        return dpl_fail(
            r->why, DPL_EINVAL,
            "RANK is set as torchrun does, and %s is not: set it, or give --master-addr",
            get(r, "MASTER_ADDR") ? "MASTER_PORT" : "MASTER_ADDR");
    return meet_at(r, NULL, NULL, DPT_LAUNCHER_PORT, 1);
}

/* mpirun does not say where rank 0 is; on one machine that is no question. */
static int read_mpi(const reader *r)
{
    if (r->out->world == 1) return DPL_OK;
    return meet_at(r, same_machine(r) ? "127.0.0.1" : NULL, "", DPT_LAUNCHER_PORT, 0);
}

/* srun sets these for each of its steps; sbatch and salloc set some of them without one. */
static int is_slurm_step(const reader *r)
{
    return get(r, "SLURM_PROCID") && get(r, "SLURM_STEP_ID");
}

/* All processes of a step must get the same port, and two steps on a machine not the same one. */
static int slurm_port(const reader *r)
{
    uint64_t job = 0, step = 0;
    const char *j = get(r, "SLURM_JOB_ID"), *s = get(r, "SLURM_STEP_ID");

    if (j && dpl_parse_uint(j, &job)) job = 0;
    if (s && dpl_parse_uint(s, &step)) step = 0;
    return 20000 + (int)((job + 251 * step) % 10000);
}

static int read_slurm(const reader *r)
{
    const char *per_node = get(r, "SLURM_STEP_TASKS_PER_NODE"),
               *list = get(r, "SLURM_STEP_NODELIST");
    dpt_launcher *l = r->out;
    char host[256];
    int err, node = -1;

    if ((err = get_number(r, "SLURM_STEP_NUM_TASKS", 1, WORLD_MAX, &l->world)) ||
        (err = get_number(r, "SLURM_NODEID", 0, WORLD_MAX, &node)))
        return err;
    if (!per_node) per_node = get(r, "SLURM_TASKS_PER_NODE");
    if (per_node && node >= 0) l->local_size = dpt_launcher_count_of(per_node, node);
    if (l->local_size > l->world) l->local_size = -1; /* it is the job's, not the step's */
    if ((err = check_numbers(r, &families[DPT_LAUNCHER_SLURM])) || l->world == 1) return err;
    if (!list || dpt_launcher_first_host(list, host, sizeof host)) {
        list = get(r, "SLURM_LAUNCH_NODE_IPADDR");
        snprintf(host, sizeof host, "%s", list ? list : "");
    }
    return meet_at(r, list ? host : NULL, "SLURM_STEP_NODELIST", slurm_port(r), 0);
}

/* srun --mpi=pmi2 sets PMI_RANK as mpirun does, without saying what is on this machine: Slurm's own
 * names do. Under mpirun in a job it is the other way round: Slurm counts the machines. */
static int is_slurms_pmi(const reader *r)
{
    const char *rank = get(r, "PMI_RANK"), *slurm = get(r, "SLURM_PROCID");

    return is_slurm_step(r) && !get(r, "MPI_LOCALRANKID") && rank && slurm && !strcmp(rank, slurm);
}

static int find_family(const reader *r)
{
    dpt_launcher_family *f = &r->out->family;
    int err = DPL_OK, there = 0;

    if (r->opt->rank >= 0 || r->opt->world >= 0) {
        *f = DPT_LAUNCHER_OPTIONS;
        return DPL_OK;
    }
    for (int i = DPT_LAUNCHER_TORCHRUN; i <= DPT_LAUNCHER_SLURM && !err && !there; i++) {
        *f = (dpt_launcher_family)i;
        if (i == DPT_LAUNCHER_MPICH && is_slurms_pmi(r)) continue;
        if (i == DPT_LAUNCHER_SLURM && !is_slurm_step(r)) continue;
        if (i == DPT_LAUNCHER_SLURM && get(r, "SLURM_STEP_NUM_TASKS")) {
            there = 1;
            continue;
        }
        err = is_there(r, &families[i], &there);
    }
    if (!err && !there) *f = DPT_LAUNCHER_NONE;
    return err;
}

static int read_none(const reader *r)
{
    const char *given = r->opt->address ? "--master-addr" : "--local-rank";

    if (!r->opt->address && r->opt->local_rank < 0) return DPL_OK;
    return dpl_fail(r->why, DPL_EINVAL,
                    "%s: this is one process alone; give --rank and --world as well, or start the "
                    "processes by a launcher",
                    given);
}

int dpt_launcher_read(dpt_launcher *out, const dpt_launcher_options *opt, dpt_launcher_get *lookup,
                      void *arg, dpl_text *why)
{
    const reader r = { out, opt, lookup, arg, why };
    int err;

    *out = (dpt_launcher){
        .family = DPT_LAUNCHER_NONE, .world = 1, .local_rank = -1, .local_size = -1
    };
    if ((err = find_family(&r))) return err;
    if (out->family == DPT_LAUNCHER_NONE) return read_none(&r);
    if (out->family != DPT_LAUNCHER_OPTIONS && (err = read_numbers(&r, &families[out->family])))
        return err;
    if (opt->local_rank >= 0) out->local_rank = opt->local_rank;
    if (out->family == DPT_LAUNCHER_OPTIONS) return read_options(&r);
    if (out->family == DPT_LAUNCHER_SLURM) return read_slurm(&r);
    if ((err = check_numbers(&r, &families[out->family]))) return err;
    if (out->family == DPT_LAUNCHER_TORCHRUN) return read_torchrun(&r);
    return read_mpi(&r);
}
