/* SPDX-License-Identifier: Apache-2.0 */
/* Small text in pictures: letters of 5 x 7 pixels, one pixel apart, and two rows for what hangs down. */
#ifndef TOOLS_FONT_H
#define TOOLS_FONT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TOOL_FONT_STEP = 6, TOOL_FONT_HEIGHT = 9 };

/** Draw UTF-8 text with its top left at (x, y) of rgb [h][w][3]; what falls outside is left out.
 *  Characters that are not ASCII show as a box.
 *  @param room  pixels: longer text is cut and ends in ".." */
void tool_font_draw(uint8_t *rgb, int w, int h, int x, int y, int room, const char *text,
                    const uint8_t color[3]);

#ifdef __cplusplus
}
#endif
#endif
