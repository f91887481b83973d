/* SPDX-License-Identifier: Apache-2.0 */
/* What objects made by nvcc call: they register their kernels by name when they are loaded, and launch
 * them by handle. Here the kernel that runs is its CPU twin, the same source through cuda_shim.hpp, which
 * must be in a library that is loaded too. */
#ifndef TESTS_FAKE_CUDA_FAKE_REGISTER_H
#define TESTS_FAKE_CUDA_FAKE_REGISTER_H

#include "tests/fake/cuda/cuda_shim_block.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A shimmed kernel is there. launch: as shim_enqueue() wants it, without sizes and args, which unpack
 *  makes of what cudaLaunchKernel() gets. @return 1 */
int fake_twin_add(void (*kernel)(void), const shim_launch *launch, void *(*unpack)(void **args));

/** Its name in the linker's table of its library, static functions too.
 *  @return NULL when not found; to be freed */
char *fake_symbol_name(const void *function);

#ifdef __cplusplus
}
#endif
#endif
