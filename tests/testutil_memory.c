/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded memory, and the instruction sets that tests run at; see testutil.h. Without libraries, so that
 * kernel tests can be built for another architecture. */
#include "tests/testutil.h"

#include "base/cpu.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 64, CANARY_BYTE = 0xC5, FILL_BYTE = 0x5A, MAX_BLOCKS = 4096 };

typedef struct block {
    void *start;
    size_t mapped; /* 0: from aligned_alloc() */
} block;

static block blocks[MAX_BLOCKS];
static int n_blocks;

static void keep_block(void *start, size_t mapped)
{
    if (n_blocks == MAX_BLOCKS) fail_msg("test_free_all() was not called often enough");
    blocks[n_blocks++] = (block){ start, mapped };
}

static dpl_rng stream(uint64_t seed)
{
    dpl_rng r;

    dpl_rng_init(&r, seed, 0, 0, DPL_RNG_MIX);
    return r;
}

uint8_t *test_guarded_bytes(size_t n, uint64_t seed)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t open = (n + page - 1) / page * page;
    uint8_t *start =
        mmap(NULL, open + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *bytes = start + open - n;
    dpl_rng r = stream(seed);

    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(mprotect(start + open, page, PROT_NONE), 0);
    keep_block(start, open + page);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)dpl_rng_u32(&r);
    return bytes;
}

void *test_canary(size_t n)
{
    const size_t bytes = (n + 2 * CANARY + CANARY - 1) / CANARY * CANARY;
    uint8_t *start = aligned_alloc(CANARY, bytes);

    assert_non_null(start);
    memset(start, CANARY_BYTE, bytes);
    memset(start + CANARY, FILL_BYTE, n);
    keep_block(start, 0);
    return start + CANARY;
}

int test_canary_ok(const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < CANARY; i++) {
        if (*(bytes - CANARY + i) != CANARY_BYTE || bytes[n + i] != CANARY_BYTE) return 0;
    }
    return 1;
}

void test_free_all(void)
{
    while (n_blocks) {
        const block b = blocks[--n_blocks];
        if (b.mapped)
            munmap(b.start, b.mapped);
        else
            free(b.start);
    }
}

unsigned test_cpu(void)
{
    return dpl_cpu_flags();
}
