/* SPDX-License-Identifier: Apache-2.0 */
/* Between decode.c and the codecs: one picture under way, as it is stored (not turned). Sizes and
 * boxes here are in stored coordinates. */
#ifndef DPL_LOADER_DECODE_CODEC_H
#define DPL_LOADER_DECODE_CODEC_H

#include "loader/decode.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_jpeg dpl_jpeg; /* libjpeg's state; lives from picture to picture */
typedef struct dpl_png dpl_png;   /* the same for libpng */

typedef struct dpl_box {
    int x, y, w, h;
} dpl_box;

typedef struct dpl_picture {
    dpl_decode_limits limits;
    dpl_jpeg *jpeg;
    dpl_png *png;

    const uint8_t *bytes; /* borrowed from the caller of dpl_decode_begin() */
    size_t len;
    int width, height;
    int orientation; /* 1..8; 1 unless limits.exif */

    void *pixels; /* scratch that codecs decode into, grown with dpl_reserve() */
    size_t pixels_cap;
    uint64_t count;     /* pixels that came out of the codec */
    int warned;         /* 1 = complaint is set */
    dpl_text complaint; /* the first one */
} dpl_picture;

/** Note a complaint about a picture whose rows are all there; only the first is kept. */
void dpl_picture_complain(dpl_picture *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Set width and height when they are within the limits. To be called before anything that grows
 *  with the size is allocated. @return DPL_OK, DPL_EDATA */
int dpl_picture_set_size(dpl_picture *p, uint32_t width, uint32_t height, dpl_text *why);

/* Each codec: begin reads the header (p->bytes and p->len are set, orientation is 1); region decodes
 * at least the box, after a begin of its own. Statuses as in decode.h. */

int dpl_jpeg_create(dpl_jpeg **out);
void dpl_jpeg_destroy(dpl_jpeg **j);
int dpl_jpeg_begin(dpl_picture *p, dpl_text *why);
int dpl_jpeg_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                    dpl_text *why);

int dpl_png_create(dpl_png **out);
void dpl_png_destroy(dpl_png **d);
int dpl_png_begin(dpl_picture *p, dpl_text *why);
int dpl_png_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                   dpl_text *why);

int dpl_webp_begin(dpl_picture *p, dpl_text *why);
int dpl_webp_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                    dpl_text *why);

/** Where box lies in a picture of width x height as stored, when it is given as displayed. */
dpl_box dpl_turn_to_stored(int orientation, int width, int height, const dpl_box *box);

/** The other way round. */
dpl_box dpl_turn_to_displayed(int orientation, int width, int height, const dpl_box *box);

/** Copy w x h stored pixels to out as displayed, packed. */
void dpl_turn_pixels(uint8_t *out, int orientation, const uint8_t *rgb, size_t stride, int w,
                     int h);

#ifdef __cplusplus
}
#endif
#endif
