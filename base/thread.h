/* SPDX-License-Identifier: Apache-2.0 */
/* What pthreads leave to everybody: condition variables on the monotonic clock, named threads that
 * take no signals, and processor sets. */
#ifndef DPL_BASE_THREAD_H
#define DPL_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Initialise a condition variable that times out by CLOCK_MONOTONIC. @return 0 or an errno value */
int dpl_cond_init(pthread_cond_t *c);

/** Wait until signalled or until deadline_ns (dpl_now_ns() scale; -1 = no limit). Lock is held.
 *  @return 0, or ETIMEDOUT. Wakes without cause are possible: check the condition again. */
int dpl_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t deadline_ns);

/** Start a thread with every signal blocked, except those that a fault raises, and a name of which
 *  15 bytes are kept (for top and gdb).
 *  @return DPL_OK or DPL_ENOMEM (also: the system's thread limit is reached) */
int dpl_thread_start(pthread_t *t, const char *name, void *(*run)(void *), void *arg);

/** Processors the calling thread may use: its affinity mask and the cgroup (v1 and v2) quota, at
 *  least 1. A thread that is bound to a share counts only that share.
 *  `why` (may be NULL) gets a static text: "affinity", "cgroup quota" or "all processors". */
int dpl_cpus_usable(const char **why);

/** Bind the calling thread (and threads it starts later) to share k of n of the processors it may
 *  use until now: contiguous shares whose sizes differ by at most one. With fewer processors than
 *  shares nothing is bound. @return processors in the share, at least 1 */
int dpl_cpus_bind_share(int k, int n);

/** The same count without binding. */
int dpl_cpus_share(int k, int n);

#ifdef __cplusplus
}
#endif
#endif
