/* SPDX-License-Identifier: Apache-2.0 */
/* Where the host waits for a GPU, and what becomes of all when one of them fails. */
#include "base/clock.h"
#include "dpload.h"
#include "trainer/cuda/team_cuda.h"

#include <string.h>
#include <time.h>

int dpt_cuda_has_failed(const dpt_cuda_team *t)
{
    return __atomic_load_n(&t->failed, __ATOMIC_ACQUIRE);
}

int dpt_cuda_check(cudaError_t e, const char *call, dpl_text *why)
{
    if (e == cudaSuccess) return DPL_OK;
    cudaGetLastError(); /* launches look at it: the next one would seem to have failed */
    return dpl_fail(why, DPL_EDEVICE, "%s: %s (CUDA error %d)", call, cudaGetErrorString(e),
                    (int)e);
}

/* Members join while others fail. Once joined they stay until all are closed. */
static dpt_comm *comm_of(dpt_cuda_team *t, int index)
{
    dpt_comm *c;

    pthread_mutex_lock(&t->lock);
    c = t->member[index].comm;
    pthread_mutex_unlock(&t->lock);
    return c;
}

/* Each may last until it is given up: all have begun before any is waited for, and the others must not
 * wait for the lock meanwhile. */
static void end_sums(dpt_cuda_team *t)
{
    dpt_comm *c;

    for (int i = 0; i < t->opt.replicas; i++) {
        if ((c = comm_of(t, i))) dpt_comm_abort_begin(c);
    }
    for (int i = 0; i < t->opt.replicas; i++) {
        if ((c = comm_of(t, i))) dpt_comm_abort(c);
    }
}

int dpt_cuda_fail(dpt_cuda_member *m, int err, dpl_text *why)
{
    dpt_cuda_team *t = m->team;

    if (t->opt.world > 1)
        dpl_text_prefix(why, "process %d of %d, GPU %d (cuda:%d)", t->opt.rank, t->opt.world,
                        m->index, m->gpu);
    else
        dpl_text_prefix(why, "GPU %d (cuda:%d)", m->index, m->gpu);
    pthread_mutex_lock(&t->lock);
    if (!t->failed) {
        t->err = err;
        t->failure = *why;
        __atomic_store_n(&t->failed, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&t->lock);
    end_sums(t);
    return err;
}

/* CUDA's own wait cannot be ended when a peer fails, so the event is asked again and again. The GPU has
 * the next step queued by then: what the pause costs is not seen. */
static void pause_briefly(void)
{
    const struct timespec ts = { .tv_nsec = 100000 };

    nanosleep(&ts, NULL);
}

int dpt_cuda_wait(dpt_cuda_member *m, cudaEvent_t e, const char *what, dpl_text *why)
{
    const dpt_cuda_team *t = m->team;
    const int64_t end = dpl_now_ns() + (int64_t)t->opt.timeout_ms * 1000000;
    cudaError_t state;
    int err;

    while ((state = cudaEventQuery(e)) == cudaErrorNotReady) {
        cudaGetLastError();
        if (m->comm && (err = dpt_comm_poll(m->comm, why))) return err;
        if (dpt_cuda_has_failed(t))
            return dpl_fail(why, DPL_EDEVICE, "given up in %s: another GPU failed", what);
        if (dpl_now_ns() >= end)
            return dpl_fail(why, DPL_EDEVICE,
                            "%s is not over after %g s: the GPU%s hangs; look at nvidia-smi and "
                            "the system's log",
                            what, t->opt.timeout_ms / 1e3, m->comm ? " or a peer" : "");
        pause_briefly();
    }
    return dpt_cuda_check(state, what, why);
}

static int is_empty(dpt_cuda_member *m, cudaStream_t s, int64_t end)
{
    cudaError_t state = cudaEventRecord(m->written, s);

    if (state == cudaSuccess) {
        while ((state = cudaEventQuery(m->written)) == cudaErrorNotReady && dpl_now_ns() < end) {
            cudaGetLastError();
            pause_briefly();
        }
    }
    cudaGetLastError();
    return state != cudaErrorNotReady;
}

int dpt_cuda_drained(dpt_cuda_member *m, int ms)
{
    const int64_t end = dpl_now_ns() + (int64_t)ms * 1000000;

    return is_empty(m, m->compute, end) && is_empty(m, m->talk, end);
}

static int copy_piece(dpt_cuda_member *m, void *dst, const void *src, size_t bytes,
                      enum cudaMemcpyKind kind, dpl_text *why)
{
    cudaError_t e = cudaMemcpyAsync(dst, src, bytes, kind, m->compute);

    if (e == cudaSuccess) e = cudaEventRecord(m->written, m->compute);
    if (e != cudaSuccess) return dpt_cuda_check(e, "copying", why);
    return dpt_cuda_wait(m, m->written, "a copy", why);
}

static size_t piece(size_t left)
{
    return left < DPT_CUDA_STAGING ? left : DPT_CUDA_STAGING;
}

int dpt_cuda_upload(dpt_cuda_member *m, void *dst, const void *src, size_t bytes, dpl_text *why)
{
    int err = DPL_OK;

    for (size_t at = 0; at < bytes && !err; at += DPT_CUDA_STAGING) {
        memcpy(m->host->staging, (const char *)src + at, piece(bytes - at));
        err = copy_piece(m, (char *)dst + at, m->host->staging, piece(bytes - at),
                         cudaMemcpyHostToDevice, why);
    }
    return err;
}

int dpt_cuda_download(dpt_cuda_member *m, void *dst, const void *src, size_t bytes, dpl_text *why)
{
    int err = DPL_OK;

    for (size_t at = 0; at < bytes && !err; at += DPT_CUDA_STAGING) {
        err = copy_piece(m, m->host->staging, (const char *)src + at, piece(bytes - at),
                         cudaMemcpyDeviceToHost, why);
        if (!err) memcpy((char *)dst + at, m->host->staging, piece(bytes - at));
    }
    return err;
}
