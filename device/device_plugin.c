/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and opening the library that holds the CUDA kind. */
#include "device/device_plugin.h"

#include "dpload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *open_fn(const char *file, int flags);

/* dlopen(), or NULL in a program linked with -static, which cannot open libraries. Asked for by name,
 * because the linker warns about every static program that refers to it, GPUs or not. */
static open_fn *find_dlopen(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "dlopen");
    open_fn *fn;

    memcpy(&fn, &symbol, sizeof fn); /* ISO C has no cast from data to function pointers */
    return fn;
}

/* The folder of the library or program that this code was linked into, without the last slash. What
 * the linker knows of a program is the name it was called by, so ask the kernel for that one. */
static int own_folder(char folder[PATH_MAX])
{
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    if (!dladdr1((const void *)&dpl_device_cpu_ops, &info, (void **)&map, RTLD_DL_LINKMAP))
        return -1;
    if (!realpath(map && map->l_name[0] ? map->l_name : "/proc/self/exe", folder)) return -1;
    if (!(slash = strrchr(folder, '/'))) return -1;
    *slash = '\0';
    return 0;
}

/* Open the first one that is there. @return the handle, or NULL and why */
static void *open_first(dpl_text *why)
{
    static const char *const under[] = { "/" DPL_CUDA_PLUGIN, "/../lib/" DPL_CUDA_PLUGIN };
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char folder[PATH_MAX], path[PATH_MAX + 64];
    const int known = !own_folder(folder);
    const char *text;
    open_fn *const open_library = find_dlopen();
    void *handle;

    if (!open_library) {
        dpl_fail(why, DPL_ENOTSUP,
                 "no CUDA support here: a program linked with -static cannot open " DPL_CUDA_PLUGIN
                 "; link it without, or use another device (cpu)");
        return NULL;
    }
    for (size_t i = 0; known && i < sizeof under / sizeof *under; i++) {
        snprintf(path, sizeof path, "%s%s", folder, under[i]);
        if (access(path, F_OK)) continue;
        if ((handle = open_library(path, flags))) return handle;
        dpl_fail(why, DPL_ENOTSUP, "the CUDA part does not load: %s", dlerror());
        return NULL;
    }
    if ((handle = open_library(DPL_CUDA_PLUGIN, flags))) return handle;
    text = dlerror();
    dpl_fail(why, DPL_ENOTSUP,
             "no CUDA support here: " DPL_CUDA_PLUGIN " is not in %s, %s/../lib or the system's "
             "folders (%s); build it with make CUDA=1, or use another device (cpu)",
             known ? folder : "?", known ? folder : "?", text ? text : "no reason given");
    return NULL;
}

int dpl_plugin_cuda(const dpl_device_ops **out, dpl_text *why)
{
    void *handle = open_first(why), *symbol;
    const dpl_device_plugin *plugin;
    dpl_device_plugin_entry *entry;

    *out = NULL;
    if (!handle) return DPL_ENOTSUP;
    symbol = dlsym(handle, DPL_CUDA_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    plugin = symbol ? entry() : NULL;
    if (plugin && !strcmp(plugin->version, DPL_VERSION) &&
        plugin->ops_size == sizeof(dpl_device_ops))
        *out = plugin->ops;
    dlclose(handle);
    if (*out) return DPL_OK;
    return dpl_fail(why, DPL_ENOTSUP,
                    DPL_CUDA_PLUGIN " is of another version (%s, expected " DPL_VERSION
                                    "): install both from one build",
                    plugin ? plugin->version : "none");
}
