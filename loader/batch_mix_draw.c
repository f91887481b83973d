/* SPDX-License-Identifier: Apache-2.0 */
/* What mixup and cutmix draw for a batch; see mix.h. */
#include "loader/batch_mix.h"

#include "loader/loader.h"

#include <math.h>

/* Logarithm of a Gamma(shape) number, shape >= 1. Marsaglia and Tsang, "A simple method for
 * generating gamma variables", 2000. */
static double log_gamma_draw(dpl_rng *rng, double shape)
{
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        const double x = dpl_rng_normal(rng), root = 1 + c * x, v = root * root * root;

        if (root <= 0) continue;
        if (log(1 - dpl_rng_unit(rng)) < x * x / 2 + d * (1 - v + log(v))) return log(d * v);
    }
}

/* For a small shape the number itself would often be too small for a double; its logarithm is not. */
static double log_gamma_any(dpl_rng *rng, double shape)
{
    if (shape >= 1) return log_gamma_draw(rng, shape);
    return log_gamma_draw(rng, shape + 1) + log(1 - dpl_rng_unit(rng)) / shape;
}

double dpl_mix_beta(dpl_rng *rng, double alpha)
{
    const double a = log_gamma_any(rng, alpha), b = log_gamma_any(rng, alpha);

    return 1 / (1 + exp(b - a));
}

static int at_least(int v, int least)
{
    return v > least ? v : least;
}

static int at_most(int v, int most)
{
    return v < most ? v : most;
}

dpl_mix_plan dpl_mix_box(double lambda, int x, int y, int width, int height)
{
    const double half = 0.5 * sqrt(1 - lambda);
    const int half_w = (int)(half * width), half_h = (int)(half * height);
    const int x1 = at_least(x - half_w, 0), x2 = at_most(x + half_w, width);
    const int y1 = at_least(y - half_h, 0), y2 = at_most(y + half_h, height);
    const dpl_rect box = { x1, y1, x2 - x1, y2 - y1 };
    const double area = (double)box.w * box.h, all = (double)width * height;
    const dpl_mix_kind kind = box.w && box.h ? DPL_MIX_PASTE : DPL_MIX_NONE;

    return (dpl_mix_plan){ .kind = kind, .box = box, .share = (float)(1 - area / all) };
}

dpl_mix_plan dpl_mix_blend(double lambda)
{
    const int weight = (int)lround(lambda * DPL_MIX_ONE);

    return (dpl_mix_plan){ .kind = weight < DPL_MIX_ONE ? DPL_MIX_BLEND : DPL_MIX_NONE,
                           .weight = weight,
                           .share = (float)weight / DPL_MIX_ONE };
}

int dpl_mix_is_on(const dpl_options *opt)
{
    return opt->recipe == DPL_TRAIN && (opt->mixup > 0 || opt->cutmix > 0);
}

void dpl_mix_draw(dpl_mix_plan *m, const dpl_options *opt, uint64_t epoch, uint64_t index)
{
    int cut = opt->cutmix > 0;
    dpl_rng rng;

    *m = (dpl_mix_plan){ .kind = DPL_MIX_NONE, .share = 1 };
    if (!dpl_mix_is_on(opt)) return;
    dpl_rng_init(&rng, opt->seed, epoch, index, DPL_RNG_MIX);
    if (cut && opt->mixup > 0) cut = dpl_rng_below(&rng, 2) == 1;
    if (cut) {
        const double lambda = dpl_mix_beta(&rng, opt->cutmix);
        const int x = (int)dpl_rng_below(&rng, (uint32_t)opt->width);
        const int y = (int)dpl_rng_below(&rng, (uint32_t)opt->height);

        *m = dpl_mix_box(lambda, x, y, opt->width, opt->height);
    } else {
        *m = dpl_mix_blend(dpl_mix_beta(&rng, opt->mixup));
    }
}

static void blend(const dpl_kernels *k, dpl_dtype dtype, void *a, const void *b, size_t n,
                  int weight)
{
    switch (dtype) {
    case DPL_UINT8: k->blend_u8(a, b, n, weight); break;
    case DPL_FLOAT32: k->blend_f32(a, b, n, weight); break;
    case DPL_BFLOAT16: k->blend_bfloat(a, b, n, weight); break;
    case DPL_FLOAT16: k->blend_half(a, b, n, weight); break;
    }
}

void dpl_mix_pictures(const dpl_mix_plan *m, const dpl_options *opt, const dpl_kernels *k, void *a,
                      const void *b)
{
    const size_t value = dpl_dtype_bytes(opt->dtype);
    const int planes = opt->layout == DPL_NCHW ? 3 : 1;
    const dpl_mix_shape shape = { planes == 3 ? value : 3 * value, planes, opt->width,
                                  opt->height };

    if (m->kind == DPL_MIX_PASTE)
        dpl_paste(a, b, &shape, &m->box);
    else if (m->kind == DPL_MIX_BLEND)
        blend(k, opt->dtype, a, b, 3 * (size_t)opt->width * (size_t)opt->height, m->weight);
}
