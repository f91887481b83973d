/* SPDX-License-Identifier: Apache-2.0 */
/* Rows pass with NEON. A step takes four taps of one output from one load of 16 bytes; the channels of
 * a pixel are three of a vector's four sums. Where 16 bytes would pass the last pixel that any tap
 * names, the load moves back and the table look-up forward by as much.
 *
 * Few taps: four outputs are prepared once for a block of rows. Many taps: one output for four rows at
 * a time, prepared at every step. */
#include "kernels/resample_vector.h"

#if defined(__aarch64__)
#    include <arm_neon.h>
#    include <string.h>

enum { STEPS_MAX = 2 /* prepared steps */, NONE = 255 /* looked up as 0 */ };

/* Four taps of one output. */
typedef struct step {
    ptrdiff_t at;
    uint8x16_t pair[2]; /* where the bytes of taps 0 and 1, 2 and 3 are: as 16-bit numbers */
    int16x4_t lo, hi;
} step;

INLINE step step_of(const dpl_rows_job *j, int k, int first, int exact)
{
    static const uint8_t base[2][16] = {
        { 0, NONE, 1, NONE, 2, NONE, NONE, NONE, 3, NONE, 4, NONE, 5, NONE, NONE, NONE },
        { 6, NONE, 7, NONE, 8, NONE, NONE, NONE, 9, NONE, 10, NONE, 11, NONE, NONE, NONE },
    };
    const ptrdiff_t at = 3 * (ptrdiff_t)(j->t->start[k] + first - j->origin), last = j->end - 16;
    const size_t weights = (size_t)k * (size_t)j->t->stride + (size_t)first;
    step s = { .at = at < last ? at : last };
    /* only pixels of weight 0 are more than 15 bytes off: looked up as 0 */
    const uint8x16_t moved = vdupq_n_u8((uint8_t)(at - s.at));
    UNROLL
    for (int i = 0; i < 2; i++) s.pair[i] = vqaddq_u8(vld1q_u8(base[i]), moved);
    s.lo = vld1_s16(j->lo + weights);
    s.hi = exact ? vld1_s16(j->hi + weights) : vdup_n_s16(0);
    return s;
}

INLINE void add_step(int32x4_t *lo, int32x4_t *hi, const uint8_t *row, const step *s, int exact)
{
    const uint8x16_t v = vld1q_u8(row + s->at);
    const int16x8_t a = vreinterpretq_s16_u8(vqtbl1q_u8(v, s->pair[0]));
    const int16x8_t b = vreinterpretq_s16_u8(vqtbl1q_u8(v, s->pair[1]));
    *lo = vmlal_lane_s16(*lo, vget_low_s16(a), s->lo, 0);
    *lo = vmlal_high_lane_s16(*lo, a, s->lo, 1);
    *lo = vmlal_lane_s16(*lo, vget_low_s16(b), s->lo, 2);
    *lo = vmlal_high_lane_s16(*lo, b, s->lo, 3);
    if (!exact) return;
    *hi = vmlal_lane_s16(*hi, vget_low_s16(a), s->hi, 0);
    *hi = vmlal_high_lane_s16(*hi, a, s->hi, 1);
    *hi = vmlal_lane_s16(*hi, vget_low_s16(b), s->hi, 2);
    *hi = vmlal_high_lane_s16(*hi, b, s->hi, 3);
}

/* Four vectors of sums to bytes, 4 each (the last without meaning). */
INLINE uint8x16_t pack(const int32x4_t lo[4], const int32x4_t hi[4], int bits, int exact)
{
    const int32x4_t right = vdupq_n_s32(-bits);
    int32x4_t v[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = vshlq_s32(exact ? vaddq_s32(lo[i], vshlq_n_s32(hi[i], 11)) : lo[i], right);
    const uint16x8_t a = vqmovun_high_s32(vqmovun_s32(v[0]), v[1]);
    const uint16x8_t b = vqmovun_high_s32(vqmovun_s32(v[2]), v[3]);
    return vqmovn_high_u16(vqmovn_u16(a), b);
}

/* Outputs k .. k + 3 of rows r0 .. r1 - 1. */
INLINE void four_outputs(const dpl_rows_job *j, int k, int r0, int r1, int steps, int exact)
{
    static const uint8_t three_of_four[16] = { 0,  1,  2,  4,  5,    6,    8,    9,
                                               10, 12, 13, 14, NONE, NONE, NONE, NONE };
    const uint8x16_t squeeze = vld1q_u8(three_of_four);
    const uint8_t *row = j->in + (size_t)r0 * j->in_stride;
    uint8_t *out = j->out + (size_t)r0 * j->out_stride + 3 * (size_t)k;
    step s[4][STEPS_MAX];
    for (int i = 0; i < 4; i++)
        for (int q = 0; q < steps; q++) s[i][q] = step_of(j, k + i, 4 * q, exact);
    for (int r = r0; r < r1; r++, row += j->in_stride, out += j->out_stride) {
        int32x4_t lo[4], hi[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            lo[i] = vdupq_n_s32(1 << (j->bits - 1));
            hi[i] = vdupq_n_s32(0);
            UNROLL
            for (int q = 0; q < steps; q++) add_step(&lo[i], &hi[i], row, &s[i][q], exact);
        }
        const uint8x16_t px = vqtbl1q_u8(pack(lo, hi, j->bits, exact), squeeze);
        const uint32_t last = vgetq_lane_u32(vreinterpretq_u32_u8(px), 2);
        vst1_u8(out, vget_low_u8(px));
        memcpy(out + 8, &last, sizeof last);
    }
}

/* Output k of rows r0 .. r1 - 1, any number of taps. */
INLINE void one_output(const dpl_rows_job *j, int k, int r0, int r1, int exact)
{
    for (; r0 < r1; r0 += 4) {
        int32x4_t lo[4], hi[4];
        size_t row[4]; /* past the end: the last row again */
        uint8_t px[4][4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            row[i] = (size_t)(r0 + i < r1 ? r0 + i : r1 - 1);
            lo[i] = vdupq_n_s32(1 << (j->bits - 1));
            hi[i] = vdupq_n_s32(0);
        }
        for (int first = 0; first < j->t->size[k]; first += 4) {
            const step s = step_of(j, k, first, exact);
            UNROLL
            for (int i = 0; i < 4; i++)
                add_step(&lo[i], &hi[i], j->in + row[i] * j->in_stride, &s, exact);
        }
        vst1q_u8(px[0], pack(lo, hi, j->bits, exact));
        UNROLL
        for (int i = 0; i < 4; i++) memcpy(j->out + row[i] * j->out_stride + 3 * k, px[i], 3);
    }
}

INLINE void rows_block(const dpl_rows_job *j, int r0, int r1, int exact)
{
    const int count = j->t->count;
    for (int k0 = 0; k0 < count; k0 += 4) {
        const int k = count < 4 ? 0 : k0 + 4 <= count ? k0 : count - 4; /* the last overlap */
        const int last = k + 4 < count ? k + 4 : count;
        int n = 0;
        for (int i = k; i < last; i++)
            if (j->t->size[i] > n) n = j->t->size[i];
        if (count >= 4 && n <= 4)
            four_outputs(j, k, r0, r1, 1, exact);
        else if (count >= 4 && n <= 8)
            four_outputs(j, k, r0, r1, 2, exact);
        else
            for (int i = k; i < last; i++) one_output(j, i, r0, r1, exact);
    }
}

void dpl_resample_rows_neon(uint8_t *out, const uint8_t *in, size_t in_stride, int rows, int origin,
                            const dpl_taps *t)
{
    if (!dpl_rows_all_blocks(rows_block, out, in, in_stride, rows, origin, t, 1))
        dpl_resample_rows_c(out, in, in_stride, rows, origin, t);
}

void dpl_resample_rows_fast_neon(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                                 int origin, const dpl_taps *t)
{
    if (!dpl_rows_all_blocks(rows_block, out, in, in_stride, rows, origin, t, 0))
        dpl_resample_rows_fast_c(out, in, in_stride, rows, origin, t);
}
#endif
