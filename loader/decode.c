/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded bytes to RGB: tells the format, hands the picture to its codec, turns the result. */
#include "loader/decode.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/decode_codec.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct codec {
    int (*begin)(dpl_picture *p, dpl_text *why);
    int (*region)(dpl_picture *p, const dpl_box *box, int denominator, dpl_pixels *out,
                  dpl_text *why);
} codec;

static const codec codecs[] = {
    [DPL_FORMAT_JPEG] = { dpl_jpeg_begin, dpl_jpeg_region },
    [DPL_FORMAT_PNG] = { dpl_png_begin, dpl_png_region },
    [DPL_FORMAT_WEBP] = { dpl_webp_begin, dpl_webp_region },
};

struct dpl_decoder {
    dpl_picture pic;
    const codec *codec; /* of the picture that was begun; NULL = none */
    int regions;        /* decoded of this picture */
    void *turned;       /* pixels as displayed, when they are not as stored */
    size_t turned_cap;
};

void dpl_picture_complain(dpl_picture *p, const char *format, ...)
{
    va_list ap;

    if (p->warned) return;
    p->warned = 1;
    va_start(ap, format);
    vsnprintf(p->complaint.s, sizeof p->complaint.s, format, ap);
    va_end(ap);
}

int dpl_picture_set_size(dpl_picture *p, uint32_t width, uint32_t height, dpl_text *why)
{
    if (!width || !height)
        return dpl_fail(why, DPL_EDATA, "%" PRIu32 "x%" PRIu32 " pixels: nothing to see", width,
                        height);
    if ((uint64_t)width * height > p->limits.max_pixels || width > INT_MAX / 4 ||
        height > INT_MAX / 4)
        return dpl_fail(why, DPL_EDATA,
                        "%" PRIu32 "x%" PRIu32 " pixels, the limit is %" PRIu64 " (max_pixels)",
                        width, height, p->limits.max_pixels);
    p->width = (int)width;
    p->height = (int)height;
    return DPL_OK;
}

int dpl_decoder_create(dpl_decoder **out, const dpl_decode_limits *limits)
{
    int err = DPL_ENOMEM;
    dpl_decoder *d = dpl_calloc(1, sizeof *d);

    *out = NULL;
    if (!d) goto done;
    d->pic.limits = *limits;
    if ((err = dpl_jpeg_create(&d->pic.jpeg))) goto done;
    if ((err = dpl_png_create(&d->pic.png))) goto done;
    *out = d;
    d = NULL; /* now the caller's */
done:
    dpl_decoder_destroy(&d);
    return err;
}

void dpl_decoder_destroy(dpl_decoder **d)
{
    if (!*d) return;
    dpl_jpeg_destroy(&(*d)->pic.jpeg);
    dpl_png_destroy(&(*d)->pic.png);
    free((*d)->pic.pixels);
    free((*d)->turned);
    free(*d);
    *d = NULL;
}

static int begin_again(dpl_decoder *d, dpl_text *why)
{
    d->pic.warned = 0;
    d->pic.orientation = 1;
    d->regions = 0;
    return d->codec->begin(&d->pic, why);
}

/* Formats have names with a capital; the others are descriptions. */
static int refuse(const char *name, dpl_text *why)
{
    if (name[0] >= 'A' && name[0] <= 'Z')
        return dpl_fail(why, DPL_EDATA, "%s is not supported (JPEG, PNG and WebP are)", name);
    return dpl_fail(why, DPL_EDATA, "not a JPEG, PNG or WebP picture but %s", name);
}

int dpl_decode_begin(dpl_decoder *d, const uint8_t *bytes, size_t len, int *width, int *height,
                     dpl_text *why)
{
    int err;
    char buf[64];
    const char *name;
    dpl_format format;

    *width = *height = 0;
    d->codec = NULL;
    d->pic.bytes = bytes;
    d->pic.len = len;
    if (len == 0) return dpl_fail(why, DPL_EDATA, "empty file");
    format = dpl_sniff(bytes, len, &name, buf);
    if (format == DPL_FORMAT_UNKNOWN) return refuse(name, why);
    d->codec = &codecs[format];
    if ((err = begin_again(d, why))) {
        d->codec = NULL;
        return err;
    }
    *width = d->pic.orientation < 5 ? d->pic.width : d->pic.height;
    *height = d->pic.orientation < 5 ? d->pic.height : d->pic.width;
    return DPL_OK;
}

/* Scaled pixels of a mirrored picture lie on the grid of the displayed one only when its size is a
 * multiple of the denominator. */
static int usable_denominator(const dpl_picture *p, int denominator)
{
    if (p->limits.exact) return 1;
    if (p->orientation > 1)
        while (p->width % denominator || p->height % denominator) denominator /= 2;
    return denominator;
}

static int turn(dpl_decoder *d, dpl_pixels *px)
{
    const dpl_picture *p = &d->pic;
    const dpl_box stored = { px->x, px->y, px->w, px->h };
    const dpl_box b = dpl_turn_to_displayed(p->orientation, p->width / px->denominator,
                                            p->height / px->denominator, &stored);
    size_t bytes;

    if (dpl_mul((size_t)b.w * 3, (size_t)b.h, &bytes) ||
        dpl_reserve(&d->turned, &d->turned_cap, bytes))
        return DPL_ENOMEM;
    dpl_turn_pixels(d->turned, p->orientation, px->rgb, px->stride, px->w, px->h);
    *px = (dpl_pixels){ d->turned, (size_t)b.w * 3, b.x, b.y, b.w, b.h, px->denominator };
    return DPL_OK;
}

int dpl_decode_region(dpl_decoder *d, int x, int y, int w, int h, int denominator, dpl_pixels *out,
                      int *warned, dpl_text *why)
{
    int err;
    dpl_picture *p = &d->pic;
    const dpl_box shown = { x, y, w, h };
    dpl_box stored;

    *out = (dpl_pixels){ .denominator = 1 };
    *warned = 0;
    p->count = 0;
    assert(d->codec && w > 0 && h > 0);
    assert(denominator == 1 || denominator == 2 || denominator == 4 || denominator == 8);
    if (d->regions && (err = begin_again(d, why))) return err;
    d->regions++;
    stored = dpl_turn_to_stored(p->orientation, p->width, p->height, &shown);
    assert(stored.x >= 0 && stored.y >= 0 && stored.w <= p->width - stored.x &&
           stored.h <= p->height - stored.y);
    err = d->codec->region(p, &stored, usable_denominator(p, denominator), out, why);
    if (!err && p->warned && p->limits.strict)
        return dpl_fail(why, DPL_EDATA, "%s (strict)", p->complaint.s);
    if (!err && p->orientation > 1) err = turn(d, out);
    if (err) return err == DPL_ENOMEM ? dpl_fail(why, err, "out of memory") : err;
    *warned = p->warned;
    if (p->warned && why) *why = p->complaint;
    return DPL_OK;
}

uint64_t dpl_decode_count(const dpl_decoder *d)
{
    return d->pic.count;
}

static void trim(void **p, size_t *cap, size_t keep)
{
    if (*cap <= keep) return;
    free(*p);
    *p = NULL;
    *cap = 0;
}

void dpl_decoder_trim(dpl_decoder *d, size_t keep)
{
    trim(&d->pic.pixels, &d->pic.pixels_cap, keep);
    trim(&d->turned, &d->turned_cap, keep);
}
