/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of a picture, which depend on the type and layout that are delivered. */
#include "loader/loader.h"

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

/* After normalising, so that 0 is the mean colour. */
void dpl_finish_erase(const dpl_loader *l, void *out, const dpl_rect *r)
{
    const int planes = l->opt.layout == DPL_NCHW, w = l->opt.width, h = l->opt.height;
    uint16_t value[3];

    if (l->opt.dtype == DPL_UINT8) {
        dpl_erase_u8(out, w, r, l->erase_level);
    } else if (l->opt.dtype == DPL_FLOAT32) {
        if (planes)
            dpl_erase_nchw(out, w, h, r, l->erase);
        else
            dpl_erase_nhwc(out, w, r, l->erase);
    } else {
        for (int c = 0; c < 3; c++)
            value[c] = l->opt.dtype == DPL_BFLOAT16 ? dpl_to_bfloat(l->erase[c])
                                                    : dpl_to_half(l->erase[c]);
        if (planes)
            dpl_erase_nchw16(out, w, h, r, value);
        else
            dpl_erase_nhwc16(out, w, r, value);
    }
}
