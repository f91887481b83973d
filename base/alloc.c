/* SPDX-License-Identifier: Apache-2.0 */
/* Checked allocation; see alloc.h. */
#include "base/alloc.h"

#include "dpload.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

int dpl_mul(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}

void *dpl_calloc(size_t n, size_t size)
{
    size_t bytes;

    if (dpl_mul(n, size, &bytes)) return NULL; /* sanitizers end the process over it */
    return calloc(bytes ? bytes : 1, 1);
}

void *dpl_alloc_aligned(size_t n, size_t size)
{
    size_t bytes;

    if (dpl_mul(n, size, &bytes) || bytes > SIZE_MAX - ALIGN) return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return aligned_alloc(ALIGN, bytes ? bytes : ALIGN);
}

int dpl_grow(void **p, size_t *cap, size_t n, size_t size)
{
    size_t want = *cap ? *cap : 16, bytes;
    void *q;

    if (n <= *cap) return DPL_OK;
    while (want < n) {
        if (dpl_mul(want, 2, &want)) return DPL_ENOMEM;
    }
    if (dpl_mul(want, size, &bytes) || !(q = realloc(*p, bytes))) return DPL_ENOMEM;
    *p = q;
    *cap = want;
    return DPL_OK;
}

int dpl_reserve(void **p, size_t *cap, size_t n)
{
    void *q;

    if (n <= *cap) return DPL_OK;
    if (!(q = dpl_alloc_aligned(n, 1))) return DPL_ENOMEM;
    free(*p);
    *p = q;
    *cap = n;
    return DPL_OK;
}

char *dpl_strdup(const char *s)
{
    return s ? strdup(s) : NULL;
}
