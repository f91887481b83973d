/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 to normalised numbers with NEON: eight pixels per step, their channels parted by the load;
 * product and sum rounded apart as in the C variant. */
#include "kernels/convert.h"
#include "kernels/unroll.h"

#if defined(__aarch64__)
#    include "kernels/bfloat_neon.h"

typedef enum number { FLOAT, BFLOAT, HALF } number;

/* Eight values of one channel. */
typedef struct eight {
    float32x4_t low, high;
} eight;

INLINE eight scaled(uint8x8_t bytes, float scale, float bias)
{
    const uint16x8_t wide = vmovl_u8(bytes);
    const float32x4_t low = vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
    const float32x4_t high = vcvtq_f32_u32(vmovl_high_u16(wide));
    const float32x4_t b = vdupq_n_f32(bias);

    return (eight){ vaddq_f32(vmulq_n_f32(low, scale), b), vaddq_f32(vmulq_n_f32(high, scale), b) };
}

INLINE uint16x8_t to16(eight v, number type)
{
    if (type == BFLOAT) return vcombine_u16(dpl_bfloat_neon(v.low), dpl_bfloat_neon(v.high));
    return vreinterpretq_u16_f16(vcombine_f16(vcvt_f16_f32(v.low), vcvt_f16_f32(v.high)));
}

INLINE void store_plane(void *out, size_t at, eight v, number type)
{
    if (type == FLOAT) {
        vst1q_f32((float *)out + at, v.low);
        vst1q_f32((float *)out + at + 4, v.high);
    } else {
        vst1q_u16((uint16_t *)out + at, to16(v, type));
    }
}

/* Eight pixels, the channels side by side again. */
INLINE void store_pixels(void *out, size_t at, const eight v[3], number type)
{
    if (type == FLOAT) {
        const float32x4x3_t low = { { v[0].low, v[1].low, v[2].low } };
        const float32x4x3_t high = { { v[0].high, v[1].high, v[2].high } };

        vst3q_f32((float *)out + at, low);
        vst3q_f32((float *)out + at + 12, high);
    } else {
        const uint16x8x3_t all = { { to16(v[0], type), to16(v[1], type), to16(v[2], type) } };

        vst3q_u16((uint16_t *)out + at, all);
    }
}

INLINE void store_one(void *out, size_t at, float v, number type)
{
    if (type == FLOAT)
        ((float *)out)[at] = v;
    else
        ((uint16_t *)out)[at] = type == BFLOAT ? dpl_to_bfloat(v) : dpl_to_half(v);
}

INLINE void convert(void *out, const uint8_t *in, size_t n, const float *scale, const float *bias,
                    int planes, number type)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const uint8x8x3_t px = vld3_u8(in + 3 * i);
        eight v[3];
        UNROLL
        for (size_t c = 0; c < 3; c++) {
            v[c] = scaled(px.val[c], scale[c], bias[c]);
            if (planes) store_plane(out, c * n + i, v[c], type);
        }
        if (!planes) store_pixels(out, 3 * i, v, type);
    }
    for (; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            store_one(out, planes ? c * n + i : 3 * i + c,
                      (float)in[3 * i + c] * scale[c] + bias[c], type);
}

void dpl_normalize_nchw_neon(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    convert(out, in, n, scale, bias, 1, FLOAT);
}

void dpl_normalize_nhwc_neon(float *out, const uint8_t *in, size_t n, const float scale[3],
                             const float bias[3])
{
    convert(out, in, n, scale, bias, 0, FLOAT);
}

void dpl_bfloat_nchw_neon(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    convert(out, in, n, scale, bias, 1, BFLOAT);
}

void dpl_bfloat_nhwc_neon(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    convert(out, in, n, scale, bias, 0, BFLOAT);
}

void dpl_half_nchw_neon(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                        const float bias[3])
{
    convert(out, in, n, scale, bias, 1, HALF);
}

void dpl_half_nhwc_neon(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                        const float bias[3])
{
    convert(out, in, n, scale, bias, 0, HALF);
}
#endif
