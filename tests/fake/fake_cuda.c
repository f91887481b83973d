/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching the fakes: libraries that the plug-ins beside the running test need or open. */
#include "tests/fake/fake_cuda.h"

#include "device/device_plugin.h"
#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The symbol of a library beside the running program, or NULL where there is none of them. */
static void *beside(const char *library, const char *name)
{
    char path[PATH_MAX + 64];
    void *handle, *symbol;

    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, library);
    if (access(path, F_OK)) return NULL;
    if (!(handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))) fail_msg("%s", dlerror());
    symbol = dlsym(handle, name);
    dlclose(handle);
    return symbol;
}

const fake_cuda *test_fake_cuda(void)
{
    void *symbol = beside(DPL_CUDA_PLUGIN, "fake_cuda_controls");
    fake_cuda_entry *entry;

    if (!symbol) return NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return entry();
}

const fake_nccl *test_fake_nccl(void)
{
    void *symbol = beside("libnccl.so.2", "fake_nccl_controls");
    fake_nccl_entry *entry;

    if (!symbol) return NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return entry();
}
