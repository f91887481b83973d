/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs there are. CUDA_VISIBLE_DEVICES is read, to say which GPU of the machine each is; the
 * driver has applied it, and it is never changed. */
#include "device/cuda/device_cuda.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entry k of a comma list, without blanks around it; "" past its end. */
static void entry(char *out, size_t size, const char *list, int k)
{
    size_t len;

    *out = '\0';
    for (; k > 0 && list; k--)
        if ((list = strchr(list, ','))) list++;
    if (!list) return;
    list += strspn(list, " \t");
    len = strcspn(list, ", \t");
    if (len < size) snprintf(out, size, "%.*s", (int)len, list);
}

static void print_uuid(char *out, size_t size, const cudaUUID_t *uuid)
{
    size_t at = (size_t)snprintf(out, size, "GPU-");

    for (size_t i = 0; i < sizeof uuid->bytes && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                               (unsigned)(unsigned char)uuid->bytes[i]);
}

static int describe(dpl_gpu_info *g, int index, dpl_text *why)
{
    struct cudaDeviceProp prop;
    const cudaError_t e = cudaGetDeviceProperties(&prop, index);

    if (e != cudaSuccess) {
        dpl_cuda_fail(why, e, "cudaGetDeviceProperties");
        dpl_text_prefix(why, "cuda:%d cannot be described", index);
        return DPL_EDEVICE;
    }
    g->index = index;
    entry(g->outside, sizeof g->outside, getenv("CUDA_VISIBLE_DEVICES"), index);
    if (!*g->outside) snprintf(g->outside, sizeof g->outside, "%d", index);
    snprintf(g->name, sizeof g->name, "%.*s", (int)sizeof prop.name, prop.name);
    print_uuid(g->uuid, sizeof g->uuid, &prop.uuid);
    if (!strncmp(g->outside, "MIG-", 4)) /* a slice: the GPU's own is not what names it */
        snprintf(g->uuid, sizeof g->uuid, "%s", g->outside);
    snprintf(g->pci, sizeof g->pci, "%04x:%02x:%02x.0", (unsigned)prop.pciDomainID & 0xffff,
             (unsigned)prop.pciBusID & 0xff, (unsigned)prop.pciDeviceID & 0xff);
    g->memory = prop.totalGlobalMem;
    g->major = prop.major;
    g->minor = prop.minor;
    return DPL_OK;
}

int dpl_cuda_gpus(dpl_gpu_info **out, dpl_text *why)
{
    dpl_gpu_info *list;
    int n, err = dpl_cuda_count(&n, why);

    *out = NULL;
    if (err) return err;
    if (!(list = dpl_calloc((size_t)n, sizeof *list)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory");
    for (int i = 0; i < n && !err; i++) err = describe(&list[i], i, why);
    if (err) {
        free(list);
        return err;
    }
    *out = list;
    return n;
}
