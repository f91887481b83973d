/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of a picture, which depend on the type and layout that are delivered. */
#include "loader/loader.h"
#include "loader/recipe.h"

size_t dpl_dtype_bytes(dpl_dtype t)
{
    return t == DPL_UINT8 ? 1 : t == DPL_FLOAT32 ? 4 : 2;
}

void dpl_finish_convert(const dpl_loader *l, void *out, const uint8_t *picture)
{
    const dpl_kernels *k = &l->kernels;
    const size_t n = (size_t)l->opt.width * (size_t)l->opt.height;
    const int planes = l->opt.layout == DPL_NCHW;

    if (l->opt.dtype == DPL_FLOAT32)
        (planes ? k->normalize_nchw : k->normalize_nhwc)(out, picture, n, l->scale, l->bias);
    else if (l->opt.dtype == DPL_BFLOAT16)
        (planes ? k->bfloat_nchw : k->bfloat_nhwc)(out, picture, n, l->scale, l->bias);
    else
        (planes ? k->half_nchw : k->half_nhwc)(out, picture, n, l->scale, l->bias);
}

/* One value over a part of a delivered picture. */
static void paint(const dpl_loader *l, void *out, const dpl_rect *r, const float value[3])
{
    const int planes = l->opt.layout == DPL_NCHW, w = l->opt.width, h = l->opt.height;

    if (l->opt.dtype == DPL_UINT8) {
        uint8_t level[3];

        dpl_recipe_levels(level, value, &l->opt);
        dpl_erase_u8(out, w, r, level);
    } else if (l->opt.dtype == DPL_FLOAT32) {
        if (planes)
            dpl_erase_nchw(out, w, h, r, value);
        else
            dpl_erase_nhwc(out, w, r, value);
    } else {
        uint16_t v16[3];

        for (int c = 0; c < 3; c++)
            v16[c] = l->opt.dtype == DPL_BFLOAT16 ? dpl_to_bfloat(value[c]) : dpl_to_half(value[c]);
        if (planes)
            dpl_erase_nchw16(out, w, h, r, v16);
        else
            dpl_erase_nhwc16(out, w, r, v16);
    }
}

/* Row by row, pixel by pixel: the same numbers in every layout. */
static void paint_pixels(const dpl_loader *l, void *out, const dpl_rect *r, dpl_rng *rng)
{
    enum { PIECE = 32 };
    float value[PIECE][3];

    for (int y = 0; y < r->h; y++)
        for (int x = 0; x < r->w; x += PIECE) {
            const int n = r->w - x < PIECE ? r->w - x : PIECE;

            dpl_rng_normals(rng, value[0], 3 * (size_t)n);
            for (int i = 0; i < n; i++)
                paint(l, out, &(dpl_rect){ r->x + x + i, r->y + y, 1, 1 }, value[i]);
        }
}

/* After normalising, so that 0 is the mean colour. */
void dpl_finish_erase(const dpl_loader *l, void *out, const dpl_rect *r, uint64_t epoch,
                      uint64_t id)
{
    float value[3];
    dpl_rng rng;

    dpl_rng_init(&rng, l->opt.seed, epoch, id, DPL_RNG_ERASE);
    if (l->opt.erase_mode == DPL_ERASE_PIXELS) {
        paint_pixels(l, out, r, &rng);
        return;
    }
    if (l->opt.erase_mode == DPL_ERASE_COLOR)
        dpl_rng_normals(&rng, value, 3);
    else
        for (int c = 0; c < 3; c++) value[c] = (float)l->opt.erase_value[c];
    paint(l, out, r, value);
}
