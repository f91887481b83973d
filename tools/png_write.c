/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to PNG files; see png_write.h. What must survive libpng's non-local jump lives in struct
 * writer, outside the function that sets the jump. */
#include "tools/png_write.h"

#include "base/files.h"
#include "dpload.h"

#include <stddef.h>

#include <png.h>

typedef struct writer {
    png_structp png;
    png_infop info;
    char cause[128];
} writer;

static void on_error(png_structp png, png_const_charp message)
{
    writer *w = png_get_error_ptr(png);

    snprintf(w->cause, sizeof w->cause, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* @return 0, or -1 when libpng gave up (w->cause says why) */
static int encode(writer *w, FILE *f, const uint8_t *rgb, int width, int height)
{
    if (setjmp(png_jmpbuf(w->png))) return -1;
    png_init_io(w->png, f);
    png_set_IHDR(w->png, w->info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int y = 0; y < height; y++) { png_write_row(w->png, rgb + 3 * (size_t)width * (size_t)y); }
    png_write_end(w->png, w->info);
    return 0;
}

int tool_png_write(const char *path, const uint8_t *rgb, int width, int height, dpl_text *why)
{
    writer w = { .cause = "" };
    dpl_replace file;
    int err;

    if ((err = dpl_replace_open(&file, path, why))) return err;
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
    if (w.png) w.info = png_create_info_struct(w.png);
    if (!w.info) {
        err = dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    } else if (encode(&w, file.f, rgb, width, height)) {
        err = dpl_fail(why, DPL_EIO, "%s: %s", path, w.cause);
    }
    png_destroy_write_struct(&w.png, &w.info);
    if (err) {
        dpl_replace_abort(&file);
        return err;
    }
    return dpl_replace_commit(&file, why);
}
