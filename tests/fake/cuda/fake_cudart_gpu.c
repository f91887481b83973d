/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: which GPUs there are, and what they say of themselves. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t fake_driver(void)
{
    const char *driver = getenv("FAKE_CUDA_DRIVER");

    if (!driver || !*driver) return cudaSuccess;
    return strcmp(driver, "stub") ? cudaErrorInsufficientDriver : cudaErrorStubLibrary;
}

/* --- the GPUs of the machine --- */

static int physical_gpus(void)
{
    const char *n = getenv("FAKE_CUDA_DEVICES"), *names = getenv("FAKE_CUDA_NAMES");
    int count = 1;

    for (const char *s = names ? names : ""; (s = strchr(s, ',')); s++) count++;
    if (n && *n) count = atoi(n);
    return count > FAKE_GPUS_MAX ? FAKE_GPUS_MAX : count;
}

/* NAME[/GIB[/MAJOR.MINOR[/US]]] of the physical GPU g, where the list is that long. */
static void describe(int g, fake_gpu *out)
{
    const char *s = getenv("FAKE_CUDA_NAMES");
    double gib = 16, us = 0;
    char item[128];

    *out = (fake_gpu){ .physical = g, .name = "Fake GPU", .major = 9 };
    for (int i = 0; s && *s && i < g; i++) s = (s = strchr(s, ',')) ? s + 1 : NULL;
    if (s && *s) {
        snprintf(item, sizeof item, "%.*s", (int)strcspn(s, ","), s);
        if (sscanf(item, "%63[^/]/%lf/%d.%d/%lf", out->name, &gib, &out->major, &out->minor, &us) <
            1)
            fake_die("FAKE_CUDA_NAMES: \"%s\" is no NAME/GIB/MAJOR.MINOR/US", item);
    }
    out->bytes = (size_t)(gib * (1 << 30));
    out->kernel_ns = (long long)(us * 1000);
}

static void uuid_of(int physical, unsigned char uuid[16])
{
    static const unsigned char base[16] = { 0xFA, 0x6E, 0xC0, 0xDA, 0x12, 0x34, 0x45, 0x67,
                                            0x89, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x00 };

    memcpy(uuid, base, sizeof base);
    uuid[0] = (unsigned char)(base[0] + 0x11 * physical); /* a short prefix tells them apart */
    uuid[15] = (unsigned char)physical;
}

/* Which physical GPU does this entry of CUDA_VISIBLE_DEVICES name? -1 = none */
static int visible_entry(const char *s, size_t len)
{
    const int n = physical_gpus();
    char *end;
    long number;

    if (len > 4 && !strncmp(s, "GPU-", 4)) {
        for (int g = 0; g < n; g++) {
            unsigned char u[16];
            char text[48];

            uuid_of(g, u);
            snprintf(text, sizeof text,
                     "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                     u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
                     u[12], u[13], u[14], u[15]);
            if (len <= strlen(text) && !strncasecmp(s, text, len)) return g;
        }
        return -1;
    }
    number = strtol(s, &end, 10);
    return len && end == s + len && number >= 0 && number < n ? (int)number : -1;
}

/* As the driver: everything from the first entry on that names no GPU is ignored. */
static int visible(int list[FAKE_GPUS_MAX])
{
    const char *s = getenv("CUDA_VISIBLE_DEVICES");
    int n = 0;

    if (!s) {
        for (int all = physical_gpus(); n < all; n++) list[n] = n;
        return n;
    }
    while (n < FAKE_GPUS_MAX) {
        const size_t len = strcspn(s, ",");
        size_t blank = 0;
        int g;

        while (blank < len && isspace((unsigned char)s[blank])) blank++;
        if ((g = visible_entry(s + blank, len - blank)) < 0) break;
        list[n++] = g;
        if (!s[len]) break;
        s += len + 1;
    }
    return n;
}

int fake_gpus(void)
{
    int list[FAKE_GPUS_MAX];

    return visible(list);
}

int fake_gpu_get(int gpu, fake_gpu *out)
{
    int list[FAKE_GPUS_MAX];

    if (gpu < 0 || gpu >= visible(list)) return 0;
    describe(list[gpu], out);
    return 1;
}

/* --- what a program can ask --- */

cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t e = fake_driver();

    if (e != cudaSuccess) return fake_return(e); /* as the real one: *count stays as it was */
    *count = fake_gpus();
    return fake_return(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake_driver() == cudaSuccess ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static cudaError_t begin_get(int gpu, fake_gpu *g)
{
    const cudaError_t e = fake_driver();

    if (e != cudaSuccess) return e;
    return fake_gpu_get(gpu, g) ? cudaSuccess : cudaErrorInvalidDevice;
}

enum { PCI_FIRST_BUS = 0x10, MULTIPROCESSORS = 8 };

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int gpu)
{
    fake_gpu g;
    const cudaError_t e = begin_get(gpu, &g);

    if (e != cudaSuccess) return fake_return(e);
    memset(prop, 0, sizeof *prop);
    memcpy(prop->name, g.name, sizeof g.name);
    uuid_of(g.physical, (unsigned char *)prop->uuid.bytes);
    prop->totalGlobalMem = g.bytes;
    prop->major = g.major;
    prop->minor = g.minor;
    prop->pciBusID = PCI_FIRST_BUS + g.physical;
    prop->multiProcessorCount = MULTIPROCESSORS;
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->sharedMemPerBlock = 48 << 10;
    prop->asyncEngineCount = 2;
    prop->unifiedAddressing = 1;
    prop->concurrentKernels = 1;
    prop->streamPrioritiesSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int gpu)
{
    fake_gpu g;
    const cudaError_t e = begin_get(gpu, &g);

    if (e != cudaSuccess) return fake_return(e);
    switch ((int)attr) {
    case cudaDevAttrComputeCapabilityMajor: *value = g.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = g.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrAsyncEngineCount: *value = 2; break;
    case cudaDevAttrUnifiedAddressing: *value = 1; break;
    case cudaDevAttrPciDomainId: *value = 0; break;
    case cudaDevAttrPciBusId: *value = PCI_FIRST_BUS + g.physical; break;
    case cudaDevAttrPciDeviceId: *value = 0; break;
    default: return fake_return(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int gpu)
{
    fake_gpu g;
    const cudaError_t e = begin_get(gpu, &g);

    if (e != cudaSuccess) return fake_return(e);
    if (len < 13) return fake_return(cudaErrorInvalidValue);
    snprintf(id, (size_t)len, "0000:%02X:00.0", (unsigned)(PCI_FIRST_BUS + g.physical) & 0xFF);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *gpu, const char *id)
{
    const cudaError_t e = fake_driver();
    const int n = fake_gpus();
    char other[16];

    if (e != cudaSuccess) return fake_return(e);
    for (int i = 0; i < n; i++) {
        if (cudaDeviceGetPCIBusId(other, sizeof other, i) == cudaSuccess &&
            !strcasecmp(other, id)) {
            *gpu = i;
            return cudaSuccess;
        }
    }
    return fake_return(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    const cudaError_t e = fake_begin(fake_current());

    if (e != cudaSuccess) return fake_return(e);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}
