/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of time for a profiler: what a thread is at, and of which batch. A thread's ranges nest. Where
 * they are shown is a device's matter, and without one that shows them there is no trace: NULL. */
#ifndef DPL_BASE_TRACE_H
#define DPL_BASE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Constant; any thread. */
typedef struct dpl_trace {
    void (*push)(const char *name, uint64_t number); /* name is used during the call */
    void (*pop)(void);
} dpl_trace;

static inline void dpl_trace_push(const dpl_trace *t, const char *name, uint64_t number)
{
    if (t) t->push(name, number);
}

static inline void dpl_trace_pop(const dpl_trace *t)
{
    if (t) t->pop();
}

#ifdef __cplusplus
}
#endif
#endif
