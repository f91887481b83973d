/* SPDX-License-Identifier: Apache-2.0 */
/* Checked allocation: products are checked for overflow, everything can fail with NULL. */
#ifndef DPL_BASE_ALLOC_H
#define DPL_BASE_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** n * size zeroed bytes, or NULL (also when the product overflows). free() it. n = 0 gives memory. */
void *dpl_calloc(size_t n, size_t size);

/** n * size bytes aligned to 64, contents undefined, rounded up to 64. free() it. */
void *dpl_alloc_aligned(size_t n, size_t size);

/** Grow *p (of *cap elements of size bytes) to at least n elements, doubling. Contents are kept.
 *  @return DPL_OK or DPL_ENOMEM; *p and *cap stay valid either way */
int dpl_grow(void **p, size_t *cap, size_t n, size_t size);

/** Make *p hold at least n bytes, aligned to 64; contents are lost when it grows.
 *  @return DPL_OK or DPL_ENOMEM; *p and *cap stay valid either way */
int dpl_reserve(void **p, size_t *cap, size_t n);

/** A copy of s, or NULL when s is NULL or memory ran out. free() it. */
char *dpl_strdup(const char *s);

/** a * b into *out. @return 0, or -1 when it overflows. */
int dpl_mul(size_t a, size_t b, size_t *out);

#ifdef __cplusplus
}
#endif
#endif
