/* SPDX-License-Identifier: Apache-2.0 */
/* Execution plans for the operations of programs on a device that is there or only described: building
 * needs no GPU. A set holds one plan per key. */
#ifndef DPT_TRAINER_CUDA_BACKEND_CUDNN_PLAN_H
#define DPT_TRAINER_CUDA_BACKEND_CUDNN_PLAN_H

#include "trainer/cuda/backend_cudnn_prog.h"

#include <cudnn.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPT_CU_OLDEST = 90800 }; /* cuDNN 9.8: the first that takes device properties */

/** @return DPL_OK, DPL_ENOTSUP (cuDNN is too old; why says which it is) */
int dpt_cu_version(dpl_text *why);

/** What cuDNN knows of a GPU, as JSON. free() it. @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE */
int dpt_cu_device_json(int gpu, char **json, dpl_text *why);

typedef struct dpt_cu_plan {
    char *key;
    cudnnBackendDescriptor_t d;
    int64_t workspace, engine;
    int tensor_core, nondeterministic;
    int compiled; /* at run time, by NVRTC */
    int convolution;
    int reloaded; /* from the cache */
} dpt_cu_plan;

typedef struct dpt_cu_plan_options {
    const char *device; /* JSON */
    size_t workspace_cap;
    const char *cache; /* folder, or NULL */
    int threads;       /* that build, >= 1 */
    /** Called first in each of these threads, or NULL. Where cuDNN calls CUDA in a thread that has
     *  chosen no GPU, it would start the first one: memory lost there, in every process. */
    void (*begin)(int gpu);
    int gpu;
    const int *cancel; /* as in dpt_exec_options */
    const char *skip;  /* [ops] 1 = leave this operation out, or NULL */
} dpt_cu_plan_options;

typedef struct dpt_cu_plans {
    dpt_cu_plan **plan;
    size_t plans, cap;
} dpt_cu_plans;

/** Add what p needs and the set has not; which[op] (of p->ops) gets the plan's number, -1 for what is no
 *  graph or was left out. @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ENOTSUP (no engine), DPL_ECANCELED;
 *  why names the layer, the operation and cuDNN's reason */
int dpt_cu_plans_add(dpt_cu_plans *s, const dpt_cu_prog *p, const dpt_cu_plan_options *o,
                     int *which, dpl_text *why);
void dpt_cu_plans_fini(dpt_cu_plans *s);

/** One plan, for the above; out->key is there. dev: of the device's JSON. */
int dpt_cu_plan_make(dpt_cu_plan *out, const dpt_cu_prog *p, size_t op,
                     const dpt_cu_plan_options *o, cudnnBackendDescriptor_t dev, dpl_text *why);
cudnnStatus_t dpt_cu_device_open(const char *json, cudnnBackendDescriptor_t *out);

/** The plan of out->key from the cache. @return 1 = it is there and good */
int dpt_cu_cache_load(dpt_cu_plan *out, const dpt_cu_plan_options *o, cudnnBackendDescriptor_t dev);
/** Best effort: a folder that cannot be written costs time at the next start, nothing else. */
void dpt_cu_cache_save(const dpt_cu_plan *plan, const dpt_cu_plan_options *o);

#ifdef __cplusplus
}
#endif
#endif
