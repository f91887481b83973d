/* SPDX-License-Identifier: Apache-2.0 */
/* Who am I among several processes, and where do we meet? A pure function of what the caller was
 * told and of what launchers put into the environment: torchrun, mpirun (Open MPI's, MPICH's),
 * Slurm's srun. */
#ifndef DPT_TRAINER_LAUNCHER_H
#define DPT_TRAINER_LAUNCHER_H

#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order in which they are looked for. */
typedef enum dpt_launcher_family {
    DPT_LAUNCHER_OPTIONS,
    DPT_LAUNCHER_TORCHRUN,
    DPT_LAUNCHER_OPENMPI,
    DPT_LAUNCHER_MPICH,
    DPT_LAUNCHER_SLURM,
    DPT_LAUNCHER_NONE /* one process */
} dpt_launcher_family;

enum { DPT_LAUNCHER_ADDRESS_MAX = 300, DPT_LAUNCHER_PORT = 29501 /* where nothing says one */ };

/* What the user said. */
typedef struct dpt_launcher_options {
    int rank, world;     /* --rank, --world; -1 = not said */
    int local_rank;      /* --local-rank; -1 = not said */
    const char *address; /* --master-addr: HOST or HOST:PORT (IPv6 in brackets), or NULL */
} dpt_launcher_options;

typedef struct dpt_launcher {
    dpt_launcher_family family;
    int rank, world;
    int local_rank, local_size; /* among the processes of this machine; -1 = nobody says */
    int restarts;               /* how often the launcher has started this run again */
    char address[DPT_LAUNCHER_ADDRESS_MAX]; /* HOST:PORT of rank 0's machine; "" when alone */
} dpt_launcher;

/** As getenv(): the value, or NULL. */
typedef const char *dpt_launcher_get(void *arg, const char *name);
/** The environment of this process; arg is not used. */
const char *dpt_launcher_environment(void *arg, const char *name);

/** The first family that is there decides; a half-set one is refused, not skipped.
 *  @return DPL_OK, DPL_EINVAL (why names the variable, its value and what to do) */
int dpt_launcher_read(dpt_launcher *out, const dpt_launcher_options *opt, dpt_launcher_get *get,
                      void *arg, dpl_text *why);
/** "torchrun", "Open MPI" … for messages. */
const char *dpt_launcher_name(dpt_launcher_family family);

/** The first machine of a list as Slurm writes it ("n[01-04,07],m3" is n01) into out[len].
 *  @return DPL_OK, DPL_EINVAL */
int dpt_launcher_first_host(const char *list, char *out, size_t len);
/** Item i of a list of counts as Slurm writes it ("4(x2),3": 4, 4, 3). @return it, or -1 */
int dpt_launcher_count_of(const char *list, int i);
/** HOST or HOST:PORT to "HOST:PORT", IPv6 in brackets; port is for the first form.
 *  @return DPL_OK, DPL_EINVAL (why names it, called `name`) */
int dpt_launcher_join_address(char out[DPT_LAUNCHER_ADDRESS_MAX], const char *name,
                              const char *text, int port, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
