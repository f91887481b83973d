/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an index file; see index_format.h. */
#include "base/files.h"
#include "dpload.h"
#include "loader/index.h"
#include "loader/index_format.h"

#include <stddef.h>
#include <string.h>
#include <zlib.h>

/* Two rounds of the same calls: the first finds places, the second writes. */
typedef struct writer {
    FILE *f; /* write errors are found by the commit */
    uint64_t at;
    uint32_t crc;
} writer;

static void put(writer *w, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    w->at += len;
    if (!len) return;
    w->crc = (uint32_t)crc32_z(w->crc, p, len);
    fwrite(p, 1, len, w->f);
}

static void put_padding(writer *w)
{
    static const char zero[4];

    put(w, zero, -w->at & 3);
}

static uint64_t padded(uint64_t n)
{
    return (n + 3) & ~UINT64_C(3);
}

/* Where each class's names and offsets come to lie, from `at` on. */
static uint64_t put_classes(writer *w, const dpl_index *x, uint64_t titles_at, uint64_t at)
{
    for (uint64_t k = 0; k < x->classes; k++) {
        const dpl_index_class *c = &x->of[k];
        const dpl_index_class_record r = { titles_at, at, c->names_len, padded(at + c->names_len),
                                           c->count };

        titles_at += strlen(c->title) + 1;
        at = r.offset_at + c->count * sizeof *c->offset;
        put(w, &r, sizeof r);
    }
    return at;
}

static void put_folders(writer *w, const dpl_index *x, uint64_t paths_at)
{
    const dpl_stamps *s = &x->stamps;

    for (uint64_t k = 0; k < s->path.count; k++) {
        const dpl_stamp *t = &s->stamp[k];
        const dpl_index_folder_record r = { paths_at, t->ino, t->mtime_ns, t->ctime_ns };

        paths_at += strlen(dpl_name_at(&s->path, k)) + 1;
        put(w, &r, sizeof r);
    }
}

static void put_text(writer *w, const char *s)
{
    put(w, s, strlen(s) + 1);
}

static uint64_t titles_len(const dpl_index *x)
{
    uint64_t n = 0;

    for (uint64_t k = 0; k < x->classes; k++) n += strlen(x->of[k].title) + 1;
    return n;
}

static void write_all(writer *w, const dpl_index *x)
{
    const uint64_t folders = x->stamps.path.count;
    const uint64_t titles_at = sizeof(dpl_index_header) +
                               x->classes * sizeof(dpl_index_class_record) +
                               folders * sizeof(dpl_index_folder_record);
    const uint64_t paths_at = titles_at + titles_len(x);
    const uint64_t example_at = paths_at + x->stamps.path.block_len;
    const uint64_t names_at =
        example_at + (x->ignored_example ? strlen(x->ignored_example) + 1 : 0);
    dpl_index_header h = { .version = DPL_INDEX_VERSION,
                           .classes = x->classes,
                           .folders = folders,
                           .samples = x->samples,
                           .ignored = x->ignored,
                           .loose_pictures = x->loose_pictures,
                           .example_at = x->ignored_example ? example_at : 0,
                           .listed_ns = x->listed_ns };
    static const size_t after = offsetof(dpl_index_header, bytes);
    uint64_t end = names_at;

    memcpy(h.magic, DPL_INDEX_MAGIC, sizeof h.magic);
    for (uint64_t k = 0; k < x->classes; k++)
        end = padded(end + x->of[k].names_len) + x->of[k].count * sizeof(uint32_t);
    h.bytes = end;
    put(w, &h, after); /* once more when the checksum is known */
    w->crc = 0;
    put(w, (const char *)&h + after, sizeof h - after);
    put_classes(w, x, titles_at, names_at);
    put_folders(w, x, paths_at);
    for (uint64_t k = 0; k < x->classes; k++) put_text(w, x->of[k].title);
    for (uint64_t k = 0; k < folders; k++) put_text(w, dpl_name_at(&x->stamps.path, k));
    if (x->ignored_example) put_text(w, x->ignored_example);
    for (uint64_t k = 0; k < x->classes; k++) {
        put(w, x->of[k].names, x->of[k].names_len);
        put_padding(w);
        put(w, x->of[k].offset, (size_t)x->of[k].count * sizeof(uint32_t));
    }
    h.crc = w->crc;
    if (!fseek(w->f, 0, SEEK_SET)) fwrite(&h, 1, sizeof h, w->f);
}

int dpl_index_save(const dpl_index *x, const char *path, dpl_text *why)
{
    dpl_replace r;
    writer w = { 0 };
    const int err = dpl_replace_open(&r, path, why);

    if (err) return err;
    w.f = r.f;
    write_all(&w, x);
    return dpl_replace_commit(&r, why);
}
