/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing what is done after the crop: each transform in turn, in the order in which it is applied.
 * One that is off draws nothing. */
#include "augment/random_ops.h"

#include <math.h>

enum { ERASE_TRIES = 10 };

static int happens(dpl_rng *rng, double p)
{
    return p > 0 && dpl_rng_unit(rng) < p;
}

/* The order first, then the factors of those that are on. */
static void draw_jitter(dpl_ops *ops, const dpl_recipe_spec *s, dpl_rng *rng)
{
    static const dpl_op_kind kinds[4] = { DPL_OP_BRIGHTNESS, DPL_OP_CONTRAST, DPL_OP_SATURATION,
                                          DPL_OP_HUE };
    int order[4] = { 0, 1, 2, 3 };
    double value[4] = { 0 };
    const double *jitter = s->color_jitter;
    if (!(jitter[0] > 0 || jitter[1] > 0 || jitter[2] > 0 || jitter[3] > 0)) return;
    for (int i = 3; i > 0; i--) {
        const int k = (int)dpl_rng_below(rng, (uint32_t)i + 1), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
    for (int i = 0; i < 4; i++) {
        if (!(jitter[i] > 0)) continue;
        value[i] = i == 3 ? dpl_rng_uniform(rng, -jitter[i], jitter[i])
                          : dpl_rng_uniform(rng, fmax(0, 1 - jitter[i]), 1 + jitter[i]);
    }
    for (int i = 0; i < 4; i++)
        if (jitter[order[i]] > 0) dpl_ops_add(ops, kinds[order[i]], value[order[i]]);
}

static void draw_blur(dpl_ops *ops, const dpl_recipe_spec *s, dpl_rng *rng)
{
    if (!happens(rng, s->blur)) return;
    const double sigma = dpl_rng_uniform(rng, s->blur_sigma_min, s->blur_sigma_max);
    dpl_ops_add(ops, DPL_OP_BLUR, sigma)->radius = s->blur_kernel / 2;
}

static void draw_affine(dpl_plan *plan, const dpl_recipe_spec *s, dpl_rng *rng)
{
    const dpl_affine_spec *a = &s->affine;
    dpl_affine_params p = { .scale = 1, .cx = s->width * 0.5, .cy = s->height * 0.5 };
    if (!a->on) return;
    p.angle = dpl_rng_uniform(rng, -a->degrees, a->degrees);
    p.tx = rint(dpl_rng_uniform(rng, -a->translate[0] * s->width, a->translate[0] * s->width));
    p.ty = rint(dpl_rng_uniform(rng, -a->translate[1] * s->height, a->translate[1] * s->height));
    p.scale = dpl_rng_uniform(rng, a->scale_min, a->scale_max);
    p.shear_x = dpl_rng_uniform(rng, -a->shear[0], a->shear[0]);
    p.shear_y = dpl_rng_uniform(rng, -a->shear[1], a->shear[1]);
    if (s->rotate_once)
        plan->affine = dpl_affine_inverse(&p);
    else
        dpl_ops_add(&plan->ops, DPL_OP_AFFINE, 0)->map = dpl_affine_inverse(&p);
}

/* A box that is smaller than the picture on both sides, or none after ten tries. */
static void draw_erase(dpl_rect *r, const dpl_recipe_spec *s, dpl_rng *rng)
{
    const double area = (double)s->width * s->height;
    const double log_min = log(s->erase_ratio_min), log_max = log(s->erase_ratio_max);
    if (!happens(rng, s->erase)) return;
    for (int i = 0; i < ERASE_TRIES; i++) {
        const double target = area * dpl_rng_uniform(rng, s->erase_scale_min, s->erase_scale_max);
        const double ratio = exp(dpl_rng_uniform(rng, log_min, log_max)); /* height / width */
        const double h = rint(sqrt(target * ratio)), w = rint(sqrt(target / ratio));
        if (h >= s->height || w >= s->width) continue;
        r->h = (int)h;
        r->w = (int)w;
        r->y = (int)dpl_rng_below(rng, (uint32_t)(s->height - r->h + 1));
        r->x = (int)dpl_rng_below(rng, (uint32_t)(s->width - r->w + 1));
        return;
    }
}

void dpl_random_ops_draw(dpl_plan *p, const dpl_recipe_spec *s, dpl_rng *rng)
{
    dpl_ops *ops = &p->ops;
    p->vflip = happens(rng, s->vflip);
    dpl_policy_draw(ops, s->policy, s->ra_ops, s->ra_magnitude, rng, s->width, s->height);
    draw_jitter(ops, s, rng);
    if (happens(rng, s->grayscale)) dpl_ops_add(ops, DPL_OP_GRAYSCALE, 0);
    draw_blur(ops, s, rng);
    if (happens(rng, s->invert)) dpl_ops_add(ops, DPL_OP_INVERT, 0);
    if (happens(rng, s->posterize)) dpl_ops_add(ops, DPL_OP_POSTERIZE, s->posterize_bits);
    if (happens(rng, s->solarize)) dpl_ops_add(ops, DPL_OP_SOLARIZE, s->solarize_threshold);
    if (happens(rng, s->sharpness)) dpl_ops_add(ops, DPL_OP_SHARPNESS, s->sharpness_factor);
    if (happens(rng, s->autocontrast)) dpl_ops_add(ops, DPL_OP_AUTOCONTRAST, 0);
    if (happens(rng, s->equalize)) dpl_ops_add(ops, DPL_OP_EQUALIZE, 0);
    draw_affine(p, s, rng);
    draw_erase(&p->erase, s, rng);
}
