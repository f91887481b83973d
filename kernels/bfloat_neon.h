/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to bfloat16 with NEON, as dpl_to_bfloat() does it. */
#ifndef DPL_KERNELS_BFLOAT_NEON_H
#define DPL_KERNELS_BFLOAT_NEON_H

#include "kernels/unroll.h"

#if defined(__aarch64__)
#    include <arm_neon.h>

/** To the nearest, ties to even: half of what is cut off is added, but one less to an even number.
 *  What is no number stays none. */
INLINE uint16x4_t dpl_bfloat_neon(float32x4_t v)
{
    const uint32x4_t b = vreinterpretq_u32_f32(v), high = vshrq_n_u32(b, 16);
    const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    const uint32x4_t near = vshrq_n_u32(vaddq_u32(vaddq_u32(b, vdupq_n_u32(0x7fff)), odd), 16);
    const uint32x4_t none = vorrq_u32(high, vdupq_n_u32(0x40));

    return vmovn_u32(vbslq_u32(vceqq_f32(v, v), near, none));
}
#endif

#endif
