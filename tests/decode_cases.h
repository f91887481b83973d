/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoder tests share: limits, a whole decode, boxes. */
#ifndef TESTS_DECODE_CASES_H
#define TESTS_DECODE_CASES_H

#include "loader/decode.h"

#include <stddef.h>
#include <stdint.h>

typedef struct decode_result {
    int status, warned, width, height; /* size as displayed */
    uint8_t *rgb;                      /* packed; NULL unless status is DPL_OK */
    dpl_text why;
} decode_result;

/** exact, EXIF applied, the default limits */
dpl_decode_limits decode_limits(void);

/** Begin and decode the whole picture. free() rgb. */
decode_result decode_whole(dpl_decoder *d, const uint8_t *bytes, size_t len);

/** Same with a decoder made for this one call. */
decode_result decode_once(const dpl_decode_limits *limits, const uint8_t *bytes, size_t len);

/** Pixels px equal the same part of whole, a packed picture width wide. */
int decode_same(const dpl_pixels *px, const uint8_t *whole, int width);

/** Mean absolute difference of n bytes. */
double decode_difference(const uint8_t *a, const uint8_t *b, size_t n);

/** FNV-1a of n bytes. */
uint64_t decode_hash(const void *data, size_t n);

#endif
