/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of device that lies in a library of its own, opened only when a spec names it: so programs
 * start where neither a driver nor the kind's libraries are. */
#ifndef DPL_DEVICE_DEVICE_PLUGIN_H
#define DPL_DEVICE_DEVICE_PLUGIN_H

#include "device/device_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DPL_CUDA_PLUGIN       "libdpload_cuda.so"
#define DPL_CUDA_PLUGIN_ENTRY "dpl_cuda_plugin"

/* What the entry of a plug-in returns. Both sides are built from one source tree: a plug-in of
 * another build is refused, not guessed at. */
typedef struct dpl_device_plugin {
    const char *version; /* DPL_VERSION */
    size_t ops_size;     /* sizeof(dpl_device_ops) */
    const dpl_device_ops *ops;
} dpl_device_plugin;

typedef const dpl_device_plugin *dpl_device_plugin_entry(void);

/* A library that is opened when it is asked for; what is static in the caller. */
typedef struct dpl_plugin {
    const char *file;    /* its name without a folder */
    const char *entry;   /* the function that says what it is */
    const char *library; /* that is mostly missing, "libcudnn", or NULL; … */
    const char *package; /* … and what to install then */
} dpl_plugin;

/** Open it: looked for beside the library or program this code is part of, in ../lib from there, then
 *  where the system looks for libraries. Once loaded it stays: the CUDA runtime does not survive being
 *  unloaded. *symbol: its entry, NULL when it has none.
 *  @return DPL_OK, DPL_ENOTSUP (not there, or a library that it needs is not: text says which) */
int dpl_plugin_symbol(const dpl_plugin *p, void **symbol, dpl_text *why);
/** The text for one of another build; version NULL = it does not say. @return DPL_ENOTSUP */
int dpl_plugin_refuse(const dpl_plugin *p, const char *version, dpl_text *why);

/** The CUDA kind.
 *  @return DPL_OK, DPL_ENOTSUP (not there, or of another build: text says which), DPL_ENOMEM */
int dpl_plugin_cuda(const dpl_device_ops **out, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
