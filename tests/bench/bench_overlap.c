/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the copies to a GPU is hidden behind its work? A loader feeds a stream that is not its own; the
 * stream's time between the end of a step and the start of the next, by CUDA's events, is what a copy
 * (or a loader that is too slow) cost. Prints lines "NAME VALUE"; times are in milliseconds.
 *   bench_overlap DIR GPU BATCH STEPS MEMSET_MB
 * Memsets of that size stand for a step; 0: a host function that sleeps, because the fake runtime gives
 * memsets no time. */
#include "dpload.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COPIES = 20, SIDE = 224, WARM = 8 };

typedef struct bench {
    const char *dir;
    int gpu, batch, steps;
    size_t work_bytes;
    char spec[32];
    cudaStream_t stream;
    void *work;
    int repeat; /* memsets, or milliseconds, of a step */
} bench;

static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "bench_overlap: %s: %s (CUDA error %d)\n", what, cudaGetErrorString(e), (int)e);
    exit(4);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static cudaEvent_t new_event(void)
{
    cudaEvent_t e;

    check(cudaEventCreateWithFlags(&e, cudaEventDefault), "cudaEventCreateWithFlags");
    return e;
}

static double between(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;

    check(cudaEventSynchronize(to), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    return (double)ms;
}

static void sleep_ms(void *arg)
{
    const int ms = *(const int *)arg;
    const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
}

static void queue_step(bench *b)
{
    if (!b->work_bytes)
        check(cudaLaunchHostFunc(b->stream, sleep_ms, &b->repeat), "cudaLaunchHostFunc");
    for (int i = 0; i < b->repeat && b->work_bytes; i++)
        check(cudaMemsetAsync(b->work, i, b->work_bytes, b->stream), "cudaMemsetAsync");
}

/* The copy of one batch alone, pinned memory to the GPU. */
static double time_copy(const bench *b, size_t bytes)
{
    cudaEvent_t from = new_event(), to = new_event();
    void *host, *device;
    double ms;

    check(cudaHostAlloc(&host, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    check(cudaMalloc(&device, bytes), "cudaMalloc");
    memset(host, 7, bytes);
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, b->stream), "copy");
    check(cudaEventRecord(from, b->stream), "cudaEventRecord");
    for (int i = 0; i < COPIES; i++)
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, b->stream), "copy");
    check(cudaEventRecord(to, b->stream), "cudaEventRecord");
    ms = between(from, to) / COPIES;
    check(cudaFree(device), "cudaFree");
    check(cudaFreeHost(host), "cudaFreeHost");
    check(cudaEventDestroy(from), "cudaEventDestroy");
    check(cudaEventDestroy(to), "cudaEventDestroy");
    return ms;
}

static double time_step(bench *b)
{
    cudaEvent_t from = new_event(), to = new_event();
    double ms;

    queue_step(b);
    check(cudaEventRecord(from, b->stream), "cudaEventRecord");
    queue_step(b);
    check(cudaEventRecord(to, b->stream), "cudaEventRecord");
    ms = between(from, to);
    check(cudaEventDestroy(from), "cudaEventDestroy");
    check(cudaEventDestroy(to), "cudaEventDestroy");
    return ms;
}

static dpl_loader *open_loader(const bench *b)
{
    dpl_options o;
    dpl_loader *l;

    dpl_options_init(&o, sizeof o);
    o.path = b->dir;
    o.devices = b->spec;
    o.batch = b->batch;
    o.width = o.height = SIDE;
    o.drop_last = 1;
    if (dpl_open(&l, &o)) {
        fprintf(stderr, "bench_overlap: %s\n", dpl_error_text(NULL));
        exit(3);
    }
    return l;
}

static void next(dpl_loader *l, dpl_batch *batch, void *const *streams)
{
    int err;

    do {
        err = dpl_next_on(l, batch, streams, 60000);
    } while (err == DPL_EOF);
    if (!err) return;
    fprintf(stderr, "bench_overlap: %s\n", dpl_error_text(l));
    exit(3);
}

/* What the loader takes for a batch when nobody holds it up. */
static double time_loader(const bench *b)
{
    dpl_loader *l = open_loader(b);
    dpl_batch batch;
    double since = 0;

    for (int k = 0; k < 2 * WARM; k++) {
        if (k == WARM) since = now_ms();
        next(l, &batch, NULL);
        dpl_release(l, &batch, NULL);
    }
    since = (now_ms() - since) / WARM;
    dpl_close(&l);
    return since;
}

/* @return the mean time that the stream stood between two steps */
static double time_stall(bench *b)
{
    void *const streams[1] = { b->stream };
    cudaEvent_t *ended = calloc((size_t)b->steps, sizeof *ended);
    cudaEvent_t *began = calloc((size_t)b->steps, sizeof *began);
    dpl_loader *l = open_loader(b);
    double sum = 0;

    if (!ended || !began) exit(1);
    for (int k = -WARM; k < b->steps; k++) {
        dpl_batch batch;

        if (k >= 0) check(cudaEventRecord(ended[k] = new_event(), b->stream), "cudaEventRecord");
        next(l, &batch, streams);
        if (k >= 0) check(cudaEventRecord(began[k] = new_event(), b->stream), "cudaEventRecord");
        queue_step(b);
        dpl_release(l, &batch, streams);
    }
    check(cudaStreamSynchronize(b->stream), "cudaStreamSynchronize");
    for (int k = 0; k < b->steps; k++) {
        sum += between(ended[k], began[k]);
        check(cudaEventDestroy(ended[k]), "cudaEventDestroy");
        check(cudaEventDestroy(began[k]), "cudaEventDestroy");
    }
    free(ended);
    free(began);
    dpl_close(&l);
    return sum / b->steps;
}

int main(int argc, char **argv)
{
    bench b = { .repeat = 1 };
    double copy, loader, step, stall;

    if (argc != 6) {
        fputs("usage: bench_overlap DIR GPU BATCH STEPS MEMSET_MB\n", stderr);
        return 2;
    }
    b.dir = argv[1];
    b.gpu = atoi(argv[2]);
    b.batch = atoi(argv[3]);
    b.steps = atoi(argv[4]);
    b.work_bytes = (size_t)atoi(argv[5]) << 20;
    snprintf(b.spec, sizeof b.spec, "cuda:%d", b.gpu);
    check(cudaSetDevice(b.gpu), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    if (b.work_bytes) check(cudaMalloc(&b.work, b.work_bytes), "cudaMalloc");
    copy = time_copy(&b, (size_t)b.batch * SIDE * SIDE * 3);
    loader = time_loader(&b);
    step = time_step(&b); /* long enough that the loader and a copy can hide behind it */
    b.repeat = (int)(2 * (loader > copy ? loader : copy) / (step > 1e-3 ? step : 1e-3)) + 1;
    step = time_step(&b);
    stall = time_stall(&b);
    printf("batch_mb %.1f\ncopy_ms %.3f\nloader_ms %.3f\nstep_ms %.3f\nstall_ms %.4f\n"
           "hidden_percent %.1f\n",
           (double)b.batch * SIDE * SIDE * 3 / 1e6, copy, loader, step, stall,
           100 * (1 - stall / copy));
    check(cudaFree(b.work), "cudaFree");
    check(cudaStreamDestroy(b.stream), "cudaStreamDestroy");
    return 0;
}
