/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64 (the xxHash specification, 64 bits, seed 0) over data that comes in pieces. */
#ifndef TOOLS_HASH64_H
#define TOOLS_HASH64_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tool_hash64 {
    uint64_t lane[4];
    uint64_t total;   /* bytes so far */
    uint8_t wait[32]; /* bytes that do not fill a stripe yet: total % 32 of them */
} tool_hash64;

void tool_hash64_init(tool_hash64 *h);
void tool_hash64_add(tool_hash64 *h, const void *data, size_t len);
uint64_t tool_hash64_value(const tool_hash64 *h);

#ifdef __cplusplus
}
#endif
#endif
