/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, by its first bytes: the formats that are decoded, and names for what is found in
 * picture folders instead. */
#include "loader/decode.h"

#include <stdio.h>
#include <string.h>

typedef struct signature {
    size_t at, len;
    const char *bytes;
    const char *name;
    dpl_format format;
} signature;

/* JPEG and PNG match on less than their whole signature, so that what is damaged just behind it is
 * reported as a damaged picture and not as something unknown. */
static const signature signatures[] = {
    { 0, 2, "\xff\xd8", "JPEG", DPL_FORMAT_JPEG },
    { 0, 4, "\x89PNG", "PNG", DPL_FORMAT_PNG },
    { 8, 4, "WEBP", "WebP", DPL_FORMAT_WEBP },
    { 0, 4, "GIF8", "GIF", DPL_FORMAT_UNKNOWN },
    { 0, 4, "II*\0", "TIFF", DPL_FORMAT_UNKNOWN },
    { 0, 4, "MM\0*", "TIFF", DPL_FORMAT_UNKNOWN },
    { 0, 4, "II+\0", "TIFF", DPL_FORMAT_UNKNOWN },
    { 0, 4, "MM\0+", "TIFF", DPL_FORMAT_UNKNOWN },
    { 0, 2, "\x1f\x8b", "gzip", DPL_FORMAT_UNKNOWN },
    { 0, 4, "PK\3\4", "ZIP", DPL_FORMAT_UNKNOWN },
    { 0, 5, "%PDF-", "PDF", DPL_FORMAT_UNKNOWN },
    { 0, 4, "8BPS", "PSD", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypavif", "AVIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypavis", "AVIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypheic", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypheix", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypheim", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypheis", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftyphevc", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypmif1", "HEIF", DPL_FORMAT_UNKNOWN },
    { 4, 8, "ftypmsf1", "HEIF", DPL_FORMAT_UNKNOWN },
    { 0, 12, "\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000", DPL_FORMAT_UNKNOWN },
    { 0, 4, "\xff\x4f\xff\x51", "JPEG 2000", DPL_FORMAT_UNKNOWN },
    { 0, 12, "\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL", DPL_FORMAT_UNKNOWN },
    { 0, 2, "\xff\x0a", "JPEG XL", DPL_FORMAT_UNKNOWN },
};

static int matches(const signature *s, const uint8_t *bytes, size_t len)
{
    return len >= s->at + s->len && !memcmp(bytes + s->at, s->bytes, s->len);
}

static int is_zeros(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return 0;
    return 1;
}

/* "BM" alone is too little: text may begin with it. The reserved fields are zero in every BMP. */
static int is_bmp(const uint8_t *bytes, size_t len)
{
    return len >= 14 && !memcmp(bytes, "BM", 2) && is_zeros(bytes + 6, 4);
}

static int is_text(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = bytes[i];
        if (b == 0x7f || (b < 0x20 && b != '\t' && b != '\n' && b != '\r' && b != '\f')) return 0;
        if (b >= 0x80 && b < 0xc2 && (i == 0 || bytes[i - 1] < 0x80)) return 0; /* not UTF-8 */
        if (b > 0xf4) return 0;
    }
    return n > 0;
}

/* Lower-case ASCII `word` at the start of bytes, in any case; not strncasecmp(), which asks the locale. */
static int starts_with(const uint8_t *bytes, size_t len, const char *word)
{
    const size_t n = strlen(word);

    if (len < n) return 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = bytes[i];
        if ((b >= 'A' && b <= 'Z' ? b + ('a' - 'A') : b) != word[i]) return 0;
    }
    return 1;
}

static int is_html(const uint8_t *bytes, size_t len)
{
    static const char *const starts[] = { "<!doctype html", "<html", "<head", "<body", "<!--" };
    size_t at = len >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0; /* byte order mark */

    while (at < len && (bytes[at] == ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r'))) at++;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (starts_with(bytes + at, len - at, starts[i])) return 1;
    }
    return 0;
}

dpl_format dpl_sniff(const uint8_t *bytes, size_t len, const char **name, char buf[64])
{
    const size_t looked_at = len < 64 ? len : 64;
    int n;

    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        if (!matches(&signatures[i], bytes, len)) continue;
        if (signatures[i].format == DPL_FORMAT_WEBP && memcmp(bytes, "RIFF", 4)) continue;
        *name = signatures[i].name;
        return signatures[i].format;
    }
    *name = buf;
    if (is_bmp(bytes, len)) {
        *name = "BMP";
    } else if (is_html(bytes, len)) {
        *name = "HTML";
    } else if (is_text(bytes, looked_at)) {
        *name = "text";
    } else if (len > 0 && is_zeros(bytes, looked_at)) {
        *name = "zeros";
    } else {
        n = snprintf(buf, 64, "unknown content (");
        for (size_t i = 0; i < looked_at && i < 4; i++)
            n += snprintf(buf + n, 64 - (size_t)n, i ? " %02x" : "%02x", bytes[i]);
        snprintf(buf + n, 64 - (size_t)n, ")");
    }
    return DPL_FORMAT_UNKNOWN;
}
