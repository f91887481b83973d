/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG markers without a decoder: EXIF data, the number of scans, the end. */
#include "loader/decode_jpeg.h"

#include <string.h>

enum { RST0 = 0xd0, RST7 = 0xd7, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1, TEM = 0x01 };

/* As libjpeg: anything but FF is stepped over, FF may be repeated, FF 00 is data.
 * @return the marker and *at behind it, or -1 at the end */
static int next_marker(const uint8_t *bytes, size_t len, size_t *at)
{
    while (*at < len) {
        const uint8_t *ff = memchr(bytes + *at, 0xff, len - *at);

        if (!ff) break;
        *at = (size_t)(ff - bytes);
        while (*at < len && bytes[*at] == 0xff) ++*at;
        if (*at < len && bytes[(*at)++] != 0) return bytes[*at - 1];
    }
    *at = len;
    return -1;
}

static int has_no_length(int marker)
{
    return (marker >= RST0 && marker <= SOI) || marker == TEM;
}

/* Length of the segment whose length field is at `at`, as much of it as there is; 0 = cut off.
 * A length below 2 is nonsense that libjpeg sometimes steps over: it counts as 2 here. */
static size_t segment_len(const uint8_t *bytes, size_t len, size_t at)
{
    size_t n;

    if (len - at < 2) return 0;
    n = (size_t)bytes[at] << 8 | bytes[at + 1];
    if (n < 2) n = 2;
    return n < len - at ? n : len - at;
}

void dpl_jpeg_walk(const uint8_t *bytes, size_t len, dpl_jpeg_markers *out)
{
    size_t at = 2, n;
    int marker;

    *out = (dpl_jpeg_markers){ .scan_at = len };
    while ((marker = next_marker(bytes, len, &at)) >= 0 && marker != EOI) {
        if (has_no_length(marker)) continue;
        if (!(n = segment_len(bytes, len, at))) return;
        if (marker == SOS) {
            out->scan_at = at + n;
            return;
        }
        if (marker == APP1 && !out->exif && n > 8 && !memcmp(bytes + at + 2, "Exif\0", 5)) {
            out->exif = bytes + at + 8;
            out->exif_len = n - 8;
        }
        at += n;
    }
}

int dpl_jpeg_count_scans(const uint8_t *bytes, size_t len, size_t scan_at, int max, int *ended)
{
    int scans = 1, marker;
    size_t at = scan_at, n;

    *ended = 0;
    while (scans <= max && (marker = next_marker(bytes, len, &at)) >= 0) {
        if (marker == EOI) {
            *ended = 1;
            break;
        }
        if (has_no_length(marker)) continue;
        if (!(n = segment_len(bytes, len, at))) break;
        if (marker == SOS) scans++;
        at += n;
    }
    return scans;
}

int dpl_jpeg_has_end(const uint8_t *bytes, size_t len, size_t scan_at)
{
    size_t n = len;

    while (n > scan_at + 1) {
        const uint8_t *last = memrchr(bytes + scan_at + 1, EOI, n - scan_at - 1);

        if (!last) return 0;
        if (last[-1] == 0xff) return 1;
        n = (size_t)(last - bytes);
    }
    return 0;
}
