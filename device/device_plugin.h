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

/** The CUDA kind. Looked for beside the library or program this code is part of, in ../lib from
 *  there, then where the system looks for libraries. Once loaded it stays: the CUDA runtime does not
 *  survive being unloaded.
 *  @return DPL_OK, DPL_ENOTSUP (not there, or of another build: text says which), DPL_ENOMEM */
int dpl_plugin_cuda(const dpl_device_ops **out, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
