/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG codec on libjpeg-turbo: errors, source of bytes, header. decode_jpeg_region.c has the pixels.
 *
 * When is a file bad, and when does it only get a warning? Bad: its entropy-coded data ends before
 * the last block, or a whole restart interval is lost (rows would be filled with gray), a component
 * has no scan, or a progressive file without an end marker lacks scans. A warning: anything else that
 * libjpeg complains about, or only the end marker missing. libjpeg sees damage only where it decodes,
 * and behind a region it does not; so as soon as there is a complaint, or no end marker, the picture
 * is read to its last row, and the verdict on such a file is the same for every region from the
 * damage on. */
#include "loader/decode_jpeg.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/exif.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

enum { FULL_SCANS_PIXELS = 10000000, FEWEST_SCANS = 16 };

static const JOCTET end_marker[2] = { 0xff, JPEG_EOI };

static void on_error(j_common_ptr c)
{
    longjmp(((dpl_jpeg *)c->client_data)->jump, 1);
}

static void rows_missing(dpl_jpeg *j)
{
    j->missing = 1;
    on_error((j_common_ptr)&j->c);
}

/* The decoder ran dry. At a restart marker it gets another chance: what it made up is damage within
 * rows, and rows go on behind it. At any other marker, or the end of the file, they do not. */
static int ran_dry_for_good(const dpl_jpeg *j)
{
    return j->err.msg_code == JWRN_HIT_MARKER &&
           !(j->c.restart_interval > 0 && j->c.unread_marker >= JPEG_RST0 &&
             j->c.unread_marker <= JPEG_RST0 + 7);
}

static void on_message(j_common_ptr c, int level)
{
    dpl_jpeg *j = c->client_data;
    char text[JMSG_LENGTH_MAX];

    if (level >= 0) return; /* a trace message */
    if (ran_dry_for_good(j)) rows_missing(j);
    if (j->pic->warned) return;
    c->err->format_message(c, text);
    dpl_picture_complain(j->pic, "JPEG: %s", text);
}

static void on_output(j_common_ptr c)
{
    (void)c;
}

static void source_ignore(j_decompress_ptr c)
{
    (void)c;
}

/* All bytes were there from the start, so this is the end of the file. libjpeg gets an end marker,
 * again and again; whether that harms is for the verdict above. */
static boolean source_fill(j_decompress_ptr c)
{
    dpl_jpeg *j = c->client_data;

    if (!j->starved) {
        j->starved = 1;
        j->starved_rows = c->input_iMCU_row + 1 < c->total_iMCU_rows;
    }
    j->src.next_input_byte = end_marker;
    j->src.bytes_in_buffer = sizeof end_marker;
    return TRUE;
}

static void source_skip(j_decompress_ptr c, long n)
{
    dpl_jpeg *j = c->client_data;

    if (n <= 0) return;
    if ((size_t)n >= j->src.bytes_in_buffer) {
        if ((size_t)n > j->src.bytes_in_buffer) source_fill(c);
        j->src.bytes_in_buffer = 0;
        return;
    }
    j->src.next_input_byte += n;
    j->src.bytes_in_buffer -= (size_t)n;
}

/* A restart marker is not the one that is due. libjpeg drops a few wrong ones; when it leaves this one
 * for later, everything up to it is lost. */
static boolean source_resync(j_decompress_ptr c, int desired)
{
    const boolean done = jpeg_resync_to_restart(c, desired);

    if (c->unread_marker) rows_missing(c->client_data);
    return done;
}

/* Called by libjpeg between the steps of reading a file with several scans. */
static void on_progress(j_common_ptr common)
{
    dpl_jpeg *j = common->client_data;

    for (int i = 0; i < j->c.comps_in_scan; i++)
        j->seen |= 1u << j->c.cur_comp_info[i]->component_index;
}

static int failed(dpl_jpeg *j, dpl_text *why)
{
    char text[JMSG_LENGTH_MAX];
    const int code = j->err.msg_code;

    if (j->missing)
        return dpl_fail(why, DPL_EDATA, "rows missing: the JPEG data ends before row %u of %d",
                        j->c.input_iMCU_row * DCTSIZE * (unsigned)j->c.max_v_samp_factor,
                        j->pic->height);
    if (code == JERR_OUT_OF_MEMORY) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    if (code == JERR_ARITH_NOTIMPL)
        return dpl_fail(why, DPL_EDATA,
                        "JPEG with arithmetic coding is not supported (by this libjpeg)");
    if (code == JERR_BAD_PRECISION)
        return dpl_fail(why, DPL_EDATA, "%d-bit JPEG is not supported", j->c.data_precision);
    if (code == JERR_SOF_UNSUPPORTED)
        return dpl_fail(why, DPL_EDATA, "%s JPEG is not supported (SOF%d)",
                        (j->err.msg_parm.i[0] & 3) == 3 ? "lossless" : "hierarchical",
                        j->err.msg_parm.i[0] & 15);
    if (j->starved && !j->header_read)
        return dpl_fail(why, DPL_EDATA, "the JPEG file ends inside its header");
    if (j->starved)
        return dpl_fail(why, DPL_EDATA, "rows missing: the JPEG file ends between its scans");
    j->err.format_message((j_common_ptr)&j->c, text);
    return dpl_fail(why, DPL_EDATA, "JPEG: %s", text);
}

int dpl_jpeg_guard(dpl_jpeg *j, void (*step)(dpl_jpeg *), dpl_text *why)
{
    int err;

    if (setjmp(j->jump)) {
        err = failed(j, why);
        dpl_jpeg_reset(j);
        return err;
    }
    step(j);
    return DPL_OK;
}

void dpl_jpeg_reset(dpl_jpeg *j)
{
    if (j->created) jpeg_destroy_decompress(&j->c);
    j->created = 0;
}

/* The struct is made anew for each picture (a few small allocations): kept, it would hand the tables
 * of the last picture to one that lacks its own, and pixels would depend on what came before. */
static void step_header(dpl_jpeg *j)
{
    j->c.err = &j->err;
    j->c.client_data = j;
    j->created = 1;
    jpeg_create_decompress(&j->c);
    j->c.src = &j->src;
    j->c.progress = &j->progress;
    jpeg_read_header(&j->c, TRUE);
    j->header_read = 1;
}

/* A sequential Huffman-coded block takes at least two bits, a progressive one takes one in its first
 * scan. A header that promises more blocks than that is refused before memory is taken for it. */
static int check_plausible(const dpl_jpeg *j, dpl_text *why)
{
    uint64_t blocks = 0;

    for (int i = 0; i < j->c.num_components; i++)
        blocks += (uint64_t)j->c.comp_info[i].width_in_blocks * j->c.comp_info[i].height_in_blocks;
    if (j->c.arith_code || blocks * (j->c.progressive_mode ? 1 : 2) <= (uint64_t)j->pic->len * 8)
        return DPL_OK;
    return dpl_fail(why, DPL_EDATA, "rows missing: %zu bytes cannot hold a JPEG of %dx%d pixels",
                    j->pic->len, j->pic->width, j->pic->height);
}

/* Each scan visits every block, and costs next to no bytes when it says nothing new. Full max_scans are
 * for pictures up to FULL_SCANS_PIXELS; above, scans times pixels stay within what that takes. Encoders
 * write 3 to 15 scans, so FEWEST_SCANS are taken at any size. */
static int allowed_scans(const dpl_picture *p)
{
    const uint64_t pixels = (uint64_t)p->width * (uint64_t)p->height;
    const int max = p->limits.max_scans, fewest = max < FEWEST_SCANS ? max : FEWEST_SCANS;
    int n = max;

    if (pixels > FULL_SCANS_PIXELS) n = (int)((uint64_t)max * FULL_SCANS_PIXELS / pixels);
    return n > fewest ? n : fewest;
}

static int check_scans(dpl_jpeg *j, dpl_text *why)
{
    const dpl_picture *p = j->pic;
    const int max = allowed_scans(p);
    const int scans = dpl_jpeg_count_scans(p->bytes, p->len, j->markers.scan_at, max, &j->ended);

    if (scans <= max) return DPL_OK;
    if (max == p->limits.max_scans)
        return dpl_fail(why, DPL_EDATA, "JPEG with more than %d scans (max_scans)", max);
    return dpl_fail(why, DPL_EDATA,
                    "JPEG of %dx%d pixels with more than %d scans (max_scans %d, fewer above %d "
                    "megapixels)",
                    p->width, p->height, max, p->limits.max_scans, FULL_SCANS_PIXELS / 1000000);
}

static int check_header(dpl_jpeg *j, dpl_text *why)
{
    int err;
    const dpl_picture *p = j->pic;

    if (j->c.data_precision != 8)
        return dpl_fail(why, DPL_EDATA, "%d-bit JPEG is not supported", j->c.data_precision);
    if (j->c.jpeg_color_space == JCS_UNKNOWN)
        return dpl_fail(why, DPL_EDATA, "JPEG with %d components is not supported",
                        j->c.num_components);
    if ((err = dpl_picture_set_size(j->pic, j->c.image_width, j->c.image_height, why))) return err;
    if ((err = check_plausible(j, why))) return err;
    if (!jpeg_has_multiple_scans(&j->c)) {
        j->ended = dpl_jpeg_has_end(p->bytes, p->len, j->markers.scan_at);
        return DPL_OK;
    }
    return check_scans(j, why);
}

int dpl_jpeg_begin(dpl_picture *p, dpl_text *why)
{
    int err;
    dpl_jpeg *j = p->jpeg;

    dpl_jpeg_reset(j);
    j->pic = p;
    j->header_read = j->ended = j->starved = j->starved_rows = j->missing = 0;
    j->seen = 0;
    j->src.next_input_byte = p->bytes;
    j->src.bytes_in_buffer = p->len;
    dpl_jpeg_walk(p->bytes, p->len, &j->markers);
    if (p->limits.exif && j->markers.exif)
        p->orientation = dpl_exif_orientation(j->markers.exif, j->markers.exif_len);
    if ((err = dpl_jpeg_guard(j, step_header, why))) return err;
    if ((err = check_header(j, why))) dpl_jpeg_reset(j);
    return err;
}

int dpl_jpeg_create(dpl_jpeg **out)
{
    dpl_jpeg *j = dpl_calloc(1, sizeof *j);

    if (!(*out = j)) return DPL_ENOMEM;
    jpeg_std_error(&j->err);
    j->err.error_exit = on_error;
    j->err.emit_message = on_message;
    j->err.output_message = on_output;
    j->src.init_source = source_ignore;
    j->src.fill_input_buffer = source_fill;
    j->src.skip_input_data = source_skip;
    j->src.resync_to_restart = source_resync;
    j->src.term_source = source_ignore;
    j->progress.progress_monitor = on_progress;
    return DPL_OK;
}

void dpl_jpeg_destroy(dpl_jpeg **j)
{
    if (!*j) return;
    dpl_jpeg_reset(*j);
    free(*j);
    *j = NULL;
}
