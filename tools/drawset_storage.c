/* SPDX-License-Identifier: Apache-2.0 */
/* How pictures of the sample set are stored: the awkward kinds of JPEG that real folders hold. */
#include "tools/drawset.h"

#include <stddef.h>

enum { PERIOD = 200 }; /* of every so many training pictures, these are awkward */

static const struct awkward {
    int at;
    const char *word;
    tool_jpeg_spec spec; /* quality is filled in */
} awkward[] = {
    { 3, "progressive", { .progressive = 1 } },
    { 10, "444", { .h_samp = 1, .v_samp = 1 } },
    { 17, "turned6", { .orientation = 6 } },
    { 24, "restart", { .restart_rows = 1 } },
    { 32, "cmyk", { .color = TOOL_JPEG_CMYK } },
    { 39, "turned8", { .orientation = 8 } },
    { 46, "422", { .h_samp = 2, .v_samp = 1 } },
    { 53, "progressive", { .progressive = 1, .h_samp = 1, .v_samp = 1 } },
    { 61, "gray", { .color = TOOL_JPEG_GRAY } }, /* few: colour tells the classes apart */
    { 68, "turned3", { .orientation = 3 } },
    { 75, "ycck", { .color = TOOL_JPEG_YCCK } },
    { 82, "turned5", { .orientation = 5 } },
    { 90, "rgb", { .color = TOOL_JPEG_RGB } },
    { 97, "turned7", { .orientation = 7 } },
    { 104, "restart", { .restart_rows = 2, .h_samp = 1, .v_samp = 1 } },
    { 111, "turned2", { .orientation = 2 } },
    { 119, "cmyk", { .color = TOOL_JPEG_CMYK, .progressive = 1 } },
    { 126, "turned4", { .orientation = 4 } },
    { 133, "440", { .h_samp = 1, .v_samp = 2 } },
    { 140, "progressive", { .progressive = 1, .restart_rows = 1 } },
};

const char *drawset_storage(tool_jpeg_spec *spec, uint64_t index, int quality)
{
    const char *word = "";

    *spec = (tool_jpeg_spec){ 0 };
    for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++) {
        if ((int)(index % PERIOD) != awkward[i].at) continue;
        *spec = awkward[i].spec;
        word = awkward[i].word;
    }
    spec->quality = quality;
    return word;
}

void drawset_turn(uint8_t *out, const uint8_t *rgb, int w, int h, int orientation)
{
    const int o = orientation, swapped = o >= 5;
    const int flip_x = o == 2 || o == 3 || o == 6 || o == 7;
    const int flip_y = o == 3 || o == 4 || o == 7 || o == 8;

    for (int y = 0; y < (swapped ? w : h); y++) {
        for (int x = 0; x < (swapped ? h : w); x++, out += 3) {
            const int u = swapped ? y : x, v = swapped ? x : y;
            const size_t shown_x = (size_t)(flip_x ? w - 1 - u : u);
            const size_t shown_y = (size_t)(flip_y ? h - 1 - v : v);
            const uint8_t *in = rgb + 3 * (shown_y * (size_t)w + shown_x);

            out[0] = in[0];
            out[1] = in[1];
            out[2] = in[2];
        }
    }
}
