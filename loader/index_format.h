/* SPDX-License-Identifier: Apache-2.0 */
/* The index file: header, classes, folders, then text. Numbers are as the machine has them, places
 * are bytes from the beginning of the file, texts end with NUL. It is a cache, made for the machine
 * that wrote it: another byte order or version is listed anew. */
#ifndef DPL_LOADER_INDEX_FORMAT_H
#define DPL_LOADER_INDEX_FORMAT_H

#include <stdint.h>

#define DPL_INDEX_MAGIC "DPLINDEX" /* 8 bytes, without the NUL */
enum { DPL_INDEX_VERSION = 1 };

typedef struct dpl_index_header {
    char magic[8];
    uint32_t version; /* read as 1 only in the byte order that wrote it */
    uint32_t crc;     /* CRC-32 of everything after this field */
    uint64_t bytes;   /* of the whole file */
    uint64_t classes, folders, samples, ignored, loose_pictures;
    uint64_t example_at; /* path of an ignored file, 0 = none */
    int64_t listed_ns;   /* wall clock when the listing began */
} dpl_index_header;

/* [classes], sorted by title. Offsets are aligned to 4. */
typedef struct dpl_index_class_record {
    uint64_t title_at, names_at, names_len, offset_at, count;
} dpl_index_class_record;

/* [folders] */
typedef struct dpl_index_folder_record {
    uint64_t path_at, ino;
    int64_t mtime_ns, ctime_ns;
} dpl_index_folder_record;

#endif
