/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded bytes to RGB pixels. The format is told by the first bytes, never by a name. One decoder
 * belongs to one thread; nothing here keeps global state. */
#ifndef DPL_LOADER_DECODE_H
#define DPL_LOADER_DECODE_H

#include "augment/augment.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_format {
    DPL_FORMAT_UNKNOWN = 0,
    DPL_FORMAT_JPEG,
    DPL_FORMAT_PNG,
    DPL_FORMAT_WEBP
} dpl_format;

/** Format by first bytes. For others *name is what it looks like: "GIF", "BMP", "TIFF", "HTML",
 *  "gzip", "ZIP", "PDF", "HEIF", "AVIF", "JPEG 2000", "JPEG XL", "PSD", "text", "zeros", or "unknown
 *  content (xx xx xx xx)" written to buf. len may be 0. */
dpl_format dpl_sniff(const uint8_t *bytes, size_t len, const char **name, char buf[64]);

typedef struct dpl_decode_limits {
    uint64_t max_pixels;
    int max_scans;
    int exact;  /* 1 = accurate IDCT, fancy upsampling, region bit-equal to a full decode */
    int exif;   /* 1 = apply the orientation */
    int strict; /* 1 = any warning is an error */
} dpl_decode_limits;

typedef struct dpl_decoder dpl_decoder;
int dpl_decoder_create(dpl_decoder **out, const dpl_decode_limits *limits);
void dpl_decoder_destroy(dpl_decoder **d);

/** Read the header of one picture. bytes stay borrowed until the next begin, or destroy.
 *  width, height: as displayed (after orientation when it is applied).
 *  @return DPL_OK; DPL_EDATA with the reason in why ("GIF is not supported", "empty file",
 *          "70000x70000 pixels, the limit is 178956970 (max_pixels)" …); DPL_ENOMEM */
int dpl_decode_begin(dpl_decoder *d, const uint8_t *bytes, size_t len, int *width, int *height,
                     dpl_text *why);

/** Decode at least the region (x, y, w, h of the picture as displayed), scaled down by denominator
 *  (1, 2, 4, 8; formats that cannot, and turned pictures, may use a smaller one: see out->denominator).
 *  out stays valid until the next call on d.
 *  warned: 1 when every row is there but the codec complained (first complaint in why). Damage that
 *  lies behind the region may go unseen; what is seen is a function of bytes, region and limits.
 *  @return DPL_OK, DPL_EDATA (why; rows missing, or strict and warned), DPL_ENOMEM */
int dpl_decode_region(dpl_decoder *d, int x, int y, int w, int h, int denominator, dpl_pixels *out,
                      int *warned, dpl_text *why);

/** Pixels that came out of the codec in the last dpl_decode_region(). */
uint64_t dpl_decode_count(const dpl_decoder *d);

/** Free scratch memory above keep bytes (after an unusually large picture). */
void dpl_decoder_trim(dpl_decoder *d, size_t keep);

#ifdef __cplusplus
}
#endif
#endif
