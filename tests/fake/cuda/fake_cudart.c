/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: GPUs, errors, failures on order, and memory. */
#include "tests/fake/cuda/fake_cudart.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From ThreadSanitizer's run time, where there is one. */
void AnnotateIgnoreSyncBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char *file, int line) __attribute__((weak));
void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));

typedef struct fake_block {
    struct fake_block *next;
    char *p;
    size_t bytes;
    fake_where where;
} fake_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below, and streams */
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static fake_block *blocks;
static cudaError_t broken[FAKE_GPUS_MAX]; /* sticky errors */
static struct {
    int count, at; /* fail when count reaches at; 0 = never */
    cudaError_t e;
    int sticky;
} calls[FAKE_CALLS];
static int alive;

static _Thread_local int current;
static _Thread_local cudaError_t last;
_Thread_local int fake_in_host_function;

/* --- the lock, unseen --- */

void fake_lock(void)
{
    if (AnnotateIgnoreSyncBegin) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
    if (AnnotateIgnoreSyncEnd) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

void fake_wait(void)
{
    pthread_cond_wait(&change, &lock);
}

void fake_wake(void)
{
    pthread_cond_broadcast(&change);
}

void fake_release(void *at)
{
    if (__tsan_release) __tsan_release(at);
}

void fake_acquire(void *at)
{
    if (__tsan_acquire) __tsan_acquire(at);
}

void fake_die(const char *what)
{
    fprintf(stderr, "fake CUDA: %s\n", what);
    abort();
}

/* --- GPUs and errors --- */

cudaError_t fake_return(cudaError_t e)
{
    if (e != cudaSuccess) last = e;
    return e;
}

int fake_is_broken(int gpu)
{
    return broken[gpu] != cudaSuccess;
}

int fake_current(void)
{
    return current;
}

void fake_break(int gpu, cudaError_t e)
{
    fake_release(&broken[gpu]); /* it does nothing any more: who sees the error sees all it did */
    fake_lock();
    if (broken[gpu] == cudaSuccess) broken[gpu] = e;
    fake_unlock();
}

static cudaError_t no_driver(void)
{
    const char *driver = getenv("FAKE_CUDA_DRIVER");

    if (!driver || !*driver) return cudaSuccess;
    return strcmp(driver, "stub") ? cudaErrorInsufficientDriver : cudaErrorStubLibrary;
}

static int gpus(void)
{
    const char *n = getenv("FAKE_CUDA_DEVICES");
    const int count = n && *n ? atoi(n) : 1;

    return count > FAKE_GPUS_MAX ? FAKE_GPUS_MAX : count;
}

cudaError_t fake_begin(int gpu)
{
    cudaError_t e = no_driver();

    if (e == cudaSuccess && fake_in_host_function) e = cudaErrorNotPermitted;
    if (e == cudaSuccess && gpu >= gpus()) e = cudaErrorNoDevice;
    if (e != cudaSuccess) return e;
    fake_lock();
    e = broken[gpu];
    fake_unlock();
    if (e != cudaSuccess) fake_acquire(&broken[gpu]);
    return e;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t e = no_driver();

    if (e != cudaSuccess) return fake_return(e); /* as the real one: *count stays as it was */
    *count = gpus();
    return fake_return(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int gpu)
{
    const cudaError_t e = no_driver();

    if (e != cudaSuccess) return fake_return(e);
    if (gpu < 0 || gpu >= gpus()) return fake_return(cudaErrorInvalidDevice);
    current = gpu;
    return fake_return(fake_begin(gpu));
}

cudaError_t cudaGetDevice(int *gpu)
{
    const cudaError_t e = no_driver();

    if (e == cudaSuccess) *gpu = current;
    return fake_return(e);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last;

    last = cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorStubLibrary: return "CUDA driver is a stub library";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "fake error";
    }
}

/* --- failures on order --- */

cudaError_t fake_injected(fake_cuda_call call, int *sticky)
{
    cudaError_t e = cudaSuccess;

    *sticky = 0;
    fake_lock();
    if (++calls[call].count == calls[call].at) {
        e = calls[call].e;
        *sticky = calls[call].sticky;
    }
    fake_unlock();
    return e;
}

void fake_count_alive(int by)
{
    fake_lock();
    alive += by;
    fake_unlock();
}

static void control_inject(fake_cuda_call call, int k, int e, int sticky)
{
    fake_lock();
    calls[call].at = calls[call].count + k;
    calls[call].e = (cudaError_t)e;
    calls[call].sticky = sticky;
    fake_unlock();
}

static void control_reset(void)
{
    fake_lock();
    memset(broken, 0, sizeof broken);
    for (int i = 0; i < FAKE_CALLS; i++) calls[i].at = 0;
    fake_unlock();
    fake_streams_hold(0);
    last = cudaSuccess;
}

static int control_count(fake_cuda_call call)
{
    int n;

    fake_lock();
    n = calls[call].count;
    fake_unlock();
    return n;
}

static int control_alive(void)
{
    int n;

    fake_lock();
    n = alive;
    fake_unlock();
    return n;
}

static int control_last(void)
{
    return (int)last;
}

__attribute__((visibility("default"))) const fake_cuda *fake_cuda_controls(void);

const fake_cuda *fake_cuda_controls(void)
{
    static const fake_cuda controls = {
        control_inject, control_reset, fake_streams_copy_time, fake_streams_hold,
        control_count,  control_alive, control_last,
    };

    return &controls;
}

/* --- memory --- */

/* Fresh memory is 0xA5, given back it becomes 0xDD: who reads too early or too late sees that. */
static cudaError_t memory_get(void **p, size_t bytes, fake_where where, fake_cuda_call call)
{
    fake_block *b;
    int sticky;
    cudaError_t e = fake_begin(current);

    if (e == cudaSuccess) e = fake_injected(call, &sticky);
    if (e != cudaSuccess) return fake_return(e);
    if (!(b = calloc(1, sizeof *b)) || posix_memalign((void **)&b->p, 256, bytes ? bytes : 1)) {
        free(b);
        return fake_return(cudaErrorMemoryAllocation);
    }
    memset(b->p, 0xA5, bytes);
    b->bytes = bytes;
    b->where = where;
    *p = b->p;
    fake_lock();
    b->next = blocks;
    blocks = b;
    alive++;
    fake_unlock();
    return cudaSuccess;
}

static cudaError_t memory_put(void *p, fake_where where)
{
    cudaError_t e = fake_begin(current);
    fake_block *b = NULL;

    if (!p) return fake_return(e);
    fake_lock();
    for (fake_block **at = &blocks; *at; at = &(*at)->next) {
        if ((*at)->p != p || (*at)->where != where) continue;
        b = *at;
        *at = b->next;
        alive--;
        break;
    }
    if (b && fake_is_in_use(b->p, b->bytes)) fake_die("memory is freed that queued work uses");
    fake_unlock();
    if (!b) return fake_return(cudaErrorInvalidValue);
    memset(b->p, 0xDD, b->bytes);
    free(b->p);
    free(b);
    return fake_return(e);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    if (flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped)) {
        return fake_return(cudaErrorInvalidValue);
    }
    return memory_get(p, bytes, FAKE_PINNED, FAKE_HOST_ALLOC);
}

cudaError_t cudaFreeHost(void *p)
{
    return memory_put(p, FAKE_PINNED);
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    return memory_get(p, bytes, FAKE_DEVICE, FAKE_ALLOC);
}

cudaError_t cudaFree(void *p)
{
    return memory_put(p, FAKE_DEVICE);
}

fake_where fake_find(const void *p, size_t bytes)
{
    const char *at = p;
    fake_where where = FAKE_PAGEABLE;

    fake_lock();
    for (const fake_block *b = blocks; b; b = b->next) {
        if (at < b->p || at >= b->p + b->bytes) continue;
        where = bytes <= b->bytes - (size_t)(at - b->p) ? b->where : FAKE_OUTSIDE;
        break;
    }
    fake_unlock();
    return where;
}
