/* SPDX-License-Identifier: Apache-2.0 */
/* What dptrain can run on here: for --devices, and for `dptrain devices`. */
#ifndef DPT_TRAINER_DEVICES_H
#define DPT_TRAINER_DEVICES_H

#include "base/text.h"
#include "device/device.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPT_GPU_OLDEST = 8
}; /* major compute capability: kernels are built from there on (cuda.mk) */

typedef struct dpt_devices {
    dpl_gpu_info *gpu; /* [gpus] the visible ones; none of them is started */
    int gpus;
    dpl_text no_gpu;      /* why there is none, or "" */
    dpl_text no_training; /* why this program cannot train on any of them, or "" */
} dpt_devices;

/** Look, and say nothing. Where there is no GPU, training on them is looked for only when all is 1:
 *  opening its libraries takes a while. */
void dpt_devices_find(dpt_devices *d, int all);
void dpt_devices_free(dpt_devices *d);

/** "NVIDIA H200, 139.8 GiB, compute capability 9.0, PCI 0000:19:00.0"; with CUDA_VISIBLE_DEVICES after
 *  "GPU 2, ", which is what that calls it. */
const char *dpt_gpu_text(char *buf, size_t len, const dpl_gpu_info *g);

/** DPL_OK, or DPL_ENOTSUP and why this program cannot train on that GPU. */
int dpt_gpu_check(const dpl_gpu_info *g, dpl_text *why);

/** Are the GPUs numbered in another order than nvidia-smi does? 1 = they are; 0 = they are not;
 *  -1 = CUDA_VISIBLE_DEVICES names them by number and CUDA_DEVICE_ORDER leaves open what is counted. */
int dpt_gpu_order_differs(const dpl_gpu_info *gpu, int gpus);

/** The first clause of a message, for one that is a remark only: what stands before " (", ": " or ";". */
const char *dpt_first_clause(char *buf, size_t len, const char *text);

/** `dptrain devices [--json]`. @return a dpt_exit, and why it is not 0 */
int dpt_devices_main(int argc, char **argv, FILE *out, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
