/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a plan: rows pass, columns pass straight into the result, rotation where asked for. */
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
    const int skipped_x = a->x.first - p->win_x; /* of the window, left of the picture */
    const int x = p->flip ? s->width - skipped_x - a->x.count : skipped_x;
    const int y = a->y.first - p->win_y;
    (s->fast ? k->cols_fast : k->cols)(out + (size_t)y * out_stride + 3 * (size_t)x, out_stride,
                                       sc->rows, (int)width, top, &sc->taps_y);
    return DPL_OK;
}

int dpl_plan_apply(uint8_t *out, const dpl_plan *p, const dpl_recipe_spec *s, const dpl_pixels *src,
                   const dpl_kernels *k, dpl_apply_scratch *sc)
{
    static const uint8_t black[3] = { 0, 0, 0 };
    const axes a = axes_of(p, s, src->denominator);
    const size_t bytes = 3 * (size_t)s->width * (size_t)s->height;
    uint8_t *image = out;
    if (p->angle != 0) { /* rotation needs a second picture */
        if (dpl_reserve(&sc->image, &sc->image_cap, bytes)) return DPL_ENOMEM;
        image = sc->image;
    }
    if (a.x.count < s->width || a.y.count < s->height) memset(image, 0, bytes);
    if (a.x.count > 0 && a.y.count > 0) {
        const int err = resize(image, p, s, &a, src, k, sc);
        if (err) return err;
    }
    if (p->angle != 0)
        k->rotate(out, image, s->width, s->height, p->angle, s->rotate_bilinear, black);
    return DPL_OK;
}
