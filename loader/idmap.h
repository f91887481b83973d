/* SPDX-License-Identifier: Apache-2.0 */
/* A growing hash map from 64-bit keys to pointers: for what is known of few samples out of many. */
#ifndef DPL_LOADER_IDMAP_H
#define DPL_LOADER_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Starts zeroed. One thread at a time. */
typedef struct dpl_idmap {
    uint64_t *key;
    void **value; /* NULL = the place is empty */
    size_t cap;   /* a power of two, or 0 */
    size_t count;
} dpl_idmap;

/** The value of key, or NULL. */
void *dpl_idmap_get(const dpl_idmap *m, uint64_t key);
/** Set a key that is not there yet; value is not NULL. @return DPL_OK or DPL_ENOMEM */
int dpl_idmap_put(dpl_idmap *m, uint64_t key, void *value);
/** Free the map; with free_values also every value. */
void dpl_idmap_free(dpl_idmap *m, int free_values);

#ifdef __cplusplus
}
#endif
#endif
