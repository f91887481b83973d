/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults and the checks of dpl_options. Every refusal says which option, what it was and what
 * is allowed. */
#include "loader/options.h"

#include "loader/recipe.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    MAX_BATCH = 1 << 20,
    MAX_SIDE = 8192,
    MAX_WORKERS = 1024,
    MAX_PREFETCH = 64,
    MAX_WORLD = 1 << 20
};

static const dpl_options defaults = {
    .size = sizeof(dpl_options),
    .batch = 64,
    .shuffle = 1,
    .world = 1,
    .recipe = DPL_TRAIN,
    .width = 224,
    .height = 224,
    .scale_min = 0.08,
    .scale_max = 1,
    .ratio_min = 3.0 / 4,
    .ratio_max = 4.0 / 3,
    .hflip = 0.5,
    .rotate_filter = DPL_NEAREST,
    .filter = DPL_BILINEAR,
    .decode = DPL_DECODE_FAST,
    .exif = 1,
    .dtype = DPL_UINT8,
    .layout = DPL_NHWC,
    .mean = { 0.485F, 0.456F, 0.406F },
    .std = { 0.229F, 0.224F, 0.225F },
    .prefetch = 3,
    .max_bad = 0.001,
    .max_pixels = 178956970,
    .max_scans = 256,
    .max_file_bytes = UINT64_C(512) << 20,
    .crop = DPL_CROP_RESIZED,
    .ra_ops = 2,
    .ra_magnitude = 9,
    .blur_kernel = 23,
    .blur_sigma_min = 0.1,
    .blur_sigma_max = 2,
    .posterize_bits = 4,
    .solarize_threshold = 128,
    .sharpness_factor = 2,
    .affine_scale_min = 1,
    .affine_scale_max = 1,
    .erase_scale_min = 0.02,
    .erase_scale_max = 0.33,
    .erase_ratio_min = 0.3,
    .erase_ratio_max = 3.3,
};

void dpl_options_init(dpl_options *opt, size_t size)
{
    memset(opt, 0, size);
    memcpy(opt, &defaults, size < sizeof defaults ? size : sizeof defaults);
    if (size >= sizeof opt->size) opt->size = size;
}

int dpl_options_take(dpl_options *out, const dpl_options *opt, dpl_text *why)
{
    if (!opt) return dpl_fail(why, DPL_EINVAL, "options: NULL");
    if (opt->size < sizeof opt->size || opt->size > sizeof *out)
        return dpl_fail(why, DPL_EINVAL,
                        "options: size %zu, this library knows %zu; call dpl_options_init(), and "
                        "use a library at least as new as the header",
                        opt->size, sizeof *out);
    *out = defaults;
    memcpy(out, opt, opt->size);
    out->size = sizeof *out;
    return DPL_OK;
}

/* --- checks --- */

int dpl_check_ints(const dpl_options *o, const dpl_int_rule *rule, size_t n, dpl_text *why)
{
    for (size_t k = 0; k < n; k++) {
        int v;

        memcpy(&v, (const char *)o + rule[k].offset, sizeof v);
        if (v < rule[k].min || v > rule[k].max)
            return dpl_fail(why, DPL_EINVAL, "%s %d: expected %d..%d", rule[k].name, v, rule[k].min,
                            rule[k].max);
    }
    return DPL_OK;
}

static int check_ints(const dpl_options *o, dpl_text *why)
{
    static const dpl_int_rule rules[] = {
        { "batch", offsetof(dpl_options, batch), 1, MAX_BATCH },
        { "shuffle", offsetof(dpl_options, shuffle), 0, 1 },
        { "drop_last", offsetof(dpl_options, drop_last), 0, 1 },
        { "world", offsetof(dpl_options, world), 1, MAX_WORLD },
        { "width", offsetof(dpl_options, width), 1, MAX_SIDE },
        { "height", offsetof(dpl_options, height), 1, MAX_SIDE },
        { "resize", offsetof(dpl_options, resize), 0, 8 * MAX_SIDE },
        { "exif", offsetof(dpl_options, exif), 0, 1 },
        { "workers", offsetof(dpl_options, workers), 0, MAX_WORKERS },
        { "readers", offsetof(dpl_options, readers), 0, MAX_WORKERS },
        { "prefetch", offsetof(dpl_options, prefetch), 1, MAX_PREFETCH },
        { "strict", offsetof(dpl_options, strict), 0, 1 },
        { "max_scans", offsetof(dpl_options, max_scans), 1, 1000000 },
    };
    const int err = dpl_check_ints(o, rules, sizeof rules / sizeof *rules, why);

    if (err) return err;
    if (o->rank < 0 || o->rank >= o->world)
        return dpl_fail(why, DPL_EINVAL, "rank %d: expected 0..%d (world - 1)", o->rank,
                        o->world - 1);
    return DPL_OK;
}

static int check_enums(const dpl_options *o, dpl_text *why)
{
    if (o->subset < DPL_SUBSET_ALL || o->subset > DPL_SUBSET_VAL)
        return dpl_fail(why, DPL_EINVAL, "subset %d: expected 0..2", (int)o->subset);
    if (o->recipe < DPL_TRAIN || o->recipe > DPL_EVAL)
        return dpl_fail(why, DPL_EINVAL, "recipe %d: expected 0..1", (int)o->recipe);
    if (o->rotate_filter != DPL_NEAREST && o->rotate_filter != DPL_BILINEAR)
        return dpl_fail(why, DPL_EINVAL, "rotate_filter %d: expected nearest or bilinear",
                        (int)o->rotate_filter);
    if (o->filter != DPL_BILINEAR && o->filter != DPL_BICUBIC)
        return dpl_fail(why, DPL_EINVAL, "filter %d: expected bilinear or bicubic", (int)o->filter);
    if (o->decode < DPL_DECODE_FAST || o->decode > DPL_DECODE_EXACT)
        return dpl_fail(why, DPL_EINVAL, "decode %d: expected 0..1", (int)o->decode);
    if (o->dtype < DPL_UINT8 || o->dtype > DPL_FLOAT16)
        return dpl_fail(why, DPL_EINVAL, "dtype %d: expected 0..3", (int)o->dtype);
    if (o->layout < DPL_NHWC || o->layout > DPL_NCHW)
        return dpl_fail(why, DPL_EINVAL, "layout %d: expected 0..1", (int)o->layout);
    if (o->dtype == DPL_UINT8 && o->layout != DPL_NHWC)
        return dpl_fail(why, DPL_EINVAL, "layout NCHW needs another dtype: uint8 is NHWC only");
    return DPL_OK;
}

/* Negated comparisons, so that NaN is refused too. */
static int check_numbers(const dpl_options *o, dpl_text *why)
{
    if (!(o->val_split >= 0 && o->val_split <= 0.9))
        return dpl_fail(why, DPL_EINVAL, "val_split %g: expected 0..0.9", o->val_split);
    if (o->subset == DPL_SUBSET_VAL && !(o->val_split > 0))
        return dpl_fail(why, DPL_EINVAL,
                        "val_split 0: expected more than 0 for the validation subset");
    if (!(o->scale_min > 0 && o->scale_min <= o->scale_max && o->scale_max <= 1))
        return dpl_fail(why, DPL_EINVAL, "scale %g..%g: expected 0 < min <= max <= 1", o->scale_min,
                        o->scale_max);
    if (!(o->ratio_min > 0 && o->ratio_min <= o->ratio_max && isfinite(o->ratio_max)))
        return dpl_fail(why, DPL_EINVAL, "ratio %g..%g: expected 0 < min <= max", o->ratio_min,
                        o->ratio_max);
    if (!(o->hflip >= 0 && o->hflip <= 1))
        return dpl_fail(why, DPL_EINVAL, "hflip %g: expected 0..1", o->hflip);
    if (!(o->rotate >= 0 && o->rotate <= 180))
        return dpl_fail(why, DPL_EINVAL, "rotate %g: expected 0..180 degrees", o->rotate);
    if (!(o->max_bad >= 0 && o->max_bad <= 1))
        return dpl_fail(why, DPL_EINVAL, "max_bad %g: expected 0..1", o->max_bad);
    if (!o->max_pixels || !o->max_file_bytes)
        return dpl_fail(why, DPL_EINVAL, "%s 0: expected at least 1",
                        o->max_pixels ? "max_file_bytes" : "max_pixels");
    if (o->epochs > DPL_EPOCHS_MAX)
        return dpl_fail(why, DPL_EINVAL, "epochs %llu: expected 0..%llu",
                        (unsigned long long)o->epochs, (unsigned long long)DPL_EPOCHS_MAX);
    for (int c = 0; c < 3; c++) {
        if (!isfinite(o->mean[c]))
            return dpl_fail(why, DPL_EINVAL, "mean[%d] %g: expected a number", c,
                            (double)o->mean[c]);
        if (!(o->std[c] > 0) || !isfinite(o->std[c]))
            return dpl_fail(why, DPL_EINVAL, "std[%d] %g: expected more than 0", c,
                            (double)o->std[c]);
    }
    return DPL_OK;
}

static int check_classes(const dpl_options *o, dpl_text *why)
{
    if (o->n_classes < 0 || (o->classes && !o->n_classes) || (!o->classes && o->n_classes))
        return dpl_fail(why, DPL_EINVAL, "n_classes %d: expected %s", o->n_classes,
                        o->classes ? "the number of entries of classes" : "0 without classes");
    for (int c = 0; c < o->n_classes; c++)
        if (!o->classes[c] || !*o->classes[c])
            return dpl_fail(why, DPL_EINVAL, "classes[%d]: expected a name", c);
    return DPL_OK;
}

static int check_source(const dpl_options *o, dpl_text *why)
{
    if (!o->path && !o->list && !o->source)
        return dpl_fail(why, DPL_EINVAL, "path: NULL; name a folder, or set list or source");
    if (o->source && (o->path || o->list))
        return dpl_fail(why, DPL_EINVAL, "%s and source are both set: expected one of them",
                        o->path ? "path" : "list");
    if (o->path && !*o->path) return dpl_fail(why, DPL_EINVAL, "path: empty; name a folder");
    if (o->list && !*o->list) return dpl_fail(why, DPL_EINVAL, "list: empty; name a text file");
    if (o->index && !*o->index) return dpl_fail(why, DPL_EINVAL, "index: empty; name a file");
    if (o->index && (o->list || o->source))
        return dpl_fail(why, DPL_EINVAL, "index %s: only a folder is indexed, not a %s", o->index,
                        o->list ? "list" : "source");
    return DPL_OK;
}

int dpl_options_check(const dpl_options *o, dpl_text *why)
{
    int err;

    if ((err = check_source(o, why)) || (err = check_ints(o, why)) || (err = check_enums(o, why)) ||
        (err = check_numbers(o, why)) || (err = dpl_recipe_check(o, why)))
        return err;
    return check_classes(o, why);
}
