/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's host code without a GPU: real descriptors, plans and arguments, memory and kernels over the
 * fake runtime, and stubs in place of the handle's calls and of execution (linked with --wrap), which
 * count. Prints what was asked for; numbers are not computed here.
 *
 *   exec_dry DEVICE.json NET SIDE BATCH TYPE */
#include "base/files.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_exec.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudnnStatus_t __wrap_cudnnCreate(cudnnHandle_t *h);
cudnnStatus_t __wrap_cudnnDestroy(cudnnHandle_t h);
cudnnStatus_t __wrap_cudnnSetStream(cudnnHandle_t h, cudaStream_t s);
cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack);
int __wrap_dpt_cu_device_json(int gpu, char **json, dpl_text *why);

static char place; /* the handle points at it */
static int executed, fail_at;
static const char *device_file;

cudnnStatus_t __wrap_cudnnCreate(cudnnHandle_t *h)
{
    *h = (cudnnHandle_t)(void *)&place;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t __wrap_cudnnDestroy(cudnnHandle_t h)
{
    return (void *)h == &place ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t __wrap_cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    (void)s;
    return (void *)h == &place ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack)
{
    if ((void *)h != &place || !plan || !pack) return CUDNN_STATUS_BAD_PARAM;
    return ++executed == fail_at ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

int __wrap_dpt_cu_device_json(int gpu, char **json, dpl_text *why)
{
    void *buf = NULL;
    size_t cap = 0, len = 0;
    const int err = dpl_read_file(AT_FDCWD, device_file, &buf, &cap, &len, 1 << 20, why);

    (void)gpu;
    *json = err ? NULL : calloc(len + 1, 1);
    if (*json) memcpy(*json, buf, len);
    for (size_t i = len; *json && i > 0 && (*json)[i - 1] == '\n';) (*json)[--i] = '\0';
    free(buf);
    return err ? err : *json ? DPL_OK : DPL_ENOMEM;
}

typedef struct seen {
    size_t last;
    int calls, stop_at;
} seen;

static int ready(void *arg, size_t from)
{
    seen *s = arg;

    if (from >= s->last) return DPL_EINTERNAL;
    s->last = from;
    return ++s->calls == s->stop_at ? DPL_ECLOSED : DPL_OK;
}

static void *device_bytes(size_t n, cudaStream_t stream)
{
    void *p = NULL;

    if (cudaMalloc(&p, n + 1) || cudaMemsetAsync(p, 0, n + 1, stream)) exit(3);
    return p;
}

static void report(const char *what, int err, const seen *s, const dpl_text *why)
{
    printf("%s: %d, %d plans run, %d times ready, from %zu%s%s\n", what, err, executed, s->calls,
           s->last, err ? ": " : "", err ? why->s : "");
    executed = 0;
}

static void steps(dpt_gpu_exec *e, const dpt_gpu_exec_ops *ops, const dpt_graph *g, int n,
                  cudaStream_t stream)
{
    const size_t floats = g->param_floats, side = (size_t)g->tensor[0].h;
    dpl_text why = { "" };
    seen s = { .last = floats };
    dpt_gpu_step step = { .n = n, .grad_scale = 1, .ready = ready, .arg = &s };

    step.pixels = device_bytes((size_t)n * side * side * 3, stream);
    step.labels = device_bytes((size_t)n * sizeof(int32_t), stream);
    step.params = device_bytes(floats * sizeof(float), stream);
    step.grads = device_bytes(floats * sizeof(float), stream);
    step.buffers = device_bytes((g->buffer_floats + 1) * sizeof(float), stream);
    step.batch_stats = device_bytes((g->buffer_floats + 1) * sizeof(float), stream);
    step.sums = device_bytes(DPT_GPU_SUMS * sizeof(double), stream);
    report("train", ops->train(e, &step, &why), &s, &why);
    s = (seen){ .last = floats };
    report("again", ops->train(e, &step, &why), &s, &why);
    s = (seen){ .last = floats };
    report("evaluate", ops->evaluate(e, &step, &why), &s, &why);
    step.n = n - 1;
    report("fewer", ops->train(e, &step, &why), &s, &why);
    s = (seen){ .last = floats, .stop_at = 1 };
    report("stopped", ops->train(e, &step, &why), &s, &why);
    s = (seen){ .last = floats };
    fail_at = 3;
    report("failed", ops->train(e, &step, &why), &s, &why);
    fail_at = 0;
    step.n = n + 1;
    report("too many", ops->train(e, &step, &why), &s, &why);
    cudaStreamSynchronize(stream);
    cudaFree((void *)(uintptr_t)step.pixels);
    cudaFree((void *)(uintptr_t)step.labels);
    cudaFree((void *)(uintptr_t)step.params);
    cudaFree((void *)(uintptr_t)step.buffers);
    cudaFree(step.grads);
    cudaFree(step.batch_stats);
    cudaFree(step.sums);
}

int main(int argc, char **argv)
{
    const dpt_gpu_exec_ops *ops = dpt_gpu_exec_linked();
    dpt_gpu_exec_options o = { .pixels = DPT_GPU_PIXELS_U8_NHWC, .std = { 1, 1, 1 } };
    dpt_gpu_exec *e = NULL;
    dpt_graph *g = NULL;
    dpl_text why = { "" };
    cudaStream_t stream;
    int err, fallback = 0, lines = 0;

    if (argc != 6 || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) return 2;
    device_file = argv[1];
    err = dpt_graph_build(&g, argv[2], 10, atoi(argv[3]), atoi(argv[3]), &why);
    o.graph = g;
    o.stream = stream;
    o.max_n = atoi(argv[4]);
    o.type = strcmp(argv[5], "fp32") == 0 ? DPT_GPU_FP32 : DPT_GPU_BF16;
    if (!err) err = ops->create(&e, &o, &why);
    if (!err) {
        steps(e, ops, g, o.max_n, stream);
        printf("%s\n", ops->describe(e, 0, &fallback));
        while (ops->describe(e, lines, &fallback)) lines++;
        printf("%d lines, fallback %d, memory %d\n", lines, fallback, ops->memory(e) > 0);
    }
    ops->destroy(&e);
    dpt_graph_destroy(&g);
    cudaStreamDestroy(stream);
    if (err) fprintf(stderr, "exec_dry: %s\n", why.s);
    return err ? 1 : 0;
}
