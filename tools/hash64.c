/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64; see hash64.h. Names follow the specification. */
#include "tools/hash64.h"

#include <string.h>

enum { STRIPE = 32 };

static const uint64_t prime1 = 0x9E3779B185EBCA87U, prime2 = 0xC2B2AE3D27D4EB4FU,
                      prime3 = 0x165667B19E3779F9U, prime4 = 0x85EBCA77C2B2AE63U,
                      prime5 = 0x27D4EB2F165667C5U;

static uint64_t rotate(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

/* n little-endian bytes */
static uint64_t load(const uint8_t *p, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static uint64_t round64(uint64_t lane, uint64_t in)
{
    return rotate(lane + in * prime2, 31) * prime1;
}

static void stripe(tool_hash64 *h, const uint8_t *p)
{
    for (int i = 0; i < 4; i++) { h->lane[i] = round64(h->lane[i], load(p + 8 * i, 8)); }
}

void tool_hash64_init(tool_hash64 *h)
{
    memset(h, 0, sizeof *h);
    h->lane[0] = prime1 + prime2;
    h->lane[1] = prime2;
    h->lane[3] = 0 - prime1;
}

void tool_hash64_add(tool_hash64 *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    const size_t held = h->total % STRIPE;

    h->total += len;
    if (held) {
        const size_t n = len < STRIPE - held ? len : STRIPE - held;

        memcpy(h->wait + held, p, n);
        if (held + n < STRIPE) return;
        stripe(h, h->wait);
        p += n;
        len -= n;
    }
    for (; len >= STRIPE; len -= STRIPE, p += STRIPE) stripe(h, p);
    if (len) memcpy(h->wait, p, len);
}

uint64_t tool_hash64_value(const tool_hash64 *h)
{
    const uint8_t *p = h->wait;
    size_t left = h->total % STRIPE;
    uint64_t v = prime5;

    if (h->total >= STRIPE) {
        v = rotate(h->lane[0], 1) + rotate(h->lane[1], 7) + rotate(h->lane[2], 12) +
            rotate(h->lane[3], 18);
        for (int i = 0; i < 4; i++) v = (v ^ round64(0, h->lane[i])) * prime1 + prime4;
    }
    v += h->total;
    for (; left >= 8; left -= 8, p += 8) {
        v = rotate(v ^ round64(0, load(p, 8)), 27) * prime1 + prime4;
    }
    if (left >= 4) {
        v = rotate(v ^ load(p, 4) * prime1, 23) * prime2 + prime3;
        p += 4;
        left -= 4;
    }
    for (; left; left--, p++) v = rotate(v ^ *p * prime5, 11) * prime1;
    v = (v ^ v >> 33) * prime2;
    v = (v ^ v >> 29) * prime3;
    return v ^ v >> 32;
}
