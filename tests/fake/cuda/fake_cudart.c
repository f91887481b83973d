/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: its lock, errors, failures on order, and the test's controls. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* From ThreadSanitizer's run time, where there is one. */
void AnnotateIgnoreSyncBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));
void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));
void __tsan_read_range(void *p, unsigned long bytes) __attribute__((weak));
void __tsan_write_range(void *p, unsigned long bytes) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything of the fakes */
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static cudaError_t broken[FAKE_GPUS_MAX]; /* sticky errors */
static struct {
    int count, at; /* fail when count reaches at; 0 = never */
    cudaError_t e;
    int sticky;
} calls[FAKE_CALLS];
static int alive;

static int started[FAKE_GPUS_MAX]; /* 1 = a call had it as its thread's current one */
static _Thread_local int current;
static _Thread_local cudaError_t last;
_Thread_local int fake_in_host_function;

/* --- the lock, unseen --- */

void fake_lock(void)
{
    if (AnnotateIgnoreSyncBegin) {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
    if (AnnotateIgnoreSyncEnd) {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
}

void fake_wait(void)
{
    pthread_cond_wait(&change, &lock);
}

int fake_wait_until(int64_t end_ns)
{
    const struct timespec end = { .tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000 };

    return pthread_cond_clockwait(&change, &lock, CLOCK_MONOTONIC, &end) == ETIMEDOUT;
}

void fake_wake(void)
{
    pthread_cond_broadcast(&change);
}

int64_t fake_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void fake_pass(long long ns)
{
    const struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    if (ns > 0) nanosleep(&ts, NULL);
}

void fake_release(void *at)
{
    if (__tsan_release) __tsan_release(at);
}

void fake_acquire(void *at)
{
    if (__tsan_acquire) __tsan_acquire(at);
}

void fake_reads(const void *p, size_t bytes)
{
    if (__tsan_read_range) __tsan_read_range((void *)(uintptr_t)p, bytes);
}

void fake_writes(void *p, size_t bytes)
{
    if (__tsan_write_range) __tsan_write_range(p, bytes);
}

void fake_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("fake CUDA: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void fake_fault(fake_faults *f, const char *format, ...)
{
    char text[sizeof f->first];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!f->n++) memcpy(f->first, text, sizeof text);
    fprintf(stderr, "fake CUDA: %s\n", text);
}

/* --- errors --- */

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

void fake_set_current(int gpu)
{
    current = gpu;
}

void fake_break(int gpu, cudaError_t e)
{
    fake_release(&broken[gpu]);
    fake_lock();
    if (broken[gpu] == cudaSuccess) broken[gpu] = e;
    fake_wake();
    fake_unlock();
}

static int is_broken_now(int gpu)
{
    int is;

    fake_lock();
    is = fake_is_broken(gpu);
    fake_unlock();
    return is;
}

void fake_failed_release(int gpu)
{
    if (is_broken_now(gpu)) fake_release(&broken[gpu]);
}

void fake_failed_acquire(int gpu)
{
    if (is_broken_now(gpu)) fake_acquire(&broken[gpu]);
}

cudaError_t fake_begin(int gpu)
{
    cudaError_t e = fake_driver();

    if (e == cudaSuccess && fake_in_host_function) e = cudaErrorNotPermitted;
    if (e == cudaSuccess && gpu >= fake_gpus()) e = cudaErrorNoDevice;
    if (e != cudaSuccess) return e;
    fake_lock();
    started[current] = 1; /* whatever GPU the call is about */
    e = broken[gpu];
    fake_unlock();
    if (e != cudaSuccess) fake_acquire(&broken[gpu]);
    return e;
}

cudaError_t cudaSetDevice(int gpu)
{
    const cudaError_t e = fake_driver();

    if (e != cudaSuccess) return fake_return(e);
    if (gpu < 0 || gpu >= fake_gpus()) return fake_return(cudaErrorInvalidDevice);
    current = gpu;
    return fake_return(fake_begin(gpu));
}

cudaError_t cudaGetDevice(int *gpu)
{
    const cudaError_t e = fake_driver();

    if (e == cudaSuccess) *gpu = current;
    return fake_return(e);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last;

    last = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

/* The ones that tests can meet; the words are the real runtime's. */
static const struct {
    cudaError_t e;
    const char *name, *text;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error" },
    { cudaErrorStubLibrary, "cudaErrorStubLibrary", "CUDA driver is a stub library" },
    { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
      "CUDA driver version is insufficient for CUDA runtime version" },
    { cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
      "CUDA-capable device(s) is/are busy or unavailable" },
    { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
      "uncorrectable ECC error encountered" },
    { cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
    { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
    { cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
      "an illegal memory access was encountered" },
    { cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure" },
    { cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted" },
    { cudaErrorUnknown, "cudaErrorUnknown", "unknown error" },
};

const char *cudaGetErrorString(cudaError_t e)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].e == e) return errors[i].text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t e)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].e == e) return errors[i].name;
    return "unrecognized error code";
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
    memset(started, 0, sizeof started);
    for (int i = 0; i < FAKE_CALLS; i++) calls[i].at = 0;
    fake_order_reset();
    fake_streams_reset();
    fake_wake();
    fake_unlock();
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

static int control_started(int gpu)
{
    int is;

    fake_lock();
    is = started[gpu];
    fake_unlock();
    return is;
}

static int control_last(void)
{
    return (int)last;
}

static void control_lose(int gpu, int e)
{
    fake_break(gpu, (cudaError_t)e);
}

static void control_stream_uses(void *stream, const void *p, size_t bytes, int write,
                                const char *what)
{
    fake_stream_uses(stream, p, bytes, write, what);
}

const fake_cuda *fake_cuda_controls(void);

const fake_cuda *fake_cuda_controls(void)
{
    static const fake_cuda controls = {
        .inject = control_inject,
        .reset = control_reset,
        .copy_time = fake_streams_copy_time,
        .hold = fake_streams_hold,
        .count = control_count,
        .alive = control_alive,
        .last = control_last,
        .started = control_started,
        .kernel_time = fake_streams_kernel_time,
        .stick = fake_streams_stick,
        .lose = control_lose,
        .stream_uses = control_stream_uses,
        .host_uses = fake_host_uses,
        .faults = fake_order_faults,
        .fault = fake_order_fault,
    };

    return &controls;
}
