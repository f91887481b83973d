/* SPDX-License-Identifier: Apache-2.0 */
/* Placing buffers in one block; see backend_arena.h. */
#include "trainer/backend_arena.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int larger_first(const void *a, const void *b)
{
    const dpt_arena_buf *const x = *(dpt_arena_buf *const *)a, *const y =
                                                                   *(dpt_arena_buf *const *)b;

    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* a fixed order, whatever qsort does with equals */
}

static int meet_in_time(const dpt_arena_buf *a, const dpt_arena_buf *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset free for b; placed[] is sorted by offset. */
static size_t lowest_free(dpt_arena_buf *const *placed, size_t n, const dpt_arena_buf *b)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const dpt_arena_buf *p = placed[i];

        if (!meet_in_time(p, b)) continue;
        if (p->offset >= at && p->offset - at >= b->bytes) break;
        if (p->offset + p->bytes > at) at = p->offset + p->bytes;
        at = (at + DPT_ARENA_ALIGN - 1) / DPT_ARENA_ALIGN * DPT_ARENA_ALIGN;
    }
    return at;
}

static void insert(dpt_arena_buf **placed, size_t n, dpt_arena_buf *b)
{
    size_t i = n;

    while (i > 0 && placed[i - 1]->offset > b->offset) i--;
    memmove(placed + i + 1, placed + i, (n - i) * sizeof *placed);
    placed[i] = b;
}

int dpt_arena_place(dpt_arena_buf *buf, size_t n, size_t *total)
{
    int err = DPL_ENOMEM;
    size_t used = 0, sum = 0, lists;
    dpt_arena_buf **order = NULL, **placed = NULL;

    *total = 0;
    if (dpl_mul(n, sizeof *order, &lists)) goto done;
    if (!(order = dpl_calloc(n, sizeof *order)) || !(placed = dpl_calloc(n, sizeof *placed))) {
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = &buf[i];
        buf[i].offset = 0;
        if (buf[i].bytes > SIZE_MAX - sum - DPT_ARENA_ALIGN) goto done; /* no later sum overflows */
        sum += buf[i].bytes + DPT_ARENA_ALIGN;
    }
    qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; i < n; i++) {
        dpt_arena_buf *b = order[i];

        if (b->first < 0 || b->bytes == 0) continue;
        b->offset = lowest_free(placed, used, b);
        insert(placed, used++, b);
        if (b->offset + b->bytes > *total) *total = b->offset + b->bytes;
    }
    err = DPL_OK;
done:
    free(order);
    free(placed);
    return err;
}
