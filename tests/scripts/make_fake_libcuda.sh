#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the C source of a libcuda.so.1 without a GPU, for building cuDNN's plans: it knows every name that the
# toolkit's stub exports (argument: that stub), finds no device, and pretends to load what was compiled. Everything
# else answers 34, cudaErrorStubLibrary. For tests only: nothing can run on it.
set -eu
stub=${1:?usage: make_fake_libcuda.sh STUB/libcuda.so}
cat <<'END'
/* made by make_fake_libcuda.sh */
#include <stddef.h>
static char handle[64];
static int give(void **out, int at) { *out = handle + at; return 0; }
int cuInit(unsigned flags) { (void)flags; return 100; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuLibraryLoadData(void **l, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f)
{ (void)code; (void)a; (void)b; (void)c; (void)d; (void)e; (void)f; return give(l, 0); }
int cuLibraryGetKernel(void **k, void *l, const char *name) { (void)l; (void)name; return give(k, 8); }
int cuLibraryUnload(void *l) { (void)l; return 0; }
int cuKernelGetFunction(void **f, void *k) { (void)k; return give(f, 16); }
int cuModuleLoadData(void **m, const void *image) { (void)image; return give(m, 24); }
int cuModuleLoadDataEx(void **m, const void *image, unsigned n, void *o, void *v)
{ (void)image; (void)n; (void)o; (void)v; return give(m, 24); }
int cuModuleGetFunction(void **f, void *m, const char *name) { (void)m; (void)name; return give(f, 32); }
int cuModuleUnload(void *m) { (void)m; return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { (void)f; (void)a; (void)v; return 0; }
int cuFuncGetAttribute(int *v, int a, void *f) { (void)a; (void)f; *v = 0; return 0; }
int cuKernelSetAttribute(int a, int v, void *k, int d) { (void)a; (void)v; (void)k; (void)d; return 0; }
int cuKernelGetAttribute(int *v, int a, void *k, int d) { (void)a; (void)k; (void)d; *v = 0; return 0; }
int cuGetErrorName(int e, const char **s) { (void)e; *s = "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int e, const char **s) { (void)e; *s = "no GPU: a fake driver"; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int threads, size_t shared)
{ (void)f; (void)threads; (void)shared; *n = 1; return 0; }
END
known='cuInit|cuDriverGetVersion|cuLibraryLoadData|cuLibraryGetKernel|cuLibraryUnload|cuKernelGetFunction'
known="$known|cuModuleLoadData|cuModuleLoadDataEx|cuModuleGetFunction|cuModuleUnload|cuFuncSetAttribute"
known="$known|cuFuncGetAttribute|cuKernelSetAttribute|cuKernelGetAttribute|cuGetErrorName|cuGetErrorString"
known="$known|cuOccupancyMaxActiveBlocksPerMultiprocessor"
nm -D --defined-only "$stub" | awk '{ sub(/@.*/, "", $3); print $3 }' | grep -E '^cu[A-Za-z0-9_]+$' | sort -u |
    grep -Evx "$known" | sed 's/.*/int &(void) { return 34; }/'
