/* SPDX-License-Identifier: Apache-2.0 */
/* Orientation from EXIF data; see exif.h. Offsets and counts come from the file: each is compared
 * with what is left before it is used, and nothing is followed but the first directory. */
#include "loader/exif.h"

#include <string.h>

enum { ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12, HEADER_BYTES = 8 };

typedef struct tiff_view {
    const uint8_t *bytes;
    size_t len;
    int big_endian;
} tiff_view;

/* at + n <= len was checked by the caller. */
static uint32_t number_at(const tiff_view *t, size_t at, int n)
{
    uint32_t v = 0;

    for (int i = 0; i < n; i++) {
        const uint32_t byte = t->bytes[at + (size_t)i];
        v |= byte << 8 * (t->big_endian ? n - 1 - i : i);
    }
    return v;
}

static uint32_t entry_value(const tiff_view *t, size_t at)
{
    const uint32_t type = number_at(t, at + 2, 2), count = number_at(t, at + 4, 4);

    if (count != 1) return 0;
    if (type == TYPE_SHORT) return number_at(t, at + 8, 2);
    return type == TYPE_LONG ? number_at(t, at + 8, 4) : 0;
}

int dpl_exif_orientation(const uint8_t *tiff, size_t len)
{
    tiff_view t = { tiff, len, 0 };
    size_t at, left;

    if (len < HEADER_BYTES + 2) return 1;
    t.big_endian = !memcmp(tiff, "MM\0*", 4);
    if (!t.big_endian && memcmp(tiff, "II*\0", 4)) return 1;
    at = number_at(&t, 4, 4);
    if (at < HEADER_BYTES || at > len - 2) return 1;
    left = number_at(&t, at, 2);
    for (at += 2; left > 0 && len - at >= ENTRY_BYTES; left--, at += ENTRY_BYTES) {
        if (number_at(&t, at, 2) == ORIENTATION) {
            const uint32_t v = entry_value(&t, at);
            return v >= 1 && v <= 8 ? (int)v : 1;
        }
    }
    return 1;
}
