/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG codec: pixels of a region. Partial decoding in libjpeg-turbo has had faults for years; what
 * is done here is the part that holds: one column crop, one skip from row 0 to the start of a row
 * group, then rows without a gap, and away. The result must equal a full decode bit
 * for bit (tests/test_decode_region.c): chroma upsampling looks one chroma sample to each side, so
 * columns get a margin that is thrown away; above, libjpeg itself decodes the row group before. */
#include "loader/decode_jpeg.h"

#include "base/alloc.h"
#include "dpload.h"

#include <jerror.h>

enum { ROWS_PER_CALL = 16, MARGIN_SAMPLES = 2 };

static void step_start(dpl_jpeg *j)
{
    j->c.out_color_space = j->c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    j->c.dct_method = JDCT_ISLOW;
    j->c.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&j->c); /* reads all scans when there are several */
}

/* In a progressive file that ends before its last bits of precision libjpeg smooths blocks, looking
 * at neighbours on all sides: such a picture is decoded whole. */
static int lacks_precision(const dpl_jpeg *j)
{
    if (!j->c.coef_bits) return 0;
    for (int i = 0; i < j->c.num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (j->c.coef_bits[i][k]) return 1;
    return 0;
}

static int check_scans(const dpl_jpeg *j, dpl_text *why)
{
    if (j->seen != 0 && j->seen != (1u << j->c.num_components) - 1)
        return dpl_fail(why, DPL_EDATA, "rows missing: a colour component of the JPEG has no scan");
    if (!j->ended && lacks_precision(j))
        return dpl_fail(why, DPL_EDATA, "rows missing: the JPEG file ends between its scans");
    return DPL_OK;
}

/* Columns [x0, x1) with a margin, and rows from the row group that holds y0 on. */
static void choose_window(dpl_jpeg *j, JDIMENSION x0, JDIMENSION x1, JDIMENSION y0, JDIMENSION y1)
{
    const JDIMENSION margin = MARGIN_SAMPLES * (JDIMENSION)j->c.max_h_samp_factor;
    const JDIMENSION group = (JDIMENSION)j->c.max_v_samp_factor;
    const int whole = lacks_precision(j);

    j->left = !whole && x0 > margin ? x0 - margin : 0;
    j->columns =
        (!whole && j->c.output_width - x1 > margin ? x1 + margin : j->c.output_width) - j->left;
    j->first = whole ? 0 : y0 / group * group;
    j->stop = y1;
}

static void step_skip(dpl_jpeg *j)
{
    if (j->columns < j->c.output_width) jpeg_crop_scanline(&j->c, &j->left, &j->columns);
    if (j->first > 0) jpeg_skip_scanlines(&j->c, j->first);
    j->columns = j->c.output_width;
}

/* Pillow's conversion, and like Pillow always Adobe's polarity: ink is stored inverted. In place. */
static void cmyk_to_rgb(uint8_t *row, JDIMENSION n)
{
    const uint8_t *in = row;

    for (JDIMENSION x = 0; x < n; x++, row += 3, in += 4) {
        const int light = in[3];
        for (int k = 0; k < 3; k++) {
            const int t = (255 - in[k]) * light + 128;
            row[k] = (uint8_t)(light - (((t >> 8) + t) >> 8));
        }
    }
}

/* Rows up to `stop` go to `to`, `step` bytes apart (0 = all into the same place). */
static void read_rows(dpl_jpeg *j, JDIMENSION stop, uint8_t *to, size_t step)
{
    JSAMPROW rows[ROWS_PER_CALL];

    while (j->c.output_scanline < stop) {
        const JDIMENSION left = stop - j->c.output_scanline;
        const JDIMENSION want = left < ROWS_PER_CALL ? left : ROWS_PER_CALL;
        JDIMENSION got;

        for (JDIMENSION i = 0; i < want; i++) rows[i] = to + i * step;
        got = jpeg_read_scanlines(&j->c, rows, want);
        if (got == 0) ERREXIT(&j->c, JERR_CANT_SUSPEND); /* our source never does */
        if (j->c.out_color_components == 4)
            for (JDIMENSION i = 0; step && i < got; i++) cmyk_to_rgb(rows[i], j->columns);
        j->pic->count += (uint64_t)got * j->columns;
        to += got * step;
    }
}

static void step_rows(dpl_jpeg *j)
{
    read_rows(j, j->stop, j->pic->pixels, j->stride);
}

static void step_rest(dpl_jpeg *j)
{
    uint8_t *spare = (uint8_t *)j->pic->pixels + (j->stop - j->first) * j->stride;

    read_rows(j, j->c.output_height, spare, 0);
}

/* Only after the last row: what stands between the data and the end marker. */
static void step_finish(dpl_jpeg *j)
{
    jpeg_finish_decompress(&j->c);
}

/* One row more than is kept: a place for rows that are only read for the verdict. */
static int reserve_rows(dpl_jpeg *j)
{
    size_t bytes;

    j->stride = (size_t)j->columns * (size_t)j->c.out_color_components;
    if (dpl_mul(j->stride, (size_t)(j->stop - j->first) + 1, &bytes)) return DPL_ENOMEM;
    return dpl_reserve(&j->pic->pixels, &j->pic->pixels_cap, bytes);
}

static int verdict(dpl_jpeg *j, dpl_text *why)
{
    int err;
    dpl_text behind;

    if (!j->ended) dpl_picture_complain(j->pic, "JPEG: the end marker is missing");
    if (j->pic->warned && (err = dpl_jpeg_guard(j, step_rest, why))) return err;
    /* The Huffman decoder says when it runs dry. The arithmetic one cannot know; its file is taken
     * as cut when the bytes ran out before the last row of blocks. */
    if (!j->ended && j->c.arith_code && j->starved_rows)
        return dpl_fail(why, DPL_EDATA, "rows missing: the JPEG file ends before its last row");
    if (j->c.output_scanline == j->c.output_height && dpl_jpeg_guard(j, step_finish, &behind))
        dpl_picture_complain(j->pic, "%s", behind.s); /* all rows are there all the same */
    return DPL_OK;
}

int dpl_jpeg_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                    dpl_text *why)
{
    int err;
    dpl_jpeg *j = p->jpeg;
    const int x0 = box->x / denominator, x1 = (box->x + box->w + denominator - 1) / denominator;
    const int y0 = box->y / denominator, y1 = (box->y + box->h + denominator - 1) / denominator;

    j->c.scale_num = 1;
    j->c.scale_denom = (unsigned)denominator;
    if ((err = dpl_jpeg_guard(j, step_start, why))) goto done;
    if ((err = check_scans(j, why))) goto done;
    choose_window(j, (JDIMENSION)x0, (JDIMENSION)x1, (JDIMENSION)y0, (JDIMENSION)y1);
    if ((err = dpl_jpeg_guard(j, step_skip, why))) goto done;
    if ((err = reserve_rows(j))) goto done;
    if ((err = dpl_jpeg_guard(j, step_rows, why))) goto done;
    if ((err = verdict(j, why))) goto done;
    *out = (dpl_pixels){ .rgb = (uint8_t *)p->pixels +
                                (size_t)((JDIMENSION)y0 - j->first) * j->stride +
                                (size_t)((JDIMENSION)x0 - j->left) * 3,
                         .stride = j->stride,
                         .x = x0,
                         .y = y0,
                         .w = x1 - x0,
                         .h = y1 - y0,
                         .denominator = denominator };
done:
    dpl_jpeg_reset(j);
    return err;
}
