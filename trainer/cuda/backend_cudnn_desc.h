/* SPDX-License-Identifier: Apache-2.0 */
/* An operation of a program as cuDNN's backend descriptors, without a handle: nothing here needs a GPU. */
#ifndef DPT_TRAINER_CUDA_BACKEND_CUDNN_DESC_H
#define DPT_TRAINER_CUDA_BACKEND_CUDNN_DESC_H

#include "trainer/cuda/backend_cudnn_prog.h"

#include <cudnn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptors that were made and go together; the first failure sticks. */
enum { DPT_CU_DESCS = 128 };
typedef struct dpt_cu_descs {
    cudnnBackendDescriptor_t d[DPT_CU_DESCS];
    int n;
    cudnnStatus_t status;
    const char *what; /* what failed */
} dpt_cu_descs;

cudnnBackendDescriptor_t dpt_cu_desc_new(dpt_cu_descs *l, cudnnBackendDescriptorType_t type);
void dpt_cu_desc_set(dpt_cu_descs *l, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t n, const void *values);
void dpt_cu_desc_link(dpt_cu_descs *l, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t other);
void dpt_cu_desc_done(dpt_cu_descs *l, cudnnBackendDescriptor_t d, const char *what);
void dpt_cu_descs_free(dpt_cu_descs *l);

/** "finalize the plan: CUDNN_STATUS_… (cuDNN's own words)" into why. @return DPL_ENOMEM, DPL_ENOTSUP
 *  or DPL_EDEVICE */
int dpt_cu_fail(cudnnStatus_t s, const char *what, dpl_text *why);

/** The operation graph of operation `op`; tensor i of its key has unique id i + 1. NULL after a failure,
 *  which l tells of. */
cudnnBackendDescriptor_t dpt_cu_desc_graph(dpt_cu_descs *l, const dpt_cu_prog *p, size_t op,
                                           const int local[DPT_CU_LOCAL], int locals);

#ifdef __cplusplus
}
#endif
#endif
