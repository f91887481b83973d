/* SPDX-License-Identifier: Apache-2.0 */
/* Bad picture files made from good ones. Every maker gives a new file; fault_free_all() frees them. */
#ifndef TESTS_FAULT_MAKE_H
#define TESTS_FAULT_MAKE_H

#include "tools/jpeg_write.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fault_file {
    uint8_t *bytes;
    size_t len;
} fault_file;

void fault_free_all(void);
fault_file fault_bytes(const void *bytes, size_t len);
/** A picture that is test_picture(w, h, seed), as the spec says. */
fault_file fault_jpeg(const tool_jpeg_spec *spec, int w, int h, uint64_t seed);
fault_file fault_encode(const tool_jpeg_spec *spec, const uint8_t *rgb, int w, int h);

/* --- JPEG: any valid one as input --- */

/** The first `percent` of the bytes. */
fault_file fault_cut(fault_file f, unsigned percent);
fault_file fault_less(fault_file f, size_t n); /* without the last n bytes */
fault_file fault_more(fault_file f, const void *bytes, size_t n);
fault_file fault_insert(fault_file f, size_t at, const void *bytes, size_t n);
/** Other sizes in the header. */
fault_file fault_dims(fault_file f, unsigned w, unsigned h);
/** The three components renamed, in the frame header and in the scans alike. */
fault_file fault_ids(fault_file f, const uint8_t three[3]);
/** n bits flipped in the entropy-coded data. */
fault_file fault_flips(fault_file f, int n, uint64_t seed);
/** n stray bytes before the first segment of this kind. */
fault_file fault_junk_before(fault_file f, int marker, size_t n);
/** Without the segments of this kind before the first scan. */
fault_file fault_drop(fault_file f, int marker);
/** One more segment behind the start marker. */
fault_file fault_after_start(fault_file f, int marker, const void *payload, size_t n);
/** EXIF with one entry, little-endian: tag 0x112, type SHORT. */
fault_file fault_exif(fault_file f, uint32_t orientation, uint32_t count);
/** Adobe's segment with this colour transform. */
fault_file fault_adobe(fault_file f, int transform);
/** The last scan n times more. */
fault_file fault_repeat_scan(fault_file f, int n);
/** Without the k-th restart marker, from 1; its data stays. */
fault_file fault_lose_restart(fault_file f, int k);
/** Offset of the frame header's payload (precision, height, width …). */
size_t fault_frame_at(fault_file f);
/** An 8x8 gray picture, 128 all over, that leaves its Huffman tables to the reader. */
fault_file fault_no_tables(void);

/* --- other formats --- */

/** Pixels are a function of place: byte x of row y is fault_png_byte(x, y).
 *  @param rows   raw data instead, with filter bytes; NULL = as above
 *  @param extra  chunks before the pixels */
fault_file fault_png(uint32_t w, uint32_t h, int type, int depth, const fault_file *rows,
                     const fault_file *extra);
uint8_t fault_png_byte(unsigned x, unsigned y);
/** A chunk behind the bytes of f; f.bytes NULL = the first. */
fault_file fault_chunk(fault_file f, const char *name, const void *data, size_t n);
fault_file fault_bmp(int w, int h);
fault_file fault_gif(void);  /* 1x1 */
fault_file fault_webp(void); /* 1x1, lossless */

#endif
