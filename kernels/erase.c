/* SPDX-License-Identifier: Apache-2.0 */
/* One value over a part of a picture. */
#include "kernels/erase.h"

#include <string.h>

void dpl_erase_u8(uint8_t *px, int width, const dpl_rect *r, const uint8_t value[3])
{
    for (int y = 0; y < r->h; y++) {
        uint8_t *at = px + 3 * ((size_t)(r->y + y) * (size_t)width + (size_t)r->x);
        for (int x = 0; x < r->w; x++, at += 3) memcpy(at, value, 3);
    }
}

void dpl_erase_nhwc(float *px, int width, const dpl_rect *r, const float value[3])
{
    for (int y = 0; y < r->h; y++) {
        float *at = px + 3 * ((size_t)(r->y + y) * (size_t)width + (size_t)r->x);
        for (int x = 0; x < r->w; x++, at += 3) memcpy(at, value, 3 * sizeof *at);
    }
}

void dpl_erase_nchw(float *px, int width, int height, const dpl_rect *r, const float value[3])
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < r->h; y++) {
            const size_t row = (size_t)c * (size_t)height + (size_t)(r->y + y);
            float *at = px + row * (size_t)width + (size_t)r->x;
            for (int x = 0; x < r->w; x++) at[x] = value[c];
        }
}

void dpl_erase_nhwc16(uint16_t *px, int width, const dpl_rect *r, const uint16_t value[3])
{
    for (int y = 0; y < r->h; y++) {
        uint16_t *at = px + 3 * ((size_t)(r->y + y) * (size_t)width + (size_t)r->x);
        for (int x = 0; x < r->w; x++, at += 3) memcpy(at, value, 3 * sizeof *at);
    }
}

void dpl_erase_nchw16(uint16_t *px, int width, int height, const dpl_rect *r,
                      const uint16_t value[3])
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < r->h; y++) {
            const size_t row = (size_t)c * (size_t)height + (size_t)(r->y + y);
            uint16_t *at = px + row * (size_t)width + (size_t)r->x;
            for (int x = 0; x < r->w; x++) at[x] = value[c];
        }
}
