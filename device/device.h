/* SPDX-License-Identifier: Apache-2.0 */
/* One interface to a compute device: memory, pinned host memory, streams, events, copies.
 * A stream runs what is queued on it in order; an event marks a point of a stream. Nothing here
 * blocks the host except the calls that say so. Any thread may call; one stream is used by one
 * thread at a time. Ordering edges are exactly CUDA's, so that the sim device checks under TSan what
 * the CUDA device relies on. */
#ifndef DPL_DEVICE_DEVICE_H
#define DPL_DEVICE_DEVICE_H

#include "base/text.h"
#include "base/trace.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_device dpl_device; /* opened by dpl_device_open() */
typedef struct dpl_stream dpl_stream;
typedef struct dpl_event dpl_event;

typedef enum dpl_device_kind {
    DPL_DEVICE_CPU, /* host memory is device memory: copies are not needed, streams run at once */
    DPL_DEVICE_SIM, /* modelled accelerator: own memory, bus with a bandwidth, steps of fixed time */
    DPL_DEVICE_CUDA
} dpl_device_kind;

/** Parse and open one device. spec: "cpu"; "sim:38ms" or "sim:38ms,bus=16G" (step time, bytes/s of
 *  the modelled bus; default 12G); "cuda:0" (of the GPUs that CUDA_VISIBLE_DEVICES leaves).
 *  @return DPL_OK, DPL_EINVAL (spec), DPL_EDEVICE, DPL_ENOTSUP, DPL_ENOMEM; text says which */
int dpl_device_open(dpl_device **out, const char *spec, dpl_text *why);
void dpl_device_close(dpl_device **d); /* everything made from it must be gone; NULL is fine */

dpl_device_kind dpl_device_get_kind(const dpl_device *d);
const char *dpl_device_name(const dpl_device *d); /* "cpu", "sim:38ms" … for messages */
/** 1 when parts must be copied to memory of the device's own, 0 when it reads host memory. */
int dpl_device_has_memory(const dpl_device *d);
/** DPL_DEVICE_SIM: modelled time of one training step in ns, else 0. */
long long dpl_device_step_ns(const dpl_device *d);

/* A GPU as its driver describes it. Nothing is started on it. */
typedef struct dpl_gpu_info {
    int index; /* N of "cuda:N" */
    char outside
        [96];       /* which GPU of the machine that is: its entry of CUDA_VISIBLE_DEVICES, or index
                         again where that is not set */
    char name[256]; /* "NVIDIA H200" */
    char uuid[96];  /* "GPU-8f3a…", as nvidia-smi -L prints it */
    char pci[16];   /* "0000:3b:00.0" */
    uint64_t memory;  /* bytes */
    int major, minor; /* compute capability */
} dpl_gpu_info;

/** The visible GPUs in the order of their numbers. *out: free() it; NULL when there is none.
 *  @return their number, at least 1; DPL_ENOTSUP (no CUDA here), DPL_EDEVICE (no driver, none
 *          visible), DPL_ENOMEM; text says which */
int dpl_gpu_list(dpl_gpu_info **out, dpl_text *why);

/** Split a list into single specs. "cpu:N" is N times "cpu"; a part of a sim spec that holds '='
 *  belongs to the spec before it. GPUs, each at most once: "cuda" = all that are visible; "0", "0-3",
 *  "GPU-8f3a" (the beginning of one UUID), also with "cuda:" in front. "auto", alone: all visible GPUs, or
 *  "cpu" where there is none; the text then says why, and is empty otherwise. Blanks around commas are
 *  fine. *out is one allocation: free() it.
 *  @return number of devices, 1..256, or DPL_EINVAL, DPL_ENOMEM; where the GPUs had to be looked at
 *          also DPL_EDEVICE, DPL_ENOTSUP; text */
int dpl_device_list_parse(char ***out, const char *list, dpl_text *why);

/** Where ranges of work for this device are shown, or NULL. Constant, for as long as the program runs. */
const dpl_trace *dpl_device_trace(const dpl_device *d);

/* memory; NULL = out of memory. Freed memory must not be in use by a stream. */
void *dpl_device_host_alloc(dpl_device *d, size_t bytes); /* pinned, 64-byte aligned */
void dpl_device_host_free(dpl_device *d, void *p);
void *dpl_device_alloc(dpl_device *d, size_t bytes); /* device memory, 64-byte aligned */
void dpl_device_free(dpl_device *d, void *p);

int dpl_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why);
void dpl_stream_destroy(dpl_stream **s); /* waits for what is queued */

int dpl_event_create(dpl_device *d, dpl_event **out, dpl_text *why);
void dpl_event_destroy(dpl_event **e);

/** Queue a copy host -> device. src must stay unchanged until the stream is past it. */
int dpl_copy_to_device(dpl_stream *s, void *dst, const void *src, size_t bytes);
/** Queue a copy device -> host. */
int dpl_copy_to_host(dpl_stream *s, void *dst, const void *src, size_t bytes);
/** Queue work: run(arg) is called in stream order; on sim it is followed by modelled_ns of time. */
int dpl_stream_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns);
/** Mark the point of s after everything queued so far. An event may be recorded again. */
int dpl_event_record(dpl_event *e, dpl_stream *s);
/** Later work of s waits until e's last recorded point (an event never recorded is no wait). */
int dpl_stream_wait(dpl_stream *s, dpl_event *e);
/** 1 = that point has passed (or was never recorded), 0 = not yet. */
int dpl_event_query(dpl_event *e);
/** Block the host until e's point / everything queued on s has passed. Errors of queued work show
 *  here: DPL_OK or DPL_EDEVICE. */
int dpl_event_sync(dpl_event *e);
int dpl_stream_sync(dpl_stream *s);

/* A native stream is what the device's own interface calls one: for cuda a cudaStream_t, wherever it
 * comes from (a trainer's, PyTorch's), for the other kinds a dpl_stream. It is borrowed for the call,
 * must be of the same GPU as the event, and is never NULL: CUDA's default stream is named by
 * cudaStreamLegacy or cudaStreamPerThread. */
void *dpl_stream_native(dpl_stream *s);
int dpl_native_record(dpl_event *e, void *native); /* as dpl_event_record() */
int dpl_native_wait(void *native, dpl_event *e);   /* as dpl_stream_wait() */
int dpl_native_sync(dpl_device *d, void *native);  /* as dpl_stream_sync() */

/** What the device said when one of its calls first gave DPL_EDEVICE; "" before that, and for kinds
 *  that do not fail. Valid until the device is closed. */
const char *dpl_device_failure(dpl_device *d);

#ifdef __cplusplus
}
#endif
#endif
