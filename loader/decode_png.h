/* SPDX-License-Identifier: Apache-2.0 */
/* PNG's container without libpng: header, checksums, EXIF data, the end. */
#ifndef DPL_LOADER_DECODE_PNG_H
#define DPL_LOADER_DECODE_PNG_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_png_chunks {
    const uint8_t *exif; /* TIFF data, NULL = none */
    size_t exif_len;
    int ended; /* the IEND chunk is there */
} dpl_png_chunks;

/** Width and height from signature and IHDR, which must come first. @return DPL_OK, DPL_EDATA */
int dpl_png_header(const uint8_t *bytes, size_t len, uint32_t *width, uint32_t *height,
                   dpl_text *why);

/** Walk all chunks behind the signature and check their sums. A file that ends inside its pixel data
 *  is refused; one that ends behind it only lacks `ended`. @return DPL_OK, DPL_EDATA */
int dpl_png_walk(const uint8_t *bytes, size_t len, dpl_png_chunks *out, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
