/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 and what is drawn from it; see rng.h. */
#include "base/rng.h"

#include <math.h>

/* Multipliers and key increments of the paper (section 3.3, table 2). */
static const uint32_t mul0 = 0xD2511F53, mul1 = 0xCD9E8D57;
static const uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;

void dpl_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)mul0 * c0, p1 = (uint64_t)mul1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += weyl0;
        k1 += weyl1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void dpl_rng_init(dpl_rng *r, uint64_t seed, uint64_t epoch, uint64_t sample, dpl_purpose purpose)
{
    r->key[0] = (uint32_t)seed;
    r->key[1] = (uint32_t)(seed >> 32);
    r->counter[0] = 0; /* counts the blocks of this stream */
    r->counter[1] = (uint32_t)sample;
    r->counter[2] = (uint32_t)(sample >> 32);
    r->counter[3] = (uint32_t)(epoch & 0xFFFFFFF) | (uint32_t)purpose << 28;
    r->used = 4;
}

uint32_t dpl_rng_u32(dpl_rng *r)
{
    if (r->used == 4) {
        dpl_philox4x32(r->counter, r->key, r->block);
        r->counter[0]++;
        r->used = 0;
    }
    return r->block[r->used++];
}

double dpl_rng_unit(dpl_rng *r)
{
    const uint64_t high = dpl_rng_u32(r) >> 5, low = dpl_rng_u32(r) >> 6;

    return (double)(high << 26 | low) * 0x1p-53;
}

double dpl_rng_uniform(dpl_rng *r, double lo, double hi)
{
    const double v = lo + (hi - lo) * dpl_rng_unit(r);

    return v < hi || hi <= lo ? v : nextafter(hi, lo); /* the sum may round up to hi */
}

/* Lemire, "Fast random integer generation in an interval", 2019: of the 2^32 draws the 2^32 mod n
 * that would make some results more frequent are drawn again. */
uint32_t dpl_rng_below(dpl_rng *r, uint32_t n)
{
    uint64_t product = (uint64_t)dpl_rng_u32(r) * n;

    if ((uint32_t)product < n) {
        const uint32_t surplus = -n % n;
        while ((uint32_t)product < surplus) product = (uint64_t)dpl_rng_u32(r) * n;
    }
    return (uint32_t)(product >> 32);
}

double dpl_rng_normal(dpl_rng *r)
{
    const double radius = sqrt(-2 * log(1 - dpl_rng_unit(r))); /* 1 - u is never 0 */

    return radius * cos(2 * M_PI * dpl_rng_unit(r));
}

/* In double, so that results do not depend on the last bits of the functions. */
void dpl_rng_normals(dpl_rng *r, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        const double u = ((double)dpl_rng_u32(r) + 0.5) * 0x1p-32;
        const double radius = sqrt(-2 * log(u));
        const double angle = 2 * M_PI * 0x1p-32 * (double)dpl_rng_u32(r);

        out[i] = (float)(radius * cos(angle));
        if (i + 1 < n) out[i + 1] = (float)(radius * sin(angle));
    }
}
