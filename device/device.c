/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a device by its spec, and passing calls on to its kind. */
#include "device/device.h"

#include "base/alloc.h"
#include "device/device_ops.h"
#include "device/device_plugin.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>

static const dpl_device_ops *const kinds[] = { &dpl_device_cpu_ops, &dpl_device_sim_ops };

/* The kind whose word starts spec; *args is what stands behind the colon, or NULL. */
static const dpl_device_ops *find_kind(const char *spec, const char **args)
{
    const size_t len = strcspn(spec, ":");

    *args = spec[len] ? spec + len + 1 : NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *word = kinds[i]->word;

        if (strlen(word) == len && !memcmp(word, spec, len)) return kinds[i];
    }
    return NULL;
}

int dpl_device_open(dpl_device **out, const char *spec, dpl_text *why)
{
    const char *args;
    const dpl_device_ops *ops = find_kind(spec, &args);
    char *name;
    int err;

    *out = NULL;
    if (!strncmp(spec, "cuda", 4) && (spec[4] == ':' || !spec[4]) &&
        (err = dpl_plugin_cuda(&ops, why))) {
        dpl_text_prefix(why, "device \"%s\"", spec);
        return err;
    }
    if (!ops) {
        return dpl_fail(why, DPL_EINVAL,
                        "device \"%s\": unknown; known are cpu, sim:TIME[,bus=BYTES/S], cuda:N",
                        spec);
    }
    if (!(name = dpl_strdup(spec))) return dpl_fail(why, DPL_ENOMEM, "device %s", spec);
    if ((err = ops->open(out, args, why))) {
        dpl_text_prefix(why, "device \"%s\"", spec);
        free(name);
        return err;
    }
    (*out)->ops = ops;
    (*out)->name = name;
    return DPL_OK;
}

int dpl_gpu_list(dpl_gpu_info **out, dpl_text *why)
{
    const dpl_device_ops *ops;
    const int err = dpl_plugin_cuda(&ops, why);

    *out = NULL;
    return err ? err : ops->gpus(out, why);
}

void dpl_device_close(dpl_device **d)
{
    if (!*d) return;
    free((*d)->name);
    (*d)->ops->close(*d);
    *d = NULL;
}

dpl_device_kind dpl_device_get_kind(const dpl_device *d)
{
    return d->ops->kind;
}

const char *dpl_device_name(const dpl_device *d)
{
    return d->name;
}

int dpl_device_has_memory(const dpl_device *d)
{
    return d->ops->has_memory;
}

long long dpl_device_step_ns(const dpl_device *d)
{
    return d->step_ns;
}

const dpl_trace *dpl_device_trace(const dpl_device *d)
{
    return d->ops->trace;
}

void *dpl_device_host_alloc(dpl_device *d, size_t bytes)
{
    return d->ops->host_alloc(d, bytes);
}

void dpl_device_host_free(dpl_device *d, void *p)
{
    if (p) d->ops->host_free(d, p);
}

void *dpl_device_alloc(dpl_device *d, size_t bytes)
{
    return d->ops->alloc(d, bytes);
}

void dpl_device_free(dpl_device *d, void *p)
{
    if (p) d->ops->free(d, p);
}

int dpl_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why)
{
    *out = NULL;
    return d->ops->stream_create(d, out, name, why);
}

void dpl_stream_destroy(dpl_stream **s)
{
    if (!*s) return;
    (*s)->device->ops->stream_destroy(*s);
    *s = NULL;
}

int dpl_event_create(dpl_device *d, dpl_event **out, dpl_text *why)
{
    *out = NULL;
    return d->ops->event_create(d, out, why);
}

void dpl_event_destroy(dpl_event **e)
{
    if (!*e) return;
    (*e)->device->ops->event_destroy(*e);
    *e = NULL;
}

int dpl_copy_to_device(dpl_stream *s, void *dst, const void *src, size_t bytes)
{
    return s->device->ops->copy(s, dst, src, bytes, DPL_COPY_TO_DEVICE);
}

int dpl_copy_to_host(dpl_stream *s, void *dst, const void *src, size_t bytes)
{
    return s->device->ops->copy(s, dst, src, bytes, DPL_COPY_TO_HOST);
}

int dpl_stream_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns)
{
    return s->device->ops->launch(s, run, arg, modelled_ns);
}

int dpl_event_record(dpl_event *e, dpl_stream *s)
{
    const dpl_device_ops *ops = s->device->ops;

    /* Two handles may stand for one device: the loader's events mark points of its caller's streams. */
    return e->device->ops == ops ? ops->event_record(e, s) : DPL_EINVAL;
}

int dpl_stream_wait(dpl_stream *s, dpl_event *e)
{
    const dpl_device_ops *ops = s->device->ops;

    return e->device->ops == ops ? ops->stream_wait(s, e) : DPL_EINVAL;
}

int dpl_event_query(dpl_event *e)
{
    return e->device->ops->event_query(e);
}

int dpl_event_sync(dpl_event *e)
{
    return e->device->ops->event_sync(e);
}

int dpl_stream_sync(dpl_stream *s)
{
    return s->device->ops->stream_sync(s);
}

void *dpl_stream_native(dpl_stream *s)
{
    const dpl_device_ops *ops = s->device->ops;

    return ops->stream_native ? ops->stream_native(s) : s;
}

int dpl_native_record(dpl_event *e, void *native)
{
    const dpl_device_ops *ops = e->device->ops;

    return ops->native_record ? ops->native_record(e, native) : dpl_event_record(e, native);
}

int dpl_native_wait(void *native, dpl_event *e)
{
    const dpl_device_ops *ops = e->device->ops;

    return ops->native_wait ? ops->native_wait(native, e) : dpl_stream_wait(native, e);
}

int dpl_native_sync(dpl_device *d, void *native)
{
    return d->ops->native_sync ? d->ops->native_sync(d, native) : dpl_stream_sync(native);
}

const char *dpl_device_failure(dpl_device *d)
{
    return d->ops->failure ? d->ops->failure(d) : "";
}
