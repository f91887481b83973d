/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA runtime without a GPU: what libdpload_cuda.so calls, with streams that are threads, memory
 * that is the host's, and copies that take modelled time. Built against the real header, so that the
 * compiler checks every signature, and linked into a plug-in of the tests instead of the real one.
 *
 * Environment, read at each call: FAKE_CUDA_DEVICES=N (default 1; 0 = error 100),
 * FAKE_CUDA_DRIVER=none|stub (errors 35 and 34, and the count of GPUs is not touched).
 *
 * These files are built without -fsanitize=thread, so that ThreadSanitizer does not take their locks
 * for order; they tell it the order that CUDA gives, and no more. */
#ifndef TESTS_FAKE_FAKE_CUDART_H
#define TESTS_FAKE_FAKE_CUDART_H

#include "tests/fake/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_GPUS_MAX = 64 };

void fake_lock(void);
void fake_unlock(void);
void fake_wait(void); /* for a change of anything; the lock is held */
void fake_wake(void); /* tell of a change; the lock is held */

/* ThreadSanitizer's order edges; nothing in other builds. Not while the lock is held. */
void fake_release(void *at);
void fake_acquire(void *at);

cudaError_t fake_return(cudaError_t e); /* keep e as the thread's last error */
/** The status every call on gpu begins with: a sticky error, or a call out of a host function. */
cudaError_t fake_begin(int gpu);
int fake_current(void); /* the thread's current GPU */
void fake_break(int gpu, cudaError_t e);
int fake_is_broken(int gpu); /* the lock is held */
/** Is this call to fail? *sticky: with its work, not now. Counts it. @return the error or success */
cudaError_t fake_injected(fake_cuda_call call, int *sticky);
void fake_count_alive(int by);
void fake_die(const char *what) __attribute__((noreturn)); /* the program broke a rule of CUDA */

typedef enum fake_where { FAKE_PAGEABLE, FAKE_PINNED, FAKE_DEVICE, FAKE_OUTSIDE } fake_where;
/** Where do these bytes lie? FAKE_OUTSIDE: they begin in an allocation and end behind it. */
fake_where fake_find(const void *p, size_t bytes);
/** Does work that is queued still use these bytes? */
int fake_is_in_use(const void *p, size_t bytes);

/** Queue work that stands for a kernel: when the stream gets there, run(arg) and then drop(arg), on the
 *  stream's thread; it may touch device memory and not call CUDA. drop (or NULL) runs exactly once also
 *  when the launch fails or the GPU has failed. Counts as FAKE_LAUNCH. */
cudaError_t fake_kernel(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg);

void fake_streams_hold(int on);
void fake_streams_copy_time(long long latency_ns, double rate);
#ifndef __cplusplus
extern _Thread_local int fake_in_host_function;
#endif

#ifdef __cplusplus
}
#endif

#endif
