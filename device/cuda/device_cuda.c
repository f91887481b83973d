/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs: opening one, its memory, and what its errors become. This and its neighbours make
 * libdpload_cuda.so; nothing else in the tree calls CUDA. The driver is reached by the runtime
 * alone, so that a machine without one gets an answer instead of a program that does not start. */
#include "device/cuda/device_cuda.h"

#include "base/alloc.h"
#include "device/device_plugin.h"
#include "dpload.h"

#include <stdlib.h>

/* --- errors --- */

int dpl_cuda_status(dpl_device *d, cudaError_t e, const char *call)
{
    dpl_cuda_device *cuda = (dpl_cuda_device *)d;

    if (e == cudaSuccess) return DPL_OK;
    cudaGetLastError();
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->failure.s[0])
        dpl_fail(&cuda->failure, DPL_EDEVICE, "%s: %s (CUDA error %d)", call, cudaGetErrorString(e),
                 (int)e);
    pthread_mutex_unlock(&cuda->lock);
    return DPL_EDEVICE;
}

const char *dpl_cuda_failure(dpl_device *d)
{
    dpl_cuda_device *cuda = (dpl_cuda_device *)d;

    pthread_mutex_lock(&cuda->lock); /* whoever is writing it is done after this */
    pthread_mutex_unlock(&cuda->lock);
    return cuda->failure.s;
}

int dpl_cuda_fail(dpl_text *why, cudaError_t e, const char *call)
{
    cudaGetLastError();
    return dpl_fail(why, DPL_EDEVICE, "%s: %s (CUDA error %d)", call, cudaGetErrorString(e),
                    (int)e);
}

/* --- opening --- */

/* Is this one of the answers of a machine that CUDA cannot be used on at all? */
static int is_no_gpu(cudaError_t e)
{
    return e == cudaErrorInsufficientDriver || e == cudaErrorStubLibrary ||
           e == cudaErrorNoDevice || e == cudaErrorInitializationError;
}

int dpl_cuda_count(int *n, dpl_text *why)
{
    cudaError_t e;

    *n = 0; /* without a driver the call leaves it as it was */
    e = cudaGetDeviceCount(n);
    if (e == cudaSuccess && *n > 0) return DPL_OK;
    *n = 0;
    cudaGetLastError();
    if (e == cudaSuccess || e == cudaErrorNoDevice)
        return dpl_fail(why, DPL_EDEVICE,
                        "no NVIDIA GPU is visible (CUDA error %d: %s); look at nvidia-smi and "
                        "CUDA_VISIBLE_DEVICES, or use another device (cpu)",
                        (int)e, cudaGetErrorString(e));
    return dpl_fail(why, DPL_EDEVICE,
                    is_no_gpu(e) ? "no usable NVIDIA driver (CUDA error %d: %s; the driver must "
                                   "know CUDA %d.%d or newer); install one, or use another device "
                                   "(cpu)"
                                 : "the GPUs cannot be listed (CUDA error %d: %s; built for CUDA "
                                   "%d.%d); look at nvidia-smi, or use another device (cpu)",
                    (int)e, cudaGetErrorString(e), CUDART_VERSION / 1000,
                    CUDART_VERSION % 1000 / 10);
}

static int parse_ordinal(const char *args, int *ordinal, dpl_text *why)
{
    int n = 0;

    if (!args || !*args)
        return dpl_fail(why, DPL_EINVAL, "the number of the GPU is missing, as in cuda:0");
    for (const char *s = args; *s; s++) {
        if (*s < '0' || *s > '9' || n > 99999)
            return dpl_fail(why, DPL_EINVAL, "\"%s\" is no number of a GPU, as in cuda:0", args);
        n = 10 * n + (*s - '0');
    }
    *ordinal = n;
    return DPL_OK;
}

static void cuda_close(dpl_device *d)
{
    pthread_mutex_destroy(&((dpl_cuda_device *)d)->lock);
    free(d);
}

static int cuda_open(dpl_device **out, const char *args, dpl_text *why)
{
    dpl_cuda_device *d;
    int n, err, ordinal = 0;

    if ((err = parse_ordinal(args, &ordinal, why)) || (err = dpl_cuda_count(&n, why))) return err;
    if (ordinal >= n)
        return n == 1 ? dpl_fail(why, DPL_EDEVICE, "no such GPU (visible: 0)")
                      : dpl_fail(why, DPL_EDEVICE, "no such GPU (visible: 0-%d)", n - 1);
    if (!(d = dpl_calloc(1, sizeof *d))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    pthread_mutex_init(&d->lock, NULL);
    d->ordinal = ordinal;
    /* now, so that a GPU that is busy or broken is named here and not at a first copy */
    if ((err = dpl_cuda_start(d, why))) {
        cuda_close(&d->base);
        return err;
    }
    *out = &d->base;
    return DPL_OK;
}

/* --- memory --- */

/* Out of memory is an answer, not a failure of the device. */
static int got_memory(dpl_device *d, cudaError_t e, const char *call)
{
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return 0;
    }
    return !dpl_cuda_status(d, e, call);
}

static void *cuda_host_alloc(dpl_device *d, size_t bytes)
{
    void *p = NULL;

    if (dpl_cuda_enter(d)) return NULL;
    /* portable: pinned for every GPU of the process */
    if (!got_memory(d, cudaHostAlloc(&p, bytes, cudaHostAllocPortable), "cudaHostAlloc")) p = NULL;
    dpl_cuda_leave();
    return p;
}

static void cuda_host_free(dpl_device *d, void *p)
{
    if (dpl_cuda_enter(d)) return;
    dpl_cuda_status(d, cudaFreeHost(p), "cudaFreeHost");
    dpl_cuda_leave();
}

static void *cuda_alloc(dpl_device *d, size_t bytes)
{
    void *p = NULL;

    if (dpl_cuda_enter(d)) return NULL;
    if (!got_memory(d, cudaMalloc(&p, bytes), "cudaMalloc")) p = NULL;
    dpl_cuda_leave();
    return p;
}

static void cuda_free(dpl_device *d, void *p)
{
    if (dpl_cuda_enter(d)) return;
    dpl_cuda_status(d, cudaFree(p), "cudaFree");
    dpl_cuda_leave();
}

/* --- the entry --- */

static const dpl_device_ops cuda_ops = {
    .word = "cuda",
    .kind = DPL_DEVICE_CUDA,
    .has_memory = 1,
    .open = cuda_open,
    .close = cuda_close,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .stream_create = dpl_cuda_stream_create,
    .stream_destroy = dpl_cuda_stream_destroy,
    .stream_native = dpl_cuda_stream_native,
    .event_create = dpl_cuda_event_create,
    .event_destroy = dpl_cuda_event_destroy,
    .copy = dpl_cuda_copy,
    .launch = dpl_cuda_launch,
    .event_record = dpl_cuda_event_record,
    .stream_wait = dpl_cuda_stream_wait,
    .event_query = dpl_cuda_event_query,
    .event_sync = dpl_cuda_event_sync,
    .stream_sync = dpl_cuda_stream_sync,
    .native_record = dpl_cuda_native_record,
    .native_wait = dpl_cuda_native_wait,
    .native_sync = dpl_cuda_native_sync,
    .failure = dpl_cuda_failure,
    .gpus = dpl_cuda_gpus,
#if DPL_CUDA_HAS_TRACE
    .trace = &dpl_cuda_trace,
#endif
};

__attribute__((visibility("default"))) const dpl_device_plugin *dpl_cuda_plugin(void);

const dpl_device_plugin *dpl_cuda_plugin(void)
{
    static const dpl_device_plugin plugin = { DPL_VERSION, sizeof cuda_ops, &cuda_ops };

    return &plugin;
}
