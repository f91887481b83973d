/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the GPUs of one or several processes, by NCCL, which is opened when it is first needed:
 * one GPU alone works without it. A member belongs to one thread, but for dpt_comm_abort(). Calls
 * queue work on a stream and do not wait for the GPU; all members make the same calls in the same
 * order. Communicators are non-blocking: a lost peer is an error, never a hang, as long as the owner
 * looks with dpt_comm_poll() while it waits. */
#ifndef DPT_TRAINER_CUDA_COMM_H
#define DPT_TRAINER_CUDA_COMM_H

#include "base/text.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_comm dpt_comm;

/** What members of one group share. Not to be logged: who has it can join. */
typedef struct dpt_comm_id {
    char bytes[128];
} dpt_comm_id;

/** address: "host:port" of rank 0's process, where the group meets (the same on every process;
 *  given to NCCL as NCCL_COMM_ID, unless the user has set that), or NULL = this process alone.
 *  @return DPL_OK; DPL_ENOTSUP (no NCCL: text says where it was looked for); DPL_EDEVICE */
int dpt_comm_id_get(dpt_comm_id *id, const char *address, dpl_text *why);

typedef struct dpt_comm_options {
    int rank, ranks;   /* over all GPUs of all processes */
    int gpu;           /* CUDA ordinal */
    int timeout_ms;    /* of joining and of a collective that does not come forward [600,000] */
    const int *cancel; /* as in dpt_exec_options, while joining; or NULL */
    const int
        *failed; /* another such word: not 0 = a member of this process cannot come; or NULL */
} dpt_comm_options;

/** Join the group and try it out with one sum. Blocks until all are there; makes gpu the thread's
 *  current one. @return DPL_OK, DPL_EDEVICE (names this rank, and who
 *  is missing when NCCL knows), DPL_ETIMEOUT, DPL_ECANCELED, DPL_ENOMEM */
int dpt_comm_create(dpt_comm **out, const dpt_comm_id *id, const dpt_comm_options *opt,
                    dpl_text *why);
/** All queued work must be done, or the member aborted; nobody is in dpt_comm_abort(). Waits for
 *  the others to leave, at most 10 s. NULL is fine. */
void dpt_comm_destroy(dpt_comm **c);

/** Sum over all members, in place, queued on stream (a cudaStream_t).
 *  @return DPL_OK, DPL_EDEVICE, DPL_ECANCELED (while NCCL was still taking the call) */
int dpt_comm_sum_float(dpt_comm *c, float *v, size_t n, void *stream, dpl_text *why);
int dpt_comm_sum_double(dpt_comm *c, double *v, size_t n, void *stream, dpl_text *why);
/** Everybody gets what rank 0 has. */
int dpt_comm_broadcast(dpt_comm *c, void *p, size_t bytes, void *stream, dpl_text *why);

/** Has a peer failed, or does a collective not come forward? Does not block; to be called again and
 *  again while the owner waits for the stream. @return DPL_OK or DPL_EDEVICE; why names the rank */
int dpt_comm_poll(dpt_comm *c, dpl_text *why);
/** End whatever is queued, within 10 s or without waiting for more; the member can only be destroyed
 *  then. Any thread, also twice. */
void dpt_comm_abort(dpt_comm *c);
/** The same without waiting: for several members, so that dpt_comm_abort() of each waits for all at
 *  once. Any thread, also twice. */
void dpt_comm_abort_begin(dpt_comm *c);

/* The same functions, for who opens the plug-in. */
typedef struct dpt_comm_calls {
    int (*id_get)(dpt_comm_id *id, const char *address, dpl_text *why);
    int (*create)(dpt_comm **out, const dpt_comm_id *id, const dpt_comm_options *opt,
                  dpl_text *why);
    void (*destroy)(dpt_comm **c);
    int (*sum_float)(dpt_comm *c, float *v, size_t n, void *stream, dpl_text *why);
    int (*sum_double)(dpt_comm *c, double *v, size_t n, void *stream, dpl_text *why);
    int (*broadcast)(dpt_comm *c, void *p, size_t bytes, void *stream, dpl_text *why);
    int (*poll)(dpt_comm *c, dpl_text *why);
    void (*abort)(dpt_comm *c);
} dpt_comm_calls;

extern const dpt_comm_calls dpt_comm_table;

#ifdef __cplusplus
}
#endif
#endif
