/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: what programs queue on streams. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <stdlib.h>
#include <string.h>

/* @return 1 when the call is to end now, with *e; else op.breaks is set */
static int injected(fake_cuda_call call, fake_op *op, cudaError_t *e)
{
    int sticky;

    *e = fake_injected(call, &sticky);
    if (sticky) op->breaks = *e;
    return *e != cudaSuccess && !sticky;
}

static int may_copy(enum cudaMemcpyKind kind, fake_where to, fake_where from)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return to == FAKE_DEVICE && from <= FAKE_PINNED;
    case cudaMemcpyDeviceToHost: return from == FAKE_DEVICE && to <= FAKE_PINNED;
    case cudaMemcpyDeviceToDevice: return from == FAKE_DEVICE && to == FAKE_DEVICE;
    case cudaMemcpyHostToHost: return from <= FAKE_PINNED && to <= FAKE_PINNED;
    case cudaMemcpyDefault: return from != FAKE_OUTSIDE && to != FAKE_OUTSIDE;
    }
    return 0;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const fake_where to = fake_find(dst, bytes), from = fake_find(src, bytes);
    fake_op op = { .kind = OP_COPY, .what = "copy", .dst = dst, .src = src, .bytes = bytes };
    cudaError_t e = fake_begin_on(s);

    if (e != cudaSuccess || injected(FAKE_COPY, &op, &e)) return fake_return(e);
    if (!may_copy(kind, to, from)) return fake_return(cudaErrorInvalidValue);
    op.inside = to == FAKE_DEVICE && from == FAKE_DEVICE;
    if (to == FAKE_DEVICE && from <= FAKE_PINNED) op.what = "copy to device";
    if (from == FAKE_DEVICE && to <= FAKE_PINNED) op.what = "copy to host";
    if (from == FAKE_PAGEABLE) { /* read at the call: the source is free again */
        if (!(op.staged = malloc(bytes ? bytes : 1))) fake_die("no memory for a pageable copy");
        memcpy(op.staged, src, bytes);
    }
    fake_push(s, op);
    return to == FAKE_PAGEABLE ? cudaStreamSynchronize(s) : cudaSuccess; /* wholly done */
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s)
{
    fake_op op = { .kind = OP_SET, .what = "memset", .dst = dst, .value = value, .bytes = bytes };
    cudaError_t e = fake_begin_on(s);

    if (e != cudaSuccess || injected(FAKE_SET, &op, &e)) return fake_return(e);
    if (fake_find(dst, bytes) != FAKE_DEVICE) return fake_return(cudaErrorInvalidValue);
    return fake_push(s, op);
}

cudaError_t fake_kernel(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg)
{
    fake_op op = { .kind = OP_KERNEL, .what = "kernel", .run = run, .drop = drop, .arg = arg };
    cudaError_t e = fake_begin_on(s);

    if (e == cudaSuccess && !injected(FAKE_LAUNCH, &op, &e)) return fake_push(s, op);
    if (drop) drop(arg);
    return fake_return(e);
}

cudaError_t fake_work(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg,
                      const char *what)
{
    const cudaError_t e = fake_begin_on(s);

    if (e == cudaSuccess)
        return fake_push(
            s, (fake_op){ .kind = OP_WORK, .what = what, .run = run, .drop = drop, .arg = arg });
    if (drop) drop(arg);
    return fake_return(e);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
    fake_op op = { .kind = OP_HOST, .what = "host function", .run = fn, .arg = arg };
    cudaError_t e = fake_begin_on(s);

    if (e != cudaSuccess || injected(FAKE_LAUNCH, &op, &e)) return fake_return(e);
    return fake_push(s, op);
}
