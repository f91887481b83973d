/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler for tests: libfakecudart.so, named by NVTX_INJECTION64_PATH before the first range, counts
 * the NVTX ranges of the program. With FAKE_NVTX_LOG=FILE it writes them there at the end, a line
 * "NAME COUNT NUMBERS" for each and "open N", "faults N". */
#ifndef TESTS_FAKE_FAKE_NVTX_H
#define TESTS_FAKE_FAKE_NVTX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fake_nvtx_range {
    int count;        /* of that name */
    uint64_t numbers; /* bit k: there was one with number k, for k below 64 */
    int within;       /* of them, begun inside another range of their thread */
} fake_nvtx_range;

/* From the entry "fake_nvtx_controls" of libfakecudart.so. */
typedef struct fake_nvtx {
    fake_nvtx_range (*get)(const char *name);
    int (*names)(void);  /* different ones */
    int (*open)(void);   /* begun and not ended, over all threads */
    int (*faults)(void); /* an end without a begin, no name, no number, another domain */
    void (*reset)(void);
} fake_nvtx;

typedef const fake_nvtx *fake_nvtx_entry(void);

#ifdef __cplusplus
}
#endif
#endif
