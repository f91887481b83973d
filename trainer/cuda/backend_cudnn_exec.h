/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of cuDNN's executor: programs bound to memory. */
#ifndef DPT_TRAINER_CUDA_BACKEND_CUDNN_EXEC_H
#define DPT_TRAINER_CUDA_BACKEND_CUDNN_EXEC_H

#include "trainer/cuda/backend_cudnn_plan.h"
#include "trainer/cuda/gpu_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program with plans, and what its operations read and write. */
typedef struct dpt_cu_run {
    dpt_cu_prog p;
    int *which;                     /* [ops] number of the plan, -1 = none */
    cudnnBackendDescriptor_t *pack; /* [ops] arguments of the plan, NULL = none yet */
    void *base[DPT_CU_PLACES];      /* what the packs point into */
} dpt_cu_run;

struct dpt_gpu_exec {
    dpt_gpu_exec_options o;
    cudnnHandle_t handle;
    char *device; /* JSON */
    dpt_cu_plans plans;
    dpt_cu_run eval; /* for max_n: what a sample gives does not depend on the others */
    dpt_cu_run
        *train; /* one per number of samples, [0] for max_n: batch norm looks at all of them */
    size_t trains, train_cap;
    void *arena, *weights, *dweights, *workspace;
    size_t workspace_bytes, held;
    dpt_gpu_tensor *table;   /* device memory: weights, then those that have a typed gradient */
    int *gradient;           /* [weights + 1] how many before this one have a typed gradient */
    size_t *weight_elements; /* [weights] of each typed tensor, padding included */
    float *parts;            /* scratch of dpt_gpu_columns_run() */
    double *rows;            /* scratch of dpt_gpu_xent_run() */
    char line[512];          /* of describe() */
};

/** Plans and places for n samples. Nothing runs on the GPU. */
int dpt_cu_run_build(struct dpt_gpu_exec *e, dpt_cu_run *r, int n, int train, dpl_text *why);
void dpt_cu_run_fini(dpt_cu_run *r);
/** Device memory that is freed with the executor. */
int dpt_cu_alloc(struct dpt_gpu_exec *e, void **out, size_t bytes, const char *what, dpl_text *why);
/** The workspace as large as the largest plan's. */
int dpt_cu_workspace(struct dpt_gpu_exec *e, dpl_text *why);
/** Queue a step of the run. @return as dpt_gpu_exec_ops.train */
int dpt_cu_run_step(struct dpt_gpu_exec *e, dpt_cu_run *r, const dpt_gpu_step *s, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
