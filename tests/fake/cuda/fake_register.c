/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the CUDA runtime that nvcc's code calls by itself: crt/host_runtime.h of the toolkit
 * declares them, and no public header does. Those of toolkit 13; 12 launches by cudaLaunchKernel(). */
#include "tests/fake/cuda/fake_register.h"

#include "tests/fake/cuda/fake_cudart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct twin {
    struct twin *next;
    const void *kernel;
    char *name; /* as nvcc names it; NULL = not looked up yet */
    shim_launch launch;
    void *(*unpack)(void **args);
} twin;

/* A kernel of an object that nvcc made. */
typedef struct entry {
    struct entry *next;
    const void *host; /* what a program launches */
    const char *name;
    const twin *runs;
} entry;

/* Written while libraries are loaded and under fake_lock() after that. */
static twin *twins;
static entry *entries;

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} config;

void **__cudaRegisterFatBinary(void *fat);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *s);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);

/* --- twins --- */

int fake_twin_add(void (*kernel)(void), const shim_launch *launch, void *(*unpack)(void **args))
{
    twin *const t = calloc(1, sizeof *t);

    if (!t) fake_die("no memory for a kernel");
    memcpy(&t->kernel, &kernel, sizeof t->kernel); /* no cast in ISO C */
    t->launch = *launch;
    t->unpack = unpack;
    fake_lock();
    t->next = twins;
    twins = t;
    fake_unlock();
    return 1;
}

/* The C++ compiler marks static functions, nvcc does not: _ZL3fooPf, _Z3fooPf. */
static char *nvcc_name(const void *kernel)
{
    char *const name = fake_symbol_name(kernel);

    if (name && !strncmp(name, "_ZL", 3)) memmove(name + 2, name + 3, strlen(name + 3) + 1);
    return name;
}

/* The lock is held. */
static const twin *find_twin(const char *name)
{
    const twin *found = NULL;

    for (twin *t = twins; t; t = t->next) {
        if (!t->name && !(t->name = nvcc_name(t->kernel))) fake_die("a CPU kernel has no name");
        if (strcmp(t->name, name)) continue;
        if (found) {
            fprintf(stderr, "fake CUDA: two CPU kernels are called %s\n", name);
            abort();
        }
        found = t;
    }
    return found;
}

/* --- registration --- */

void **__cudaRegisterFatBinary(void *fat)
{
    static void *handle;

    (void)fat; /* code for GPUs */
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    entry *const e = calloc(1, sizeof *e);

    (void)handle, (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid;
    (void)warp;
    if (!e) fake_die("no memory for a kernel");
    e->host = host;
    e->name = name;
    fake_lock();
    e->next = entries;
    entries = e;
    fake_unlock();
}

/* --- launches --- */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *s)
{
    config.grid = grid;
    config.block = block;
    config.shared = shared;
    config.stream = s;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = config.grid;
    *block = config.block;
    *shared = config.shared;
    memcpy(stream, &config.stream, sizeof config.stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    entry *e;

    fake_lock();
    for (e = entries; e && e->host != host; e = e->next) {}
    fake_unlock();
    *kernel = (cudaKernel_t)(void *)e;
    return fake_return(e ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream)
{
    entry *const e = (entry *)(void *)kernel;
    shim_launch l;

    if (!e) return fake_return(cudaErrorInvalidDeviceFunction);
    fake_lock();
    if (!e->runs) e->runs = find_twin(e->name);
    fake_unlock();
    if (!e->runs) {
        fprintf(stderr, "fake CUDA: no CPU kernel is called %s\n", e->name);
        abort();
    }
    l = e->runs->launch;
    l.kernel = e->name;
    l.grid = grid;
    l.block = block;
    l.shared = shared;
    if (!(l.args = e->runs->unpack(args))) return fake_return(cudaErrorMemoryAllocation);
    return shim_enqueue(&l, stream);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
    cudaKernel_t kernel;
    const cudaError_t e = __cudaGetKernel(&kernel, host);

    return e == cudaSuccess ? __cudaLaunchKernel(kernel, grid, block, args, shared, stream) : e;
}
