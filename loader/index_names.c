/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names and stamps of folders; see index_names.h. */
#include "loader/index_names.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>

int dpl_name_list_add(dpl_name_list *l, const char *prefix, const char *name)
{
    const size_t a = strlen(prefix), b = strlen(name);

    if (l->block_len > UINT32_MAX - a - b - 1) return DPL_ENOTSUP;
    if (dpl_grow((void **)&l->offset, &l->offset_cap, (size_t)l->count + 1, sizeof *l->offset) ||
        dpl_grow((void **)&l->block, &l->block_cap, l->block_len + a + b + 1, 1))
        return DPL_ENOMEM;
    memcpy(l->block + l->block_len, prefix, a);
    memcpy(l->block + l->block_len + a, name, b + 1);
    l->offset[l->count++] = (uint32_t)l->block_len;
    l->block_len += a + b + 1;
    return DPL_OK;
}

static int by_bytes(const void *a, const void *b, void *block)
{
    const char *names = block;

    return strcmp(names + *(const uint32_t *)a, names + *(const uint32_t *)b);
}

void dpl_name_list_sort(dpl_name_list *l)
{
    if (l->count > 1) qsort_r(l->offset, (size_t)l->count, sizeof *l->offset, by_bytes, l->block);
}

int64_t dpl_name_list_find(const dpl_name_list *l, const char *name)
{
    uint64_t lo = 0, hi = l->count;

    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(dpl_name_at(l, mid), name);

        if (!order) return (int64_t)mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

void dpl_name_list_trim(dpl_name_list *l)
{
    char *block = realloc(l->block, l->block_len + 1);
    uint32_t *offset = realloc(l->offset, ((size_t)l->count + 1) * sizeof *offset);

    if (block) {
        l->block = block;
        l->block_cap = l->block_len + 1;
    }
    if (offset) {
        l->offset = offset;
        l->offset_cap = (size_t)l->count + 1;
    }
}

size_t dpl_name_list_bytes(const dpl_name_list *l)
{
    return l->block_cap + l->offset_cap * sizeof *l->offset;
}

void dpl_name_list_free(dpl_name_list *l)
{
    free(l->block);
    free(l->offset);
    memset(l, 0, sizeof *l);
}

/* --- stamps --- */

static int64_t in_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

dpl_stamp dpl_stamp_of(const struct stat *st)
{
    return (dpl_stamp){ (uint64_t)st->st_ino, in_ns(st->st_mtim), in_ns(st->st_ctim) };
}

int dpl_stamps_add(dpl_stamps *s, const char *path, const dpl_stamp *stamp)
{
    int err;

    if (dpl_grow((void **)&s->stamp, &s->cap, (size_t)s->path.count + 1, sizeof *s->stamp))
        return DPL_ENOMEM;
    if ((err = dpl_name_list_add(&s->path, "", path))) return err;
    s->stamp[s->path.count - 1] = *stamp;
    return DPL_OK;
}

void dpl_stamps_free(dpl_stamps *s)
{
    dpl_name_list_free(&s->path);
    free(s->stamp);
    memset(s, 0, sizeof *s);
}
