/* SPDX-License-Identifier: Apache-2.0 */
/* Condition variables, threads and processor sets; see thread.h. */
#include "base/thread.h"

#include "base/cgroup.h"
#include "dpload.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int dpl_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    int err = pthread_condattr_init(&attr);

    if (err) return err;
    err = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (!err) err = pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
    return err;
}

int dpl_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t deadline_ns)
{
    struct timespec ts;

    if (deadline_ns == -1) return pthread_cond_wait(c, lock);
    if (deadline_ns < 0) deadline_ns = 0;
    ts.tv_sec = (time_t)(deadline_ns / 1000000000);
    ts.tv_nsec = (long)(deadline_ns % 1000000000);
    return pthread_cond_timedwait(c, lock, &ts);
}

/* Signals sent to the process belong to the host program's threads. A fault's own signals stay open:
 * blocked, they would kill without the handler of a crash reporter or a sanitizer. */
static void block_signals(sigset_t *old)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

int dpl_thread_start(pthread_t *t, const char *name, void *(*run)(void *), void *arg)
{
    char shown[16];
    sigset_t old;
    int err;

    block_signals(&old); /* the new thread starts with the mask of this one */
    err = pthread_create(t, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err) return DPL_ENOMEM;
    snprintf(shown, sizeof shown, "%s", name);
    pthread_setname_np(*t, shown); /* only a label: may fail when the thread has ended already */
    return DPL_OK;
}

/* The calling thread's processors, CPU_FREE() it; NULL = unknown. The kernel refuses a set that is
 * smaller than its own, so it grows until it fits. */
static cpu_set_t *affinity(size_t *bytes, int *bits)
{
    for (*bits = CPU_SETSIZE; *bits <= 1 << 20; *bits *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)*bits);
        if (!set) return NULL;
        *bytes = CPU_ALLOC_SIZE((size_t)*bits);
        if (!sched_getaffinity(0, *bytes, set)) return set;
        CPU_FREE(set);
        if (errno != EINVAL) return NULL;
    }
    return NULL;
}

int dpl_cpus_usable(const char **why)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = dpl_cgroup_cpus("");
    const char *cause = "all processors";
    int n = online > 0 ? (int)online : 1, bits;
    size_t bytes;
    cpu_set_t *set = affinity(&bytes, &bits);

    if (set) {
        const int allowed = CPU_COUNT_S(bytes, set);
        if (allowed > 0 && allowed != n) {
            cause = allowed < n ? "affinity" : cause; /* more than online: some are asleep */
            n = allowed < n ? allowed : n;
        }
        CPU_FREE(set);
    }
    if (quota && quota < n) {
        cause = "cgroup quota";
        n = quota;
    }
    if (why) *why = cause;
    return n;
}

/* Where share k of n starts in m things. */
static int share_start(int m, int k, int n)
{
    return (int)((int64_t)m * k / n);
}

int dpl_cpus_share(int k, int n)
{
    const int usable = dpl_cpus_usable(NULL);

    if (n < 1 || k < 0 || k >= n || usable < n) return 1;
    return share_start(usable, k + 1, n) - share_start(usable, k, n);
}

int dpl_cpus_bind_share(int k, int n)
{
    const int count = dpl_cpus_share(k, n), usable = dpl_cpus_usable(NULL);
    int bits, first, last, seen = 0;
    size_t bytes;
    cpu_set_t *set;

    if (n < 2 || k < 0 || k >= n || usable < n) return count;
    if (!(set = affinity(&bytes, &bits))) return count;
    /* A quota takes time, not particular processors: all that affinity allows are shared out. */
    first = share_start(CPU_COUNT_S(bytes, set), k, n);
    last = share_start(CPU_COUNT_S(bytes, set), k + 1, n);
    for (int cpu = 0; cpu < bits; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, bytes, set)) continue;
        if (seen < first || seen >= last) CPU_CLR_S((size_t)cpu, bytes, set);
        seen++;
    }
    sched_setaffinity(0, bytes, set); /* a speed-up only: unbound threads compute the same */
    CPU_FREE(set);
    return count;
}
