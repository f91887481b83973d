/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a plan: rows pass, columns pass, then the operations and the rotation; or one look-up that is
 * crop, resize, flips and rotation in one, then the operations. The first picture is made where the last
 * one ends up in the result without a copy. */
#include "augment/augment.h"

#include "augment/geometry.h"
#include "base/alloc.h"
#include "dpload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void dpl_apply_scratch_free(dpl_apply_scratch *sc)
{
    dpl_taps_free(&sc->taps_x);
    dpl_taps_free(&sc->taps_y);
    free(sc->rows);
    free(sc->image);
    free(sc->blur);
    memset(sc, 0, sizeof *sc);
}

/* Both axes of one picture, and where their coordinates start in the scaled picture. */
typedef struct axes {
    dpl_axis x, y;
    int origin_x, origin_y;
} axes;

static axes axes_of(const dpl_plan *p, const dpl_recipe_spec *s, int denominator)
{
    axes a;
    a.x = dpl_plan_axis(&(dpl_span){ p->x, p->w }, p->resized_w, p->win_x, s->width, s->filter,
                        denominator, &a.origin_x);
    a.y = dpl_plan_axis(&(dpl_span){ p->y, p->h }, p->resized_h, p->win_y, s->height, s->filter,
                        denominator, &a.origin_y);
    a.x.reverse = p->flip;
    a.y.reverse = p->vflip;
    return a;
}

/* Resize into out, whose rows are s->width pixels; the window's part outside stays untouched. */
static int resize(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s, const axes *a,
                  const dpl_pixels *src, const dpl_kernels *k, dpl_apply_scratch *sc)
{
    int left, right, top, bottom;
    const size_t out_stride = 3 * (size_t)s->width, width = 3 * (size_t)a->x.count;
    dpl_axis_support(&a->x, &left, &right);
    dpl_axis_support(&a->y, &top, &bottom);
    assert(a->origin_x + left >= src->x && a->origin_x + right <= src->x + src->w);
    assert(a->origin_y + top >= src->y && a->origin_y + bottom <= src->y + src->h);
    if (dpl_taps_make(&sc->taps_x, &a->x) || dpl_taps_make(&sc->taps_y, &a->y)) return DPL_ENOMEM;
    if (dpl_reserve(&sc->rows, &sc->rows_cap, (size_t)(bottom - top) * width)) return DPL_ENOMEM;

    const uint8_t *in = src->rgb + (size_t)(a->origin_y + top - src->y) * src->stride;
    (s->fast ? k->rows_fast : k->rows)(sc->rows, in, src->stride, bottom - top,
                                       src->x - a->origin_x, &sc->taps_x);
    /* of the window, left of the picture and above it */
    const int skipped_x = a->x.first - p->win_x, skipped_y = a->y.first - p->win_y;
    const int x = p->flip ? s->width - skipped_x - a->x.count : skipped_x;
    const int y = p->vflip ? s->height - skipped_y - a->y.count : skipped_y;
    (s->fast ? k->cols_fast : k->cols)(out + (size_t)y * out_stride + 3 * (size_t)x, out_stride,
                                       sc->rows, (int)width, top, &sc->taps_y);
    return DPL_OK;
}

static void fill_picture(uint8_t *px, const dpl_recipe_spec *s)
{
    static const uint8_t black[3] = { 0, 0, 0 };
    const uint8_t *fill = s->train ? s->fill : black;
    const dpl_rect all = { 0, 0, s->width, s->height };
    dpl_erase_u8(px, s->width, &all, fill);
}

/* The window's part of the box along one axis of the source: its first pixel there, how many, and how far
 * into the first it begins. */
typedef struct part {
    int at, n;
    double begin;
} part;

static part part_of(const dpl_span *box, int resized, int win, int n, int denominator)
{
    const dpl_span w = dpl_plan_window(box, resized, win, n);
    const int lo = w.at / denominator, hi = (w.at + w.n + denominator - 1) / denominator;
    return (part){ lo, w.n ? hi - lo : 0, (double)w.at / denominator - lo };
}

/* Crop, flips, affine map and rotation as one look-up in the box, which in a scaled source ends at whole
 * pixels of the scaled picture. */
static void resample_once(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s,
                          const dpl_pixels *src, const dpl_kernels *k)
{
    const double d = src->denominator;
    const part x =
        part_of(&(dpl_span){ p->x, p->w }, p->resized_w, p->win_x, s->width, src->denominator);
    const part y =
        part_of(&(dpl_span){ p->y, p->h }, p->resized_h, p->win_y, s->height, src->denominator);
    if (!x.n || !y.n) { /* all of the window is padding */
        fill_picture(out, s);
        return;
    }
    const int left = x.at - src->x, top = y.at - src->y;
    const dpl_view box = { src->rgb + (size_t)top * src->stride + 3 * (size_t)left, src->stride,
                           x.n, y.n };
    dpl_affine m = dpl_plan_map(p, s);
    assert(left >= 0 && top >= 0 && left + box.w <= src->w && top + box.h <= src->h);
    m = (dpl_affine){ m.a / d, m.b / d, m.c / d + x.begin, m.d / d, m.e / d, m.f / d + y.begin };
    (s->rotate_bilinear ? k->bilinear : dpl_nearest_rgb)(out, s->width, s->height, &box, &m,
                                                         s->fill);
}

/* Is the rotation a step of its own? */
static int turns_last(const dpl_plan *p, const dpl_recipe_spec *s)
{
    return p->angle != 0 && !s->rotate_once;
}

static int moves_of(const dpl_plan *p, const dpl_recipe_spec *s)
{
    int n = turns_last(p, s);
    for (int i = 0; i < p->ops.n; i++) n += dpl_op_moves(&p->ops.op[i]);
    return n;
}

/* The picture before the operations. */
static int first_picture(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s,
                         const dpl_pixels *src, const dpl_kernels *k, dpl_apply_scratch *sc)
{
    const axes a = axes_of(p, s, src->denominator);
    if (s->rotate_once) {
        resample_once(out, p, s, src, k);
        return DPL_OK;
    }
    if (a.x.count < s->width || a.y.count < s->height) fill_picture(out, s);
    return a.x.count > 0 && a.y.count > 0 ? resize(out, p, s, &a, src, k, sc) : DPL_OK;
}

int dpl_plan_apply(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                   const dpl_kernels *k, dpl_apply_scratch *sc)
{
    const size_t bytes = 3 * (size_t)s->width * (size_t)s->height;
    const size_t floats = dpl_ops_scratch(&p->ops, s->width);
    const int moves = moves_of(p, s);
    dpl_op_style style = { .bilinear = s->rotate_bilinear };
    memcpy(style.fill, s->fill, sizeof style.fill);
    if (moves && dpl_reserve(&sc->image, &sc->image_cap, bytes)) return DPL_ENOMEM;
    if (floats && dpl_reserve(&sc->blur, &sc->blur_cap, floats * sizeof(float))) return DPL_ENOMEM;
    uint8_t *first = moves % 2 ? sc->image : out, *second = moves % 2 ? out : sc->image;

    const int err = first_picture(first, p, s, src, k, sc);
    if (err) return err;
    dpl_ops_apply(&p->ops, first, second, s->width, s->height, &style, k, sc->blur);
    if (turns_last(p, s))
        k->rotate(out, sc->image, s->width, s->height, p->angle, style.bilinear, style.fill);
    return DPL_OK;
}
