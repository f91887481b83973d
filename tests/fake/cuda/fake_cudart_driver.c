/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of the driver that are asked for by way of the runtime: a thread's stack of
 * contexts. The context of GPU k is the number k + 1. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <cuda.h>
#include <string.h>

enum { DEEPEST = 16 };

static _Thread_local int below[DEEPEST], depth; /* what was current before each push */

static CUresult device_get(CUdevice *out, int ordinal)
{
    if (ordinal < 0 || ordinal >= fake_gpus()) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext context)
{
    const int gpu = (int)(uintptr_t)context - 1;

    if (gpu < 0 || gpu >= FAKE_GPUS_MAX) return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == DEEPEST) fake_die("more than %d contexts are pushed", DEEPEST);
    below[depth++] = fake_current();
    fake_set_current(gpu);
    return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *out)
{
    if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
    *out = (CUcontext)(uintptr_t)(fake_current() + 1);
    fake_set_current(below[--depth]);
    return CUDA_SUCCESS;
}

static CUresult primary_retain(CUcontext *out, CUdevice gpu)
{
    CUresult r;

    ctx_push((CUcontext)(uintptr_t)(gpu + 1));
    r = (CUresult)fake_begin(gpu);
    return ctx_pop(out) ? CUDA_ERROR_UNKNOWN : r;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    CUresult (*const get)(CUdevice *, int) = device_get;
    CUresult (*const retain)(CUcontext *, CUdevice) = primary_retain;
    CUresult (*const push)(CUcontext) = ctx_push, (*const pop)(CUcontext *) = ctx_pop;
    const struct {
        const char *name;
        const void *function;
    } list[] = { { "cuDeviceGet", &get },
                 { "cuDevicePrimaryCtxRetain", &retain },
                 { "cuCtxPushCurrent", &push },
                 { "cuCtxPopCurrent", &pop } };
    const cudaError_t e = fake_driver();

    (void)version, (void)flags;
    *out = NULL;
    *found = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof list / sizeof *list && e == cudaSuccess; i++) {
        if (strcmp(symbol, list[i].name) != 0) continue;
        memcpy(out, list[i].function, sizeof *out);
        *found = cudaDriverEntryPointSuccess;
    }
    return fake_return(e);
}
