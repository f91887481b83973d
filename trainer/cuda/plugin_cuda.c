/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of libdptrain_cuda.so. */
#include "dpload.h"
#include "trainer/cuda/team_cuda.h"
#include "trainer/trainer_plugin.h"

__attribute__((visibility("default"))) dpt_trainer_plugin_entry dpt_cuda_plugin;

const dpt_trainer_plugin *dpt_cuda_plugin(void)
{
    static const dpt_trainer_plugin plugin = { .version = DPL_VERSION,
                                               .ops_size = sizeof(dpt_team_ops),
                                               .team = &dpt_team_cuda_ops,
                                               .kernels = &dpt_gpu_kernels_table,
                                               .comm = &dpt_comm_table };

    return &plugin;
}
