/* SPDX-License-Identifier: Apache-2.0 */
/* Training on NVIDIA GPUs lies in a library of its own, opened only when GPUs are asked for: so dptrain
 * starts where neither a driver nor cuDNN nor NCCL is. */
#ifndef DPT_TRAINER_TRAINER_PLUGIN_H
#define DPT_TRAINER_TRAINER_PLUGIN_H

#include "trainer/team.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DPT_CUDA_PLUGIN       "libdptrain_cuda.so"
#define DPT_CUDA_PLUGIN_ENTRY "dpt_cuda_plugin"

struct dpt_gpu_kernels; /* trainer/cuda/gpu_kernels.h */
struct dpt_comm_calls;  /* trainer/cuda/comm.h */

/* What the entry of the plug-in returns. Both sides are built from one source tree: a plug-in of
 * another build is refused, not guessed at. */
typedef struct dpt_trainer_plugin {
    const char *version; /* DPL_VERSION */
    size_t ops_size;     /* sizeof(dpt_team_ops) */
    const dpt_team_ops *team;
    const struct dpt_gpu_kernels *kernels; /* for tests and tools */
    const struct dpt_comm_calls *comm;     /* the same */
} dpt_trainer_plugin;

typedef const dpt_trainer_plugin *dpt_trainer_plugin_entry(void);

/** Looked for where dpl_plugin_cuda() looks. Once loaded it stays.
 *  @return DPL_OK, DPL_ENOTSUP (not there, of another build, or a library it needs is missing: text says
 *          which), DPL_ENOMEM */
int dpt_plugin_cuda(const dpt_trainer_plugin **out, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
