/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the communicator: the functions of NCCL, found at run time, and what a member is. */
#ifndef DPT_TRAINER_CUDA_COMM_NCCL_H
#define DPT_TRAINER_CUDA_COMM_NCCL_H

#include "trainer/cuda/comm.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DPT_NCCL_LIBRARY "libnccl.so.2"

/* X(name without its prefix, result, arguments): all that is called */
#define DPT_NCCL_FUNCTIONS(X)                                                                      \
    X(GetVersion, ncclResult_t, (int *version))                                                    \
    X(GetUniqueId, ncclResult_t, (ncclUniqueId * id))                                              \
    X(CommInitRankConfig, ncclResult_t,                                                            \
      (ncclComm_t * out, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))              \
    X(CommGetAsyncError, ncclResult_t, (ncclComm_t c, ncclResult_t * state))                       \
    X(CommFinalize, ncclResult_t, (ncclComm_t c))                                                  \
    X(CommDestroy, ncclResult_t, (ncclComm_t c))                                                   \
    X(CommAbort, ncclResult_t, (ncclComm_t c))                                                     \
    X(AllReduce, ncclResult_t,                                                                     \
      (const void *src, void *dst, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,    \
       cudaStream_t s))                                                                            \
    X(Broadcast, ncclResult_t,                                                                     \
      (const void *src, void *dst, size_t n, ncclDataType_t type, int root, ncclComm_t c,          \
       cudaStream_t s))                                                                            \
    X(GetErrorString, const char *, (ncclResult_t e))                                              \
    X(GetLastError, const char *, (ncclComm_t c))

typedef struct dpt_nccl {
#define DPT_NCCL_FIELD(name, result, arguments) result(*name) arguments;
    DPT_NCCL_FUNCTIONS(DPT_NCCL_FIELD)
#undef DPT_NCCL_FIELD
} dpt_nccl;

/** Find NCCL: beside the plug-in, then where the system looks. Once loaded it stays.
 *  @return DPL_OK, DPL_ENOTSUP (not there, or too old: why says where it was looked for) */
int dpt_nccl_open(dpt_nccl *out, dpl_text *why);

/* A point behind a collective on its stream. */
typedef struct dpt_nccl_mark {
    cudaEvent_t event;
    int set;
    uint64_t number; /* of the collective */
    char what[48];
    int64_t since_ns; /* when everything before it had come forward, or when it was queued */
} dpt_nccl_mark;

struct dpt_comm {
    dpt_nccl nccl;
    dpt_comm_options opt;
    uint64_t number;       /* collectives so far */
    dpt_nccl_mark mark[2]; /* the oldest that is not known to have passed, and the newest */
    pthread_mutex_t lock;  /* guards handle, and holds while NCCL is called with it */
    ncclComm_t handle;     /* NULL = aborted, or never joined */
    struct dpt_nccl_ending *ending; /* under way, and nobody waits for it yet; the lock guards it */
};

/** "rank 1 of 4 (GPU 0): CALL: NCCL's words". handle may be NULL. @return DPL_EDEVICE */
int dpt_nccl_fail(dpt_comm *c, ncclResult_t e, const char *call, dpl_text *why);
/** The same of CUDA. */
int dpt_nccl_fail_cuda(dpt_comm *c, cudaError_t e, const char *call, dpl_text *why);

/** Wait until NCCL is done with the call that gave e, `what`, or gives it up. @return DPL_OK,
 *  DPL_EDEVICE, DPL_ETIMEOUT, DPL_ECANCELED */
int dpt_nccl_settle(dpt_comm *c, ncclResult_t e, const char *what, int timeout_ms, dpl_text *why);
/** One look of a wait that began at start_ns: pause, longer each time (*pause_us starts at 0),
 *  unless the wait is over. @return DPL_OK = look again; DPL_ETIMEOUT, DPL_ECANCELED */
int dpt_nccl_pause(dpt_comm *c, int64_t start_ns, int timeout_ms, int *pause_us, const char *what,
                   dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
