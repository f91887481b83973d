/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA runtime without a GPU: what the plug-ins call, with streams that are threads, memory that
 * is the host's, and copies that take modelled time. Built against the real header, so that the
 * compiler checks every signature, into libfakecudart.so, which the plug-ins of the tests share.
 *
 * Environment, read at each call:
 *   FAKE_CUDA_DEVICES=N            how many GPUs (default 1; 0 = error 100)
 *   FAKE_CUDA_NAMES=NAME[/GIB[/MAJOR.MINOR[/US]]],…   what they are, and how long a kernel takes
 *                                  (default "Fake GPU/16/9.0/0"); sets N when that is not given
 *   CUDA_VISIBLE_DEVICES           as the real one: numbers and GPU-… names
 *   FAKE_CUDA_DRIVER=none|stub     errors 35 and 34, and the count of GPUs is not touched
 *
 * These files are built without -fsanitize=thread, so that ThreadSanitizer does not take their
 * locks for order; they tell it the order that CUDA gives, and no more. A second checker, in
 * fake_cudart_order.c, keeps the same order in vector clocks and needs no sanitizer. */
#ifndef TESTS_FAKE_FAKE_CUDART_H
#define TESTS_FAKE_FAKE_CUDART_H

#include "tests/fake/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_GPUS_MAX = 64 };

/* --- for who launches kernels or collectives over the fake --- */

/** Queue work that stands for a kernel: when the stream gets there, run(arg) and then drop(arg), on
 *  the stream's thread; it may touch device memory and not call CUDA. drop (or NULL) runs exactly
 *  once also when the launch fails or the GPU has failed. Counts as FAKE_LAUNCH. */
cudaError_t fake_kernel(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg);

/** The same, not counted, not injectable and without modelled time: a collective's part. The call
 *  is named `what` where somebody waits for it. */
cudaError_t fake_work(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg,
                      const char *what);

/** For the checker of order: what was queued last on s reads or writes these bytes. */
void fake_stream_uses(cudaStream_t s, const void *p, size_t bytes, int write, const char *what);
/** The same, of the host, now. */
void fake_host_uses(const void *p, size_t bytes, int write, const char *what);

cudaError_t fake_return(cudaError_t e); /* keep e as the thread's last error */
int fake_stream_gpu(cudaStream_t s);
int fake_is_device_memory(const void *p, size_t bytes); /* all of it, of one allocation */
int fake_is_broken(int gpu);                            /* the lock is held */

/* The one lock of all fakes; what is touched while it is held is hidden from ThreadSanitizer. */
void fake_lock(void);
void fake_unlock(void);
void fake_wait(void); /* for a change of anything; the lock is held */
/** The same until a CLOCK_MONOTONIC time in ns. @return 0, or 1 when it is over */
int fake_wait_until(int64_t end_ns);
void fake_wake(void); /* tell of a change; the lock is held */
int64_t fake_now(void);
void fake_pass(long long ns); /* sleep */

/* ThreadSanitizer's edges and accesses; nothing in other builds. Not while the lock is held. */
void fake_release(void *at);
void fake_acquire(void *at);
void fake_reads(const void *p, size_t bytes);
void fake_writes(void *p, size_t bytes);

/* Faults that tests ask for: a text that is kept when it is the first, counted, and printed. */
typedef struct fake_faults {
    int n;
    char first[512];
} fake_faults;
void fake_fault(fake_faults *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fake_die(const char *format, ...) /* the program broke a rule of CUDA */
    __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
#endif
