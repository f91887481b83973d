/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL without a network: ranks are GPUs of the fake CUDA runtime in one process. Built against the
 * real header into libnccl.so.2 beside the tests, where the plug-in looks first. A collective is
 * work of its stream that waits for its peers; what ranks ask for is compared by its number, so
 * that a wrong order, count or type and a rank that does not come are named instead of hanging.
 * Communicators that do not block are as slow to answer as they may be: every call gives
 * ncclInProgress, and its work is queued only when the state is asked for; the first one's only
 * when all ranks have made it.
 *
 * Sums are made in rank order. Order for ThreadSanitizer and the checker of the fake runtime: a
 * rank's buffer is read and written on its own stream, and nothing orders one rank after another.
 * Environment: FAKE_NCCL_VERSION=N is what ncclGetVersion() says. */
#ifndef TESTS_FAKE_FAKE_NCCL_INSIDE_H
#define TESTS_FAKE_FAKE_NCCL_INSIDE_H

#include "tests/fake/cuda/fake_cudart.h"

#include <nccl.h>

enum { FAKE_RANKS_MAX = 64 };

/* One collective as a rank asks for it. */
typedef struct fake_ask {
    const char *word; /* "sum", "broadcast" */
    size_t n;
    ncclDataType_t type;
    int root;
} fake_ask;

/* One collective of a group: what all its ranks have brought. */
typedef struct fake_meet {
    struct fake_meet *next;
    unsigned number;
    int first; /* rank that asked first */
    fake_ask ask;
    int bad;                       /* somebody asked for something else */
    int asked, arrived, left;      /* ranks */
    int came[FAKE_RANKS_MAX];      /* has it arrived? */
    char *brought[FAKE_RANKS_MAX]; /* copies of its data */
    char *result;                  /* when all have arrived */
} fake_meet;

typedef struct fake_group {
    struct fake_group *next;
    ncclUniqueId id;
    int ranks, joined, full; /* full: all have joined once */
    ncclComm_t member[FAKE_RANKS_MAX];
    fake_meet *meets;
    int refs; /* communicators */
} fake_group;

/* A call that has been made and not yet queued. */
typedef struct fake_post {
    struct fake_post *next;
    ncclComm_t comm;
    fake_meet *meet;
    const void *src;
    void *dst;
    cudaStream_t stream;
} fake_post;

/* The name behind ncclComm_t is the real header's. Counted: its owner and each call hold it. */
struct ncclComm {
    struct ncclComm *next; /* of those not given back */
    fake_group *group;
    int rank, gpu, blocking, refs, aborted, finalizing;
    unsigned number; /* of its next collective */
    ncclResult_t error;
    fake_post *posts, **tail; /* not yet queued */
};

/* All of these: the lock of the fakes is held. */
int fake_nccl_is_live(ncclComm_t c);
void fake_nccl_put(ncclComm_t c);
void fake_nccl_put_meet(fake_group *g, fake_meet *m);
extern fake_faults fake_nccl_faults;
extern int fake_nccl_patience_ms;

ncclResult_t fake_nccl_injected(fake_nccl_call call); /* takes the lock */
/** Queue what c has posted, as far as it may be. @return 1 when nothing is left. Takes the lock. */
int fake_nccl_flush(ncclComm_t c);

#endif
