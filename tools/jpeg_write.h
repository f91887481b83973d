/* SPDX-License-Identifier: Apache-2.0 */
/* A JPEG encoder for the sample maker and the tests: every kind of file that the decoder must take. */
#ifndef TOOLS_JPEG_WRITE_H
#define TOOLS_JPEG_WRITE_H

#include <stddef.h>
#include <stdint.h>

typedef enum tool_jpeg_color {
    TOOL_JPEG_YCC,  /* the usual one */
    TOOL_JPEG_GRAY, /* luma of the picture */
    TOOL_JPEG_RGB,  /* stored as RGB (Adobe transform 0) */
    TOOL_JPEG_CMYK, /* Adobe, inverted, transform 0 */
    TOOL_JPEG_YCCK  /* Adobe, inverted, transform 2 */
} tool_jpeg_color;

typedef struct tool_jpeg_spec {
    int quality;        /* 1..100 */
    int h_samp, v_samp; /* sampling factors 1..4 of the first component (and of black), the others
                           have 1; 0 = 2 for YCC and YCCK (4:2:0), else 1 */
    int progressive, arithmetic;
    int restart_rows; /* a restart marker every so many MCU rows, 0 = none */
    tool_jpeg_color color;
    int orientation; /* EXIF orientation 1..8 to write, 0 = no EXIF */
} tool_jpeg_spec;

/** Encode rgb [h][w][3]. *out is malloc'd. @return DPL_OK, DPL_ENOMEM, DPL_ENOTSUP (arithmetic coding
 *  is not in this libjpeg), DPL_EINVAL (libjpeg refuses the spec: more than 10 blocks in an MCU …) */
int tool_jpeg_write(const tool_jpeg_spec *spec, const uint8_t *rgb, int w, int h, uint8_t **out,
                    size_t *len);

#endif
