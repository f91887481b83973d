/* SPDX-License-Identifier: Apache-2.0 */
/* The host as a device: its memory is device memory, and a stream runs what is queued on it at once,
 * on the caller. So every event has passed as soon as it is recorded. */
#include "base/alloc.h"
#include "device/device_ops.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>

static int cpu_open(dpl_device **out, const char *args, dpl_text *why)
{
    if (args) {
        return dpl_fail(why, DPL_EINVAL, "one cpu takes no \":%s\" (lists do: cpu:2 = cpu,cpu)",
                        args);
    }
    *out = dpl_calloc(1, sizeof **out);
    return *out ? DPL_OK : dpl_fail(why, DPL_ENOMEM, "out of memory");
}

static void cpu_close(dpl_device *d)
{
    free(d);
}

static void *cpu_alloc(dpl_device *d, size_t bytes)
{
    (void)d;
    return dpl_alloc_aligned(bytes, 1);
}

static void cpu_free(dpl_device *d, void *p)
{
    (void)d;
    free(p);
}

static int cpu_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why)
{
    (void)name;
    if (!(*out = dpl_calloc(1, sizeof **out))) return dpl_fail(why, DPL_ENOMEM, "cpu stream");
    (*out)->device = d;
    return DPL_OK;
}

static void cpu_stream_destroy(dpl_stream *s)
{
    free(s);
}

static int cpu_event_create(dpl_device *d, dpl_event **out, dpl_text *why)
{
    if (!(*out = dpl_calloc(1, sizeof **out))) return dpl_fail(why, DPL_ENOMEM, "cpu event");
    (*out)->device = d;
    return DPL_OK;
}

static void cpu_event_destroy(dpl_event *e)
{
    free(e);
}

static int cpu_copy(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way)
{
    (void)s;
    (void)way;
    if (bytes && dst != src) memcpy(dst, src, bytes);
    return DPL_OK;
}

static int cpu_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns)
{
    (void)s;
    (void)modelled_ns; /* run took the real time */
    run(arg);
    return DPL_OK;
}

static int cpu_event_record(dpl_event *e, dpl_stream *s)
{
    (void)e;
    (void)s;
    return DPL_OK;
}

static int cpu_stream_wait(dpl_stream *s, dpl_event *e)
{
    (void)s;
    (void)e;
    return DPL_OK;
}

static int cpu_event_query(dpl_event *e)
{
    (void)e;
    return 1;
}

static int cpu_event_sync(dpl_event *e)
{
    (void)e;
    return DPL_OK;
}

static int cpu_stream_sync(dpl_stream *s)
{
    (void)s;
    return DPL_OK;
}

const dpl_device_ops dpl_device_cpu_ops = {
    .word = "cpu",
    .kind = DPL_DEVICE_CPU,
    .has_memory = 0,
    .open = cpu_open,
    .close = cpu_close,
    .host_alloc = cpu_alloc,
    .host_free = cpu_free,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .copy = cpu_copy,
    .launch = cpu_launch,
    .event_record = cpu_event_record,
    .stream_wait = cpu_stream_wait,
    .event_query = cpu_event_query,
    .event_sync = cpu_event_sync,
    .stream_sync = cpu_stream_sync,
};
