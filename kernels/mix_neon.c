/* SPDX-License-Identifier: Apache-2.0 */
/* Mixing with NEON: 16 levels or 4 floats per step. */
#include "kernels/mix.h"

#if defined(__aarch64__)
#    include "kernels/bfloat_neon.h"

/* b + round((a - b) * weight): the high multiply with rounding is exact here, halves up. */
static inline uint8x8_t blend8(uint8x8_t a, uint8x8_t b, int16x8_t weight)
{
    const int16x8_t d = vreinterpretq_s16_u16(vsubl_u8(a, b));
    const int16x8_t v = vaddq_s16(vreinterpretq_s16_u16(vmovl_u8(b)), vqrdmulhq_s16(d, weight));

    return vqmovun_s16(v);
}

void dpl_blend_u8_neon(uint8_t *a, const uint8_t *b, size_t n, int weight)
{
    const int16x8_t w = vdupq_n_s16((int16_t)weight);
    size_t i = 0;

    if (weight == DPL_MIX_ONE) return; /* a as it is; not a 16-bit number */
    for (; i + 16 <= n; i += 16) {
        const uint8x16_t x = vld1q_u8(a + i), y = vld1q_u8(b + i);

        vst1q_u8(a + i, vcombine_u8(blend8(vget_low_u8(x), vget_low_u8(y), w),
                                    blend8(vget_high_u8(x), vget_high_u8(y), w)));
    }
    dpl_blend_u8_c(a + i, b + i, n - i, weight);
}

/* Rounded after each product and after the sum. */
static inline float32x4_t blend4(float32x4_t a, float32x4_t b, float weight)
{
    return vaddq_f32(vmulq_n_f32(a, weight), vmulq_n_f32(b, 1 - weight));
}

void dpl_blend_f32_neon(float *a, const float *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE;
    size_t i = 0;

    for (; i + 4 <= n; i += 4) vst1q_f32(a + i, blend4(vld1q_f32(a + i), vld1q_f32(b + i), w));
    dpl_blend_f32_c(a + i, b + i, n - i, weight);
}

static inline float32x4_t of_bfloat(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

void dpl_blend_bfloat_neon(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE;
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1_u16(a + i, dpl_bfloat_neon(blend4(of_bfloat(a + i), of_bfloat(b + i), w)));
    dpl_blend_bfloat_c(a + i, b + i, n - i, weight);
}

static inline float32x4_t of_half(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

void dpl_blend_half_neon(uint16_t *a, const uint16_t *b, size_t n, int weight)
{
    const float w = (float)weight / DPL_MIX_ONE;
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        const float16x4_t v = vcvt_f16_f32(blend4(of_half(a + i), of_half(b + i), w));

        vst1_u16(a + i, vreinterpret_u16_f16(v));
    }
    dpl_blend_half_c(a + i, b + i, n - i, weight);
}
#endif
