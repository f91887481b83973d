/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: memory. Fresh memory is 0xA5, given back it becomes 0xDD: who reads too
 * early or too late sees that. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <stdlib.h>
#include <string.h>

static fake_block *blocks;         /* guarded by the lock */
static size_t used[FAKE_GPUS_MAX]; /* bytes of device memory */

/* Take bytes from a GPU's memory, as far as it reaches. */
static int reserve(int gpu, size_t bytes)
{
    fake_gpu g;
    int fits;

    if (!fake_gpu_get(gpu, &g)) return 0;
    fake_lock();
    fits = bytes <= g.bytes - used[gpu];
    if (fits) used[gpu] += bytes;
    fake_unlock();
    return fits;
}

static void give_back(int gpu, size_t bytes)
{
    fake_lock();
    used[gpu] -= bytes;
    fake_unlock();
}

static cudaError_t memory_get(void **p, size_t bytes, fake_where where, fake_cuda_call call)
{
    const int gpu = fake_current(), on_gpu = where == FAKE_DEVICE;
    fake_block *b;
    int sticky;
    cudaError_t e = fake_begin(gpu);

    if (e == cudaSuccess) e = fake_injected(call, &sticky);
    if (e == cudaSuccess && on_gpu && !reserve(gpu, bytes)) e = cudaErrorMemoryAllocation;
    if (e != cudaSuccess) return fake_return(e);
    if (!(b = calloc(1, sizeof *b)) || posix_memalign((void **)&b->p, 256, bytes ? bytes : 1)) {
        free(b);
        if (on_gpu) give_back(gpu, bytes);
        return fake_return(cudaErrorMemoryAllocation);
    }
    memset(b->p, 0xA5, bytes);
    b->bytes = bytes;
    b->where = where;
    b->gpu = gpu;
    *p = b->p;
    fake_lock();
    b->next = blocks;
    blocks = b;
    fake_unlock();
    fake_count_alive(1);
    return cudaSuccess;
}

static cudaError_t memory_put(void *p, fake_where where)
{
    cudaError_t e = fake_begin(fake_current());
    fake_block *b = NULL;

    if (!p) return fake_return(e);
    fake_lock();
    for (fake_block **at = &blocks; *at; at = &(*at)->next) {
        if ((*at)->p != p || (*at)->where != where) continue;
        b = *at;
        *at = b->next;
        fake_accesses_end(b);
        break;
    }
    if (b && fake_is_in_use(b->p, b->bytes)) fake_die("memory is freed that queued work uses");
    fake_unlock();
    if (!b) return fake_return(cudaErrorInvalidValue);
    if (where == FAKE_DEVICE) give_back(b->gpu, b->bytes);
    fake_count_alive(-1);
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

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    fake_gpu g;
    cudaError_t e = fake_begin(fake_current());

    if (e == cudaSuccess && !fake_gpu_get(fake_current(), &g)) e = cudaErrorInvalidDevice;
    if (e != cudaSuccess) return fake_return(e);
    fake_lock();
    *unused = g.bytes - used[fake_current()];
    fake_unlock();
    *total = g.bytes;
    return cudaSuccess;
}

fake_block *fake_block_of(const void *p)
{
    const char *at = p;

    for (fake_block *b = blocks; b; b = b->next)
        if (at >= b->p && at < b->p + b->bytes) return b;
    return NULL;
}

fake_where fake_find(const void *p, size_t bytes)
{
    fake_where where = FAKE_PAGEABLE;
    const fake_block *b;

    fake_lock();
    if ((b = fake_block_of(p)))
        where = bytes <= b->bytes - (size_t)((const char *)p - b->p) ? b->where : FAKE_OUTSIDE;
    fake_unlock();
    return where;
}

int fake_is_device_memory(const void *p, size_t bytes)
{
    return fake_find(p, bytes) == FAKE_DEVICE;
}
