/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg-turbo with nothing around it: what the loader's speed is measured against (limit.c). It
 * decodes a box as a caller would who trusts the file and needs no exact borders. */
#ifndef DPL_LOADER_DECODE_JPEG_BARE_H
#define DPL_LOADER_DECODE_JPEG_BARE_H

#include "loader/decode_codec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_bare dpl_bare;
int dpl_bare_create(dpl_bare **out); /* DPL_OK, DPL_ENOMEM */
void dpl_bare_destroy(dpl_bare **b);

/** Where a box, given as displayed in a picture of width x height as displayed, lies in the file. */
dpl_box dpl_bare_box(const uint8_t *bytes, size_t len, int exif, int width, int height,
                     const dpl_box *shown);

/** Decode a box of a JPEG scaled by 1/denominator: skip rows, crop columns, stop after the last row.
 *  The pixels are thrown away. @return DPL_OK, DPL_EDATA, DPL_ENOMEM */
int dpl_bare_decode(dpl_bare *b, const uint8_t *bytes, size_t len, const dpl_box *box,
                    int denominator);

#ifdef __cplusplus
}
#endif
#endif
