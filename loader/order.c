/* SPDX-License-Identifier: Apache-2.0 */
/* The keyed permutation and the arithmetic of batches, ranks and parts; see order.h. */
#include "loader/order.h"

#include "base/rng.h"

enum { ROUNDS = 8 }; /* the length of dpl_permutation.key */

void dpl_permutation_init_for(dpl_permutation *p, uint64_t n, uint64_t seed, uint64_t epoch,
                              uint64_t stream, int purpose)
{
    dpl_rng rng;

    p->n = n;
    p->half_bits = 4; /* small halves leave a round too few functions to mix evenly */
    while (p->half_bits < 32 && n > UINT64_C(1) << 2 * p->half_bits) p->half_bits++;
    dpl_rng_init(&rng, seed, epoch, stream, (dpl_purpose)purpose);
    for (int r = 0; r < ROUNDS; r++) p->key[r] = dpl_rng_u32(&rng);
}

void dpl_permutation_init(dpl_permutation *p, uint64_t n, uint64_t seed, uint64_t epoch)
{
    dpl_permutation_init_for(p, n, seed, epoch, 0, DPL_RNG_ORDER);
}

/* A 32-bit finaliser (xor-shift-multiply) of the half block and the round key. The top bits are
 * used: each depends on every input bit. */
static uint32_t round_bits(uint32_t half, uint32_t key, int bits)
{
    uint32_t h = (half + key) * UINT32_C(0x9E3779B1);

    h = (h ^ (h >> 16) ^ key) * UINT32_C(0x85EBCA6B);
    h = (h ^ (h >> 13)) * UINT32_C(0xC2B2AE35);
    return (h ^ (h >> 16)) >> (32 - bits);
}

static uint64_t feistel(const dpl_permutation *p, uint64_t v)
{
    const uint32_t mask = (uint32_t)((UINT64_C(1) << p->half_bits) - 1);
    uint32_t left = (uint32_t)(v >> p->half_bits) & mask, right = (uint32_t)v & mask;

    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t next = left ^ round_bits(right, p->key[r], p->half_bits);

        left = right;
        right = next;
    }
    return (uint64_t)left << p->half_bits | right;
}

uint64_t dpl_permutation_at(const dpl_permutation *p, uint64_t pos)
{
    /* The walk follows a cycle of the network that holds pos itself, so it comes back inside. */
    do pos = feistel(p, pos);
    while (pos >= p->n);
    return pos;
}

__extension__ typedef unsigned __int128 wide;

/* Floor and remainder of n * w / total, without overflow. */
static uint64_t share_of(uint64_t n, uint64_t w, uint64_t total, uint64_t *remainder)
{
    const wide product = (wide)n * w;

    *remainder = (uint64_t)(product % total);
    return (uint64_t)(product / total);
}

void dpl_split(uint64_t n, const int *weight, int k, uint64_t *out)
{
    uint64_t total = 0, left = n, rest;

    for (int i = 0; i < k; i++) total += weight ? (uint64_t)weight[i] : 1;
    for (int i = 0; i < k; i++) {
        out[i] = share_of(n, weight ? (uint64_t)weight[i] : 1, total, &rest);
        left -= out[i];
    }
    while (left) { /* fewer than k rounds: one more item for the largest remainder not served yet */
        uint64_t most = 0;
        int best = -1;

        for (int i = 0; i < k; i++) {
            const uint64_t floor = share_of(n, weight ? (uint64_t)weight[i] : 1, total, &rest);

            if (out[i] == floor && (best < 0 || rest > most)) {
                best = i;
                most = rest;
            }
        }
        out[best]++;
        left--;
    }
}

void dpl_steps_init(dpl_steps *s, uint64_t samples, uint64_t batch, int drop_last)
{
    const uint64_t full = samples / batch, tail = samples % batch;

    s->samples = samples;
    s->batch = batch;
    s->dropped = drop_last && full ? tail : 0;
    s->count = full + (tail && !s->dropped);
}

void dpl_steps_rank(const dpl_steps *s, uint64_t index, int rank, int world, uint64_t *first,
                    uint64_t *n)
{
    const uint64_t begin = index * s->batch, rest = s->samples - begin;
    const uint64_t size = rest < s->batch ? rest : s->batch;
    const uint64_t each = size / (uint64_t)world, extra = size % (uint64_t)world;
    const uint64_t r = (uint64_t)rank;

    *first = begin + each * r + (r < extra ? r : extra);
    *n = each + (r < extra);
}
