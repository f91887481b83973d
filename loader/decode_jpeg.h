/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the JPEG codec: libjpeg's state with our error manager and source, and the marker walker. */
#ifndef DPL_LOADER_DECODE_JPEG_H
#define DPL_LOADER_DECODE_JPEG_H

#include "loader/decode_codec.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the markers say, found without libjpeg. */
typedef struct dpl_jpeg_markers {
    const uint8_t *exif; /* TIFF data of the first EXIF segment, NULL = none */
    size_t exif_len;
    size_t scan_at; /* offset behind the header of the first scan; len = there is none */
} dpl_jpeg_markers;

struct dpl_jpeg {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_source_mgr src;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    int created; /* c holds memory */
    dpl_picture *pic;
    dpl_jpeg_markers markers;

    int header_read;
    int ended;        /* the end marker is there */
    int starved;      /* libjpeg asked for bytes behind the end */
    int starved_rows; /* … before the last row of blocks of a scan */
    int missing;      /* the entropy-coded data ended too early */
    unsigned seen;    /* components that had a scan, one bit each */

    /* The region, in rows and columns of the scaled picture. */
    JDIMENSION left, columns; /* that libjpeg delivers */
    JDIMENSION first, stop;   /* rows kept in pic->pixels */
    size_t stride;
};

/** Run step(j) with a place for libjpeg to jump to. Whatever is allocated is owned by *j or
 *  *j->pic, never by the frames that are jumped over.
 *  @return DPL_OK, DPL_EDATA, DPL_ENOMEM (libjpeg's message, or ours where that says more) */
int dpl_jpeg_guard(dpl_jpeg *j, void (*step)(dpl_jpeg *), dpl_text *why);

/** Free what libjpeg holds for this picture. */
void dpl_jpeg_reset(dpl_jpeg *j);

/** Walk the segments before the first scan. */
void dpl_jpeg_walk(const uint8_t *bytes, size_t len, dpl_jpeg_markers *out);

/** Scans from the first on, at most max + 1 are counted; *ended tells whether the end marker came.
 *  Never less than libjpeg will find, since it looks for markers by the same rules. */
int dpl_jpeg_count_scans(const uint8_t *bytes, size_t len, size_t scan_at, int max, int *ended);

/** Whether an end marker stands anywhere behind the header of the first scan: entropy-coded data
 *  cannot hold its two bytes. */
int dpl_jpeg_has_end(const uint8_t *bytes, size_t len, size_t scan_at);

#ifdef __cplusplus
}
#endif
#endif
