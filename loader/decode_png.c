/* SPDX-License-Identifier: Apache-2.0 */
/* PNG codec on libpng: every kind to 8-bit RGB. Palettes and gray are expanded, alpha is dropped,
 * of 16 bits the high byte stays, colour profiles and gamma are not applied (as Pillow's
 * convert("RGB") of 8-bit files). All checksums of the file are checked when it is begun, whatever
 * part is decoded later, so damage does not depend on the region that is asked for. */
#include "loader/decode_png.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/decode_codec.h"
#include "loader/exif.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

struct dpl_png {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    dpl_picture *pic;
    size_t at; /* read so far */
    dpl_png_chunks chunks;
    int no_memory;
    char error[256];
    int passes;
    int first, stop; /* rows kept in pic->pixels */
    size_t stride;
};

static PNG_FUNCTION(void, on_error, (png_structp png, png_const_charp text), PNG_NORETURN)
{
    dpl_png *d = png_get_error_ptr(png);
    size_t n = strlen(text);

    if (n >= sizeof d->error) n = sizeof d->error - 1;
    memcpy(d->error, text, n);
    d->error[n] = 0;
    longjmp(d->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    const dpl_png *d = png_get_error_ptr(png);

    dpl_picture_complain(d->pic, "PNG: %s", text);
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t n)
{
    void *p = malloc(n);

    if (!p) ((dpl_png *)png_get_mem_ptr(png))->no_memory = 1;
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    (void)png;
    free(p);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    dpl_png *d = png_get_io_ptr(png);

    if (n > d->pic->len - d->at) png_error(png, "the file ends early");
    memcpy(out, d->pic->bytes + d->at, n);
    d->at += n;
}

/* Creation may fail by a jump too. */
static void step_create(dpl_png *d)
{
    d->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, d, on_error, on_warning, d, on_malloc,
                                      on_free);
    d->info = d->png ? png_create_info_struct(d->png) : NULL;
    if (!d->info) {
        d->no_memory = 1;
        longjmp(d->jump, 1);
    }
}

static void step_header(dpl_png *d)
{
    png_set_user_limits(d->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* ours was checked already */
    png_set_read_fn(d->png, d, on_read);
    png_set_crc_action(d->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE); /* checked by the walk */
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(d->png, d->info);
    png_set_expand(d->png);
    png_set_strip_16(d->png);
    png_set_strip_alpha(d->png);
    png_set_gray_to_rgb(d->png);
    d->passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != d->stride)
        png_error(d->png, "not RGB after expansion");
}

/* A row above the region goes where the region's first row will overwrite it. An interlaced picture
 * comes in passes over all rows, each adding to the last. */
static void step_rows(dpl_png *d)
{
    for (int pass = 0; pass < d->passes; pass++) {
        for (int y = 0; y < d->stop; y++) {
            const size_t row = (size_t)(y > d->first ? y - d->first : 0);
            png_read_row(d->png, (png_bytep)d->pic->pixels + row * d->stride, NULL);
        }
    }
}

static int guard(dpl_png *d, void (*step)(dpl_png *), dpl_text *why)
{
    if (setjmp(d->jump)) {
        if (d->no_memory) return dpl_fail(why, DPL_ENOMEM, "out of memory");
        return dpl_fail(why, DPL_EDATA, "PNG: %s", d->error);
    }
    step(d);
    return DPL_OK;
}

int dpl_png_begin(dpl_picture *p, dpl_text *why)
{
    int err;
    dpl_png *d = p->png;
    uint32_t width, height;

    if ((err = dpl_png_header(p->bytes, p->len, &width, &height, why))) return err;
    if ((err = dpl_picture_set_size(p, width, height, why))) return err;
    if ((err = dpl_png_walk(p->bytes, p->len, &d->chunks, why))) return err;
    if (p->limits.exif && d->chunks.exif)
        p->orientation = dpl_exif_orientation(d->chunks.exif, d->chunks.exif_len);
    return DPL_OK;
}

static int decode_rows(dpl_png *d, dpl_text *why)
{
    int err;
    size_t bytes;

    if ((err = guard(d, step_header, why))) return err;
    if (d->passes > 1) {
        d->first = 0;
        d->stop = d->pic->height;
    }
    if (dpl_mul(d->stride, (size_t)(d->stop - d->first), &bytes) ||
        dpl_reserve(&d->pic->pixels, &d->pic->pixels_cap, bytes))
        return DPL_ENOMEM;
    if ((err = guard(d, step_rows, why))) return err;
    d->pic->count = (uint64_t)d->pic->width * (uint64_t)d->stop;
    return DPL_OK;
}

int dpl_png_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                   dpl_text *why)
{
    int err;
    dpl_png *d = p->png;

    (void)denominator; /* never scaled: out says so */
    d->pic = p;
    d->at = 0;
    d->no_memory = 0;
    d->first = box->y;
    d->stop = d->chunks.ended ? box->y + box->h : p->height;
    d->stride = (size_t)p->width * 3;
    if ((err = guard(d, step_create, why)) || (err = decode_rows(d, why))) goto done;
    if (!d->chunks.ended) dpl_picture_complain(p, "PNG: the end chunk (IEND) is missing");
    *out = (dpl_pixels){ (uint8_t *)p->pixels + (size_t)(box->y - d->first) * d->stride +
                             (size_t)box->x * 3,
                         d->stride,
                         box->x,
                         box->y,
                         box->w,
                         box->h,
                         1 };
done:
    if (d->png) png_destroy_read_struct(&d->png, &d->info, NULL);
    return err;
}

int dpl_png_create(dpl_png **out)
{
    *out = dpl_calloc(1, sizeof **out);
    return *out ? DPL_OK : DPL_ENOMEM;
}

void dpl_png_destroy(dpl_png **d)
{
    free(*d);
    *d = NULL;
}
