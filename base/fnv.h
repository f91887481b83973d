/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, 64 bits: a name or a check sum for bytes that nobody forges. */
#ifndef DPL_BASE_FNV_H
#define DPL_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DPL_FNV_START UINT64_C(0xcbf29ce484222325)

/** The sum of what h is the sum of (DPL_FNV_START: of nothing) and these bytes behind it. */
static inline uint64_t dpl_fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;

    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

#ifdef __cplusplus
}
#endif
#endif
