/* SPDX-License-Identifier: Apache-2.0 */
/* WebP codec on libwebp, when the build has it. Pictures are decoded whole; libwebp
 * refuses any file that is shorter than it says. */
#include "loader/decode_codec.h"

#include "base/alloc.h"
#include "dpload.h"

#ifdef DPL_HAVE_WEBP

#    include "loader/exif.h"

#    include <string.h>

#    include <webp/decode.h>

enum { RIFF_HEADER = 12, CHUNK_HEADER = 8 };

static size_t little_endian(const uint8_t *b)
{
    return b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

/* The EXIF chunk comes behind the pixels. Some writers put JPEG's "Exif\0\0" before the data. */
static int find_orientation(const uint8_t *bytes, size_t len)
{
    size_t at = RIFF_HEADER;

    while (at < len && len - at >= CHUNK_HEADER) {
        const size_t left = len - at - CHUNK_HEADER, n = little_endian(bytes + at + 4);
        const uint8_t *data = bytes + at + CHUNK_HEADER;

        if (n > left) break;
        if (!memcmp(bytes + at, "EXIF", 4)) {
            const size_t prefix = n >= 6 && !memcmp(data, "Exif\0", 6) ? 6 : 0;
            return dpl_exif_orientation(data + prefix, n - prefix);
        }
        at += CHUNK_HEADER + n + (n & 1);
    }
    return 1;
}

static int failed(VP8StatusCode code, dpl_text *why)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return dpl_fail(why, DPL_ENOMEM, "out of memory");
    case VP8_STATUS_NOT_ENOUGH_DATA: return dpl_fail(why, DPL_EDATA, "the WebP file is cut off");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return dpl_fail(why, DPL_EDATA, "WebP with an unknown feature is not supported");
    default: return dpl_fail(why, DPL_EDATA, "WebP: damaged bitstream");
    }
}

int dpl_webp_begin(dpl_picture *p, dpl_text *why)
{
    WebPBitstreamFeatures f;
    const VP8StatusCode code = WebPGetFeatures(p->bytes, p->len, &f);

    if (code != VP8_STATUS_OK) return failed(code, why);
    if (f.has_animation) return dpl_fail(why, DPL_EDATA, "animated WebP is not supported");
    if (p->limits.exif) p->orientation = find_orientation(p->bytes, p->len);
    return dpl_picture_set_size(p, (uint32_t)f.width, (uint32_t)f.height, why);
}

int dpl_webp_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                    dpl_text *why)
{
    WebPDecoderConfig config;
    VP8StatusCode code;
    size_t bytes;
    const size_t stride = (size_t)p->width * 3;

    (void)denominator; /* never scaled: out says so */
    if (dpl_mul(stride, (size_t)p->height, &bytes) ||
        dpl_reserve(&p->pixels, &p->pixels_cap, bytes))
        return DPL_ENOMEM;
    if (!WebPInitDecoderConfig(&config))
        return dpl_fail(why, DPL_EDATA, "WebP: libwebp is older than this program");
    config.output.colorspace = MODE_RGB; /* alpha is dropped */
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = p->pixels;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = bytes;
    code = WebPDecode(p->bytes, p->len, &config);
    WebPFreeDecBuffer(&config.output);
    if (code != VP8_STATUS_OK) return failed(code, why);
    p->count = (uint64_t)p->width * (uint64_t)p->height;
    *out = (dpl_pixels){ (uint8_t *)p->pixels + (size_t)box->y * stride + (size_t)box->x * 3,
                         stride,
                         box->x,
                         box->y,
                         box->w,
                         box->h,
                         1 };
    return DPL_OK;
}

#else

static int refuse(dpl_text *why)
{
    return dpl_fail(why, DPL_EDATA, "WebP is not supported (this build has no libwebp)");
}

int dpl_webp_begin(dpl_picture *p, dpl_text *why)
{
    (void)p;
    return refuse(why);
}

int dpl_webp_region(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                    dpl_text *why)
{
    (void)p;
    (void)box;
    (void)denominator;
    (void)out;
    return refuse(why);
}

#endif
