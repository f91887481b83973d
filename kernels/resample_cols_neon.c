/* SPDX-License-Identifier: Apache-2.0 */
/* Columns pass with NEON: 16 bytes of a row at once; exact weights as two 16-bit halves. */
#include "kernels/resample_vector.h"

#if defined(__aarch64__)
#    include <arm_neon.h>

enum { BYTES = 16 };

/* acc += 16 bytes * weight */
INLINE void add_row(int32x4_t acc[4], int16x8_t low, int16x8_t high, int16_t weight)
{
    acc[0] = vmlal_n_s16(acc[0], vget_low_s16(low), weight);
    acc[1] = vmlal_high_n_s16(acc[1], low, weight);
    acc[2] = vmlal_n_s16(acc[2], vget_low_s16(high), weight);
    acc[3] = vmlal_high_n_s16(acc[3], high, weight);
}

INLINE uint8x16_t pack(int32x4_t acc[4], int bits)
{
    const int32x4_t right = vdupq_n_s32(-bits);
    UNROLL
    for (int i = 0; i < 4; i++) acc[i] = vshlq_s32(acc[i], right);
    const uint16x8_t low = vqmovun_high_s32(vqmovun_s32(acc[0]), acc[1]);
    const uint16x8_t high = vqmovun_high_s32(vqmovun_s32(acc[2]), acc[3]);
    return vqmovn_high_u16(vqmovn_u16(low), high);
}

/* One output row: n taps over the rows from `top` on. hi is NULL for 16-bit weights. */
INLINE void output_row(uint8_t *out, const uint8_t *top, int width, int n, const int16_t *lo,
                       const int16_t *hi, int bits)
{
    for (int x0 = 0; x0 < width; x0 += BYTES) {
        const int x = x0 + BYTES <= width ? x0 : width - BYTES; /* the last block overlaps */
        const uint8_t *p = top + x;
        int32x4_t acc[4], acc_hi[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            acc[i] = vdupq_n_s32(1 << (bits - 1));
            acc_hi[i] = vdupq_n_s32(0);
        }
        for (int i = 0; i < n; i++, p += width) {
            const uint8x16_t v = vld1q_u8(p);
            const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v)));
            const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(v));
            add_row(acc, low, high, lo[i]);
            if (hi) add_row(acc_hi, low, high, hi[i]);
        }
        if (hi) {
            UNROLL
            for (int i = 0; i < 4; i++) acc[i] = vaddq_s32(acc[i], vshlq_n_s32(acc_hi[i], 11));
        }
        vst1q_u8(out + x, pack(acc, bits));
    }
}

void dpl_resample_cols_neon(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                            int origin, const dpl_taps *t)
{
    if (width < BYTES)
        dpl_resample_cols_c(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 1);
}

void dpl_resample_cols_fast_neon(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                                 int origin, const dpl_taps *t)
{
    if (width < BYTES)
        dpl_resample_cols_fast_c(out, out_stride, in, width, origin, t);
    else
        dpl_cols_all_rows(output_row, out, out_stride, in, width, origin, t, 0);
}
#endif
