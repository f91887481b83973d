/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler for tests, by the way that NVTX has for them: see tests/fake/fake_nvtx.h. */
#include "tests/fake/fake_nvtx.h"

#if __has_include(<nvtx3/nvToolsExt.h>) /* some packages of CUDA leave it out */
#    include <nvtx3/nvToolsExt.h>
#    include <pthread.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>

enum { NAMES = 16, NAME = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static struct {
    char name[NAME];
    fake_nvtx_range range;
} seen[NAMES];
static int names, open_now, faults;
static char domain_name[NAME];

static _Thread_local int depth;

static fake_nvtx_range *find(const char *name)
{
    for (int i = 0; i < names; i++)
        if (!strcmp(seen[i].name, name)) return &seen[i].range;
    if (names == NAMES) return NULL;
    snprintf(seen[names].name, NAME, "%s", name);
    return &seen[names++].range;
}

static nvtxDomainHandle_t NVTX_API on_domain(const char *name)
{
    pthread_mutex_lock(&lock);
    snprintf(domain_name, sizeof domain_name, "%s", name);
    pthread_mutex_unlock(&lock);
    return (nvtxDomainHandle_t)domain_name;
}

static int NVTX_API on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *e)
{
    const int good = (const char *)domain == domain_name &&
                     e->messageType == NVTX_MESSAGE_TYPE_ASCII &&
                     e->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    fake_nvtx_range *r;

    pthread_mutex_lock(&lock);
    open_now++;
    r = good ? find(e->message.ascii) : NULL;
    if (r) {
        r->count++;
        r->within += depth > 0;
        if (e->payload.ullValue < 64) r->numbers |= (uint64_t)1 << e->payload.ullValue;
    } else {
        faults++;
    }
    pthread_mutex_unlock(&lock);
    return depth++;
}

static int NVTX_API on_pop(nvtxDomainHandle_t domain)
{
    pthread_mutex_lock(&lock);
    open_now--;
    if (depth < 1 || (const char *)domain != domain_name) faults++;
    pthread_mutex_unlock(&lock);
    return --depth;
}

/* --- the test's side --- */

static fake_nvtx_range control_get(const char *name)
{
    fake_nvtx_range *r, out = { 0, 0, 0 };

    pthread_mutex_lock(&lock);
    if ((r = find(name))) out = *r;
    pthread_mutex_unlock(&lock);
    return out;
}

static int read_locked(const int *v)
{
    int n;

    pthread_mutex_lock(&lock);
    n = *v;
    pthread_mutex_unlock(&lock);
    return n;
}

static int control_names(void)
{
    return read_locked(&names);
}

static int control_open(void)
{
    return read_locked(&open_now);
}

static int control_faults(void)
{
    return read_locked(&faults);
}

static void control_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(seen, 0, sizeof seen);
    names = faults = 0;
    pthread_mutex_unlock(&lock);
}

const fake_nvtx *fake_nvtx_controls(void);

const fake_nvtx *fake_nvtx_controls(void)
{
    static const fake_nvtx controls = { control_get, control_names, control_open, control_faults,
                                        control_reset };

    return &controls;
}

/* --- NVTX's side --- */

static void write_log(void)
{
    FILE *f = fopen(getenv("FAKE_NVTX_LOG"), "w");

    if (!f) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < names; i++)
        fprintf(f, "%s %d %llx\n", seen[i].name, seen[i].range.count,
                (unsigned long long)seen[i].range.numbers);
    fprintf(f, "open %d\nfaults %d\n", open_now, faults);
    pthread_mutex_unlock(&lock);
    fclose(f);
}

/* The entry that NVTX looks for in an injected library. @return 1 = it is used */
NVTX_DYNAMIC_EXPORT int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables)
{
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable f = NULL;
    unsigned n = 0;

    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &f, &n)) return 0;
    if (n <= NVTX_CBID_CORE2_DomainCreateA) return 0;
    *f[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)on_domain;
    *f[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)on_push;
    *f[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)on_pop;
    if (getenv("FAKE_NVTX_LOG")) atexit(write_log);
    return 1;
}

#endif
