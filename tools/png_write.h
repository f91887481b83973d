/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to PNG files. */
#ifndef TOOLS_PNG_WRITE_H
#define TOOLS_PNG_WRITE_H

#include "base/text.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Write rgb [h][w][3] to path, which is replaced as a whole or not touched.
 *  @return DPL_OK, DPL_EIO, DPL_ENOMEM; the text names path and cause */
int tool_png_write(const char *path, const uint8_t *rgb, int w, int h, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
