/* SPDX-License-Identifier: Apache-2.0 */
/* PNG chunks; see decode_png.h. */
#include "loader/decode_png.h"

#include "dpload.h"

#include <string.h>

#include <zlib.h>

enum { SIGNATURE = 8, CHUNK_BYTES = 12 /* length, name, sum */, IHDR_DATA = 13 };

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

int dpl_png_header(const uint8_t *bytes, size_t len, uint32_t *width, uint32_t *height,
                   dpl_text *why)
{
    static const uint8_t start[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
    const size_t n = sizeof start - 1;

    if (memcmp(bytes, start, len < n ? len : n))
        return dpl_fail(why, DPL_EDATA, "PNG: damaged signature or header");
    if (len < SIGNATURE + CHUNK_BYTES + IHDR_DATA)
        return dpl_fail(why, DPL_EDATA, "the PNG file ends inside its header");
    *width = big_endian(bytes + n);
    *height = big_endian(bytes + n + 4);
    return DPL_OK;
}

/* A chunk's name for a message; what is no letter would spoil the line. */
static int bad_sum(const uint8_t *name, dpl_text *why)
{
    char text[5] = { 0 };

    for (int i = 0; i < 4; i++)
        text[i] = (char)((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z' ? name[i] : '?');
    return dpl_fail(why, DPL_EDATA, "PNG: wrong checksum (CRC) in chunk %s", text);
}

int dpl_png_walk(const uint8_t *bytes, size_t len, dpl_png_chunks *out, dpl_text *why)
{
    size_t at = SIGNATURE;

    *out = (dpl_png_chunks){ 0 };
    while (len - at >= 8) {
        const uint32_t n = big_endian(bytes + at);
        const uint8_t *name = bytes + at + 4;

        if (len - at < CHUNK_BYTES || n > len - at - CHUNK_BYTES) {
            if (memcmp(name, "IDAT", 4)) break;
            return dpl_fail(why, DPL_EDATA, "rows missing: the PNG file ends inside its pixels");
        }
        if (crc32_z(0, name, (size_t)n + 4) != big_endian(name + 4 + n)) return bad_sum(name, why);
        if (!memcmp(name, "eXIf", 4)) {
            out->exif = name + 4;
            out->exif_len = n;
        }
        at += CHUNK_BYTES + (size_t)n;
        if (!memcmp(name, "IEND", 4)) {
            out->ended = 1;
            break;
        }
    }
    return DPL_OK;
}
