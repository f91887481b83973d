/* SPDX-License-Identifier: Apache-2.0 */
/* The two passes of a resize as plain C: the specification of the other variants. */
#include "kernels/resample.h"

enum { WEIGHT_BITS = 22 };

static uint8_t clip(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void dpl_resample_rows_c(uint8_t *out, const uint8_t *in, size_t in_stride, int rows, int origin,
                         const dpl_taps *t)
{
    for (int r = 0; r < rows; r++, in += in_stride) {
        for (int k = 0; k < t->count; k++, out += 3) {
            const uint8_t *p = in + 3 * (ptrdiff_t)(t->start[k] - origin);
            const int32_t *w = t->weight + (size_t)k * (size_t)t->stride;
            int32_t sum[3] = { 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1),
                               1 << (WEIGHT_BITS - 1) };
            for (int i = 0; i < t->size[k]; i++, p += 3)
                for (int c = 0; c < 3; c++) sum[c] += p[c] * w[i];
            for (int c = 0; c < 3; c++) out[c] = clip(sum[c] >> WEIGHT_BITS);
        }
    }
}

void dpl_resample_cols_c(uint8_t *out, size_t out_stride, const uint8_t *in, int width, int origin,
                         const dpl_taps *t)
{
    for (int k = 0; k < t->count; k++, out += out_stride) {
        const uint8_t *top = in + (size_t)(t->start[k] - origin) * (size_t)width;
        const int32_t *w = t->weight + (size_t)k * (size_t)t->stride;
        for (int x = 0; x < width; x++) {
            int32_t sum = 1 << (WEIGHT_BITS - 1);
            for (int i = 0; i < t->size[k]; i++) sum += top[(size_t)i * (size_t)width + x] * w[i];
            out[x] = clip(sum >> WEIGHT_BITS);
        }
    }
}

void dpl_resample_rows_fast_c(uint8_t *out, const uint8_t *in, size_t in_stride, int rows,
                              int origin, const dpl_taps *t)
{
    const int32_t half = 1 << (t->bits16 - 1);
    for (int r = 0; r < rows; r++, in += in_stride) {
        for (int k = 0; k < t->count; k++, out += 3) {
            const uint8_t *p = in + 3 * (ptrdiff_t)(t->start[k] - origin);
            const int16_t *w = t->weight16 + (size_t)k * (size_t)t->stride;
            int32_t sum[3] = { half, half, half };
            for (int i = 0; i < t->size[k]; i++, p += 3)
                for (int c = 0; c < 3; c++) sum[c] += p[c] * w[i];
            for (int c = 0; c < 3; c++) out[c] = clip(sum[c] >> t->bits16);
        }
    }
}

void dpl_resample_cols_fast_c(uint8_t *out, size_t out_stride, const uint8_t *in, int width,
                              int origin, const dpl_taps *t)
{
    for (int k = 0; k < t->count; k++, out += out_stride) {
        const uint8_t *top = in + (size_t)(t->start[k] - origin) * (size_t)width;
        const int16_t *w = t->weight16 + (size_t)k * (size_t)t->stride;
        for (int x = 0; x < width; x++) {
            int32_t sum = 1 << (t->bits16 - 1);
            for (int i = 0; i < t->size[k]; i++) sum += top[(size_t)i * (size_t)width + x] * w[i];
            out[x] = clip(sum >> t->bits16);
        }
    }
}
