/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full; see idmap.h. */
#include "loader/idmap.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

/* The place of key, or the empty place where it belongs. */
static size_t place_of(const dpl_idmap *m, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (m->cap - 1);

    while (m->value[i] && m->key[i] != key) i = (i + 1) & (m->cap - 1);
    return i;
}

void *dpl_idmap_get(const dpl_idmap *m, uint64_t key)
{
    return m->cap ? m->value[place_of(m, key)] : NULL;
}

static int grow(dpl_idmap *m)
{
    dpl_idmap big = { .cap = m->cap ? 2 * m->cap : FIRST_CAP, .count = m->count };

    big.key = dpl_calloc(big.cap, sizeof *big.key);
    big.value = dpl_calloc(big.cap, sizeof *big.value);
    if (!big.key || !big.value) {
        dpl_idmap_free(&big, 0);
        return DPL_ENOMEM;
    }
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->value[i]) continue;
        const size_t at = place_of(&big, m->key[i]);

        big.key[at] = m->key[i];
        big.value[at] = m->value[i];
    }
    dpl_idmap_free(m, 0);
    *m = big;
    return DPL_OK;
}

int dpl_idmap_put(dpl_idmap *m, uint64_t key, void *value)
{
    size_t at;

    if (2 * (m->count + 1) > m->cap && grow(m)) return DPL_ENOMEM;
    at = place_of(m, key);
    m->key[at] = key;
    m->value[at] = value;
    m->count++;
    return DPL_OK;
}

void dpl_idmap_free(dpl_idmap *m, int free_values)
{
    for (size_t i = 0; free_values && i < m->cap; i++) free(m->value[i]);
    free(m->key);
    free(m->value);
    memset(m, 0, sizeof *m);
}
