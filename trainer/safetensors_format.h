/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of safetensors files must agree on. */
#ifndef DPT_TRAINER_SAFETENSORS_FORMAT_H
#define DPT_TRAINER_SAFETENSORS_FORMAT_H

#include "trainer/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPT_ST_PREFIX = 8,             /* bytes of the header length */
    DPT_ST_HEADER_MAX = 100000000, /* the format's limit */
    DPT_ST_CRC_DIGITS = 8
};

struct dpt_st_file {
    dpt_st_tensor *tensor; /* [n], sorted by place */
    size_t *begin;         /* [n] place of tensor i in data */
    size_t n;
    uint8_t *data; /* [data_len] */
    size_t data_len;
    void *root; /* the parsed header; owns all names and metadata */
};

typedef struct dpt_st_dtype_info {
    const char *name;
    size_t size;
    int rank; /* the reference writer puts higher ranks first */
} dpt_st_dtype_info;

/** [DPT_ST_BOOL + 1], by dtype. */
extern const dpt_st_dtype_info dpt_st_dtypes[];

/** Where in the header the digits of the checksum begin, NULL = there is none. Both quotes and the
 *  character before them can stand like this only around a real key: inside a string the quotes
 *  would be escaped. */
char *dpt_st_crc_digits(char *header, size_t len);

/** CRC-32 of the whole file with zeros in the place of the digits (NULL: no such place). */
uint32_t dpt_st_crc(const char *header, size_t header_len, const char *digits);
uint32_t dpt_st_crc_more(uint32_t crc, const void *data, size_t len);

/** Header to tensors: f->root, tensor, begin, n and data_len are set.
 *  @param file_len  bytes of the whole file
 *  @return DPL_OK, DPL_EDATA, DPL_ENOMEM */
int dpt_st_parse(dpt_st_file *f, const char *path, const char *header, size_t header_len,
                 uint64_t file_len, dpl_text *why);
void dpt_st_parse_free(dpt_st_file *f);

#ifdef __cplusplus
}
#endif
#endif
