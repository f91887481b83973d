/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG encoder of the sample maker and the tests; see jpeg_write.h. Memory that must survive
 * libjpeg's non-local jump lives in struct writer, which the caller of the jump frame owns. */
#include "tools/jpeg_write.h"

#include "dpload.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum { FIRST_BUFFER = 16384 };

typedef struct writer {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_destination_mgr dest;
    jmp_buf jump;
    uint8_t *buf; /* the file so far; the destination writes into it */
    size_t cap;
    uint8_t *row; /* one CMYK row */
} writer;

static void on_error(j_common_ptr c)
{
    longjmp(((writer *)c->client_data)->jump, 1);
}

static void on_message(j_common_ptr c, int level)
{
    (void)c;
    (void)level;
}

static void dest_init(j_compress_ptr c)
{
    writer *w = c->client_data;

    w->dest.next_output_byte = w->buf;
    w->dest.free_in_buffer = w->cap;
}

static boolean dest_full(j_compress_ptr c)
{
    writer *w = c->client_data;
    uint8_t *bigger = realloc(w->buf, 2 * w->cap);

    if (!bigger) ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    w->buf = bigger;
    w->dest.next_output_byte = w->buf + w->cap;
    w->dest.free_in_buffer = w->cap;
    w->cap *= 2;
    return TRUE;
}

static void dest_end(j_compress_ptr c)
{
    (void)c;
}

/* Ink as Adobe stores it, inverted: 255 = none. Undone by rgb = ink * black / 255. */
static void row_to_cmyk(uint8_t *out, const uint8_t *rgb, int w)
{
    for (int x = 0; x < w; x++, rgb += 3, out += 4) {
        int max = rgb[0] > rgb[1] ? rgb[0] : rgb[1];

        if (rgb[2] > max) max = rgb[2];
        for (int k = 0; k < 3; k++) out[k] = (uint8_t)(max ? (rgb[k] * 255 + max / 2) / max : 255);
        out[3] = (uint8_t)max;
    }
}

static J_COLOR_SPACE stored_space(tool_jpeg_color color)
{
    switch (color) {
    case TOOL_JPEG_YCC: return JCS_YCbCr;
    case TOOL_JPEG_GRAY: return JCS_GRAYSCALE;
    case TOOL_JPEG_RGB: return JCS_RGB;
    case TOOL_JPEG_CMYK: return JCS_CMYK;
    case TOOL_JPEG_YCCK: return JCS_YCCK;
    }
    return JCS_YCbCr;
}

static void set_parameters(j_compress_ptr c, const tool_jpeg_spec *spec)
{
    jpeg_set_defaults(c);
    jpeg_set_colorspace(c, stored_space(spec->color));
    jpeg_set_quality(c, spec->quality, TRUE);
    if (spec->h_samp) c->comp_info[0].h_samp_factor = spec->h_samp;
    if (spec->v_samp) c->comp_info[0].v_samp_factor = spec->v_samp;
    if (c->num_components == 4) { /* black is as fine as the first component */
        c->comp_info[3].h_samp_factor = c->comp_info[0].h_samp_factor;
        c->comp_info[3].v_samp_factor = c->comp_info[0].v_samp_factor;
    }
    c->arith_code = spec->arithmetic != 0;
    c->optimize_coding = !spec->arithmetic;
    c->restart_in_rows = spec->restart_rows;
    if (spec->progressive) jpeg_simple_progression(c);
}

/* A big-endian TIFF with one entry: tag 0x112, type SHORT, count 1. */
static void write_exif(j_compress_ptr c, int orientation)
{
    uint8_t app1[] = { 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                       1,   18,  0,   3,   0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0 };

    app1[25] = (uint8_t)orientation;
    jpeg_write_marker(c, JPEG_APP0 + 1, app1, sizeof app1);
}

static void compress(writer *w, const tool_jpeg_spec *spec, const uint8_t *rgb, int width,
                     int height)
{
    j_compress_ptr c = &w->c;
    const int cmyk = spec->color == TOOL_JPEG_CMYK || spec->color == TOOL_JPEG_YCCK;

    jpeg_create_compress(c);
    c->dest = &w->dest;
    c->image_width = (JDIMENSION)width;
    c->image_height = (JDIMENSION)height;
    c->input_components = cmyk ? 4 : 3;
    c->in_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    set_parameters(c, spec);
    jpeg_start_compress(c, TRUE);
    if (spec->orientation) write_exif(c, spec->orientation);
    for (int y = 0; y < height; y++) {
        const uint8_t *in = rgb + (size_t)y * (size_t)width * 3;
        JSAMPROW row = cmyk ? w->row : (JSAMPROW)(uintptr_t)in; /* libjpeg only reads it */

        if (cmyk) row_to_cmyk(w->row, in, width);
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
}

static int status_of(const writer *w)
{
    switch (w->err.msg_code) {
    case JERR_OUT_OF_MEMORY: return DPL_ENOMEM;
    case JERR_ARITH_NOTIMPL: return DPL_ENOTSUP;
    default: return DPL_EINVAL;
    }
}

int tool_jpeg_write(const tool_jpeg_spec *spec, const uint8_t *rgb, int width, int height,
                    uint8_t **out, size_t *len)
{
    int err = DPL_ENOMEM;
    writer *w = calloc(1, sizeof *w);

    *out = NULL;
    *len = 0;
    if (!w || width < 1 || height < 1) {
        if (w) err = DPL_EINVAL;
        goto done;
    }
    w->c.err = jpeg_std_error(&w->err);
    w->c.client_data = w;
    w->err.error_exit = on_error;
    w->err.emit_message = on_message;
    w->dest.init_destination = dest_init;
    w->dest.empty_output_buffer = dest_full;
    w->dest.term_destination = dest_end;
    w->cap = FIRST_BUFFER;
    w->buf = malloc(w->cap);
    w->row = malloc((size_t)width * 4);
    if (!w->buf || !w->row) goto done;
    if (setjmp(w->jump)) {
        err = status_of(w);
    } else {
        compress(w, spec, rgb, width, height);
        err = DPL_OK;
    }
    if (!err) {
        *len = w->cap - w->dest.free_in_buffer;
        *out = w->buf;
        w->buf = NULL; /* now the caller's */
    }
    jpeg_destroy_compress(&w->c);
done:
    if (w) {
        free(w->row);
        free(w->buf);
        free(w);
    }
    return err;
}
