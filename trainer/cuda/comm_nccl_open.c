/* SPDX-License-Identifier: Apache-2.0 */
/* Finding NCCL at run time: a machine without it trains on one GPU. */
#include "dpload.h"
#include "trainer/cuda/comm_nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLDEST = NCCL_VERSION(2, 14, 0) }; /* the first whose calls need not block */

/* The folder of the plug-in that this code is in, or "". */
static void own_folder(char folder[PATH_MAX])
{
    char *slash;
    Dl_info info;
    int (*const here)(dpt_nccl *, dpl_text *) = dpt_nccl_open;
    const void *at;

    memcpy(&at, &here, sizeof at); /* ISO C has no cast from function to data pointers */
    folder[0] = '\0';
    if (!dladdr(at, &info) || !realpath(info.dli_fname, folder)) {
        folder[0] = '\0';
        return;
    }
    if ((slash = strrchr(folder, '/'))) *slash = '\0';
}

static void *open_library(dpl_text *why)
{
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char folder[PATH_MAX], path[PATH_MAX + 32];
    const char *text;
    void *handle;

    own_folder(folder);
    snprintf(path, sizeof path, "%s/" DPT_NCCL_LIBRARY, folder);
    if (folder[0] && !access(path, F_OK)) {
        if ((handle = dlopen(path, flags))) return handle;
        dpl_fail(why, DPL_ENOTSUP, "NCCL does not load: %s", dlerror());
        return NULL;
    }
    if ((handle = dlopen(DPT_NCCL_LIBRARY, flags))) return handle;
    text = dlerror();
    dpl_fail(why, DPL_ENOTSUP,
             "several GPUs need NCCL: " DPT_NCCL_LIBRARY " is not in %s, LD_LIBRARY_PATH or the "
             "system's folders (%s); install it, or use one GPU",
             folder[0] ? folder : "?", text ? text : "no reason given");
    return NULL;
}

static int check_version(const dpt_nccl *nccl, dpl_text *why)
{
    int v = 0;

    if (nccl->GetVersion(&v) != ncclSuccess || v < 1000)
        return dpl_fail(why, DPL_ENOTSUP, DPT_NCCL_LIBRARY " does not say its version");
    if (v >= OLDEST && v / 10000 == NCCL_MAJOR) return DPL_OK;
    return dpl_fail(why, DPL_ENOTSUP,
                    DPT_NCCL_LIBRARY " is version %d.%d: %d.14 or a later %d.x is needed",
                    v < 10000 ? v / 1000 : v / 10000, v < 10000 ? v % 1000 / 100 : v % 10000 / 100,
                    NCCL_MAJOR, NCCL_MAJOR);
}

int dpt_nccl_open(dpt_nccl *out, dpl_text *why)
{
    void *handle = open_library(why), *symbol;
    int err = DPL_OK;

    memset(out, 0, sizeof *out);
    if (!handle) return DPL_ENOTSUP;
#define FIND(name, result, arguments)                                                              \
    symbol = dlsym(handle, "nccl" #name);                                                          \
    memcpy(&out->name, &symbol, sizeof symbol);                                                    \
    if (!symbol && !err)                                                                           \
        err = dpl_fail(why, DPL_ENOTSUP, DPT_NCCL_LIBRARY " has no nccl" #name ": it is too old");
    DPT_NCCL_FUNCTIONS(FIND)
#undef FIND
    dlclose(handle); /* it stays loaded */
    return err ? err : check_version(out, why);
}
