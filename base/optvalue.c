/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: from text, to text, and what a message says is allowed; see optparse.h. */
#include "base/optvalue.h"

#include "base/number.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBERS_MAX = 4 };

static int in_limits(const dpl_opt *o, double v)
{
    if (o->min == 0 && o->max == 0) return 1;
    return v >= o->min && (v <= o->max || (o->max == 0 && o->min > 0));
}

static int set_flag(const char *text, int *out)
{
    static const char *const words[] = { "0", "off", "no", "false", "1", "on", "yes", "true" };

    for (int i = 0; i < 8; i++) {
        if (strcasecmp(text, words[i])) continue;
        *out = i >= 4;
        return 0;
    }
    return -1;
}

static int set_int(const dpl_opt *o, const char *text, int *out)
{
    int64_t v;

    if (dpl_parse_int(text, &v) || v < INT_MIN || v > INT_MAX) return -1;
    if (!in_limits(o, (double)v)) return -1;
    *out = (int)v;
    return 0;
}

static int set_uint64(const dpl_opt *o, const char *text, uint64_t *out)
{
    uint64_t v;

    if (o->type == DPL_OPT_SIZE ? dpl_parse_size(text, &v) : dpl_parse_uint(text, &v)) return -1;
    if (!in_limits(o, (double)v)) return -1;
    *out = v;
    return 0;
}

static int set_double(const dpl_opt *o, const char *text, double *out)
{
    const size_t n = strlen(text);
    const int percent = o->type == DPL_OPT_SHARE && n && text[n - 1] == '%';
    char digits[64];
    double v;

    if (n >= sizeof digits) return -1;
    memcpy(digits, text, n + 1);
    if (percent) digits[n - 1] = 0;
    if (dpl_parse_double(digits, &v)) return -1;
    if (percent) v /= 100;
    if (!in_limits(o, v)) return -1;
    *out = v;
    return 0;
}

/* How many numbers make a value of o; 1 unless it is a list. */
static int numbers_of(const dpl_opt *o)
{
    switch (o->type) {
    case DPL_OPT_PAIR:
    case DPL_OPT_TWO: return 2;
    case DPL_OPT_THREE: return 3;
    case DPL_OPT_FOUR: return 4;
    default: return 1;
    }
}

/* Exactly as many numbers as o takes, between commas. */
static int set_numbers(const dpl_opt *o, const char *text, double *out)
{
    const int n = numbers_of(o);
    double v[NUMBERS_MAX];

    for (int i = 0; i < n; i++) {
        const size_t len = strcspn(text, ",");
        char number[64];

        if (len >= sizeof number || (text[len] == ',') != (i < n - 1)) return -1;
        memcpy(number, text, len);
        number[len] = 0;
        if (set_double(o, number, &v[i])) return -1;
        text += len + 1;
    }
    if (o->type == DPL_OPT_PAIR && v[0] > v[1]) return -1;
    memcpy(out, v, (size_t)n * sizeof *v);
    return 0;
}

/* Word i of choices. @return its length; 0 = a value without a name; -1 = there are no more */
static int word_at(const char *choices, int i, const char **word)
{
    for (; i > 0; i--) {
        if (!(choices = strchr(choices, '|'))) return -1;
        choices++;
    }
    *word = choices;
    return (int)strcspn(choices, "|");
}

static int set_choice(const char *choices, const char *text, int *out)
{
    const char *word;

    for (int i = 0, n; (n = word_at(choices, i, &word)) >= 0; i++) {
        if (!n || strlen(text) != (size_t)n || memcmp(text, word, (size_t)n)) continue;
        *out = i;
        return 0;
    }
    return -1;
}

int dpl_opt_set(const dpl_opt *o, void *values, const char *text)
{
    void *at = (char *)values + o->offset;

    switch (o->type) {
    case DPL_OPT_FLAG: return set_flag(text, at);
    case DPL_OPT_COUNT:
    case DPL_OPT_INT: return set_int(o, text, at);
    case DPL_OPT_UINT64:
    case DPL_OPT_SIZE: return set_uint64(o, text, at);
    case DPL_OPT_DOUBLE:
    case DPL_OPT_SHARE: return set_double(o, text, at);
    case DPL_OPT_PAIR:
    case DPL_OPT_TWO:
    case DPL_OPT_THREE:
    case DPL_OPT_FOUR: return set_numbers(o, text, at);
    case DPL_OPT_STRING: *(const char **)at = text; return 0;
    case DPL_OPT_CHOICE: return set_choice(o->choices, text, at);
    }
    return -1;
}

/* "bilinear, bicubic or nearest" */
static void list_choices(const char *choices, char *buf, size_t len)
{
    const char *word;
    size_t used = 0;
    int left = 0;

    buf[0] = 0;
    for (int i = 0, n; (n = word_at(choices, i, &word)) >= 0; i++) left += n > 0;
    for (int i = 0, n; (n = word_at(choices, i, &word)) >= 0 && used < len; i++) {
        if (!n) continue;
        const char *join = !used ? "" : left > 1 ? ", " : " or ";
        used += (size_t)snprintf(buf + used, len - used, "%s%.*s", join, n, word);
        left--;
    }
}

static void list_limits(const dpl_opt *o, char *buf, size_t len)
{
    double min = o->min, max = o->max;
    char low[DPL_NUMBER_MAX], high[DPL_NUMBER_MAX];

    buf[0] = 0;
    if (min == 0 && max == 0) {
        if (o->type == DPL_OPT_UINT64) snprintf(buf, len, " from 0 to %" PRIu64, UINT64_MAX);
        if (o->type != DPL_OPT_INT && o->type != DPL_OPT_COUNT) return;
        min = INT_MIN;
        max = INT_MAX;
    }
    dpl_number_text(min, low, sizeof low);
    dpl_number_text(max, high, sizeof high);
    if (max == 0 && min > 0)
        snprintf(buf, len, ", at least %s", low);
    else
        snprintf(buf, len, " from %s to %s", low, high);
}

void dpl_opt_expected(const dpl_opt *o, char *buf, size_t len)
{
    static const char *const kinds[] = {
        [DPL_OPT_FLAG] = "on, off, yes, no, true, false, 1 or 0",
        [DPL_OPT_COUNT] = "a whole number",
        [DPL_OPT_INT] = "a whole number",
        [DPL_OPT_UINT64] = "a whole number",
        [DPL_OPT_SIZE] = "a size like 64, 4k or 2GiB",
        [DPL_OPT_DOUBLE] = "a number",
        [DPL_OPT_SHARE] = "a share like 0.05 or 5%",
        [DPL_OPT_PAIR] = "two numbers LO,HI (LO <= HI)",
        [DPL_OPT_TWO] = "two numbers",
        [DPL_OPT_THREE] = "three numbers",
        [DPL_OPT_FOUR] = "four numbers",
        [DPL_OPT_STRING] = "a text",
    };
    char limits[2 * DPL_NUMBER_MAX + 16];

    if (o->type == DPL_OPT_CHOICE) {
        list_choices(o->choices, buf, len);
        return;
    }
    limits[0] = 0;
    if (o->type != DPL_OPT_FLAG && o->type != DPL_OPT_STRING) {
        list_limits(o, limits, sizeof limits);
    }
    snprintf(buf, len, "%s%s", kinds[o->type], limits);
}

static int format_numbers(const double *v, int n, char *buf, size_t len)
{
    char text[NUMBERS_MAX * DPL_NUMBER_MAX];
    int used = 0;

    for (int i = 0; i < n; i++) {
        char number[DPL_NUMBER_MAX];

        dpl_number_text(v[i], number, sizeof number);
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", i ? "," : "", number);
    }
    return snprintf(buf, len, "%s", text);
}

int dpl_opt_format(const dpl_opt *o, const void *values, char *buf, size_t len)
{
    const void *at = (const char *)values + o->offset;
    const char *word = "";
    int n;

    switch (o->type) {
    case DPL_OPT_FLAG: return snprintf(buf, len, "%s", *(const int *)at ? "on" : "off");
    case DPL_OPT_COUNT:
    case DPL_OPT_INT: return snprintf(buf, len, "%d", *(const int *)at);
    case DPL_OPT_UINT64:
    case DPL_OPT_SIZE: return snprintf(buf, len, "%" PRIu64, *(const uint64_t *)at);
    case DPL_OPT_DOUBLE:
    case DPL_OPT_SHARE: return dpl_number_text(*(const double *)at, buf, len);
    case DPL_OPT_PAIR:
    case DPL_OPT_TWO:
    case DPL_OPT_THREE:
    case DPL_OPT_FOUR: return format_numbers(at, numbers_of(o), buf, len);
    case DPL_OPT_STRING:
        word = *(const char *const *)at;
        return snprintf(buf, len, "%s", word ? word : "");
    case DPL_OPT_CHOICE:
        n = word_at(o->choices, *(const int *)at, &word);
        return snprintf(buf, len, "%.*s", n > 0 ? n : 0, word);
    }
    return snprintf(buf, len, "%s", "");
}
