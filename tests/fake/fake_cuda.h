/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of the fake CUDA runtime (tests/fake/cuda/fake_cudart.h says what that is). Needs no CUDA
 * header, so that tests build where there is none. */
#ifndef TESTS_FAKE_FAKE_CUDA_H
#define TESTS_FAKE_FAKE_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fake_cuda_call {
    FAKE_HOST_ALLOC,
    FAKE_ALLOC,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_COPY,
    FAKE_LAUNCH,
    FAKE_CALLS
} fake_cuda_call;

/* What a test can do to the fake; from the entry "fake_cuda_controls" of the plug-in. */
typedef struct fake_cuda {
    /** The k-th call of that kind from now on (1 = next) gives e, a cudaError_t. sticky: it succeeds, and the GPU
     *  fails with e when the work runs; then every later call on that GPU gives e. */
    void (*inject)(fake_cuda_call call, int k, int e, int sticky);
    void (*reset)(void);                                  /* no failures, GPUs in order, no hold */
    void (*copy_time)(long long latency_ns, double rate); /* of each copy; rate in bytes/s */
    void (*hold)(int on);                                 /* streams stop before their next work */
    int (*count)(fake_cuda_call call);                    /* how many there were since the start */
    int (*alive)(void); /* allocations, streams and events not given back */
    int (*last)(void);  /* the calling thread's last error, left as it is */
} fake_cuda;

typedef const fake_cuda *fake_cuda_entry(void);

/** The fake in the plug-in beside the running test, or NULL where the build has no CUDA. */
const fake_cuda *test_fake_cuda(void);

#ifdef __cplusplus
}
#endif

#endif
