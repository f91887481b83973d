/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges as NVTX shows them to Nsight, in a domain of their own: a program around us may have its own
 * ranges. Without a profiler a call ends at a pointer that is NULL. */
#include "device/cuda/device_cuda.h"

#if DPL_CUDA_HAS_TRACE
#    include <nvtx3/nvToolsExt.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain; /* NULL without a profiler */

static void create_domain(void)
{
    domain = nvtxDomainCreateA("dpload");
}

/* The number is a payload: so profilers can sum up over all ranges of a name. */
static void push(const char *name, uint64_t number)
{
    nvtxEventAttributes_t event = { .version = NVTX_VERSION,
                                    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE };

    pthread_once(&once, create_domain);
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event.payload.ullValue = number;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name;
    nvtxDomainRangePushEx(domain, &event);
}

static void pop(void)
{
    nvtxDomainRangePop(domain);
}

const dpl_trace dpl_cuda_trace = { push, pop };

#endif
