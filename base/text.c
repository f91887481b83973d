/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded messages; see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* WHOLE: two paths as long as the kernel takes, and words. TAIL: room for a reason behind a path. */
enum { WHOLE = 3 * 4096, TAIL = 384, HEAD = DPL_TEXT_MAX - 1 - TAIL - 3 };

/* The formatted text, then ": rest" unless rest is NULL. rest may be t's own text. */
static void __attribute__((format(printf, 2, 0)))
set(dpl_text *t, const char *format, va_list ap, const char *rest)
{
    char whole[WHOLE];
    int n = vsnprintf(whole, sizeof whole, format, ap);
    size_t len = n < 0 ? 0 : (size_t)n;

    if (len >= sizeof whole) len = sizeof whole - 1;
    whole[len] = 0;
    if (rest) {
        const size_t most = sizeof whole - DPL_TEXT_MAX - 2; /* so that the rest fits behind it */

        if (len > most) len = most;
        len += (size_t)snprintf(whole + len, sizeof whole - len, ": %s", rest);
    }
    if (len < sizeof t->s) {
        memcpy(t->s, whole, len + 1);
        return;
    }
    memcpy(t->s, whole, HEAD);
    memcpy(t->s + HEAD, "...", 3);
    memcpy(t->s + HEAD + 3, whole + len - TAIL, TAIL + 1);
}

int dpl_fail(dpl_text *t, int status, const char *format, ...)
{
    va_list ap;

    if (!t) return status;
    va_start(ap, format);
    set(t, format, ap, NULL);
    va_end(ap);
    return status;
}

void dpl_text_prefix(dpl_text *t, const char *format, ...)
{
    va_list ap;

    if (!t) return;
    va_start(ap, format);
    set(t, format, ap, t->s);
    va_end(ap);
}

void dpl_print_visible(FILE *f, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;

        if (c == '\n')
            fputs("\\n", f);
        else if (c == '\t')
            fputs("\\t", f);
        else if (c < ' ' || c == 0x7f)
            fprintf(f, "\\x%02x", c);
        else
            putc(c, f);
    }
}
