/* SPDX-License-Identifier: Apache-2.0 */
/* uint8 to normalised floats as plain C: the specification of the other variants. */
#include "kernels/convert.h"

void dpl_normalize_nchw_c(float *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[c * n + i] = (float)in[3 * i + c] * scale[c] + bias[c];
}

void dpl_normalize_nhwc_c(float *out, const uint8_t *in, size_t n, const float scale[3],
                          const float bias[3])
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) out[3 * i + c] = (float)in[3 * i + c] * scale[c] + bias[c];
}
