/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing a plan: numbers only, no pixels. Rounding is half-to-even throughout, as in Python. */
#include "augment/augment.h"

#include "augment/geometry.h"
#include "augment/random_ops.h"

#include <math.h>

enum { CROP_TRIES = 10, SIDE_MAX = 1 << 30 /* sums of sides and window offsets stay in an int */ };

static void random_box(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng, int img_w, int img_h)
{
    const double area = (double)img_w * img_h;
    const double log_min = log(s->ratio_min), log_max = log(s->ratio_max);
    for (int i = 0; i < CROP_TRIES; i++) {
        const double target = area * dpl_rng_uniform(rng, s->scale_min, s->scale_max);
        const double ratio = exp(dpl_rng_uniform(rng, log_min, log_max));
        const double w = rint(sqrt(target * ratio)), h = rint(sqrt(target / ratio));
        if (w < 1 || w > img_w || h < 1 || h > img_h) continue;
        p->w = (int)w;
        p->h = (int)h;
        p->y = (int)dpl_rng_below(rng, (uint32_t)(img_h - p->h + 1));
        p->x = (int)dpl_rng_below(rng, (uint32_t)(img_w - p->w + 1));
        return;
    }
    /* the largest central box of an allowed ratio */
    const double ratio = (double)img_w / img_h;
    p->w = img_w;
    p->h = img_h;
    if (ratio < s->ratio_min) p->h = (int)fmax(1, rint(img_w / s->ratio_min));
    if (ratio > s->ratio_max) p->w = (int)fmax(1, rint(img_h * s->ratio_max));
    p->x = (img_w - p->w) / 2;
    p->y = (img_h - p->h) / 2;
}

/* Long side when the short one becomes `resize`: truncated, as torchvision does. */
static int long_side(int resize, int longer, int shorter)
{
    const int64_t n = (int64_t)resize * longer / shorter;
    return n > SIDE_MAX ? SIDE_MAX : (int)n;
}

/* Where a window of n starts on a side of `side`; a smaller side is padded on both ends. */
static int centre_offset(int side, int n)
{
    return side < n ? -((n - side) / 2) : (int)rint((side - n) / 2.0);
}

/* The whole picture, its short side resized to `resize`. */
static void whole_picture(dpl_plan *p, int resize, int img_w, int img_h)
{
    p->w = img_w;
    p->h = img_h;
    p->resized_w = img_w <= img_h ? resize : long_side(resize, img_w, img_h);
    p->resized_h = img_w <= img_h ? long_side(resize, img_h, img_w) : resize;
}

/* A random place for n pixels on a side that is padded by `padding` on both ends, and again by what is
 * missing where that is still too small. */
static int random_offset(dpl_rng *rng, int side, int padding, int n)
{
    const int64_t padded = (int64_t)side + 2 * padding;
    const int64_t missing = padded < n ? n - padded : 0;
    const int64_t places = padded + 2 * missing - n + 1;
    return (int)((int64_t)dpl_rng_below(rng, (uint32_t)places) - padding - missing);
}

static void random_window(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng, int img_w, int img_h)
{
    const int shorter = img_w < img_h ? img_w : img_h;
    whole_picture(p, s->crop_resize ? s->crop_resize : shorter, img_w, img_h);
    p->win_y = random_offset(rng, p->resized_h, s->crop_padding, s->height);
    p->win_x = random_offset(rng, p->resized_w, s->crop_padding, s->width);
}

static void central_window(dpl_plan *p, const dpl_recipe_spec *s, int img_w, int img_h)
{
    whole_picture(p, s->resize, img_w, img_h);
    p->win_x = centre_offset(p->resized_w, s->width);
    p->win_y = centre_offset(p->resized_h, s->height);
}

void dpl_plan_draw(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng, int img_w, int img_h)
{
    *p = (dpl_plan){ .resized_w = s->width, .resized_h = s->height, .affine = { .a = 1, .e = 1 } };
    if (!s->train) {
        central_window(p, s, img_w, img_h);
        return;
    }
    if (s->crop == DPL_CROPS_RANDOM)
        random_window(p, s, rng, img_w, img_h);
    else
        random_box(p, s, rng, img_w, img_h);
    p->flip = dpl_rng_unit(rng) < s->hflip;
    if (s->rotate > 0) p->angle = dpl_rng_uniform(rng, -s->rotate, s->rotate);
    dpl_random_ops_draw(p, s, rng);
}

dpl_span dpl_plan_window(const dpl_span *box, int resized, int win, int n)
{
    const int64_t end = (int64_t)win + n;
    const int64_t from = win > 0 ? (int64_t)win * box->n / resized : 0;
    int64_t to = end > 0 ? (end * box->n + resized - 1) / resized : 0;
    if (to > box->n) to = box->n;
    if (from >= to) return (dpl_span){ box->at, 0 };
    return (dpl_span){ box->at + (int)from, (int)(to - from) };
}

dpl_affine dpl_plan_map(const dpl_plan *p, const dpl_recipe_spec *s)
{
    const dpl_affine turn = dpl_rotate_inverse(s->width, s->height, p->angle);
    const double across = (double)p->w / p->resized_w, down = (double)p->h / p->resized_h;
    const dpl_span x = dpl_plan_window(&(dpl_span){ p->x, p->w }, p->resized_w, p->win_x, s->width);
    const dpl_span y =
        dpl_plan_window(&(dpl_span){ p->y, p->h }, p->resized_h, p->win_y, s->height);
    dpl_affine m = dpl_affine_chain(&p->affine, &turn);
    if (p->vflip) m.d = -m.d, m.e = -m.e, m.f = s->height - m.f;
    if (p->flip) m.a = -m.a, m.b = -m.b, m.c = s->width - m.c;
    return (dpl_affine){ across * m.a, across * m.b, across * (m.c + p->win_x) - (x.at - p->x),
                         down * m.d,   down * m.e,   down * (m.f + p->win_y) - (y.at - p->y) };
}

int dpl_plan_denominator(const dpl_plan *p, const dpl_recipe_spec *s)
{
    if (!s->fast) return 1;
    for (int d = 8; d > 1; d /= 2)
        if (p->w / d >= p->resized_w && p->h / d >= p->resized_h) return d;
    return 1;
}

dpl_axis dpl_plan_axis(const dpl_span *box, int resized, int win, int n, int filter,
                       int denominator, int *origin)
{
    const int lo = box->at / denominator;
    const int hi = (int)(((int64_t)box->at + box->n + denominator - 1) / denominator);
    const int first = win > 0 ? win : 0;
    const int64_t end = (int64_t)win + n < resized ? (int64_t)win + n : resized;
    *origin = lo;
    return (dpl_axis){ .box0 = (double)box->at / denominator - lo,
                       .box1 = ((double)box->at + box->n) / denominator - lo,
                       .in_n = hi - lo,
                       .out_n = resized,
                       .first = first,
                       .count = end > first ? (int)(end - first) : 0,
                       .filter = filter };
}

/* Pixels of the picture that one axis reads at any denominator up to d: which of them the decoder
 * can give is known only afterwards. */
static dpl_span axis_region(const dpl_span *box, int resized, int win, int n, int filter, int d)
{
    int from = box->at + box->n, to = box->at;
    for (; d >= 1; d /= 2) {
        int origin, lo, hi;
        const dpl_axis a = dpl_plan_axis(box, resized, win, n, filter, d, &origin);
        if (a.count < 1) return (dpl_span){ box->at, 1 }; /* nothing, but decoders give a pixel */
        dpl_axis_support(&a, &lo, &hi);
        lo = (origin + lo) * d;
        if (lo < from) from = lo;
        if ((int64_t)(origin + hi) * d > to) to = (origin + hi) * d;
    }
    if (from < box->at) from = box->at;
    if (to > box->at + box->n) to = box->at + box->n;
    return (dpl_span){ from, to - from };
}

void dpl_plan_region(const dpl_plan *p, const dpl_recipe_spec *s, int *x, int *y, int *w, int *h)
{
    const int d = dpl_plan_denominator(p, s);
    const dpl_span box_x = { p->x, p->w }, box_y = { p->y, p->h };
    dpl_span across, down;
    if (s->rotate_once) {
        across = dpl_plan_window(&box_x, p->resized_w, p->win_x, s->width);
        down = dpl_plan_window(&box_y, p->resized_h, p->win_y, s->height);
    } else {
        across = axis_region(&box_x, p->resized_w, p->win_x, s->width, s->filter, d);
        down = axis_region(&box_y, p->resized_h, p->win_y, s->height, s->filter, d);
    }
    *x = across.at;
    *w = across.n ? across.n : 1;
    *y = down.at;
    *h = down.n ? down.n : 1;
}
