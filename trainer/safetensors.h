/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors file format: u64 header length, JSON header, data. Written as the reference writer
 * does (data sorted by dtype, widest first, then name; header padded to 8 bytes with spaces), with a
 * CRC-32 over the whole file kept in __metadata__. */
#ifndef DPT_TRAINER_SAFETENSORS_H
#define DPT_TRAINER_SAFETENSORS_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpt_st_dtype {
    DPT_ST_F32,
    DPT_ST_F16,
    DPT_ST_BF16,
    DPT_ST_F64,
    DPT_ST_I64,
    DPT_ST_I32,
    DPT_ST_U8,
    DPT_ST_BOOL
} dpt_st_dtype;

typedef struct dpt_st_tensor {
    const char *name;
    dpt_st_dtype dtype;
    int dims; /* 0 = scalar */
    int64_t shape[8];
    const void *data; /* C order, little-endian */
    size_t bytes;
} dpt_st_tensor;

typedef struct dpt_st_meta {
    const char *key, *value;
} dpt_st_meta;

/** Write path atomically (temporary file, fsync, rename, fsync of the folder). "format":"pt", the
 *  checksum "crc32" (8 hex digits, computed with "00000000" in their place) and "written_by", whose
 *  presence says that a checksum must be there, are added to the metadata. Names must differ and
 *  sizes must fit. On an error the old file is untouched.
 *  @param crc  out: the checksum; may be NULL
 *  @return DPL_OK, DPL_EIO, DPL_ENOMEM; why names path, cause, the bytes needed and those free */
int dpt_st_write(const char *path, const dpt_st_tensor *t, size_t n, const dpt_st_meta *meta,
                 size_t n_meta, uint32_t *crc, dpl_text *why);

typedef struct dpt_st_file dpt_st_file;

/** Open and check: sizes against the file, no gap, no overlap, no duplicate, known dtypes, header at
 *  most 100,000,000 bytes, checksum when there is one. No length field is believed before it was
 *  compared with the file's size, so that memory stays in proportion to the file.
 *  Pickle (.pth) and zip files are refused by their first bytes.
 *  @return DPL_OK, DPL_EIO, DPL_EDATA, DPL_ENOMEM; why names path, expected and found */
int dpt_st_open(dpt_st_file **out, const char *path, dpl_text *why);
void dpt_st_close(dpt_st_file **f);

size_t dpt_st_count(const dpt_st_file *f);
/** Tensor i, in the order of the data; data points into the file's memory until close and is aligned
 *  only as the file has it. NULL when out of range. */
const dpt_st_tensor *dpt_st_at(const dpt_st_file *f, size_t i);
const dpt_st_tensor *dpt_st_find(const dpt_st_file *f, const char *name);
/** Metadata value or NULL. */
const char *dpt_st_meta_get(const dpt_st_file *f, const char *key);
/** A metadata value that is a JSON list of strings. *out [*n]: dpt_st_list_free().
 *  @return DPL_OK; DPL_EDATA (not such a list, or no such key); DPL_ENOMEM */
int dpt_st_meta_list(const dpt_st_file *f, const char *key, char ***out, size_t *n);
void dpt_st_list_free(char ***list, size_t n);

#ifdef __cplusplus
}
#endif
#endif
