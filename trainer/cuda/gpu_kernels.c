/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for who opens the plug-in; see gpu_kernels.h. */
#include "trainer/cuda/gpu_kernels.h"

#include "trainer/cuda/gpu_pool.h"

const dpt_gpu_kernels dpt_gpu_kernels_table = {
    .input = dpt_gpu_input_run,
    .mix = dpt_gpu_mix_run,
    .xent = dpt_gpu_xent_run,
    .weights_to_typed = dpt_gpu_weights_to_typed,
    .weights_to_flat = dpt_gpu_weights_to_flat,
    .pack = dpt_gpu_pack,
    .unpack = dpt_gpu_unpack,
    .update = dpt_gpu_update_run,
    .count_update = dpt_gpu_count_update,
    .check_finite = dpt_gpu_check_finite,
    .scale_update = dpt_gpu_scale_update,
    .ema = dpt_gpu_ema,
    .running = dpt_gpu_running_run,
    .scale = dpt_gpu_scale,
    .columns = dpt_gpu_columns_run,
    .batch_stats = dpt_gpu_batch_stats_run,
};
