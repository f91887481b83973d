/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_cases.h. */
#include "tests/decode_cases.h"

#include "dpload.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

dpl_decode_limits decode_limits(void)
{
    return (dpl_decode_limits){
        .max_pixels = 178956970, .max_scans = 256, .exact = 1, .exif = 1, .strict = 0
    };
}

decode_result decode_whole(dpl_decoder *d, const uint8_t *bytes, size_t len)
{
    decode_result r = { 0 };
    dpl_pixels px;

    r.status = dpl_decode_begin(d, bytes, len, &r.width, &r.height, &r.why);
    if (r.status) return r;
    r.status = dpl_decode_region(d, 0, 0, r.width, r.height, 1, &px, &r.warned, &r.why);
    if (r.status) return r;
    assert_int_equal(px.x, 0);
    assert_int_equal(px.y, 0);
    assert_int_equal(px.w, r.width);
    assert_int_equal(px.h, r.height);
    assert_int_equal(px.denominator, 1);
    r.rgb = malloc((size_t)r.width * 3 * (size_t)r.height);
    assert_non_null(r.rgb);
    for (int y = 0; y < r.height; y++)
        memcpy(r.rgb + (size_t)y * (size_t)r.width * 3, px.rgb + (size_t)y * px.stride,
               (size_t)r.width * 3);
    return r;
}

decode_result decode_once(const dpl_decode_limits *limits, const uint8_t *bytes, size_t len)
{
    dpl_decoder *d;
    decode_result r;

    assert_int_equal(dpl_decoder_create(&d, limits), DPL_OK);
    r = decode_whole(d, bytes, len);
    dpl_decoder_destroy(&d);
    return r;
}

int decode_same(const dpl_pixels *px, const uint8_t *whole, int width)
{
    for (int y = 0; y < px->h; y++)
        if (memcmp(px->rgb + (size_t)y * px->stride,
                   whole + ((size_t)(px->y + y) * (size_t)width + (size_t)px->x) * 3,
                   (size_t)px->w * 3))
            return 0;
    return 1;
}

double decode_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) sum += (uint64_t)abs(a[i] - b[i]);
    return (double)sum / (double)n;
}

uint64_t decode_hash(const void *data, size_t n)
{
    const uint8_t *b = data;
    uint64_t h = 0xcbf29ce484222325;

    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3;
    return h;
}
