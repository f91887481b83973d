/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives, and finding out that one does not come forward. NCCL does not notice a peer that is
 * only missing or stuck: its kernel would wait for ever. So a mark on the stream follows each
 * collective, and dpt_comm_poll() looks whether marks keep passing. */
#include "trainer/cuda/comm_nccl.h"

#include "base/clock.h"
#include "dpload.h"
#include "trainer/backend.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { SPINS = 64, PAUSE_MAX_US = 2000 };

/* --- words --- */

int dpt_nccl_fail(dpt_comm *c, ncclResult_t e, const char *call, dpl_text *why)
{
    const char *more = c->handle ? c->nccl.GetLastError(c->handle) : c->nccl.GetLastError(NULL);

    return dpl_fail(why, DPL_EDEVICE, "rank %d of %d (GPU %d): %s: %s%s%s%s", c->opt.rank,
                    c->opt.ranks, c->opt.gpu, call, c->nccl.GetErrorString(e),
                    more && *more ? " (" : "", more ? more : "", more && *more ? ")" : "");
}

int dpt_nccl_fail_cuda(dpt_comm *c, cudaError_t e, const char *call, dpl_text *why)
{
    cudaGetLastError();
    return dpl_fail(why, DPL_EDEVICE, "rank %d of %d (GPU %d): %s: %s (CUDA error %d)", c->opt.rank,
                    c->opt.ranks, c->opt.gpu, call, cudaGetErrorString(e), (int)e);
}

static int fail_aborted(const dpt_comm *c, dpl_text *why)
{
    return dpl_fail(why, DPL_EDEVICE, "rank %d of %d (GPU %d): its communicator was aborted",
                    c->opt.rank, c->opt.ranks, c->opt.gpu);
}

/* --- waiting for NCCL's own threads --- */

int dpt_nccl_pause(dpt_comm *c, int64_t start_ns, int timeout_ms, int *pause_us, const char *what,
                   dpl_text *why)
{
    if (dpt_canceled(c->opt.cancel))
        return dpl_fail(why, DPL_ECANCELED, "rank %d of %d: canceled in %s", c->opt.rank,
                        c->opt.ranks, what);
    if (dpt_canceled(c->opt.failed))
        return dpl_fail(why, DPL_ECANCELED,
                        "rank %d of %d: %s given up: another GPU of this process failed",
                        c->opt.rank, c->opt.ranks, what);
    if (dpl_now_ns() - start_ns > timeout_ms * INT64_C(1000000))
        return dpl_fail(why, DPL_ETIMEOUT,
                        "rank %d of %d (GPU %d): %s: the other ranks did not come within %g s",
                        c->opt.rank, c->opt.ranks, c->opt.gpu, what, timeout_ms / 1e3);
    if (++*pause_us < SPINS) {
        sched_yield(); /* NCCL's thread needs some microseconds for most calls */
    } else {
        const struct timespec ts = { .tv_nsec = *pause_us * 1000L };

        nanosleep(&ts, NULL);
        if ((*pause_us *= 2) > PAUSE_MAX_US) *pause_us = PAUSE_MAX_US;
    }
    return DPL_OK;
}

int dpt_nccl_settle(dpt_comm *c, ncclResult_t e, const char *what, int timeout_ms, dpl_text *why)
{
    const int64_t start = dpl_now_ns();
    int pause_us = 0, err = DPL_OK;

    while (e == ncclInProgress) {
        ncclResult_t state = ncclSuccess;

        pthread_mutex_lock(&c->lock);
        if (!c->handle) {
            err = fail_aborted(c, why);
        } else if ((e = c->nccl.CommGetAsyncError(c->handle, &state)) == ncclSuccess) {
            e = state;
        }
        pthread_mutex_unlock(&c->lock);
        if (!err && e == ncclInProgress)
            err = dpt_nccl_pause(c, start, timeout_ms, &pause_us, what, why);
        if (err) return err;
    }
    if (e == ncclSuccess) return DPL_OK;
    pthread_mutex_lock(&c->lock);
    err = dpt_nccl_fail(c, e, what, why);
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* --- marks --- */

static void mark_passed(dpt_comm *c)
{
    const dpt_nccl_mark free_one = { .event = c->mark[0].event };

    c->mark[0] = c->mark[1];
    c->mark[1] = free_one;
    c->mark[0].since_ns = dpl_now_ns();
}

/* Set the newest mark: moved when there are two already, so that they cover all. */
static int set_mark(dpt_comm *c, const char *what, cudaStream_t s, dpl_text *why)
{
    dpt_nccl_mark *m = &c->mark[c->mark[0].set];
    const cudaError_t e = cudaEventRecord(m->event, s);

    if (e != cudaSuccess) return dpt_nccl_fail_cuda(c, e, "cudaEventRecord", why);
    m->set = 1;
    m->number = c->number;
    m->since_ns = dpl_now_ns();
    snprintf(m->what, sizeof m->what, "%s", what);
    return DPL_OK;
}

static int poll_marks(dpt_comm *c, dpl_text *why)
{
    while (c->mark[0].set) {
        const dpt_nccl_mark *m = &c->mark[0];
        const cudaError_t e = cudaEventQuery(m->event);

        if (e == cudaSuccess) {
            mark_passed(c);
            continue;
        }
        if (e != cudaErrorNotReady) return dpt_nccl_fail_cuda(c, e, m->what, why);
        cudaGetLastError(); /* an answer, not an error */
        if (dpl_now_ns() - m->since_ns <= c->opt.timeout_ms * INT64_C(1000000)) return DPL_OK;
        return dpl_fail(
            why, DPL_EDEVICE,
            "rank %d of %d (GPU %d): collective %llu (%s) has not come forward for %g s: "
            "another rank is missing or stuck",
            c->opt.rank, c->opt.ranks, c->opt.gpu, (unsigned long long)m->number, m->what,
            c->opt.timeout_ms / 1e3);
    }
    return DPL_OK;
}

/* --- collectives --- */

typedef struct call {
    void *data;
    size_t n;
    ncclDataType_t type;
    int broadcast;
} call;

static ncclResult_t queue(const dpt_comm *c, const call *k, cudaStream_t s)
{
    if (k->broadcast) return c->nccl.Broadcast(k->data, k->data, k->n, k->type, 0, c->handle, s);
    return c->nccl.AllReduce(k->data, k->data, k->n, k->type, ncclSum, c->handle, s);
}

static int collective(dpt_comm *c, const call *k, const char *what, void *stream, dpl_text *why)
{
    ncclResult_t e = ncclSuccess;
    int err = DPL_OK;

    pthread_mutex_lock(&c->lock);
    if (c->handle) {
        e = queue(c, k, stream);
    } else {
        err = fail_aborted(c, why);
    }
    pthread_mutex_unlock(&c->lock);
    /* Only now is it on the stream: a mark before that would be a mark before it. */
    if (!err) err = dpt_nccl_settle(c, e, what, c->opt.timeout_ms, why);
    if (!err) err = set_mark(c, what, stream, why);
    c->number++;
    return err == DPL_ETIMEOUT ? DPL_EDEVICE : err;
}

int dpt_comm_sum_float(dpt_comm *c, float *v, size_t n, void *stream, dpl_text *why)
{
    const call k = { .data = v, .n = n, .type = ncclFloat32 };
    char what[48];

    snprintf(what, sizeof what, "sum of %zu floats", n);
    return n ? collective(c, &k, what, stream, why) : DPL_OK;
}

int dpt_comm_sum_double(dpt_comm *c, double *v, size_t n, void *stream, dpl_text *why)
{
    const call k = { .data = v, .n = n, .type = ncclFloat64 };
    char what[48];

    snprintf(what, sizeof what, "sum of %zu doubles", n);
    return n ? collective(c, &k, what, stream, why) : DPL_OK;
}

int dpt_comm_broadcast(dpt_comm *c, void *p, size_t bytes, void *stream, dpl_text *why)
{
    const call k = { .data = p, .n = bytes, .type = ncclUint8, .broadcast = 1 };
    char what[48];

    snprintf(what, sizeof what, "broadcast of %zu bytes", bytes);
    return bytes ? collective(c, &k, what, stream, why) : DPL_OK;
}

int dpt_comm_poll(dpt_comm *c, dpl_text *why)
{
    ncclResult_t e = ncclSuccess, state = ncclSuccess;
    int err = DPL_OK;

    pthread_mutex_lock(&c->lock);
    if (!c->handle) {
        err = fail_aborted(c, why);
    } else if ((e = c->nccl.CommGetAsyncError(c->handle, &state)) != ncclSuccess) {
        err = dpt_nccl_fail(c, e, "ncclCommGetAsyncError", why);
    } else if (state != ncclSuccess && state != ncclInProgress) {
        err = dpt_nccl_fail(c, state, "a collective", why);
    }
    pthread_mutex_unlock(&c->lock);
    return err ? err : poll_marks(c, why);
}

const dpt_comm_calls dpt_comm_table = {
    dpt_comm_id_get,     dpt_comm_create,    dpt_comm_destroy, dpt_comm_sum_float,
    dpt_comm_sum_double, dpt_comm_broadcast, dpt_comm_poll,    dpt_comm_abort,
};
