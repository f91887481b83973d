/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation about the centre. Every output pixel looks up where it came from. */
#include "kernels/rotate.h"

#include "kernels/affine.h"

#include <math.h>
#include <string.h>

/* v in [-1, 1] rounded to 15 decimals, as a decimal conversion would: the product is taken exactly
 * (fma gives its rounding error), and both operands of the quotient are exact. */
static double round15(double v)
{
    const double p = v * 1e15, rest = fma(v, 1e15, -p);
    double r = rint(p);
    const double off = (p - r) + rest;
    if (off > 0.5) r += 1;
    if (off < -0.5) r -= 1;
    return r / 1e15;
}

/* 0 <= angle < 360 */
static double one_turn(double degrees)
{
    const double angle = fmod(degrees, 360.0);
    return angle < 0 ? angle + 360.0 : angle;
}

dpl_affine dpl_rotate_inverse(int width, int height, double degrees)
{
    const double pi = 3.14159265358979323846, angle = -(one_turn(degrees) * (pi / 180.0));
    const double cx = width / 2.0, cy = height / 2.0;
    dpl_affine m = { .a = round15(cos(angle)), .b = round15(sin(angle)) };
    m.d = -m.b;
    m.e = m.a;
    m.c = m.a * -cx + m.b * -cy + cx;
    m.f = m.d * -cx + m.e * -cy + cy;
    return m;
}

static void copy_pixel(uint8_t *out, const uint8_t *in)
{
    out[0] = in[0];
    out[1] = in[1];
    out[2] = in[2];
}

static void half_turn(uint8_t *out, const uint8_t *in, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) copy_pixel(out + 3 * i, in + 3 * (pixels - 1 - i));
}

/* Quarter turn of a square; ccw = counter-clockwise. */
static void quarter_turn(uint8_t *out, const uint8_t *in, int side, int ccw)
{
    const size_t n = (size_t)side;
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++, out += 3)
            copy_pixel(out, in + 3 * (ccw ? x * n + n - 1 - y : (n - 1 - x) * n + y));
}

/* Between the four neighbours of (x, y), which is inside the picture; edges repeat. */
static void blend(uint8_t *out, const dpl_view *in, double x, double y)
{
    x -= 0.5;
    y -= 0.5;
    const int ix = (int)x - (x < 0), iy = (int)y - (y < 0); /* floor of what is >= -1/2 */
    const double dx = x - ix, dy = y - iy;
    const size_t x0 = 3 * (size_t)(ix < 0 ? 0 : ix);
    const size_t x1 = 3 * (size_t)(ix + 1 < in->w ? ix + 1 : in->w - 1);
    const size_t y0 = (size_t)(iy < 0 ? 0 : iy), y1 = (size_t)(iy + 1 < in->h ? iy + 1 : iy);
    const uint8_t *top = in->px + y0 * in->stride, *bottom = in->px + y1 * in->stride;
    for (int c = 0; c < 3; c++) {
        const double v0 = top[x0 + c] + (top[x1 + c] - top[x0 + c]) * dx;
        const double v1 = bottom[x0 + c] + (bottom[x1 + c] - bottom[x0 + c]) * dx;
        out[c] = (uint8_t)(v0 + (v1 - v0) * dy);
    }
}

void dpl_bilinear_rgb_c(uint8_t *out, int width, int height, const dpl_view *in,
                        const dpl_affine *m, const uint8_t fill[3])
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, out += 3) {
            const double px = x + 0.5, py = y + 0.5;
            const double sx = m->a * px + m->b * py + m->c, sy = m->d * px + m->e * py + m->f;
            if (sx < 0.0 || sx >= in->w || sy < 0.0 || sy >= in->h)
                copy_pixel(out, fill);
            else
                blend(out, in, sx, sy);
        }
}

void dpl_rotate_with(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                     dpl_map_fn *map, const uint8_t fill[3])
{
    const size_t pixels = (size_t)width * (size_t)height;
    const double angle = one_turn(degrees);
    const dpl_affine m = dpl_rotate_inverse(width, height, degrees);
    const dpl_view view = { in, 3 * (size_t)width, width, height };
    if (m.b == 0.0 && m.a > 0) /* also where the sine rounds to nothing */
        memcpy(out, in, 3 * pixels);
    else if (m.b == 0.0)
        half_turn(out, in, pixels);
    else if ((angle == 90.0 || angle == 270.0) && width == height)
        quarter_turn(out, in, width, angle == 90.0);
    else
        map(out, width, height, &view, &m, fill);
}

void dpl_rotate_rgb_c(uint8_t *out, const uint8_t *in, int width, int height, double degrees,
                      int bilinear, const uint8_t fill[3])
{
    dpl_rotate_with(out, in, width, height, degrees,
                    bilinear ? dpl_bilinear_rgb_c : dpl_nearest_rgb, fill);
}
