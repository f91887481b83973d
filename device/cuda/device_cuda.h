/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the CUDA kind: its device, and how a call's status becomes ours. */
#ifndef DPL_DEVICE_CUDA_DEVICE_CUDA_H
#define DPL_DEVICE_CUDA_DEVICE_CUDA_H

#include "device/device_ops.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

/* NVTX is headers only; some packages of CUDA leave them out. */
#if __has_include(<nvtx3/nvToolsExt.h>)
#    define DPL_CUDA_HAS_TRACE 1
#else
#    define DPL_CUDA_HAS_TRACE 0
#endif

typedef struct dpl_cuda_device {
    dpl_device base;
    int ordinal;          /* of the visible devices: CUDA_VISIBLE_DEVICES has been applied */
    CUcontext context;    /* the GPU's primary one, which the runtime works in */
    pthread_mutex_t lock; /* guards `failure` */
    dpl_text failure;     /* the first one, then fixed; "" = none */
} dpl_cuda_device;

/** DPL_OK for cudaSuccess, else DPL_EDEVICE; the first failure of a device keeps its text, for
 *  dpl_device_failure(). The thread's last error is cleared: it is ours, and the program around us
 *  may have CUDA code of its own that looks there. Any thread. */
int dpl_cuda_status(dpl_device *d, cudaError_t e, const char *call);

/** DPL_EDEVICE and the same text where there is no device yet. */
int dpl_cuda_fail(dpl_text *why, cudaError_t e, const char *call);

/** The text of the first failure, or "". */
const char *dpl_cuda_failure(dpl_device *d);

/** Bring the GPU up. @return DPL_OK, DPL_EDEVICE; why */
int dpl_cuda_start(dpl_cuda_device *d, dpl_text *why);
/** Make d's GPU the thread's current one until dpl_cuda_leave(), which puts back whatever it was,
 *  also none: around every call of the runtime. @return as dpl_cuda_status(); after an error there
 *  is nothing to leave */
int dpl_cuda_enter(dpl_device *d);
void dpl_cuda_leave(void);

/** How many GPUs are visible: at least 1, or DPL_EDEVICE and why. */
int dpl_cuda_count(int *n, dpl_text *why);
int dpl_cuda_gpus(dpl_gpu_info **out, dpl_text *why);
extern const dpl_trace dpl_cuda_trace; /* where DPL_CUDA_HAS_TRACE */

int dpl_cuda_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why);
void dpl_cuda_stream_destroy(dpl_stream *s);
void *dpl_cuda_stream_native(dpl_stream *s);
int dpl_cuda_copy(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way);
int dpl_cuda_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns);
int dpl_cuda_event_create(dpl_device *d, dpl_event **out, dpl_text *why);
void dpl_cuda_event_destroy(dpl_event *e);
int dpl_cuda_event_record(dpl_event *e, dpl_stream *s);
int dpl_cuda_stream_wait(dpl_stream *s, dpl_event *e);
int dpl_cuda_native_record(dpl_event *e, void *native);
int dpl_cuda_native_wait(void *native, dpl_event *e);
int dpl_cuda_native_sync(dpl_device *d, void *native);
int dpl_cuda_event_query(dpl_event *e);
int dpl_cuda_event_sync(dpl_event *e);
int dpl_cuda_stream_sync(dpl_stream *s);

#endif
