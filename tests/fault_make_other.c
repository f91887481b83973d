/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no JPEGs; see fault_make.h. */
#include "tests/fault_make.h"

#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static void put_big(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

fault_file fault_chunk(fault_file f, const char *name, const void *data, size_t n)
{
    const size_t len = f.bytes ? f.len : 0;
    uint8_t *all = malloc(len + n + 12), *chunk = all + len;
    fault_file out;

    assert_non_null(all);
    if (len) memcpy(all, f.bytes, len);
    put_big(chunk, (uint32_t)n);
    memcpy(chunk + 4, name, 4);
    if (n) memcpy(chunk + 8, data, n);
    put_big(chunk + 8 + n, (uint32_t)crc32_z(0, chunk + 4, n + 4));
    out = fault_bytes(all, len + n + 12);
    free(all);
    return out;
}

uint8_t fault_png_byte(unsigned x, unsigned y)
{
    return (uint8_t)(x * 7 + y * 3);
}

/* Rows without filters. */
static fault_file png_rows(uint32_t w, uint32_t h, int type, int depth)
{
    static const unsigned channels[] = { [0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4 };
    const size_t n = ((size_t)w * channels[type] * (unsigned)depth + 7) / 8;
    uint8_t *rows = malloc((n + 1) * h), *at = rows;
    fault_file out;

    assert_non_null(rows);
    for (unsigned y = 0; y < h; y++) {
        *at++ = 0;
        for (unsigned x = 0; x < n; x++) *at++ = fault_png_byte(x, y);
    }
    out = fault_bytes(rows, (n + 1) * h);
    free(rows);
    return out;
}

fault_file fault_png(uint32_t w, uint32_t h, int type, int depth, const fault_file *rows,
                     const fault_file *extra)
{
    const fault_file raw = rows ? *rows : png_rows(w, h, type, depth);
    uLongf packed_len = compressBound(raw.len);
    uint8_t *packed = malloc(packed_len), header[13] = { 0 };
    fault_file f = fault_bytes("\x89PNG\r\n\x1a\n", 8);

    assert_non_null(packed);
    assert_int_equal(compress(packed, &packed_len, raw.bytes, raw.len), Z_OK);
    put_big(header, w);
    put_big(header + 4, h);
    header[8] = (uint8_t)depth;
    header[9] = (uint8_t)type;
    f = fault_chunk(f, "IHDR", header, sizeof header);
    if (extra) f = fault_more(f, extra->bytes, extra->len);
    f = fault_chunk(f, "IDAT", packed, packed_len);
    free(packed);
    return fault_chunk(f, "IEND", NULL, 0);
}

fault_file fault_bmp(int w, int h)
{
    const size_t row = ((size_t)w * 3 + 3) / 4 * 4, len = 54 + row * (size_t)h;
    uint8_t *bytes = calloc(len, 1);
    fault_file out;

    assert_non_null(bytes);
    memcpy(bytes, "BM", 2);
    bytes[2] = (uint8_t)len;
    bytes[3] = (uint8_t)(len >> 8);
    bytes[10] = 54;
    bytes[14] = 40;
    bytes[18] = (uint8_t)w;
    bytes[22] = (uint8_t)h;
    bytes[26] = 1;
    bytes[28] = 24;
    for (size_t i = 54; i < len; i++) bytes[i] = (uint8_t)(i * 5);
    out = fault_bytes(bytes, len);
    free(bytes);
    return out;
}

fault_file fault_gif(void)
{
    static const uint8_t gif[] = { 'G', 'I', 'F', '8', '9', 'a', 1,   0, 1, 0, 0x80, 0,   0, 0,
                                   0,   0,   255, 255, 255, '!', 249, 4, 1, 0, 0,    0,   0, ',',
                                   0,   0,   0,   0,   1,   0,   1,   0, 0, 2, 1,    'D', 0, ';' };

    return fault_bytes(gif, sizeof gif);
}

fault_file fault_webp(void)
{
    static const uint8_t webp[] = { 'R', 'I', 'F', 'F', 26, 0,    0,    0,    'W',  'E', 'B', 'P',
                                    'V', 'P', '8', 'L', 13, 0,    0,    0,    0x2f, 0,   0,   0,
                                    16,  7,   16,  17,  17, 0x88, 0x88, 0xfe, 7,    0 };

    return fault_bytes(webp, sizeof webp);
}
