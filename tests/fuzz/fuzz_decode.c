/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a picture. Whole when small, and a region that the bytes choose; every
 * pixel that is handed out is read. */
#include "dpload.h"
#include "loader/decode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static unsigned sum_pixels(const dpl_pixels *px)
{
    unsigned sum = 0;

    for (int y = 0; y < px->h; y++)
        for (int i = 0; i < 3 * px->w; i++) sum += px->rgb[(size_t)y * px->stride + (size_t)i];
    return sum;
}

static void require(int holds)
{
    if (!holds) abort();
}

static void region(dpl_decoder *d, int x, int y, int w, int h, int denominator)
{
    dpl_pixels px;
    dpl_text why;
    int warned;
    const int err = dpl_decode_region(d, x, y, w, h, denominator, &px, &warned, &why);
    volatile unsigned sink = 0;

    if (!err) {
        const int n = px.denominator;
        require(px.x <= x / n && px.x + px.w >= (x + w + n - 1) / n);
        require(px.y <= y / n && px.y + px.h >= (y + h + n - 1) / n);
        sink = sum_pixels(&px);
    }
    (void)sink;
    require(err == DPL_OK || err == DPL_EDATA);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const unsigned pick = len ? bytes[len / 2] * 256u + bytes[len - 1] : 0;
    const dpl_decode_limits limits = {
        .max_pixels = 1000000, .max_scans = 100, .exact = pick & 1, .exif = 1
    };
    dpl_decoder *d;
    dpl_text why;
    int width, height;

    if (dpl_decoder_create(&d, &limits)) return 0;
    if (!dpl_decode_begin(d, bytes, len, &width, &height, &why)) {
        const int x = (int)(pick % (unsigned)width), y = (int)(pick / 3 % (unsigned)height);
        region(d, x, y, 1 + (width - x - 1) / 2, 1 + (height - y - 1) / 2, 1 << (pick >> 2) % 4);
        region(d, 0, 0, width, height, 1);
    }
    dpl_decoder_destroy(&d);
    return 0;
}
