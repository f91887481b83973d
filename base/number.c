/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to text and back; see number.h. Sizes and times with units: see optparse.h. */
#include "base/number.h"

#include "base/optparse.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit sizes[] = {
    { "", 1 },
    { "B", 1 },
    { "k", 1000 },
    { "kB", 1000 },
    { "M", 1000000 },
    { "MB", 1000000 },
    { "G", 1000000000 },
    { "GB", 1000000000 },
    { "T", 1000000000000 },
    { "TB", 1000000000000 },
    { "Ki", UINT64_C(1) << 10 },
    { "KiB", UINT64_C(1) << 10 },
    { "Mi", UINT64_C(1) << 20 },
    { "MiB", UINT64_C(1) << 20 },
    { "Gi", UINT64_C(1) << 30 },
    { "GiB", UINT64_C(1) << 30 },
    { "Ti", UINT64_C(1) << 40 },
    { "TiB", UINT64_C(1) << 40 },
    { NULL, 0 },
};

static const unit times[] = {
    { "", 1000000000 },  { "ns", 1 },          { "us", 1000 },         { "ms", 1000000 },
    { "s", 1000000000 }, { "m", 60000000000 }, { "h", 3600000000000 }, { NULL, 0 },
};

/* snprintf() and strtod() agree on the locale's decimal point, so the round trip is checked before
 * the point is changed to the one that JSON and the command line want. */
static void use_point(char *s)
{
    const size_t keep = strspn(s, "-0123456789eE+");
    const size_t odd = strcspn(s + keep, "-0123456789eE+");

    if (!odd) return;
    s[keep] = '.';
    memmove(s + keep + 1, s + keep + odd, strlen(s + keep + odd) + 1);
}

int dpl_number_text(double v, char *buf, size_t len)
{
    char s[64];
    int digits = fabs(v) < DBL_MIN ? 1 : 15; /* subnormal numbers carry few */

    if (isnan(v)) return snprintf(buf, len, "nan");
    if (isinf(v)) return snprintf(buf, len, v < 0 ? "-inf" : "inf");
    do snprintf(s, sizeof s, "%.*g", digits, v);
    while (digits++ < 17 && strtod(s, NULL) != v);
    use_point(s);
    return snprintf(buf, len, "%s", s);
}

int dpl_parse_double(const char *s, double *out)
{
    locale_t c;
    double v;
    char *end;

    if (!*s || s[strspn(s, "0123456789+-.eE")]) return -1; /* no hexadecimal, nan, blanks */
    if (!(c = newlocale(LC_ALL_MASK, "C", (locale_t)0))) return -1;
    v = strtod_l(s, &end, c);
    freelocale(c);
    if (end == s || *end || !isfinite(v)) return -1;
    *out = v;
    return 0;
}

/* Reads digits; *p is left behind the last one. @return how many, or -1 when they do not fit. */
static int digits_at(const char **p, uint64_t *out)
{
    int n = 0;

    for (*out = 0; **p >= '0' && **p <= '9'; n++, (*p)++) {
        if (__builtin_mul_overflow(*out, 10, out)) return -1;
        if (__builtin_add_overflow(*out, (uint64_t)(**p - '0'), out)) return -1;
    }
    return n;
}

int dpl_parse_uint(const char *s, uint64_t *out)
{
    uint64_t v;

    if (digits_at(&s, &v) < 1 || *s) return -1;
    *out = v;
    return 0;
}

int dpl_parse_int(const char *s, int64_t *out)
{
    const int minus = *s == '-';
    uint64_t v;

    if (dpl_parse_uint(s + minus, &v) || v > (uint64_t)INT64_MAX + (uint64_t)minus) return -1;
    *out = minus && v ? -(int64_t)(v - 1) - 1 : (int64_t)v; /* INT64_MIN has no positive twin */
    return 0;
}

__extension__ typedef unsigned __int128 u128;

/* Digits behind a decimal point, times factor, rounded down. From the 19th digit on they are below
 * what any factor can show. */
static uint64_t fraction_at(const char **p, uint64_t factor)
{
    uint64_t digits = 0, power = 1;

    for (; **p >= '0' && **p <= '9'; (*p)++) {
        if (power >= UINT64_C(1000000000000000000)) continue;
        digits = digits * 10 + (uint64_t)(**p - '0');
        power *= 10;
    }
    return (uint64_t)((u128)digits * factor / power);
}

static const unit *find_unit(const unit *u, const char *name, int any_case)
{
    for (; u->name; u++) {
        if (!(any_case ? strcasecmp(u->name, name) : strcmp(u->name, name))) return u;
    }
    return NULL;
}

/* "1.5" and a unit of the table, in units of 1. */
static int parse_scaled(const char *s, const unit *table, int any_case, uint64_t *out)
{
    const char *point, *end;
    const unit *u;
    uint64_t whole, part = 0;

    if (digits_at(&s, &whole) < 1) return -1;
    point = s;
    if (*s == '.') {
        end = s + 1 + strspn(s + 1, "0123456789");
        if (end == s + 1) return -1;
        s = end;
    }
    if (!(u = find_unit(table, s, any_case))) return -1;
    if (*point == '.') {
        if (u->factor == 1) return -1; /* half a byte, half a nanosecond */
        point++;
        part = fraction_at(&point, u->factor);
    }
    if (__builtin_mul_overflow(whole, u->factor, &whole)) return -1;
    if (__builtin_add_overflow(whole, part, &whole)) return -1;
    *out = whole;
    return 0;
}

int dpl_parse_size(const char *s, uint64_t *out)
{
    return parse_scaled(s, sizes, 1, out);
}

int dpl_parse_time_ns(const char *s, int64_t *out)
{
    uint64_t ns;

    if (parse_scaled(s, times, 0, &ns) || ns > INT64_MAX) return -1;
    *out = (int64_t)ns;
    return 0;
}
