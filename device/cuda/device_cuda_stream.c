/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and copies of NVIDIA GPUs. */
#include "device/cuda/device_cuda.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdlib.h>

typedef struct cuda_stream {
    dpl_stream base;
    cudaStream_t stream;
} cuda_stream;

typedef struct cuda_event {
    dpl_event base;
    cudaEvent_t event;
} cuda_event;

static cudaStream_t stream_of(dpl_stream *s)
{
    return ((cuda_stream *)s)->stream;
}

static cudaEvent_t event_of(dpl_event *e)
{
    return ((cuda_event *)e)->event;
}

/* --- streams --- */

int dpl_cuda_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why)
{
    cuda_stream *s = dpl_calloc(1, sizeof *s);
    int err;

    if (!s) return dpl_fail(why, DPL_ENOMEM, "stream %s: out of memory", name);
    s->base.device = d;
    if (!(err = dpl_cuda_enter(d))) { /* non-blocking: the default stream is not waited for */
        err = dpl_cuda_status(d, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                              "cudaStreamCreateWithFlags");
        dpl_cuda_leave();
    }
    if (err) {
        free(s);
        return dpl_fail(why, err, "cuda:%d: no stream %s: %s", ((dpl_cuda_device *)d)->ordinal,
                        name, dpl_cuda_failure(d));
    }
    *out = &s->base;
    return DPL_OK;
}

void dpl_cuda_stream_destroy(dpl_stream *s)
{
    dpl_cuda_stream_sync(s); /* destroying alone would let the queued work run on */
    if (!dpl_cuda_enter(s->device)) {
        dpl_cuda_status(s->device, cudaStreamDestroy(stream_of(s)), "cudaStreamDestroy");
        dpl_cuda_leave();
    }
    free(s);
}

void *dpl_cuda_stream_native(dpl_stream *s)
{
    return stream_of(s);
}

int dpl_cuda_copy(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way)
{
    const enum cudaMemcpyKind kind =
        way == DPL_COPY_TO_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    int err;

    if (!bytes) return DPL_OK;
    if ((err = dpl_cuda_enter(s->device))) return err;
    err = dpl_cuda_status(s->device, cudaMemcpyAsync(dst, src, bytes, kind, stream_of(s)),
                          "cudaMemcpyAsync");
    dpl_cuda_leave();
    return err;
}

int dpl_cuda_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns)
{
    int err;

    (void)modelled_ns; /* run takes the time it takes */
    if ((err = dpl_cuda_enter(s->device))) return err;
    err = dpl_cuda_status(s->device, cudaLaunchHostFunc(stream_of(s), run, arg),
                          "cudaLaunchHostFunc");
    dpl_cuda_leave();
    return err;
}

int dpl_cuda_stream_sync(dpl_stream *s)
{
    return dpl_cuda_native_sync(s->device, stream_of(s));
}

/* --- events --- */

int dpl_cuda_event_create(dpl_device *d, dpl_event **out, dpl_text *why)
{
    /* No timing: cheaper. Blocking: a worker that waits leaves its core to those that decode. */
    const unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
    cuda_event *e = dpl_calloc(1, sizeof *e);
    int err;

    if (!e) return dpl_fail(why, DPL_ENOMEM, "event: out of memory");
    e->base.device = d;
    if (!(err = dpl_cuda_enter(d))) {
        err = dpl_cuda_status(d, cudaEventCreateWithFlags(&e->event, flags),
                              "cudaEventCreateWithFlags");
        dpl_cuda_leave();
    }
    if (err) {
        free(e);
        return dpl_fail(why, err, "cuda:%d: no event: %s", ((dpl_cuda_device *)d)->ordinal,
                        dpl_cuda_failure(d));
    }
    *out = &e->base;
    return DPL_OK;
}

void dpl_cuda_event_destroy(dpl_event *e)
{
    if (!dpl_cuda_enter(e->device)) {
        dpl_cuda_status(e->device, cudaEventDestroy(event_of(e)), "cudaEventDestroy");
        dpl_cuda_leave();
    }
    free(e);
}

int dpl_cuda_event_record(dpl_event *e, dpl_stream *s)
{
    return dpl_cuda_native_record(e, stream_of(s));
}

int dpl_cuda_stream_wait(dpl_stream *s, dpl_event *e)
{
    return dpl_cuda_native_wait(stream_of(s), e);
}

int dpl_cuda_event_query(dpl_event *e)
{
    cudaError_t status;

    if (dpl_cuda_enter(e->device)) return 1;
    status = cudaEventQuery(event_of(e));
    if (status == cudaErrorNotReady)
        cudaGetLastError(); /* an answer, not an error */
    else
        dpl_cuda_status(e->device, status, "cudaEventQuery");
    dpl_cuda_leave();
    /* nobody may wait for ever for a GPU that has failed: the next sync tells */
    return status != cudaErrorNotReady;
}

int dpl_cuda_event_sync(dpl_event *e)
{
    int err = dpl_cuda_enter(e->device);

    if (err) return err;
    err = dpl_cuda_status(e->device, cudaEventSynchronize(event_of(e)), "cudaEventSynchronize");
    dpl_cuda_leave();
    return err;
}

/* --- streams of others --- */

int dpl_cuda_native_record(dpl_event *e, void *native)
{
    int err = dpl_cuda_enter(e->device);

    if (err) return err;
    err = dpl_cuda_status(e->device, cudaEventRecord(event_of(e), native), "cudaEventRecord");
    dpl_cuda_leave();
    return err;
}

int dpl_cuda_native_wait(void *native, dpl_event *e)
{
    int err = dpl_cuda_enter(e->device);

    if (err) return err;
    err = dpl_cuda_status(e->device, cudaStreamWaitEvent(native, event_of(e), 0),
                          "cudaStreamWaitEvent");
    dpl_cuda_leave();
    return err;
}

int dpl_cuda_native_sync(dpl_device *d, void *native)
{
    int err = dpl_cuda_enter(d);

    if (err) return err;
    err = dpl_cuda_status(d, cudaStreamSynchronize(native), "cudaStreamSynchronize");
    dpl_cuda_leave();
    return err;
}
