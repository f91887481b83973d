/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the library that trains on GPUs; see trainer_plugin.h. */
#include "trainer/trainer_plugin.h"

#include "device/device_plugin.h"
#include "dpload.h"

#include <string.h>

int dpt_plugin_cuda(const dpt_trainer_plugin **out, dpl_text *why)
{
    static const dpl_plugin file = {
        DPT_CUDA_PLUGIN, DPT_CUDA_PLUGIN_ENTRY, "libcudnn",
        "cuDNN 9 (NVIDIA's package libcudnn9-cuda-13, or the one of your CUDA version)"
    };
    const dpt_trainer_plugin *plugin;
    dpt_trainer_plugin_entry *entry;
    void *symbol;
    const int err = dpl_plugin_symbol(&file, &symbol, why);

    *out = NULL;
    if (err) return err;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from data to function pointers */
    plugin = symbol ? entry() : NULL;
    if (!plugin || strcmp(plugin->version, DPL_VERSION) != 0 ||
        plugin->ops_size != sizeof(dpt_team_ops))
        return dpl_plugin_refuse(&file, plugin ? plugin->version : NULL, why);
    *out = plugin;
    return DPL_OK;
}
