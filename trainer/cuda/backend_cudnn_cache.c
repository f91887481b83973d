/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on disk. A file is used only when it is of the same cuDNN, device and key, and whole; anything
 * else about it means that the plan is built again. */
#include "base/alloc.h"
#include "base/files.h"
#include "base/fnv.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 << 20, HEAD = 8192 };
enum { NAMES = 2, NUMBER = 20 }; /* digits at most */

/* @return the number behind name, *len its length; NULL = none */
static const char *number_in(const char *json, const char *name, size_t *len)
{
    const char *at = strstr(json, name);

    if (!at) return NULL;
    at += strlen(name);
    *len = strspn(at, "-0123456789");
    return *len <= NUMBER ? at : NULL;
}

/* Equal GPUs of a machine share their plans, but cuDNN writes into each whose it is. The numbers that say
 * so become those of device, a description, or are taken out. json has NAMES * NUMBER to spare. */
static void renumber(char *json, const char *device)
{
    static const char *const name[NAMES] = { "\"cudaDeviceId\":", "\"pciDeviceId\":" };

    for (int i = 0; i < NAMES; i++) {
        size_t len, own = 0;
        const char *found = number_in(json, name[i], &len);
        const char *now = device ? number_in(device, name[i], &own) : "";
        char *at = found ? json + (found - json) : NULL;

        if (!at || !now) continue;
        memmove(at + own, at + len, strlen(at + len) + 1);
        memcpy(at, now, own);
    }
}

/* Everything that a plan depends on; also the first part of its file. */
static int identity(char out[HEAD], const char *key, const char *device)
{
    const int n =
        snprintf(out, HEAD, "dptrain plan 2\ncudnn %zu\n%s\n%s\n", cudnnGetVersion(), key, device);

    if (n <= 0 || n >= HEAD) return -1;
    renumber(out, NULL);
    return (int)strlen(out);
}

static char *file_of(const char *folder, const char *id, int len)
{
    char name[64];

    snprintf(name, sizeof name, "plan-%016" PRIx64 ".json",
             dpl_fnv(DPL_FNV_START, id, (size_t)len));
    return dpl_path_join(folder, name);
}

static int revive(dpt_cu_plan *out, const char *json, size_t len, cudnnBackendDescriptor_t dev)
{
    cudnnBackendDescriptor_t d = NULL;
    int64_t n = 0;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &d)) return 0;
    if (!cudnnBackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                  (int64_t)len, json) &&
        !cudnnBackendSetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dev) &&
        !cudnnBackendFinalize(d) &&
        !cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                  &n, &out->workspace)) {
        out->d = d;
        out->reloaded = 1;
        return 1;
    }
    cudnnBackendDestroyDescriptor(d);
    return 0;
}

int dpt_cu_cache_load(dpt_cu_plan *out, const dpt_cu_plan_options *o, cudnnBackendDescriptor_t dev)
{
    char id[HEAD];
    const int len = o->cache ? identity(id, out->key, o->device) : -1;
    char *path = NULL, *own = NULL;
    void *buf = NULL;
    size_t cap = 0, got = 0, json;
    uint64_t sum;
    int at = 0, good = 0;

    if (len < 0 || !(path = file_of(o->cache, id, len))) goto done;
    if (dpl_read_file(AT_FDCWD, path, &buf, &cap, &got, LARGEST, NULL)) goto done;
    if (got <= (size_t)len || memcmp(buf, id, (size_t)len) != 0) goto done;
    if (((char *)buf)[got - 1] != '\0') goto done; /* what sscanf and cuDNN read is terminated */
    if (sscanf((char *)buf + len, "%" SCNd64 " %d %d %d %zu %" SCNx64 "%n", &out->engine,
               &out->tensor_core, &out->nondeterministic, &out->compiled, &json, &sum, &at) != 6) {
        goto done;
    }
    at += len + 1; /* a line's end */
    if ((size_t)at >= got || got - (size_t)at != json) goto done;
    if (dpl_fnv(0, (char *)buf + at, json) != sum) goto done;
    if (!(own = dpl_calloc(json + NAMES * NUMBER, 1))) goto done;
    memcpy(own, (char *)buf + at, json);
    renumber(own, o->device);
    good = revive(out, own, strlen(own) + 1, dev);
done:
    free(own);
    free(path);
    free(buf);
    return good;
}

void dpt_cu_cache_save(const dpt_cu_plan *plan, const dpt_cu_plan_options *o)
{
    char id[HEAD];
    const int len = o->cache ? identity(id, plan->key, o->device) : -1;
    dpl_replace r = { .f = NULL };
    char *path = NULL, *json = NULL;
    int64_t n = 0;

    if (len < 0 || dpl_make_folder(o->cache, NULL)) return;
    if (cudnnBackendGetAttribute(plan->d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, 0, &n, NULL) ||
        n < 1 || !(json = dpl_calloc((size_t)n + 1, 1)) ||
        cudnnBackendGetAttribute(plan->d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, n, &n, json)) {
        goto done;
    }
    n = (int64_t)strlen(json) + 1;
    if (!(path = file_of(o->cache, id, len)) || dpl_replace_open(&r, path, NULL)) goto done;
    fprintf(r.f, "%s%" PRId64 " %d %d %d %zu %016" PRIx64 "\n", id, plan->engine, plan->tensor_core,
            plan->nondeterministic, plan->compiled, (size_t)n, dpl_fnv(0, json, (size_t)n));
    fwrite(json, 1, (size_t)n, r.f);
    dpl_replace_commit(&r, NULL);
done:
    free(path);
    free(json);
}
