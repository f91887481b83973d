/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of the fake CUDA runtime (tests/fake/cuda/fake_cudart.h says what that is) and of
 * the fake NCCL. Needs neither's header, so that tests build where there is none: a cudaError_t and
 * an ncclResult_t are ints here, a cudaStream_t is a void *. */
#ifndef TESTS_FAKE_FAKE_CUDA_H
#define TESTS_FAKE_FAKE_CUDA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fake_cuda_call {
    FAKE_HOST_ALLOC,
    FAKE_ALLOC,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_COPY,
    FAKE_LAUNCH, /* kernels and host functions */
    FAKE_SET,    /* memset */
    FAKE_CALLS
} fake_cuda_call;

/* What a test can do to the fake; from the entry "fake_cuda_controls" of libfakecudart.so. */
typedef struct fake_cuda {
    /** The k-th call of that kind from now on (1 = next) gives e, a cudaError_t. sticky: it
     *  succeeds, and the GPU fails with e when the work runs; then every later call on that GPU
     *  gives e. */
    void (*inject)(fake_cuda_call call, int k, int e, int sticky);
    /** No failures, GPUs in order, nothing held or stuck, no faults, times as at the start. */
    void (*reset)(void);
    void (*copy_time)(long long latency_ns, double rate); /* of each copy; rate in bytes/s */
    void (*hold)(int on);                                 /* streams stop before their next work */
    int (*count)(fake_cuda_call call);                    /* how many there were since the start */
    int (*alive)(void);      /* allocations, streams and events not given back */
    int (*last)(void);       /* the calling thread's last error, left as it is */
    int (*started)(int gpu); /* 1 = since the last reset a call has started it: any call but those
                                that ask for GPUs starts the current one of its thread, at first 0 */

    /** Each kernel on gpu (-1 = all) takes that time; 0 = the time that its run() takes. */
    void (*kernel_time)(int gpu, long long ns);
    /** That stream stops before its next work, until on is 0. A host that waits for it (or for
     *  anything else) for a minute ends the program with a message. */
    void (*stick)(void *stream, int on);
    /** The GPU fails now: what is queued is dropped, later calls give e. */
    void (*lose)(int gpu, int e);

    /* The checker of order: every access that copies, memsets and collectives make, and those named
     * here, must be ordered after the accesses to the same bytes before it, one of them writing, by
     * what was called so far: timing plays no part. All threads of the host count as one. */
    void (*stream_uses)(void *stream, const void *p, size_t bytes, int write, const char *what);
    void (*host_uses)(const void *p, size_t bytes, int write, const char *what);
    int (*faults)(void);        /* since the last reset; each is also a line on stderr */
    const char *(*fault)(void); /* the first one's text, or "" */
} fake_cuda;

typedef const fake_cuda *fake_cuda_entry(void);

/** The fake beside the running test, or NULL: a build without CUDA, or with a real card. */
const fake_cuda *test_fake_cuda(void);

typedef enum fake_nccl_call {
    FAKE_NCCL_ID,
    FAKE_NCCL_INIT,
    FAKE_NCCL_SUM,
    FAKE_NCCL_BROADCAST,
    FAKE_NCCL_CALLS
} fake_nccl_call;

/* The same of libnccl.so.2, from its entry "fake_nccl_controls". */
typedef struct fake_nccl {
    /** The k-th call of that kind from now on (1 = next) gives e, an ncclResult_t. */
    void (*inject)(fake_nccl_call call, int k, int e);
    void (*fail_rank)(int rank, int e); /* its communicators have the asynchronous error e, now */
    void (*never_ready)(int rank, int on); /* its joining never ends */
    void (*abort_takes)(int ms);
    void (*nobody_listens)(int times); /* the next ones to join find no rank 0 */
    /** How long a rank waits for its peers before the fake calls it hung [20,000]. */
    void (*patience_ms)(int ms);
    void (*reset)(void);
    int (*count)(fake_nccl_call call);
    int (*alive)(void);  /* communicators not given back */
    int (*faults)(void); /* as above: wrong order, count, type; a rank that does not come */
    const char *(*fault)(void);
} fake_nccl;

typedef const fake_nccl *fake_nccl_entry(void);

/** The fake NCCL beside the running test, or NULL. */
const fake_nccl *test_fake_nccl(void);

#ifdef __cplusplus
}
#endif
#endif
