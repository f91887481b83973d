/* SPDX-License-Identifier: Apache-2.0 */
/* Affine maps: the matrix, and looking up the nearest pixel. */
#include "kernels/affine.h"

#include <math.h>

/* Operation by operation as torchvision, so that the doubles are the same. */
dpl_affine dpl_affine_inverse(const dpl_affine_params *p)
{
    const double radian = 3.14159265358979323846 / 180.0;
    const double rot = p->angle * radian, sx = p->shear_x * radian, sy = p->shear_y * radian;
    const double a = cos(rot - sy) / cos(sy);
    const double b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    const double c = sin(rot - sy) / cos(sy);
    const double d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
    dpl_affine m = { .a = d / p->scale, .b = -b / p->scale, .d = -c / p->scale, .e = a / p->scale };
    m.c = m.a * (-p->cx - p->tx) + m.b * (-p->cy - p->ty);
    m.f = m.d * (-p->cx - p->tx) + m.e * (-p->cy - p->ty);
    m.c += p->cx;
    m.f += p->cy;
    return m;
}

dpl_affine dpl_affine_chain(const dpl_affine *outer, const dpl_affine *inner)
{
    const dpl_affine *o = outer, *i = inner;
    return (dpl_affine){ .a = o->a * i->a + o->b * i->d,
                         .b = o->a * i->b + o->b * i->e,
                         .c = o->a * i->c + o->b * i->f + o->c,
                         .d = o->d * i->a + o->e * i->d,
                         .e = o->d * i->b + o->e * i->e,
                         .f = o->d * i->c + o->e * i->f + o->f };
}

static void copy_pixel(uint8_t *out, const uint8_t *in)
{
    out[0] = in[0];
    out[1] = in[1];
    out[2] = in[2];
}

typedef struct picture {
    uint8_t *px;
    int width, height;
} picture;

/* The pixel at column x of row y, or the fill. */
static const uint8_t *pixel_at(const dpl_view *in, int64_t x, int64_t y, const uint8_t *fill)
{
    const int inside = x >= 0 && x < in->w && y >= 0 && y < in->h;
    return inside ? in->px + (size_t)y * in->stride + 3 * (size_t)x : fill;
}

/* The pixel that a coordinate lies in; -1 or past 2^31 where that is outside anyway. */
static int64_t pixel_of(double v)
{
    return v < 0 ? -1 : v < 0x1p31 ? (int64_t)v : INT64_C(1) << 31;
}

/* 32 bits hold the coordinates of this corner in 16.16. */
static int fits_fixed(const dpl_affine *m, int x, int y)
{
    return fabs(x * m->a + y * m->b + m->c) < 32768.0 && fabs(x * m->d + y * m->e + m->f) < 32768.0;
}

static int64_t fixed16(double v)
{
    return (int64_t)floor(v * 65536.0 + 0.5);
}

static void nearest_fixed(const picture *to, const dpl_view *in, const dpl_affine *m,
                          const uint8_t *fill)
{
    uint8_t *out = to->px;
    const int64_t a = fixed16(m->a), b = fixed16(m->b), d = fixed16(m->d), e = fixed16(m->e);
    int64_t row_x = fixed16(m->c + m->a * 0.5 + m->b * 0.5);
    int64_t row_y = fixed16(m->f + m->d * 0.5 + m->e * 0.5);
    for (int y = 0; y < to->height; y++, row_x += b, row_y += e) {
        int64_t xx = row_x, yy = row_y;
        for (int x = 0; x < to->width; x++, out += 3, xx += a, yy += d)
            copy_pixel(out, pixel_at(in, xx >> 16, yy >> 16, fill));
    }
}

static void nearest_double(const picture *to, const dpl_view *in, const dpl_affine *m,
                           const uint8_t *fill)
{
    uint8_t *out = to->px;
    double row_x = m->c + m->b * 0.5 + m->a * 0.5, row_y = m->f + m->e * 0.5 + m->d * 0.5;
    for (int y = 0; y < to->height; y++, row_x += m->b, row_y += m->e) {
        double xx = row_x, yy = row_y;
        for (int x = 0; x < to->width; x++, out += 3, xx += m->a, yy += m->d)
            copy_pixel(out, pixel_at(in, pixel_of(xx), pixel_of(yy), fill));
    }
}

void dpl_nearest_rgb(uint8_t *out, int width, int height, const dpl_view *in, const dpl_affine *m,
                     const uint8_t fill[3])
{
    const picture to = { out, width, height };
    const int scales = m->b == 0 && m->d == 0; /* neither turns nor shears */
    if (!scales && fits_fixed(m, 0, 0) && fits_fixed(m, width, height) &&
        fits_fixed(m, 0, height) && fits_fixed(m, width, 0))
        nearest_fixed(&to, in, m, fill);
    else
        nearest_double(&to, in, m, fill);
}
