/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shim know of the CUDA threads of the block that runs. */
#ifndef TESTS_FAKE_CUDA_CUDA_SHIM_LANE_H
#define TESTS_FAKE_CUDA_CUDA_SHIM_LANE_H

#include "tests/fake/cuda/cuda_shim_block.h"
#include "tests/fake/cuda/cuda_shim_fibre.h"

enum { SHIM_THREADS = 1024, SHIM_WARP = 32 };

typedef enum shim_state { SHIM_READY, SHIM_AT_BARRIER, SHIM_AT_WARP, SHIM_DONE } shim_state;

typedef struct shim_lane_state {
    shim_fibre fibre;
    shim_state state;
    const char *file; /* where it waits */
    int line;
    /* of its warp operation: what it brings, and what it gets when all of mask are there */
    unsigned mask, from;
    uint64_t value;
    shim_warp_result result;
    unsigned odd;  /* which of its two edges it comes with */
    unsigned odds; /* bit per lane: which one that lane came with */
} shim_lane_state;

shim_lane_state *shim_lane_of(unsigned thread);
unsigned shim_running(void); /* the thread's number in the block */
unsigned shim_threads(void); /* of the block */
/** The running thread waits in that state until somebody makes it ready. */
void shim_wait(shim_state state, const char *file, int line);
/** ThreadSanitizer's objects of that thread in this block, two in turn; NULL in other builds. */
uint64_t *shim_lane_edges(unsigned thread);
/** The program broke a rule of CUDA: one line with the kernel and the block, and abort(). */
void shim_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/** That thread has ended: nobody waits for it any more. */
void shim_warp_left(unsigned thread);

#endif
