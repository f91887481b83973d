/* SPDX-License-Identifier: Apache-2.0 */
/* Joining a group and leaving it. */
#include "trainer/cuda/comm_nccl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAVE_MS = 10000 };

/* NCCL reads where the group meets from the environment only. What is set there stays: the user's word,
 * and that of dptrain, which sets it before it starts threads that may be reading other names. */
static int set_address(const char *address, dpl_text *why)
{
    if (!address || !setenv("NCCL_COMM_ID", address, 0 /* only where it is not set */))
        return DPL_OK;
    return dpl_fail(why, DPL_ENOMEM, "NCCL_COMM_ID: out of memory");
}

int dpt_comm_id_get(dpt_comm_id *id, const char *address, dpl_text *why)
{
    ncclUniqueId unique;
    ncclResult_t e;
    dpt_nccl nccl;
    int err;

    _Static_assert(sizeof unique == sizeof id->bytes, "NCCL's id has another size");
    memset(id, 0, sizeof *id);
    if ((err = dpt_nccl_open(&nccl, why)) || (err = set_address(address, why))) return err;
    if ((e = nccl.GetUniqueId(&unique)) == ncclSuccess) {
        memcpy(id->bytes, &unique, sizeof unique);
        return DPL_OK;
    }
    return dpl_fail(why, DPL_EDEVICE, "ncclGetUniqueId%s%s: %s (%s)", address ? " at " : "",
                    address ? address : "", nccl.GetErrorString(e), nccl.GetLastError(NULL));
}

static int make_events(dpt_comm *c, dpl_text *why)
{
    for (int i = 0; i < 2; i++) {
        const cudaError_t e = cudaEventCreateWithFlags(&c->mark[i].event, cudaEventDisableTiming);

        if (e != cudaSuccess) {
            c->mark[i].event = NULL;
            return dpt_nccl_fail_cuda(c, e, "cudaEventCreateWithFlags", why);
        }
    }
    return DPL_OK;
}

static int try_to_join(dpt_comm *c, const dpt_comm_id *id, int timeout_ms, dpl_text *why)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    ncclResult_t e;

    config.blocking = 0;
    memcpy(&unique, id->bytes, sizeof unique);
    e = c->nccl.CommInitRankConfig(&c->handle, c->opt.ranks, unique, c->opt.rank, &config);
    return dpt_nccl_settle(c, e, "joining", timeout_ms, why);
}

/* Nobody listened at rank 0's address: its process is not as far yet. The status for that is also the
 * one for a peer that is lost, so it is told by NCCL's words, newer ones or older ones. */
static int came_too_early(const dpl_text *why)
{
    return strstr(why->s, "exceeded error retry count") || strstr(why->s, "Connection refused");
}

/* NCCL gives up an address where nobody listens after a minute or less, while the first process may
 * be making plans for longer than that. */
static int join(dpt_comm *c, const dpt_comm_id *id, dpl_text *why)
{
    const int64_t start = dpl_now_ns();
    int timeout_ms = c->opt.timeout_ms, pause_us = 0, early = 0, err;
    dpl_text said = { "" };

    while ((err = try_to_join(c, id, timeout_ms, &said)) == DPL_EDEVICE && came_too_early(&said)) {
        early = 1;
        dpt_comm_abort(c);
        if ((err = dpt_nccl_pause(c, start, c->opt.timeout_ms, &pause_us, "joining", &said))) break;
        timeout_ms = c->opt.timeout_ms - (int)((dpl_now_ns() - start) / 1000000);
    }
    if (err == DPL_ETIMEOUT && early) {
        const dpl_text late = said;
        const char *address = getenv("NCCL_COMM_ID");

        dpl_fail(&said, err, "%s; nobody listened at rank 0's address%s%s", late.s,
                 address ? ", " : "", address ? address : "");
    }
    if (err && why) *why = said;
    return err;
}

/* Wait for s without blocking in a call: a peer that does not come must not hold this thread. */
static int wait_stream(dpt_comm *c, cudaStream_t s, int64_t start, dpl_text *why)
{
    int err = DPL_OK, pause_us = 0;
    cudaError_t e;

    while (!err && (e = cudaStreamQuery(s)) != cudaSuccess) {
        if (e != cudaErrorNotReady) return dpt_nccl_fail_cuda(c, e, "a first sum", why);
        cudaGetLastError(); /* an answer, not an error */
        if (!(err = dpt_comm_poll(c, why)))
            err = dpt_nccl_pause(c, start, c->opt.timeout_ms, &pause_us, "a first sum", why);
    }
    return err;
}

/* One sum, so that connections are made now and what is wrong with them is seen now: NCCL makes
 * them at the first collective, and a machine whose GPUs cannot reach each other's memory gives
 * garbage. */
static int try_sum(dpt_comm *c, double *v, cudaStream_t s, dpl_text *why)
{
    const int64_t start = dpl_now_ns();
    const double want = c->opt.ranks * (c->opt.ranks + 1.0) / 2;
    double own = c->opt.rank + 1, got = 0;
    cudaError_t e = cudaMemcpyAsync(v, &own, sizeof own, cudaMemcpyHostToDevice, s);
    int err;

    if (e != cudaSuccess) return dpt_nccl_fail_cuda(c, e, "cudaMemcpyAsync", why);
    if ((err = dpt_comm_sum_double(c, v, 1, s, why)) || (err = wait_stream(c, s, start, why)))
        return err;
    e = cudaMemcpyAsync(&got, v, sizeof got, cudaMemcpyDeviceToHost, s);
    if (e == cudaSuccess) e = cudaStreamSynchronize(s);
    if (e != cudaSuccess) return dpt_nccl_fail_cuda(c, e, "cudaMemcpyAsync", why);
    if (got == want) return DPL_OK;
    return dpl_fail(
        why, DPL_EDEVICE,
        "rank %d of %d (GPU %d): a first sum over all ranks gave %g and not %g: the GPUs "
        "do not reach each other's memory; try NCCL_P2P_DISABLE=1",
        c->opt.rank, c->opt.ranks, c->opt.gpu, got, want);
}

static int try_out(dpt_comm *c, dpl_text *why)
{
    cudaStream_t s = NULL;
    double *v = NULL;
    cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    int err = DPL_OK;

    if (e == cudaSuccess) e = cudaMalloc((void **)&v, sizeof *v);
    if (e != cudaSuccess) err = dpt_nccl_fail_cuda(c, e, "memory for a first sum", why);
    if (!err) err = try_sum(c, v, s, why);
    if (err) dpt_comm_abort(c); /* or the stream would not end */
    if (s) cudaStreamSynchronize(s);
    cudaFree(v);
    if (s) cudaStreamDestroy(s);
    return err;
}

int dpt_comm_create(dpt_comm **out, const dpt_comm_id *id, const dpt_comm_options *opt,
                    dpl_text *why)
{
    dpt_comm *c = dpl_calloc(1, sizeof *c);
    cudaError_t e;
    int err;

    *out = NULL;
    if (!c) return dpl_fail(why, DPL_ENOMEM, "rank %d: out of memory", opt->rank);
    c->opt = *opt;
    pthread_mutex_init(&c->lock, NULL);
    if ((err = dpt_nccl_open(&c->nccl, why))) goto done;
    if ((e = cudaSetDevice(opt->gpu)) != cudaSuccess)
        err = dpt_nccl_fail_cuda(c, e, "cudaSetDevice", why);
    if (!err) err = make_events(c, why);
    if (!err) err = join(c, id, why);
    if (!err) err = try_out(c, why);
    if (err) goto done;
    c->opt.cancel = NULL; /* a step under way is finished, also after a signal */
    *out = c;
    c = NULL;
done:
    if (c) dpt_comm_abort(c);
    dpt_comm_destroy(&c);
    return err;
}

static int leave_ms(const dpt_comm *c)
{
    return c->opt.timeout_ms < LEAVE_MS ? c->opt.timeout_ms : LEAVE_MS;
}

/* Leave in order. A peer that is gone could make that last for ever. */
static void leave(dpt_comm *c)
{
    const ncclResult_t e = c->nccl.CommFinalize(c->handle);

    if (dpt_nccl_settle(c, e, "leaving", leave_ms(c), NULL)) {
        dpt_comm_abort(c);
        return;
    }
    c->nccl.CommDestroy(c->handle);
    c->handle = NULL;
}

void dpt_comm_destroy(dpt_comm **at)
{
    dpt_comm *c = *at;

    *at = NULL;
    if (!c) return;
    if (c->handle) leave(c);
    if (c->ending) dpt_comm_abort(c);
    for (int i = 0; i < 2; i++)
        if (c->mark[i].event) cudaEventDestroy(c->mark[i].event);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Shared by who asks for the end of a communicator and the thread that sees to it; the last frees. */
typedef struct dpt_nccl_ending {
    ncclResult_t (*abort)(ncclComm_t c);
    ncclComm_t handle;
    int gpu;
    pthread_t thread;
    struct timespec until; /* waited for */
    pthread_mutex_t lock;  /* guards the rest */
    pthread_cond_t change;
    int over, refs;
} ending;

static void ending_put(ending *e)
{
    int left;

    pthread_mutex_lock(&e->lock);
    left = --e->refs;
    pthread_mutex_unlock(&e->lock);
    if (left) return;
    pthread_cond_destroy(&e->change);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void *end_it(void *arg)
{
    ending *e = arg;

    if (cudaSetDevice(e->gpu) != cudaSuccess) cudaGetLastError();
    e->abort(e->handle);
    pthread_mutex_lock(&e->lock);
    e->over = 1;
    pthread_cond_signal(&e->change);
    pthread_mutex_unlock(&e->lock);
    ending_put(e);
    return NULL;
}

static struct timespec in_ms(int ms)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* @return what is to be waited for, or NULL: it is over, as no thread could be had for it */
static ending *begin_end(const dpt_comm *c, ncclComm_t handle)
{
    ending *e = dpl_calloc(1, sizeof *e);

    if (!e) {
        c->nccl.CommAbort(handle);
        return NULL;
    }
    *e = (ending){ .abort = c->nccl.CommAbort,
                   .handle = handle,
                   .gpu = c->opt.gpu,
                   .until = in_ms(leave_ms(c)),
                   .refs = 2 };
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->change, NULL);
    if (!dpl_thread_start(&e->thread, "nccl end", end_it, e)) return e;
    end_it(e);
    ending_put(e);
    return NULL;
}

/* NCCL may wait there for processes of this machine that are gone. Then it is left to it. */
static void wait_end(ending *e)
{
    int over;

    pthread_mutex_lock(&e->lock);
    while (!e->over && !pthread_cond_timedwait(&e->change, &e->lock, &e->until)) {}
    over = e->over;
    pthread_mutex_unlock(&e->lock);
    if (over) {
        pthread_join(e->thread, NULL);
    } else {
        pthread_detach(e->thread);
    }
    ending_put(e);
}

void dpt_comm_abort_begin(dpt_comm *c)
{
    ncclComm_t handle;
    ending *e;

    pthread_mutex_lock(&c->lock);
    handle = c->handle;
    c->handle = NULL;
    pthread_mutex_unlock(&c->lock);
    if (!handle || !(e = begin_end(c, handle))) return;
    pthread_mutex_lock(&c->lock);
    c->ending = e;
    pthread_mutex_unlock(&c->lock);
}

void dpt_comm_abort(dpt_comm *c)
{
    ending *e;

    dpt_comm_abort_begin(c);
    pthread_mutex_lock(&c->lock);
    e = c->ending;
    c->ending = NULL;
    pthread_mutex_unlock(&c->lock);
    if (e) wait_end(e);
}
