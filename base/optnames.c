/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of dpl_options as options; see optnames.h. */
#include "base/optnames.h"

#include "dpload.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

/* Fields whose option has another name. */
static const char *const others[][2] = {
    { "crop", "train-crop" },
    { "width", "size" },
    { "height", "size" },
};

static int in_table(const dpl_opt *opts, const char *name)
{
    for (; opts->name; opts++)
        if (!strcmp(opts->name, name)) return 1;
    return 0;
}

/* The option of the field that the n bytes name, or 0. */
static int option_of(const dpl_opt *opts, const char *field, size_t n, char name[NAME_MAX_BYTES])
{
    if (!n || n >= NAME_MAX_BYTES) return 0;
    for (size_t i = 0; i < n; i++) name[i] = field[i] == '_' ? '-' : field[i];
    name[n] = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i][0])) snprintf(name, NAME_MAX_BYTES, "%s", others[i][1]);
    return in_table(opts, name);
}

static size_t word_length(const char *s)
{
    size_t n = 0;

    while (islower((unsigned char)s[n]) || isdigit((unsigned char)s[n]) || s[n] == '_') n++;
    return n;
}

/* Words begin behind a blank or a bracket, so that parts of paths are none. */
static int begins_word(const char *text, const char *at)
{
    return at == text || at[-1] == ' ' || at[-1] == '(';
}

/* Does the word at `at` stand for a field? The n bytes are followed by what ends a word. */
static int is_field(const char *text, const char *at, size_t n, int status)
{
    if (memchr(at, '_', n)) return 1;
    if (at == text)
        return status == DPL_EINVAL || (at[n] == ' ' && isdigit((unsigned char)at[n + 1]));
    return at[-1] == '(' && !strcmp(at + n, ")");
}

void dpl_opt_name_fields(const dpl_opt *opts, int status, dpl_text *text)
{
    static const char prefix[] = "options.";
    const dpl_text from = *text;
    size_t out = 0;

    for (const char *at = from.s; *at;) {
        const size_t skip = strncmp(at, prefix, sizeof prefix - 1) ? 0 : sizeof prefix - 1;
        const size_t n = word_length(at + skip);
        char name[NAME_MAX_BYTES];
        const int ends = !at[skip + n] || strchr(" :,;)[", at[skip + n]);

        if (begins_word(from.s, at) && ends && (skip || is_field(from.s, at, n, status)) &&
            option_of(opts, at + skip, n, name) && out + strlen(name) + 3 < sizeof text->s) {
            out += (size_t)snprintf(text->s + out, sizeof text->s - out, "--%s", name);
            at += skip + n;
        } else if (out + 1 < sizeof text->s) {
            text->s[out++] = *at++;
        } else {
            break;
        }
    }
    text->s[out] = 0;
}
