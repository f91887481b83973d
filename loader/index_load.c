/* SPDX-License-Identifier: Apache-2.0 */
/* Taking an index from a file. Nothing in it is believed before its checksum and every place in it
 * were checked; it is used only when no folder changed since. */
#include "base/alloc.h"
#include "dpload.h"
#include "loader/index.h"
#include "loader/index_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* A folder that changed this shortly before it was listed may have changed once more without getting
 * another time stamp: file systems count in steps of up to 2 s. */
#define SETTLE_NS INT64_C(2000000000)

typedef struct view {
    const char *base;
    uint64_t len;
    const dpl_index_header *head;
    const dpl_index_class_record *classes;
    const dpl_index_folder_record *folders;
} view;

/* Do n items of `size` bytes fit at `at`? */
static int fits(const view *v, uint64_t at, uint64_t n, uint64_t size)
{
    return at <= v->len && n <= (v->len - at) / size;
}

static int is_text(const view *v, uint64_t at)
{
    return at < v->len && memchr(v->base + at, 0, (size_t)(v->len - at));
}

static int is_sound_class(const view *v, uint64_t k)
{
    const dpl_index_class_record *r = &v->classes[k];
    const uint32_t *offset;

    if (!is_text(v, r->title_at) || !fits(v, r->names_at, r->names_len, 1) || r->offset_at % 4 ||
        !fits(v, r->offset_at, r->count, sizeof *offset))
        return 0;
    if (k && strcmp(v->base + v->classes[k - 1].title_at, v->base + r->title_at) >= 0) return 0;
    if (!r->count) return 1;
    if (!r->names_len || v->base[r->names_at + r->names_len - 1]) return 0;
    offset = (const uint32_t *)(const void *)(v->base + r->offset_at);
    for (uint64_t i = 0; i < r->count; i++)
        if (offset[i] >= r->names_len) return 0;
    return 1;
}

/* Is every place inside the file? */
static int is_sound(view *v)
{
    const dpl_index_header *h = v->head;
    const uint64_t folders_at = sizeof *h + h->classes * sizeof *v->classes;
    uint64_t samples = 0;

    if (!fits(v, sizeof *h, h->classes, sizeof *v->classes) ||
        !fits(v, folders_at, h->folders, sizeof *v->folders))
        return 0;
    v->classes = (const dpl_index_class_record *)(const void *)(v->base + sizeof *h);
    v->folders = (const dpl_index_folder_record *)(const void *)(v->base + folders_at);
    for (uint64_t k = 0; k < h->classes; k++) {
        if (!is_sound_class(v, k)) return 0;
        samples += v->classes[k].count;
    }
    for (uint64_t k = 0; k < h->folders; k++)
        if (!is_text(v, v->folders[k].path_at)) return 0;
    return samples == h->samples && (!h->example_at || is_text(v, h->example_at));
}

/* @return 1 when no folder changed since the listing */
static int is_fresh(const view *v, int root_fd, const char *path, dpl_text *why)
{
    for (uint64_t k = 0; k < v->head->folders; k++) {
        const dpl_index_folder_record *r = &v->folders[k];
        const char *folder = v->base + r->path_at;
        struct stat st;
        dpl_stamp now;

        if (fstatat(root_fd, folder, &st, 0)) {
            dpl_fail(why, 0, "%s: %.512s: %s", path, folder, strerror(errno));
            return 0;
        }
        now = dpl_stamp_of(&st);
        if (now.ino != r->ino || now.mtime_ns != r->mtime_ns || now.ctime_ns != r->ctime_ns) {
            dpl_fail(why, 0, "%s: %.512s changed", path, folder);
            return 0;
        }
        if (now.mtime_ns > v->head->listed_ns - SETTLE_NS ||
            now.ctime_ns > v->head->listed_ns - SETTLE_NS) {
            dpl_fail(why, 0, "%s: %.512s changed while it was listed, or just before", path,
                     folder);
            return 0;
        }
    }
    return 1;
}

static dpl_index_file check(view *v, int root_fd, const char *path, dpl_text *why)
{
    static const size_t after = offsetof(dpl_index_header, bytes);
    const size_t begin = v->len < sizeof v->head->magic ? (size_t)v->len : sizeof v->head->magic;
    const unsigned char *summed = (const unsigned char *)v->base + after;

    if (memcmp(v->base, DPL_INDEX_MAGIC, begin) != 0) {
        dpl_fail(why, 0, "%s: not an index file", path);
        return DPL_INDEX_FILE_FOREIGN;
    }
    if (v->len < sizeof *v->head || v->head->version != DPL_INDEX_VERSION)
        dpl_fail(why, 0, "%s: %s", path,
                 v->len < sizeof *v->head ? "cut short" : "of another version or machine");
    else if (v->head->bytes != v->len)
        dpl_fail(why, 0, "%s: %llu bytes, written were %llu", path, (unsigned long long)v->len,
                 (unsigned long long)v->head->bytes);
    else if ((uint32_t)crc32_z(0, summed, (size_t)v->len - after) != v->head->crc || !is_sound(v))
        dpl_fail(why, 0, "%s: damaged", path);
    else if (is_fresh(v, root_fd, path, why))
        return DPL_INDEX_FILE_GOOD;
    return DPL_INDEX_FILE_STALE;
}

/* The index over what the view holds. @return DPL_OK or DPL_ENOMEM */
static int make(dpl_index *x, const view *v)
{
    const dpl_index_header *h = v->head;

    if (!(x->of = dpl_calloc((size_t)h->classes, sizeof *x->of))) return DPL_ENOMEM;
    for (uint64_t k = 0; k < h->classes; k++) {
        const dpl_index_class_record *r = &v->classes[k];

        x->of[k] = (dpl_index_class){ v->base + r->title_at, v->base + r->names_at,
                                      (const uint32_t *)(const void *)(v->base + r->offset_at),
                                      r->count, (size_t)r->names_len };
    }
    x->classes = h->classes;
    x->samples = h->samples;
    x->ignored = h->ignored;
    x->loose_pictures = h->loose_pictures;
    x->ignored_example = h->example_at ? v->base + h->example_at : NULL;
    x->listed_ns = h->listed_ns;
    x->bytes = (size_t)v->len + (size_t)h->classes * sizeof *x->of;
    return DPL_OK;
}

/* Open and map. @return GOOD: x->map is set (never 0 bytes) */
static dpl_index_file map_file(dpl_index *x, const char *path, dpl_text *why)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int missing = fd < 0 && errno == ENOENT;
    dpl_index_file found = missing ? DPL_INDEX_FILE_NONE : DPL_INDEX_FILE_FOREIGN;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        dpl_fail(why, 0, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        dpl_fail(why, 0, "%s: not an index file", path);
    } else if (!st.st_size) {
        dpl_fail(why, 0, "%s: empty", path);
        found = DPL_INDEX_FILE_NONE;
    } else {
        x->map_len = (size_t)st.st_size;
        x->map = mmap(NULL, x->map_len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (x->map == MAP_FAILED) {
            x->map = NULL;
            dpl_fail(why, 0, "%s: %s", path, strerror(errno));
        } else {
            found = DPL_INDEX_FILE_GOOD;
        }
    }
    if (fd >= 0) close(fd);
    return found;
}

dpl_index_file dpl_index_load(dpl_index *x, const char *path, int root_fd, dpl_text *why)
{
    dpl_index_file found;
    view v = { 0 };

    memset(x, 0, sizeof *x);
    if ((found = map_file(x, path, why)) == DPL_INDEX_FILE_GOOD) {
        v.base = x->map;
        v.len = x->map_len;
        v.head = x->map;
        found = check(&v, root_fd, path, why);
        if (found == DPL_INDEX_FILE_GOOD && make(x, &v)) {
            dpl_fail(why, 0, "%s: no memory to use it", path);
            found = DPL_INDEX_FILE_STALE;
        }
    }
    if (found != DPL_INDEX_FILE_GOOD) dpl_index_fini(x);
    return found;
}

void dpl_index_fini(dpl_index *x)
{
    for (uint64_t k = 0; x->lists && k < x->classes; k++) dpl_name_list_free(&x->lists[k]);
    free(x->lists);
    free(x->of);
    free(x->example);
    dpl_name_list_free(&x->titles);
    dpl_stamps_free(&x->stamps);
    if (x->map) munmap(x->map, x->map_len);
    memset(x, 0, sizeof *x);
}
