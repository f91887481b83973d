/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes of the sample set: a coloured shape at a random place, size and angle before a background
 * with a gradient, a pattern and small marks. Edges are smooth: coverage by distance to the edge. */
#include "tools/drawset.h"

#include "base/rng.h"

#include <math.h>
#include <stddef.h>

typedef enum shape { CROSS, RING, TRIANGLE } shape;
typedef enum pattern { PLAIN, STRIPES, CHECKS, WAVES, PATTERNS } pattern;

typedef struct color {
    double r, g, b; /* 0..1 */
} color;

/* What stands on the background: a shape, or with other sizes a mark. */
typedef struct figure {
    shape what;
    double x, y, radius; /* pixels; radius of the circle through its corners */
    double cos_a, sin_a; /* its angle */
    double stretch;      /* width / height */
    double light;        /* how much brighter one side is than the middle */
    color fill;
} figure;

typedef struct backdrop {
    color from, to;
    double dx, dy; /* the gradient runs along this, per pixel */
    pattern kind;
    double cos_a, sin_a, period, strength;
} backdrop;

/* Byte-wise sorted: blue before red, cross before ring before triangle. */
static const char *const names[DRAWSET_CLASSES] = { "blue_cross", "blue_ring", "blue_triangle",
                                                    "red_cross",  "red_ring",  "red_triangle" };
static const double two_pi = 6.283185307179586;

const char *drawset_class_name(int k)
{
    return names[k];
}

/* hue in turns, any real number; saturation and value 0..1 */
static color from_hsv(double hue, double saturation, double value)
{
    double part[3];

    for (int c = 0; c < 3; c++) {
        const double t = 6 * (hue + (c == 0 ? 0 : c == 1 ? 2 : 1) / 3.0);
        const double at = fabs(t - 6 * floor(t / 6) - 3) - 1; /* 0 at hues far from this colour */

        part[c] = value * (1 - saturation * (1 - fmin(fmax(at, 0), 1)));
    }
    return (color){ part[0], part[1], part[2] };
}

/* Distance of (x, y) to the edge of a shape that fits a circle of radius 1 round the origin; negative
 * inside. */
static double shape_distance(shape what, double x, double y)
{
    static const double half_sqrt3 = 0.8660254037844386, arm = 0.92, half_width = 0.24;

    x = fabs(x);
    switch (what) {
    case CROSS:
        y = fabs(y);
        return fmin(fmax(x - half_width, y - arm), fmax(y - half_width, x - arm));
    case RING: return fabs(sqrt(x * x + y * y) - 0.78) - 0.22;
    case TRIANGLE: break;
    }
    return fmax(x * half_sqrt3 - y * 0.5, y) - 0.5;
}

static void blend(color *at, color with, double share)
{
    at->r += share * (with.r - at->r);
    at->g += share * (with.g - at->g);
    at->b += share * (with.b - at->b);
}

static void figure_over(color *at, const figure *f, double px, double py)
{
    const double dx = px - f->x, dy = py - f->y;
    const double x = (dx * f->cos_a + dy * f->sin_a) / f->radius / f->stretch;
    const double y = (dy * f->cos_a - dx * f->sin_a) / f->radius * f->stretch;
    const double cover = fmin(fmax(0.5 - shape_distance(f->what, x, y) * f->radius, 0), 1);
    const double light = 1 + f->light * x;

    if (cover <= 0) return;
    blend(at, (color){ f->fill.r * light, f->fill.g * light, f->fill.b * light }, cover);
}

static color backdrop_at(const backdrop *b, double x, double y)
{
    const double u = (x * b->cos_a + y * b->sin_a) / b->period * two_pi;
    const double v = (y * b->cos_a - x * b->sin_a) / b->period * two_pi;
    double wave = 0;
    color at = b->from;

    blend(&at, b->to, fmin(fmax(x * b->dx + y * b->dy, 0), 1));
    switch (b->kind) {
    case STRIPES: wave = sin(u) > 0 ? 1 : -1; break;
    case CHECKS: wave = sin(u) * sin(v) > 0 ? 1 : -1; break;
    case WAVES: wave = sin(u + 2 * sin(v / 2)) * cos(v * 0.7); break;
    default: break;
    }
    wave = 1 + b->strength * wave;
    return (color){ at.r * wave, at.g * wave, at.b * wave };
}

static backdrop draw_backdrop(dpl_rng *r, int w, int h)
{
    const double angle = dpl_rng_uniform(r, 0, two_pi), turn = dpl_rng_uniform(r, 0, two_pi);
    backdrop b;

    b.from = from_hsv(dpl_rng_unit(r), dpl_rng_uniform(r, 0, 0.3), dpl_rng_uniform(r, 0.25, 0.95));
    b.to = from_hsv(dpl_rng_unit(r), dpl_rng_uniform(r, 0, 0.3), dpl_rng_uniform(r, 0.25, 0.95));
    b.dx = cos(angle) / w;
    b.dy = sin(angle) / h;
    b.kind = (pattern)dpl_rng_below(r, PATTERNS);
    b.cos_a = cos(turn);
    b.sin_a = sin(turn);
    b.period = dpl_rng_uniform(r, 8, 40);
    b.strength = dpl_rng_uniform(r, 0.02, 0.08);
    return b;
}

/* Near the middle square: evaluation cuts away what lies outside of it. */
static figure draw_object(dpl_rng *r, int k, int w, int h)
{
    const double side = w < h ? w : h, angle = dpl_rng_uniform(r, 0, two_pi);
    const double hue = k < DRAWSET_CLASSES / 2 ? 0.62 : 0.0;
    double slack;
    figure f = { .what = (shape)(k % (DRAWSET_CLASSES / 2)) };

    f.radius = side * dpl_rng_uniform(r, 0.34, 0.46);
    f.stretch = dpl_rng_uniform(r, 0.95, 1.05);
    slack = side * 0.53 - f.radius;
    f.x = w * 0.5 + dpl_rng_uniform(r, -slack, slack);
    f.y = h * 0.5 + dpl_rng_uniform(r, -slack, slack);
    f.cos_a = cos(angle);
    f.sin_a = sin(angle);
    f.light = dpl_rng_uniform(r, 0, 0.3);
    f.fill = from_hsv(hue + dpl_rng_uniform(r, -0.035, 0.035), dpl_rng_uniform(r, 0.7, 1),
                      dpl_rng_uniform(r, 0.55, 1));
    return f;
}

/* A small mark of any colour and shape, which says nothing about the class. */
static figure draw_mark(dpl_rng *r, int w, int h)
{
    const double side = w < h ? w : h, angle = dpl_rng_uniform(r, 0, two_pi);
    figure f = { .what = (shape)dpl_rng_below(r, 3) };

    f.radius = side * dpl_rng_uniform(r, 0.012, 0.03);
    f.stretch = dpl_rng_uniform(r, 0.6, 1.6);
    f.x = dpl_rng_uniform(r, 0, w);
    f.y = dpl_rng_uniform(r, 0, h);
    f.cos_a = cos(angle);
    f.sin_a = sin(angle);
    f.fill = from_hsv(dpl_rng_unit(r), dpl_rng_uniform(r, 0, 1), dpl_rng_uniform(r, 0.2, 1));
    return f;
}

static uint8_t to_byte(double v, double noise)
{
    return (uint8_t)(fmin(fmax(255 * v + noise, 0), 255) + 0.5);
}

void drawset_scene(uint8_t *rgb, int w, int h, int k, uint64_t seed, int subset, uint64_t index)
{
    enum { MARKS_MAX = 7 };
    dpl_rng r;
    figure marks[MARKS_MAX], object;
    backdrop back;
    int n_marks;
    double grain;

    dpl_rng_init(&r, seed, (uint64_t)subset, index, DPL_RNG_AUGMENT);
    back = draw_backdrop(&r, w, h);
    object = draw_object(&r, k, w, h);
    n_marks = (int)dpl_rng_below(&r, MARKS_MAX + 1);
    for (int i = 0; i < n_marks; i++) marks[i] = draw_mark(&r, w, h);
    grain = dpl_rng_uniform(&r, 0, 10) / 128;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++, rgb += 3) {
            const uint32_t dice = dpl_rng_u32(&r);
            color at = backdrop_at(&back, x + 0.5, y + 0.5);

            figure_over(&at, &object, x + 0.5, y + 0.5);
            for (int i = 0; i < n_marks; i++) figure_over(&at, &marks[i], x + 0.5, y + 0.5);
            rgb[0] = to_byte(at.r, grain * ((int)(dice & 255) - 128));
            rgb[1] = to_byte(at.g, grain * ((int)(dice >> 8 & 255) - 128));
            rgb[2] = to_byte(at.b, grain * ((int)(dice >> 16 & 255) - 128));
        }
    }
}

void drawset_scene_size(int *w, int *h, int lo, int hi, uint64_t seed, int subset, uint64_t index)
{
    dpl_rng r;
    double other;

    dpl_rng_init(&r, seed, (uint64_t)subset, index, DPL_RNG_ORDER);
    *w = lo + (int)dpl_rng_below(&r, (uint32_t)(hi - lo + 1));
    other = *w * dpl_rng_uniform(&r, 0.75, 1.3334);
    *h = (int)fmin(fmax(other, lo), hi);
}
