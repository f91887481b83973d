/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching the fake CUDA runtime, which lies in the plug-in that device.c will open. */
#include "tests/fake/fake_cuda.h"

#include "device/device_plugin.h"
#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const fake_cuda *test_fake_cuda(void)
{
    char path[PATH_MAX + 64];
    fake_cuda_entry *entry;
    void *handle, *symbol;

    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, DPL_CUDA_PLUGIN);
    if (access(path, F_OK)) return NULL;
    if (!(handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))) fail_msg("%s", dlerror());
    assert_non_null(symbol = dlsym(handle, "fake_cuda_controls"));
    memcpy(&entry, &symbol, sizeof entry);
    dlclose(handle);
    return entry();
}
