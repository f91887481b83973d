/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation options: their checks, and their way into the recipe. */
#include "loader/recipe.h"

#include "loader/options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { RA_OPS_MAX = 16, RA_MAGNITUDE_MAX = DPL_POLICY_BINS - 1, PADDING_MAX = 8192 };

/* --- checks; comparisons are written so that NaN fails them --- */

static int check_ints(const dpl_options *o, dpl_text *why)
{
    static const dpl_int_rule rules[] = {
        { "crop_resize", offsetof(dpl_options, crop_resize), 0, 8 * PADDING_MAX },
        { "crop_padding", offsetof(dpl_options, crop_padding), 0, PADDING_MAX },
        { "ra_ops", offsetof(dpl_options, ra_ops), 0, RA_OPS_MAX },
        { "ra_magnitude", offsetof(dpl_options, ra_magnitude), 0, RA_MAGNITUDE_MAX },
        { "blur_kernel", offsetof(dpl_options, blur_kernel), 1, 2 * DPL_BLUR_RADIUS_MAX + 1 },
        { "posterize_bits", offsetof(dpl_options, posterize_bits), 0, 8 },
        { "rotate_once", offsetof(dpl_options, rotate_once), 0, 1 },
    };
    const int err = dpl_check_ints(o, rules, sizeof rules / sizeof *rules, why);

    if (err) return err;
    if (o->blur_kernel % 2 == 0)
        return dpl_fail(why, DPL_EINVAL, "blur_kernel %d: expected an odd number", o->blur_kernel);
    if (o->crop < DPL_CROP_RESIZED || o->crop > DPL_CROP_RANDOM)
        return dpl_fail(why, DPL_EINVAL, "crop %d: expected 0..1", (int)o->crop);
    if (o->erase_mode < DPL_ERASE_VALUE || o->erase_mode > DPL_ERASE_PIXELS)
        return dpl_fail(why, DPL_EINVAL, "erase_mode %d: expected 0..2", (int)o->erase_mode);
    if (o->auto_augment < DPL_AUGMENT_NONE || o->auto_augment > DPL_AUGMENT_IMAGENET)
        return dpl_fail(why, DPL_EINVAL, "auto_augment %d: expected 0..3", (int)o->auto_augment);
    return DPL_OK;
}

typedef struct number_rule {
    const char *name;
    size_t offset;
    int count; /* of an array */
    double min, max;
} number_rule;

static int check_numbers(const dpl_options *o, dpl_text *why)
{
    static const number_rule rules[] = {
        { "fill", offsetof(dpl_options, fill), 3, 0, 255 },
        { "vflip", offsetof(dpl_options, vflip), 1, 0, 1 },
        { "color_jitter", offsetof(dpl_options, color_jitter), 3, 0, 100 },
        { "color_jitter (hue)", offsetof(dpl_options, color_jitter[3]), 1, 0, 0.5 },
        { "grayscale", offsetof(dpl_options, grayscale), 1, 0, 1 },
        { "blur", offsetof(dpl_options, blur), 1, 0, 1 },
        { "invert", offsetof(dpl_options, invert), 1, 0, 1 },
        { "posterize", offsetof(dpl_options, posterize), 1, 0, 1 },
        { "solarize", offsetof(dpl_options, solarize), 1, 0, 1 },
        { "solarize_threshold", offsetof(dpl_options, solarize_threshold), 1, 0, 256 },
        { "sharpness", offsetof(dpl_options, sharpness), 1, 0, 1 },
        { "sharpness_factor", offsetof(dpl_options, sharpness_factor), 1, 0, 100 },
        { "autocontrast", offsetof(dpl_options, autocontrast), 1, 0, 1 },
        { "equalize", offsetof(dpl_options, equalize), 1, 0, 1 },
        { "affine_degrees", offsetof(dpl_options, affine_degrees), 1, 0, 180 },
        { "affine_translate", offsetof(dpl_options, affine_translate), 2, 0, 1 },
        { "affine_shear", offsetof(dpl_options, affine_shear), 2, 0, 89 },
        { "random_erase", offsetof(dpl_options, random_erase), 1, 0, 1 },
        { "erase_value", offsetof(dpl_options, erase_value), 3, -1e6, 1e6 },
        { "mixup", offsetof(dpl_options, mixup), 1, 0, 1000 },
        { "cutmix", offsetof(dpl_options, cutmix), 1, 0, 1000 },
    };

    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        const number_rule *r = &rules[k];

        for (int i = 0; i < r->count; i++) {
            double v;

            memcpy(&v, (const char *)o + r->offset + (size_t)i * sizeof v, sizeof v);
            if (!(v >= r->min && v <= r->max))
                return dpl_fail(why, DPL_EINVAL, "%s %g: expected %g..%g", r->name, v, r->min,
                                r->max);
        }
    }
    for (int c = 0; c < 3; c++)
        if (o->fill[c] != floor(o->fill[c]))
            return dpl_fail(why, DPL_EINVAL, "fill %g: expected a whole number", o->fill[c]);
    return DPL_OK;
}

static int check_range(const char *name, double min, double max, double limit, dpl_text *why)
{
    if (min > 0 && min <= max && max <= limit) return DPL_OK;
    return dpl_fail(why, DPL_EINVAL, "%s %g..%g: expected 0 < min <= max <= %g", name, min, max,
                    limit);
}

static int has_affine(const dpl_options *o)
{
    return o->affine_degrees > 0 || o->affine_translate[0] > 0 || o->affine_translate[1] > 0 ||
           o->affine_shear[0] > 0 || o->affine_shear[1] > 0 || o->affine_scale_min != 1 ||
           o->affine_scale_max != 1;
}

/* Without a turn the ordinary crop is one resample too, and a better one: it is antialiased. */
static int check_rotate_once(const dpl_options *o, dpl_text *why)
{
    if (!o->rotate_once) return DPL_OK;
    if (!(o->rotate > 0) && !has_affine(o))
        return dpl_fail(
            why, DPL_EINVAL,
            "rotate_once without rotation: set rotate or an affine map, or leave it out");
    return DPL_OK;
}

int dpl_recipe_check(const dpl_options *o, dpl_text *why)
{
    int err;

    if ((err = check_ints(o, why)) || (err = check_numbers(o, why)) ||
        (err = check_range("blur_sigma", o->blur_sigma_min, o->blur_sigma_max, 1000, why)) ||
        (err = check_range("affine_scale", o->affine_scale_min, o->affine_scale_max, 1000, why)) ||
        (err = check_range("erase_scale", o->erase_scale_min, o->erase_scale_max, 1, why)) ||
        (err = check_rotate_once(o, why)))
        return err;
    return check_range("erase_ratio", o->erase_ratio_min, o->erase_ratio_max, 1000, why);
}

/* --- making --- */

/* The resized short side of evaluation: 256 for 224, as the usual recipe. */
static int default_resize(const dpl_options *o)
{
    const int side = o->width > o->height ? o->width : o->height;

    return (int)lround(side * 256.0 / 224.0);
}

static dpl_policy policy_of(dpl_auto_augment a)
{
    switch (a) {
    case DPL_AUGMENT_NONE: return DPL_POLICY_NONE;
    case DPL_AUGMENT_RAND: return DPL_POLICY_RAND;
    case DPL_AUGMENT_TRIVIAL_WIDE: return DPL_POLICY_TRIVIAL;
    case DPL_AUGMENT_IMAGENET: return DPL_POLICY_IMAGENET;
    }
    return DPL_POLICY_NONE;
}

static dpl_affine_spec affine_of(const dpl_options *o)
{
    return (dpl_affine_spec){ .on = has_affine(o),
                              .degrees = o->affine_degrees,
                              .translate = { o->affine_translate[0], o->affine_translate[1] },
                              .scale_min = o->affine_scale_min,
                              .scale_max = o->affine_scale_max,
                              .shear = { o->affine_shear[0], o->affine_shear[1] } };
}

static void make_operations(dpl_recipe_spec *s, const dpl_options *o)
{
    s->vflip = o->vflip;
    s->policy = policy_of(o->auto_augment);
    s->ra_ops = o->ra_ops;
    s->ra_magnitude = o->ra_magnitude;
    memcpy(s->color_jitter, o->color_jitter, sizeof s->color_jitter);
    s->grayscale = o->grayscale;
    s->blur = o->blur;
    s->blur_kernel = o->blur_kernel;
    s->blur_sigma_min = o->blur_sigma_min;
    s->blur_sigma_max = o->blur_sigma_max;
    s->invert = o->invert;
    s->posterize = o->posterize;
    s->posterize_bits = o->posterize_bits;
    s->solarize = o->solarize;
    s->solarize_threshold = o->solarize_threshold;
    s->sharpness = o->sharpness;
    s->sharpness_factor = o->sharpness_factor;
    s->autocontrast = o->autocontrast;
    s->equalize = o->equalize;
    s->affine = affine_of(o);
    s->erase = o->random_erase;
    s->erase_scale_min = o->erase_scale_min;
    s->erase_scale_max = o->erase_scale_max;
    s->erase_ratio_min = o->erase_ratio_min;
    s->erase_ratio_max = o->erase_ratio_max;
}

void dpl_recipe_make(dpl_recipe_spec *s, const dpl_options *o)
{
    const int train = o->recipe == DPL_TRAIN;

    *s = (dpl_recipe_spec){
        .train = train,
        .width = o->width,
        .height = o->height,
        .resize = o->resize ? o->resize : default_resize(o),
        .scale_min = o->scale_min,
        .scale_max = o->scale_max,
        .ratio_min = o->ratio_min,
        .ratio_max = o->ratio_max,
        .hflip = o->hflip,
        .rotate = o->rotate,
        .rotate_bilinear = o->rotate_filter == DPL_BILINEAR,
        .rotate_once = train && o->rotate_once,
        .filter = o->filter == DPL_BICUBIC ? DPL_RESAMPLE_BICUBIC : DPL_RESAMPLE_BILINEAR,
        .fast = train && o->decode == DPL_DECODE_FAST,
        .crop = o->crop == DPL_CROP_RANDOM ? DPL_CROPS_RANDOM : DPL_CROPS_RESIZED,
        .crop_resize = o->crop_resize,
        .crop_padding = o->crop_padding
    };
    for (int c = 0; c < 3; c++) s->fill[c] = (uint8_t)o->fill[c];
    make_operations(s, o);
}

void dpl_recipe_levels(uint8_t level[3], const float value[3], const dpl_options *o)
{
    const double whole = 0x1.8p52; /* its neighbours are 1 apart */

    for (int c = 0; c < 3; c++) {
        const double v = 255 * ((double)value[c] * (double)o->std[c] + (double)o->mean[c]);

        const double clipped = v < 0 ? 0 : v > 255 ? 255 : v;

        level[c] = (uint8_t)((clipped + whole) - whole);
    }
}
