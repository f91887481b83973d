/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and opening the libraries that hold the CUDA parts. */
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

/* The library that a failed dlopen() of `file` missed: "NAME: cannot open shared object file: …", with
 * NAME another one. @return 1 and its name */
static int missing_library(const char *text, const char *file, char *name, size_t len)
{
    const char *colon = strchr(text, ':');

    if (!colon || !strstr(colon, "cannot open shared object file")) return 0;
    if (memchr(text, '/', (size_t)(colon - text))) return 0;
    if (strlen(file) == (size_t)(colon - text) && !strncmp(text, file, strlen(file))) return 0;
    snprintf(name, len, "%.*s", (int)(colon - text), text);
    return 1;
}

/* The library is there and does not load. */
static int does_not_load(const dpl_plugin *p, const char *text, dpl_text *why)
{
    char name[128];

    if (missing_library(text, p->file, name, sizeof name))
        return dpl_fail(why, DPL_ENOTSUP,
                        "%s needs %s, which is not in the system's folders: install %s, or name "
                        "its folder in LD_LIBRARY_PATH",
                        p->file, name,
                        p->library && !strncmp(name, p->library, strlen(p->library)) ? p->package
                                                                                     : "it");
    return dpl_fail(why, DPL_ENOTSUP, "%s does not load: %s", p->file, text);
}

static const char *load_error(void)
{
    const char *said = dlerror();

    return said ? said : "no reason given";
}

/* Open the first one that is there. @return the handle, or NULL and why */
static void *open_first(const dpl_plugin *p, dpl_text *why)
{
    static const char *const under[] = { "", "/../lib" };
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char folder[PATH_MAX], path[PATH_MAX + 64], name[128];
    const char *text;
    const int known = !own_folder(folder);
    open_fn *const open_library = find_dlopen();
    void *handle;

    if (!open_library) {
        dpl_fail(why, DPL_ENOTSUP,
                 "no CUDA support here: a program linked with -static cannot open %s; link it "
                 "without, or use another device (cpu)",
                 p->file);
        return NULL;
    }
    for (size_t i = 0; known && i < sizeof under / sizeof *under; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, under[i], p->file);
        if (access(path, F_OK)) continue;
        if ((handle = open_library(path, flags))) return handle;
        does_not_load(p, load_error(), why);
        return NULL;
    }
    if ((handle = open_library(p->file, flags))) return handle;
    text = load_error();
    if (missing_library(text, p->file, name, sizeof name)) {
        does_not_load(p, text, why);
        return NULL;
    }
    dpl_fail(why, DPL_ENOTSUP,
             "no CUDA support here: %s is not in %s, %s/../lib or the system's folders (%s); build "
             "it with make CUDA=1, or use another device (cpu)",
             p->file, known ? folder : "?", known ? folder : "?", text);
    return NULL;
}

int dpl_plugin_symbol(const dpl_plugin *p, void **symbol, dpl_text *why)
{
    void *handle = open_first(p, why);

    *symbol = NULL;
    if (!handle) return DPL_ENOTSUP;
    *symbol = dlsym(handle, p->entry);
    dlclose(handle); /* it stays all the same: RTLD_NODELETE */
    return DPL_OK;
}

int dpl_plugin_refuse(const dpl_plugin *p, const char *version, dpl_text *why)
{
    return dpl_fail(why, DPL_ENOTSUP,
                    "%s is of another version (%s, expected " DPL_VERSION
                    "): install both from one build",
                    p->file, version ? version : "none");
}

int dpl_plugin_cuda(const dpl_device_ops **out, dpl_text *why)
{
    static const dpl_plugin file = { DPL_CUDA_PLUGIN, DPL_CUDA_PLUGIN_ENTRY, NULL, NULL };
    const dpl_device_plugin *plugin;
    dpl_device_plugin_entry *entry;
    void *symbol;
    const int err = dpl_plugin_symbol(&file, &symbol, why);

    *out = NULL;
    if (err) return err;
    memcpy(&entry, &symbol, sizeof entry);
    plugin = symbol ? entry() : NULL;
    if (!plugin || strcmp(plugin->version, DPL_VERSION) != 0 ||
        plugin->ops_size != sizeof(dpl_device_ops))
        return dpl_plugin_refuse(&file, plugin ? plugin->version : NULL, why);
    *out = plugin->ops;
    return DPL_OK;
}
