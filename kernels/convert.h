/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 RGB pixels to normalised numbers of three types, in either layout, in one pass. A flip costs
 * nothing here: resampling wrote the pixels in the order that is wanted. */
#ifndef DPL_KERNELS_CONVERT_H
#define DPL_KERNELS_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** out = in * scale[c] + bias[c], rounded after the product and after the sum (no fused multiply-add).
 *  in [n][3]; no overlap; n may be 0. For (v / 255 - mean) / std: scale = 1 / (255 std),
 *  bias = -mean / std. Variants match bit for bit. */
typedef void dpl_normalize_fn(float *out, const uint8_t *in, size_t n, const float scale[3],
                              const float bias[3]);
/** The same float, rounded once more, to the nearest bfloat16 or IEEE half; ties to even. */
typedef void dpl_normalize16_fn(uint16_t *out, const uint8_t *in, size_t n, const float scale[3],
                                const float bias[3]);

/* nchw: out [3][n]; nhwc: out [n][3] */
dpl_normalize_fn dpl_normalize_nchw_c, dpl_normalize_nchw_avx2, dpl_normalize_nchw_neon;
dpl_normalize_fn dpl_normalize_nhwc_c, dpl_normalize_nhwc_avx2, dpl_normalize_nhwc_neon;
dpl_normalize16_fn dpl_bfloat_nchw_c, dpl_bfloat_nchw_avx2, dpl_bfloat_nchw_neon;
dpl_normalize16_fn dpl_bfloat_nhwc_c, dpl_bfloat_nhwc_avx2, dpl_bfloat_nhwc_neon;
dpl_normalize16_fn dpl_half_nchw_c, dpl_half_nchw_avx2, dpl_half_nchw_neon;
dpl_normalize16_fn dpl_half_nhwc_c, dpl_half_nhwc_avx2, dpl_half_nhwc_neon;

/** One number. What is no number stays none; what is too large becomes infinite. */
uint16_t dpl_to_bfloat(float v);
uint16_t dpl_to_half(float v);

#ifdef __cplusplus
}
#endif
#endif
