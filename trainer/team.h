/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel replicas on the devices of this process, and with other processes when there are any.
 * A step is handed in with dpt_team_submit() and its results are fetched with dpt_team_collect(), in
 * order, so that a device never waits for the host: dpt_team_depth() steps may be under way. Where
 * the devices are is a kind's matter: parallel.c (threads of this process, weights shared in host
 * memory) or the CUDA plug-in (weights on each GPU). One thread makes all calls. */
#ifndef DPT_TRAINER_TEAM_H
#define DPT_TRAINER_TEAM_H

#include "base/text.h"
#include "trainer/backend.h"
#include "trainer/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_team dpt_team;
typedef struct dpt_team_ops dpt_team_ops;

typedef enum dpt_amp {
    DPT_AMP_AUTO = 0,
    DPT_AMP_OFF = 1,
    DPT_AMP_BF16 = 2,
    DPT_AMP_FP16 = 3
} dpt_amp;

typedef struct dpt_team_options {
    const dpt_team_ops *ops; /* the kind: a plug-in's, or NULL = dpt_team_cpu_ops */
    const dpt_graph *graph;
    int replicas;                       /* devices of this process */
    const int *max_n;                   /* [replicas] largest part of each */
    dpt_rule rule;                      /* of every step */
    float *params, *momentum, *buffers; /* caller's. Read by create; written by submit (CPU) or by
                                           fetch (GPU) only */
    float *second; /* ADAMW: second moments, beside the first in momentum; else NULL. Both are zero
                         before the first step. As params */
    int64_t
        *updates; /* optimizer steps made since the start: neither empty ones nor those that fp16
                         skipped. Needed for ADAMW, else it may be NULL. As params */
    const int *cancel; /* as in dpt_exec_options. CPU: cuts steps short too. GPU:
                                           create only; a step takes little and is finished */

    /* CPU */
    const dpt_backend *backend;
    int threads; /* compute threads over all replicas; 0 = usable processors. Each replica gets its
                    share, at least 1 */

    /* CUDA */
    const int *gpu; /* [replicas] ordinals of the visible GPUs */
    dpt_amp amp;    /* AUTO: bf16 where the GPUs have it (compute capability 8.0), else fp16 */
    int bytes;      /* 1 = pixels are uint8 NHWC, not normalised; 0 = fp32 NCHW */
    float mean[3], std[3];
    const char *cache;   /* folder for built plans, or NULL */
    size_t bucket_bytes; /* gradients are summed over GPUs in pieces of about that; 0 = as PyTorch's
                            DistributedDataParallel: 1 MiB, then 25 MiB */

    /* several processes, each with the same number of GPUs */
    int rank, world;     /* of this process; world 1 = alone */
    const char *address; /* "host:port" of rank 0's process where all meet, or NULL when alone */
    int timeout_ms;      /* of joining, and of a collective that does not come forward */
    uint64_t digest;     /* a check sum of whatever else must be the same in all of them, or 0 */
} dpt_team_options;

/** One part per replica; see dpt_step for the meaning. n = 0 is fine for some. With a GPU's memory:
 *  pixels is device memory of that GPU; labels, labels2 and mix are host memory. All of it must stay
 *  until the streams are past the step (dpl_release() with dpt_team_streams()). */
typedef struct dpt_team_part {
    const void *pixels;
    const int32_t *labels;
    int n;
    const int32_t *labels2; /* soft labels with mix, or NULL */
    const float *mix;
} dpt_team_part;

/** One step. Parts may be empty; when nobody has a sample, nothing changes, and the sums say n = 0. */
typedef struct dpt_team_step {
    const dpt_team_part *part; /* [replicas], read during the call */
    dpt_update update;         /* of the team's rule */
    int planned; /* samples of the batch over all processes, refused ones included: what gradients are
                    divided by until the real number is known */
    int stop;    /* 1 = this process wants to stop after this step: see dpt_team_result.stop */
} dpt_team_step;

typedef struct dpt_team_result {
    dpt_sums sums; /* over all processes */
    int stop;      /* 1 = some process wanted to stop: all see it at the same step */
    /* Seconds from when a device of this process had its data to when it was done with the step, by the
       device's own clock: of the device with the least. The rest of the time it stood without data.
       0 = not measured */
    double busy_s;
} dpt_team_result;

/** Start the replicas. Blocks until all are ready.
 *  @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ENOTSUP, DPL_ECANCELED; why */
int dpt_team_create(dpt_team **out, const dpt_team_options *opt, dpl_text *why);
/** Steps under way are finished or given up. NULL is fine. */
void dpt_team_destroy(dpt_team **t);

/** Steps that may be submitted and not yet collected: 1 (CPU) or more. */
int dpt_team_depth(const dpt_team *t);
/** [replicas] native streams for dpl_next_on() and dpl_release(), or NULL: host memory. */
void *const *dpt_team_streams(const dpt_team *t);

/** One optimizer step over all parts of all processes. Does not wait for a device, the CPU's team
 *  does the work here. Running statistics: r = 0.9 r + 0.1 * mean over replicas of batch statistics,
 *  weighted by samples. @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE; why. DPL_ECANCELED when a replica was
 *  canceled, whatever became of the others: parameters, momentum and running statistics are as
 *  before (CPU). After another failure a GPU's team can only be destroyed. */
int dpt_team_submit(dpt_team *t, const dpt_team_step *s, dpl_text *why);
/** The results of the oldest step not yet collected; blocks until it is done. @return as submit */
int dpt_team_collect(dpt_team *t, dpt_team_result *r, dpl_text *why);

/** Forward only with running statistics, sums over all processes. Every process makes the same number of
 *  calls; parts may be empty. Nothing may be under way. Blocks. @return as submit */
int dpt_team_evaluate(dpt_team *t, const dpt_team_part *part, dpt_sums *sums, dpl_text *why);

/** Bring params, momentum and buffers of the options up to date: no call of other processes is needed
 *  for it. Nothing may be under way. @return as submit */
int dpt_team_fetch(dpt_team *t, dpl_text *why);

/** Threads of replica r; 0 on a GPU. Lines of its execs' describe(). */
int dpt_team_threads(const dpt_team *t, int r);
const char *dpt_team_describe(dpt_team *t, int i, int *fallback);

/* --- what a kind provides; each embeds dpt_team as its first member --- */

struct dpt_team_ops {
    const char *kind; /* "cpu", "cuda" */
    int (*create)(dpt_team **out, const dpt_team_options *opt, dpl_text *why);
    void (*destroy)(dpt_team *t); /* frees t */
    int (*submit)(dpt_team *t, const dpt_team_step *s, dpl_text *why);
    int (*collect)(dpt_team *t, dpt_team_result *r, dpl_text *why);
    int (*evaluate)(dpt_team *t, const dpt_team_part *part, dpt_sums *sums, dpl_text *why);
    int (*fetch)(dpt_team *t, dpl_text *why);
    int (*threads)(const dpt_team *t, int r);
    const char *(*describe)(dpt_team *t, int i, int *fallback);
};

struct dpt_team {
    const dpt_team_ops *ops;
    int depth;
    void *const *streams; /* or NULL */
    int under_way;        /* steps; team.c counts them */
};

extern const dpt_team_ops dpt_team_cpu_ops;

#ifdef __cplusplus
}
#endif
#endif
