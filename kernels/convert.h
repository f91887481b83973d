/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 RGB pixels to normalised floats. */
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

dpl_normalize_fn dpl_normalize_nchw_c, dpl_normalize_nchw_avx2; /* out [3][n] */
dpl_normalize_fn dpl_normalize_nhwc_c, dpl_normalize_nhwc_avx2; /* out [n][3] */

#ifdef __cplusplus
}
#endif
#endif
