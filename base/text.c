/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded messages; see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void mark_if_cut(dpl_text *t, int wanted)
{
    if (wanted >= DPL_TEXT_MAX) memcpy(t->s + DPL_TEXT_MAX - 4, "...", 4);
}

int dpl_fail(dpl_text *t, int status, const char *format, ...)
{
    va_list ap;

    if (!t) return status;
    va_start(ap, format);
    mark_if_cut(t, vsnprintf(t->s, sizeof t->s, format, ap));
    va_end(ap);
    return status;
}

void dpl_text_prefix(dpl_text *t, const char *format, ...)
{
    dpl_text old;
    va_list ap;
    int n;

    if (!t) return;
    old = *t;
    va_start(ap, format);
    n = vsnprintf(t->s, sizeof t->s, format, ap);
    va_end(ap);
    if (n < 0 || n >= DPL_TEXT_MAX) {
        mark_if_cut(t, n);
        return;
    }
    mark_if_cut(t, n + snprintf(t->s + n, sizeof t->s - (size_t)n, ": %s", old.s));
}
