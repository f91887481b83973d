/* SPDX-License-Identifier: Apache-2.0 */
/* What one kind of device provides: device.c finds the kind by the first word of the spec and passes
 * every call on through this table. Each kind embeds the structs below as its first member. */
#ifndef DPL_DEVICE_DEVICE_OPS_H
#define DPL_DEVICE_DEVICE_OPS_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_copy_way { DPL_COPY_TO_DEVICE = 0, DPL_COPY_TO_HOST = 1 } dpl_copy_way;

typedef struct dpl_device_ops {
    const char *word; /* the spec is this word, or this word, ':' and args */
    dpl_device_kind kind;
    int has_memory;

    /** args: what stands behind "word:", or NULL. Sets step_ns; device.c fills the rest of *out. */
    int (*open)(dpl_device **out, const char *args, dpl_text *why);
    void (*close)(dpl_device *d); /* frees d */
    void *(*host_alloc)(dpl_device *d, size_t bytes);
    void (*host_free)(dpl_device *d, void *p);
    void *(*alloc)(dpl_device *d, size_t bytes);
    void (*free)(dpl_device *d, void *p);
    int (*stream_create)(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why);
    void (*stream_destroy)(dpl_stream *s);
    int (*event_create)(dpl_device *d, dpl_event **out, dpl_text *why);
    void (*event_destroy)(dpl_event *e);
    int (*copy)(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way);
    int (*launch)(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns);
    int (*event_record)(dpl_event *e, dpl_stream *s); /* both of one kind */
    int (*stream_wait)(dpl_stream *s, dpl_event *e);  /* both of one kind */
    int (*event_query)(dpl_event *e);
    int (*event_sync)(dpl_event *e);
    int (*stream_sync)(dpl_stream *s);

    /* NULL where a native stream is a dpl_stream */
    void *(*stream_native)(dpl_stream *s);
    int (*native_record)(dpl_event *e, void *native);
    int (*native_wait)(void *native, dpl_event *e);
    int (*native_sync)(dpl_device *d, void *native);

    const char *(*failure)(dpl_device *d);          /* NULL where nothing can fail */
    int (*gpus)(dpl_gpu_info **out, dpl_text *why); /* as dpl_gpu_list(); NULL for other kinds */
    const dpl_trace *trace;                         /* NULL where no profiler looks */
} dpl_device_ops;

struct dpl_device {
    const dpl_device_ops *ops;
    char *name; /* the spec as it was given */
    long long step_ns;
};
struct dpl_stream {
    dpl_device *device;
};
struct dpl_event {
    dpl_device *device;
};

extern const dpl_device_ops dpl_device_cpu_ops, dpl_device_sim_ops;

#ifdef __cplusplus
}
#endif
#endif
