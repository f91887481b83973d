/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this process and a thread for each: what team_cuda*.c share. A member (one GPU) is
 * touched by its own thread while an order is carried out, and by the caller's between orders.
 *
 *   compute  labels, forward, backward ●────●─────● wait, update, result to the host ●
 *   talk                               └sum └sum … └sum ●                            │
 *   host     submit() queues all of it and returns; collect() waits for this ────────┘
 *
 * Everything of two steps is in order on the compute stream; the talk stream only works between the
 * gradients of a step and its update. So one copy of each array is enough, whatever the depth. */
#ifndef DPT_TRAINER_CUDA_TEAM_CUDA_H
#define DPT_TRAINER_CUDA_TEAM_CUDA_H

#include "trainer/crew.h"
#include "trainer/cuda/buckets.h"
#include "trainer/cuda/comm.h"
#include "trainer/cuda/gpu_exec.h"
#include "trainer/cuda/gpu_kernels.h"
#include "trainer/team.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPT_CUDA_DEPTH = 2,
    DPT_CUDA_EVAL = DPT_CUDA_DEPTH, /* the slot of an evaluation */
    DPT_CUDA_SLOTS,
    DPT_CUDA_STOP = DPT_GPU_SUMS, /* behind the sums: how many processes want to stop */
    DPT_CUDA_SUMS,
    DPT_CUDA_STAGING = 4 << 20
};

/* What a step tells the host, as it lies in device memory: one copy brings it. */
typedef struct dpt_cuda_result {
    double sums[DPT_CUDA_SUMS]; /* over all GPUs, once they are reduced */
    int32_t bad;                /* 1 = a gradient (evaluation: a weight) is not finite */
} dpt_cuda_result;

/* Pinned host memory of a member. Slot k % DPT_CUDA_DEPTH is step k's until it is collected. */
typedef struct dpt_cuda_host {
    dpt_cuda_result result[DPT_CUDA_SLOTS];
    double stop[DPT_CUDA_DEPTH];    /* this process's word; the first member brings it, others 0 */
    char staging[DPT_CUDA_STAGING]; /* what the caller's arrays are copied through */
} dpt_cuda_host;

typedef struct dpt_cuda_team dpt_cuda_team;

typedef struct dpt_cuda_member {
    dpt_cuda_team *team;
    int index, gpu, rank; /* rank: over all GPUs of all processes */
    int max_n;
    int opened;     /* the GPU is the thread's current one */
    int capability; /* 10 * major + minor */
    cudaStream_t compute, talk;
    cudaEvent_t written;                /* on compute: what is to be summed is there */
    cudaEvent_t summed;                 /* on talk: so are all sums */
    cudaEvent_t done[DPT_CUDA_SLOTS];   /* on compute: the host may read the result */
    cudaEvent_t begun[DPT_CUDA_DEPTH];  /* on compute, timed: the step's data is there */
    cudaEvent_t ended[DPT_CUDA_DEPTH];  /* on compute, timed: the update is done */
    float *params, *momentum, *buffers; /* this and what follows is device memory */
    float *second;                      /* AdamW */
    int64_t *updates;                   /* steps made, as dpt_team_options.updates */
    double *norms;                      /* LARS: what its kernels work with */
    float *grads, *batch_stats, *mix;
    int32_t *labels, *labels2;
    dpt_cuda_result *result;
    dpt_gpu_segment *segment;
    size_t bytes; /* of all that */
    dpt_cuda_host *host;
    dpt_gpu_exec *exec;
    dpt_comm *comm; /* NULL with one GPU in one process; the team's lock guards its coming */
    int sent;       /* buckets of the step under way that the talk stream has */
    int last_n;     /* samples of the last step that had some */
    double busy_s;  /* of the step just collected */
} dpt_cuda_member;

struct dpt_cuda_team {
    dpt_team base;
    dpt_team_options opt; /* without the arrays and texts that only create may read */
    int ranks;            /* GPUs of all processes */
    dpt_gpu_type type;
    dpt_crew *crew;
    dpt_cuda_member *member; /* [opt.replicas] */
    void **streams;          /* [opt.replicas] the compute streams */
    dpt_comm_id id;
    dpt_bucket *bucket; /* [buckets] */
    int buckets;
    dpt_gpu_segment *segment; /* [segments] see cut_segments() */
    int segments;
    int64_t submitted, collected; /* steps */
    int64_t
        updates; /* steps made of those that are DPT_CUDA_DEPTH or more ago, and before the team */

    /* fp16 only, the caller's thread: see note_step() */
    double scale[DPT_CUDA_DEPTH], next_scale;
    int good;
    int64_t skipped;

    char line[160];       /* describe()'s */
    pthread_mutex_t lock; /* guards the rest, and which comm there is */
    int failed;           /* also read as an atomic. 1 = all come back, only destroy is left */
    int err;
    dpl_text failure;
};

extern const dpt_team_ops dpt_team_cuda_ops;

/* --- team_cuda_wait.c --- */

/** Name the member in why, keep that as what the team failed with unless another was earlier, and end
 *  what the others wait for. @return err */
int dpt_cuda_fail(dpt_cuda_member *m, int err, dpl_text *why);
int dpt_cuda_has_failed(const dpt_cuda_team *t);
/** DPL_OK, or DPL_EDEVICE with "call: CUDA's words", and the thread's last error cleared. */
int dpt_cuda_check(cudaError_t e, const char *call, dpl_text *why);
/** Block until e has passed, the GPU or a peer has failed, or time is up.
 *  @return DPL_OK, DPL_EDEVICE */
int dpt_cuda_wait(dpt_cuda_member *m, cudaEvent_t e, const char *what, dpl_text *why);
/** Wait until both streams are empty or their GPU is lost. @return 1, or 0: not within ms */
int dpt_cuda_drained(dpt_cuda_member *m, int ms);
/** Copy between device memory and memory of any kind, through staging; block. */
int dpt_cuda_upload(dpt_cuda_member *m, void *dst, const void *src, size_t bytes, dpl_text *why);
int dpt_cuda_download(dpt_cuda_member *m, void *dst, const void *src, size_t bytes, dpl_text *why);

/* --- team_cuda_member.c: orders, whose arg is a dpt_cuda_call --- */

typedef struct dpt_cuda_call {
    dpt_cuda_team *team;
    const dpt_team_options *opt; /* while the team is created: the caller's */
    const dpt_team_step *step;
    const dpt_team_part *part; /* [opt.replicas] */
    int slot;
    int64_t update;  /* the number of the step, if the one before it was not skipped */
    uint64_t number; /* of the step, for profilers */
} dpt_cuda_call;

dpt_crew_order dpt_cuda_order_open;  /* the GPU, its capability */
dpt_crew_order dpt_cuda_order_build; /* streams, memory, executor */
dpt_crew_order dpt_cuda_order_close;

/** After whatever why says already: how much there is, and what helps. @return DPL_ENOMEM */
int dpt_cuda_no_memory(dpl_text *why, const char *advice);

/* --- team_cuda_join.c --- */

dpt_crew_order dpt_cuda_order_join;  /* the other GPUs, then everybody's weights */
dpt_crew_order dpt_cuda_order_fetch; /* the weights of the first GPU to the caller */

/* --- team_cuda_step.c --- */

dpt_crew_order dpt_cuda_order_warm_up; /* each GPU for itself, before weights are there */
dpt_crew_order dpt_cuda_order_step;
dpt_crew_order dpt_cuda_order_collect;
dpt_crew_order dpt_cuda_order_evaluate;

#ifdef __cplusplus
}
#endif
#endif
