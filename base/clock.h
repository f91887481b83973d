/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock. */
#ifndef DPL_BASE_CLOCK_H
#define DPL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** CLOCK_MONOTONIC in nanoseconds. */
static inline int64_t dpl_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#ifdef __cplusplus
}
#endif
#endif
