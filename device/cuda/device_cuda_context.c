/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as the current one of whatever thread calls, for the length of a call. The runtime has only
 * cudaSetDevice(), which cannot take a thread back to having chosen none: putting back GPU 0, which
 * such a thread is said to have, would start GPU 0, and so would calls of it that name no more
 * than a stream or an event. That is some 500 MiB of GPU 0 in each process, and an error where it
 * is in exclusive mode. The driver can push and pop; its functions come by way of the runtime,
 * because the plug-in has to load without a driver. */
#include "device/cuda/device_cuda.h"

#include "dpload.h"

#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t missing; /* success = all of these are there */
static CUresult (*device_get)(CUdevice *out, int ordinal);
static CUresult (*retain)(CUcontext *out, CUdevice gpu);
static CUresult (*push)(CUcontext context);
static CUresult (*pop)(CUcontext *out);

static void find(const char *name, void *function)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *p = NULL;
    cudaError_t e;

    if (missing != cudaSuccess) return;
#if CUDART_VERSION >= 12050
    e = cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &found);
#else
    e = cudaGetDriverEntryPoint(name, &p, cudaEnableDefault, &found);
#endif
    if (e == cudaSuccess && (found != cudaDriverEntryPointSuccess || !p)) {
        e = cudaErrorSymbolNotFound;
    }
    missing = e;
    memcpy(function, &p, sizeof p);
}

static void find_driver(void)
{
    find("cuDeviceGet", &device_get);
    find("cuDevicePrimaryCtxRetain", &retain);
    find("cuCtxPushCurrent", &push);
    find("cuCtxPopCurrent", &pop);
}

/* An error of the driver has the same number in the runtime. */
static cudaError_t error_of(CUresult r)
{
    return (cudaError_t)r;
}

int dpl_cuda_enter(dpl_device *d)
{
    return dpl_cuda_status(d, error_of(push(((dpl_cuda_device *)d)->context)), "cuCtxPushCurrent");
}

void dpl_cuda_leave(void)
{
    CUcontext context;

    pop(&context);
}

int dpl_cuda_start(dpl_cuda_device *d, dpl_text *why)
{
    CUdevice gpu = 0;
    cudaError_t e;

    pthread_once(&once, find_driver);
    e = missing;
    if (e == cudaSuccess) e = error_of(device_get(&gpu, d->ordinal));
    /* Held until the process ends, as the runtime does: it would not know of an end before. */
    if (e == cudaSuccess) e = error_of(retain(&d->context, gpu));
    if (e == cudaSuccess) e = error_of(push(d->context));
    if (e == cudaSuccess) {
        e = cudaFree(NULL); /* the runtime's own part */
        dpl_cuda_leave();
    }
    if (e == cudaSuccess) return DPL_OK;
    dpl_cuda_fail(why, e, "the GPU does not start");
    return DPL_EDEVICE;
}
