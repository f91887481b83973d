/* SPDX-License-Identifier: Apache-2.0 */
/* Planted bugs of ref_exec.h. This cudaStreamWaitEvent() stands between the plug-in it is linked into
 * and the fake runtime. */
#include "tests/fake/cuda/ref_exec.h"

#include "tests/fake/cuda/fake_cudart.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *planted(void)
{
    const char *plant = getenv("REF_EXEC_PLANT");

    return plant ? plant : "";
}

int ref_exec_planted(const char *name)
{
    return !strcmp(planted(), name);
}

static int is_left_out(void)
{
    static _Thread_local int calls; /* each GPU of a team has a thread */
    int k, n;

    if (sscanf(planted(), "no-wait=%d/%d", &k, &n) != 2) return 0;
    return calls++ % n == k;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    void *symbol = dlsym(RTLD_NEXT, "cudaStreamWaitEvent");
    cudaError_t (*real)(cudaStream_t, cudaEvent_t, unsigned);

    if (!symbol) fake_die("no cudaStreamWaitEvent behind the one of the tests");
    memcpy(&real, &symbol, sizeof real);
    return is_left_out() ? cudaSuccess : real(s, e, flags);
}
