/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer; see json_out.h. */
#include "base/json_out.h"

#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void dpl_json_begin(dpl_json *j, FILE *f)
{
    memset(j, 0, sizeof *j);
    j->f = f;
}

/* Bytes of the UTF-8 character at s, or minus the bytes to replace: the longest beginning of a
 * character, as the Unicode standard advises (table 3-7 for the ranges). */
static int utf8_length(const unsigned char *s)
{
    const unsigned char c = s[0];
    const int more = c < 0x80 ? 0 : c < 0xC2 ? -1 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : -1;
    unsigned char low = 0x80, high = 0xBF;

    if (more < 0) return -1;
    if (c == 0xE0) low = 0xA0;  /* shorter forms exist */
    if (c == 0xED) high = 0x9F; /* surrogates */
    if (c == 0xF0) low = 0x90;
    if (c == 0xF4) high = 0x8F; /* past U+10FFFF */
    for (int i = 1; i <= more; i++) {
        if (s[i] < low || s[i] > high) return -i; /* also at the end of the string */
        low = 0x80;
        high = 0xBF;
    }
    return more + 1;
}

static void put_escaped(FILE *f, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *hit = strchr(from, c);

    if (hit)
        fprintf(f, "\\%c", to[hit - from]);
    else
        fprintf(f, "\\u%04x", c);
}

static void put_string(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putc('"', f);
    while (*s) {
        const int n = utf8_length(s);
        if (n < 0)
            fputs("\xEF\xBF\xBD", f);
        else if (n > 1)
            fwrite(s, 1, (size_t)n, f);
        else if (*s < 0x20 || *s == '"' || *s == '\\')
            put_escaped(f, *s);
        else
            putc(*s, f);
        s += n < 0 ? -n : n;
    }
    putc('"', f);
}

/* Comma and key of the next value. */
static void start(dpl_json *j, const char *key)
{
    assert(!key == !(j->depth && j->open[j->depth - 1] == '{'));
    if (j->depth) {
        if (j->any[j->depth - 1]) putc(',', j->f);
        j->any[j->depth - 1] = 1;
    }
    if (!key) return;
    put_string(j->f, key);
    putc(':', j->f);
}

static void nest(dpl_json *j, const char *key, char bracket)
{
    assert(j->depth < DPL_JSON_DEPTH);
    start(j, key);
    putc(bracket, j->f);
    j->open[j->depth] = bracket;
    j->any[j->depth++] = 0;
}

void dpl_json_object(dpl_json *j, const char *key)
{
    nest(j, key, '{');
}

void dpl_json_array(dpl_json *j, const char *key)
{
    nest(j, key, '[');
}

void dpl_json_end(dpl_json *j)
{
    assert(j->depth > 0);
    putc(j->open[--j->depth] == '{' ? '}' : ']', j->f);
}

void dpl_json_string(dpl_json *j, const char *key, const char *s)
{
    start(j, key);
    if (s)
        put_string(j->f, s);
    else
        fputs("null", j->f);
}

void dpl_json_number(dpl_json *j, const char *key, double v)
{
    char text[DPL_NUMBER_MAX];

    start(j, key);
    if (isfinite(v)) dpl_number_text(v, text, sizeof text);
    fputs(isfinite(v) ? text : "null", j->f);
}

void dpl_json_int(dpl_json *j, const char *key, int64_t v)
{
    start(j, key);
    fprintf(j->f, "%" PRId64, v);
}

void dpl_json_uint(dpl_json *j, const char *key, uint64_t v)
{
    start(j, key);
    fprintf(j->f, "%" PRIu64, v);
}

void dpl_json_bool(dpl_json *j, const char *key, int v)
{
    start(j, key);
    fputs(v ? "true" : "false", j->f);
}
