/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing wanted from EXIF data: which way up the picture is. */
#ifndef DPL_LOADER_EXIF_H
#define DPL_LOADER_EXIF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Orientation 1..8 from a TIFF structure (EXIF data without the "Exif\0\0" before it). Anything
 *  missing, malformed or out of range gives 1, "as stored". Reads nothing outside [tiff, tiff + len). */
int dpl_exif_orientation(const uint8_t *tiff, size_t len);

#ifdef __cplusplus
}
#endif
#endif
