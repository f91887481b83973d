/* SPDX-License-Identifier: Apache-2.0 */
/* Which variant of each kernel a processor gets. */
#include "kernels/kernels.h"

#include "base/cpu.h"

void dpl_kernels_select(dpl_kernels *k, unsigned cpu)
{
    *k = (dpl_kernels){ .rows = dpl_resample_rows_c,
                        .rows_fast = dpl_resample_rows_fast_c,
                        .cols = dpl_resample_cols_c,
                        .cols_fast = dpl_resample_cols_fast_c,
                        .rotate = dpl_rotate_rgb_c,
                        .bilinear = dpl_bilinear_rgb_c,
                        .saturate = dpl_saturate_c,
                        .hue = dpl_hue_c,
                        .sharpen = dpl_sharpen_c,
                        .bfloat_nchw = dpl_bfloat_nchw_c,
                        .bfloat_nhwc = dpl_bfloat_nhwc_c,
                        .half_nchw = dpl_half_nchw_c,
                        .half_nhwc = dpl_half_nhwc_c,
                        .blur = dpl_blur_c,
                        .normalize_nchw = dpl_normalize_nchw_c,
                        .normalize_nhwc = dpl_normalize_nhwc_c,
                        .blend_u8 = dpl_blend_u8_c,
                        .blend_f32 = dpl_blend_f32_c,
                        .blend_bfloat = dpl_blend_bfloat_c,
                        .blend_half = dpl_blend_half_c };
#if defined(__x86_64__)
    if (cpu & DPL_CPU_AVX2) {
        *k = (dpl_kernels){ .rows = dpl_resample_rows_avx2,
                            .rows_fast = dpl_resample_rows_fast_avx2,
                            .cols = dpl_resample_cols_avx2,
                            .cols_fast = dpl_resample_cols_fast_avx2,
                            .rotate = dpl_rotate_rgb_avx2,
                            .bilinear = dpl_bilinear_rgb_avx2,
                            .saturate = dpl_saturate_avx2,
                            .hue = dpl_hue_avx2,
                            .sharpen = dpl_sharpen_avx2,
                            .bfloat_nchw = dpl_bfloat_nchw_avx2,
                            .bfloat_nhwc = dpl_bfloat_nhwc_avx2,
                            .half_nchw = dpl_half_nchw_avx2,
                            .half_nhwc = dpl_half_nhwc_avx2,
                            .blur = dpl_blur_avx2,
                            .normalize_nchw = dpl_normalize_nchw_avx2,
                            .normalize_nhwc = dpl_normalize_nhwc_avx2,
                            .blend_u8 = dpl_blend_u8_avx2,
                            .blend_f32 = dpl_blend_f32_avx2,
                            .blend_bfloat = dpl_blend_bfloat_avx2,
                            .blend_half = dpl_blend_half_avx2 };
    }
    if (cpu & DPL_CPU_VBMI) {
        k->rows = dpl_resample_rows_avx512vbmi;
        k->rows_fast = dpl_resample_rows_fast_avx512vbmi;
        k->cols = dpl_resample_cols_avx512vbmi;
        k->cols_fast = dpl_resample_cols_fast_avx512vbmi;
    }
#elif defined(__aarch64__)
    if (cpu & DPL_CPU_NEON) {
        k->rows = dpl_resample_rows_neon;
        k->rows_fast = dpl_resample_rows_fast_neon;
        k->cols = dpl_resample_cols_neon;
        k->cols_fast = dpl_resample_cols_fast_neon;
        k->normalize_nchw = dpl_normalize_nchw_neon;
        k->normalize_nhwc = dpl_normalize_nhwc_neon;
        k->bfloat_nchw = dpl_bfloat_nchw_neon;
        k->bfloat_nhwc = dpl_bfloat_nhwc_neon;
        k->half_nchw = dpl_half_nchw_neon;
        k->half_nhwc = dpl_half_nhwc_neon;
        k->blend_u8 = dpl_blend_u8_neon;
        k->blend_f32 = dpl_blend_f32_neon;
        k->blend_bfloat = dpl_blend_bfloat_neon;
        k->blend_half = dpl_blend_half_neon;
    }
#else
    (void)cpu;
#endif
}
