/* SPDX-License-Identifier: Apache-2.0 */
/* Running the blocks of a kernel on the thread of a fake stream: what cuda_shim.hpp makes of a .cu file
 * calls this. Each CUDA thread is a fibre; blocks run one after another, kernels of different streams
 * too, but ThreadSanitizer is told of CUDA's order only, so that it sees races between threads that
 * no barrier orders, between blocks, and between kernels whose streams do not wait for each other.
 *
 * Environment, read at each launch: FAKE_CUDA_ORDER=N, another order of blocks and threads for every N
 * (default 0: ascending; odd numbers go backwards). */
#ifndef TESTS_FAKE_CUDA_CUDA_SHIM_BLOCK_H
#define TESTS_FAKE_CUDA_CUDA_SHIM_BLOCK_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shim_place {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
} shim_place;

/* Of the CUDA thread that runs. */
extern shim_place shim_here;

typedef struct shim_launch {
    const char *kernel; /* its name, for messages */
    dim3 grid, block;
    size_t shared;                    /* bytes of dynamic shared memory */
    char *shared_begin, *shared_end;  /* static shared memory of all kernels of the module */
    void (*thread)(const void *args); /* one CUDA thread */
    void (*drop)(void *args);
    void *args;
} shim_launch;

/** Check as CUDA does, and queue on s. args are dropped in the end, whatever happens.
 *  @return a cudaError_t, which is the thread's last error too */
cudaError_t shim_enqueue(const shim_launch *l, cudaStream_t s);

/* --- for CUDA threads; file and line say where, in messages --- */

void shim_barrier(const char *file, int line);
char *shim_dynamic_shared(void);
/* What a warp operation gives to one lane: the value of lane `from`, and a bit for each lane that came
 * with a value other than 0. Waits for the lanes in mask. */
typedef struct shim_warp_result {
    uint64_t value;
    unsigned ballot;
} shim_warp_result;
shim_warp_result shim_warp(unsigned mask, uint64_t value, unsigned from, const char *file,
                           int line);
void shim_warp_barrier(unsigned mask, const char *file, int line);
unsigned shim_lane(void); /* 0..31 in its warp */

#ifdef __cplusplus
}
#endif
#endif
