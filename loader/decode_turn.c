/* SPDX-License-Identifier: Apache-2.0 */
/* The eight EXIF orientations: coordinates and pixels. */
#include "loader/decode_codec.h"

#include <string.h>

/* Displayed (x, y) is stored (u, v), where (u, v) is (x, y), or (y, x) when swapped, and then
 * counted from the far end where mirrored. */
typedef struct turn {
    int swap, mirror_u, mirror_v;
} turn;

static turn turn_of(int orientation)
{
    static const turn turns[9] = {
        { 0, 0, 0 }, { 0, 0, 0 }, { 0, 1, 0 }, { 0, 1, 1 }, { 0, 0, 1 },
        { 1, 0, 0 }, { 1, 0, 1 }, { 1, 1, 1 }, { 1, 1, 0 },
    };
    return turns[orientation];
}

static dpl_box swapped(const dpl_box *b)
{
    return (dpl_box){ b->y, b->x, b->h, b->w };
}

static void mirror(dpl_box *b, const turn *t, int width, int height)
{
    if (t->mirror_u) b->x = width - b->x - b->w;
    if (t->mirror_v) b->y = height - b->y - b->h;
}

dpl_box dpl_turn_to_stored(int orientation, int width, int height, const dpl_box *box)
{
    const turn t = turn_of(orientation);
    dpl_box out = t.swap ? swapped(box) : *box;

    mirror(&out, &t, width, height);
    return out;
}

dpl_box dpl_turn_to_displayed(int orientation, int width, int height, const dpl_box *box)
{
    const turn t = turn_of(orientation);
    dpl_box out = *box;

    mirror(&out, &t, width, height);
    return t.swap ? swapped(&out) : out;
}

void dpl_turn_pixels(uint8_t *out, int orientation, const uint8_t *rgb, size_t stride, int w, int h)
{
    const turn t = turn_of(orientation);
    const int out_w = t.swap ? h : w, out_h = t.swap ? w : h;

    for (int y = 0; y < out_h; y++) {
        for (int x = 0; x < out_w; x++, out += 3) {
            int u = t.swap ? y : x, v = t.swap ? x : y;

            if (t.mirror_u) u = w - 1 - u;
            if (t.mirror_v) v = h - 1 - v;
            memcpy(out, rgb + (size_t)v * stride + (size_t)u * 3, 3);
        }
    }
}
