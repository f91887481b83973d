/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg-turbo with nothing around it; see decode_jpeg_bare.h. */
#include "loader/decode_jpeg_bare.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/decode_jpeg.h"
#include "loader/exif.h"

#include <stdlib.h>

enum { ROWS_PER_CALL = 16 };

struct dpl_bare {
    struct jpeg_decompress_struct c; /* kept from picture to picture */
    struct jpeg_error_mgr err;
    jmp_buf jump;
    int created;
    void *pixels;
    size_t pixels_cap;
};

static void on_error(j_common_ptr c)
{
    longjmp(((dpl_bare *)c->client_data)->jump, 1);
}

static void on_message(j_common_ptr c, int level)
{
    (void)c;
    (void)level;
}

int dpl_bare_create(dpl_bare **out)
{
    dpl_bare *b = dpl_calloc(1, sizeof *b);

    if (!(*out = b)) return DPL_ENOMEM;
    b->c.err = jpeg_std_error(&b->err);
    b->c.client_data = b;
    b->err.error_exit = on_error;
    b->err.emit_message = on_message;
    if (setjmp(b->jump)) {
        dpl_bare_destroy(out);
        return DPL_ENOMEM;
    }
    b->created = 1;
    jpeg_create_decompress(&b->c);
    return DPL_OK;
}

void dpl_bare_destroy(dpl_bare **b)
{
    if (!*b) return;
    if ((*b)->created) jpeg_destroy_decompress(&(*b)->c);
    free((*b)->pixels);
    free(*b);
    *b = NULL;
}

dpl_box dpl_bare_box(const uint8_t *bytes, size_t len, int exif, int width, int height,
                     const dpl_box *shown)
{
    dpl_jpeg_markers markers;
    int turn = 1;

    dpl_jpeg_walk(bytes, len, &markers);
    if (exif && markers.exif) turn = dpl_exif_orientation(markers.exif, markers.exif_len);
    return turn < 5 ? dpl_turn_to_stored(turn, width, height, shown)
                    : dpl_turn_to_stored(turn, height, width, shown);
}

/* Rows go one below the other, as to a caller that wants them. */
static int decode(dpl_bare *b, const dpl_box *box, unsigned scale)
{
    JDIMENSION left = (JDIMENSION)box->x / scale;
    JDIMENSION columns = ((JDIMENSION)(box->x + box->w) + scale - 1) / scale - left;
    const JDIMENSION first = (JDIMENSION)box->y / scale;
    const JDIMENSION stop = ((JDIMENSION)(box->y + box->h) + scale - 1) / scale;
    size_t stride;

    if (columns < b->c.output_width) jpeg_crop_scanline(&b->c, &left, &columns);
    stride = (size_t)b->c.output_width * (size_t)b->c.out_color_components;
    if (dpl_reserve(&b->pixels, &b->pixels_cap, (stop - first) * stride)) return DPL_ENOMEM;
    if (first) jpeg_skip_scanlines(&b->c, first);
    while (b->c.output_scanline < stop) {
        JSAMPROW rows[ROWS_PER_CALL];
        const JDIMENSION rest = stop - b->c.output_scanline;
        const JDIMENSION n = rest < ROWS_PER_CALL ? rest : ROWS_PER_CALL;

        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = (JSAMPROW)b->pixels + (b->c.output_scanline - first + i) * stride;
        jpeg_read_scanlines(&b->c, rows, n);
    }
    return DPL_OK;
}

static int decode_file(dpl_bare *b, const uint8_t *bytes, size_t len, const dpl_box *box,
                       int denominator)
{
    jpeg_mem_src(&b->c, bytes, (unsigned long)len);
    jpeg_read_header(&b->c, TRUE);
    b->c.scale_num = 1;
    b->c.scale_denom = (unsigned)denominator;
    b->c.out_color_space = b->c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    b->c.dct_method = JDCT_ISLOW;
    b->c.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&b->c);
    return decode(b, box, (unsigned)denominator);
}

int dpl_bare_decode(dpl_bare *b, const uint8_t *bytes, size_t len, const dpl_box *box,
                    int denominator)
{
    if (setjmp(b->jump)) {
        jpeg_abort_decompress(&b->c);
        return DPL_EDATA;
    }
    const int err = decode_file(b, bytes, len, box, denominator);

    jpeg_abort_decompress(&b->c);
    return err;
}
