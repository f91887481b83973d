/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: events. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <stdlib.h>

/* The name behind cudaEvent_t is the real header's. */
struct CUevent_st {
    int gpu, timed;
    fake_mark *mark; /* NULL = never recorded */
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    int sticky;
    cudaError_t e = fake_begin(fake_current());

    if (e == cudaSuccess) e = fake_injected(FAKE_EVENT, &sticky);
    if (e != cudaSuccess) return fake_return(e);
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        return fake_return(cudaErrorInvalidValue);
    if (!(*out = calloc(1, sizeof **out))) return fake_return(cudaErrorMemoryAllocation);
    (*out)->gpu = fake_current();
    (*out)->timed = !(flags & cudaEventDisableTiming);
    fake_count_alive(1);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t ev)
{
    fake_lock();
    fake_mark_put(ev->mark);
    fake_unlock();
    fake_count_alive(-1);
    free(ev);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t ev, cudaStream_t s)
{
    const cudaError_t e = fake_begin_on(s);
    fake_mark *m;

    if (e != cudaSuccess) return fake_return(e);
    if (ev->gpu != fake_stream_gpu(s)) return fake_return(cudaErrorInvalidResourceHandle);
    m = fake_mark_push(s);
    fake_lock();
    fake_mark_put(ev->mark);
    ev->mark = m;
    fake_unlock();
    return cudaSuccess;
}

/* The last record, held once more, or NULL. */
static fake_mark *last_record(cudaEvent_t ev)
{
    fake_mark *m;

    fake_lock();
    m = ev->mark ? fake_mark_get(ev->mark) : NULL;
    fake_unlock();
    return m;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags)
{
    const cudaError_t e = fake_begin_on(s);
    fake_mark *m;

    if (e != cudaSuccess) return fake_return(e);
    if (flags) return fake_return(cudaErrorInvalidValue);
    if ((m = last_record(ev))) fake_mark_await(s, m);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t ev)
{
    const cudaError_t e = fake_begin(ev->gpu);
    fake_mark *m;
    int passed;

    if (e != cudaSuccess) return fake_return(e);
    if (!(m = last_record(ev))) return cudaSuccess;
    fake_lock();
    passed = m->passed;
    if (!passed) fake_mark_put(m);
    fake_unlock();
    if (!passed) return fake_return(cudaErrorNotReady);
    fake_mark_wait(m);
    return fake_return(fake_begin(ev->gpu)); /* it may have failed since we looked */
}

cudaError_t cudaEventSynchronize(cudaEvent_t ev)
{
    const cudaError_t e = fake_begin(ev->gpu);
    fake_mark *m;

    if (e != cudaSuccess) return fake_return(e);
    if ((m = last_record(ev))) fake_mark_wait(m);
    return fake_return(fake_begin(ev->gpu));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    const cudaError_t e = fake_begin(from->gpu);
    int known;

    if (e != cudaSuccess) return fake_return(e);
    if (!from->timed || !to->timed || from->gpu != to->gpu || !from->mark || !to->mark)
        return fake_return(cudaErrorInvalidResourceHandle);
    fake_lock();
    known = from->mark->passed && to->mark->passed;
    if (known) *ms = (float)((double)(to->mark->at_ns - from->mark->at_ns) / 1e6);
    fake_unlock();
    return fake_return(known ? cudaSuccess : cudaErrorNotReady);
}
