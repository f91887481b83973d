/* SPDX-License-Identifier: Apache-2.0 */
/* Where the buffers of a fixed program lie in one block of memory: two may share bytes when they are
 * never needed at the same time. */
#ifndef DPT_TRAINER_BACKEND_ARENA_H
#define DPT_TRAINER_BACKEND_ARENA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPT_ARENA_ALIGN = 4096
}; /* pages, so that buffers do not share cache lines or TLB entries */

typedef struct dpt_arena_buf {
    size_t bytes;
    int first,
        last;      /* steps at which the buffer holds something, both included; first < 0: never */
    size_t offset; /* out, a multiple of DPT_ARENA_ALIGN */
} dpt_arena_buf;

/** Set every offset. *total: bytes of the block. The largest buffers are placed first, each at the
 *  lowest place that is free all the time. @return DPL_OK, DPL_ENOMEM (no memory for the lists, or
 *  sizes overflow) */
int dpt_arena_place(dpt_arena_buf *buf, size_t n, size_t *total);

#ifdef __cplusplus
}
#endif
#endif
