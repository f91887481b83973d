/* SPDX-License-Identifier: Apache-2.0 */
/* --print-options, and the option table in mdoc(7); see optdoc.h. */
#include "base/optdoc.h"

#include "base/optvalue.h"
#include "dpload.h"

#include <ctype.h>
#include <string.h>

int dpl_opt_doc_asked(int argc, char **argv, dpl_opt_doc *format, dpl_text *why)
{
    static const char option[] = "--print-options=";
    static const char *const formats[] = { "man", "bash", "zsh", "fish" };
    const char *asked;

    if (argc != 2 || strncmp(argv[1], option, sizeof option - 1)) return DPL_OPT_RUN;
    asked = argv[1] + sizeof option - 1;
    for (int i = 0; i < 4; i++) {
        if (strcmp(asked, formats[i])) continue;
        *format = (dpl_opt_doc)i;
        return DPL_OPT_HELPED;
    }
    return dpl_fail(why, DPL_EINVAL, "%s%s: expected man, bash, zsh or fish", option, asked);
}

/* --- mdoc --- */

/* Sentences: each on lines of its own that do not begin with a macro, and hyphens that can be copied
 * to a shell. A full stop is added where there is none. */
static void put_text(FILE *out, const char *text)
{
    enum { LINE = 60 };
    char last = '\n';
    int at = 0;

    for (; *text; last = *text++) {
        const int blank = *text == ' ' || *text == '\n';
        if (blank && (at > LINE || last == '.')) {
            putc('\n', out);
            at = 0;
            continue;
        }
        if (!at && (*text == '.' || *text == '\'')) fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            putc(blank ? ' ' : *text, out);
        at++;
    }
    fputs(last == '.' ? "\n" : ".\n", out);
}

static int has_limits(const dpl_opt *o)
{
    switch (o->type) {
    case DPL_OPT_FLAG:
    case DPL_OPT_COUNT:
    case DPL_OPT_STRING:
    case DPL_OPT_CHOICE: return 0;
    default: return o->min != 0 || o->max != 0;
    }
}

static void put_row(FILE *out, const dpl_opt *o)
{
    char expected[256];

    fputs(".It", out);
    if (o->letter) fprintf(out, " Fl %c ,", o->letter);
    fprintf(out, " Fl -%s", o->name);
    if (o->type == DPL_OPT_FLAG) fprintf(out, " , Fl -no-%s", o->name);
    if (o->arg) fprintf(out, " Ar %s", o->arg);
    putc('\n', out);
    put_text(out, o->help ? o->help : "");
    if (has_limits(o)) {
        dpl_opt_expected(o, expected, sizeof expected);
        fputs("Takes ", out);
        put_text(out, expected);
    }
    for (const char *a = o->aliases, *join = "Also"; a && *a; a += strspn(a, " "), join = "and") {
        const int n = (int)strcspn(a, " ");
        fprintf(out, "%s\n.Fl -%.*s%s\n", join, n, a, a[n] ? "" : " .");
        a += n;
    }
}

/* "dpload bench": the second word in capitals; NULL for a program without subcommands. */
static const char *subcommand(const dpl_opt_spec *spec)
{
    const char *blank = strchr(spec->program, ' ');

    return blank ? blank + 1 : NULL;
}

static void man_table(const dpl_opt_spec *spec, FILE *out)
{
    const char *command = subcommand(spec);
    int open = 0;

    fputs(command ? ".Sh OPTIONS OF " : ".Sh OPTIONS", out);
    for (const char *c = command; c && *c; c++) putc(toupper((unsigned char)*c), out);
    putc('\n', out);
    if (command && spec->summary) { put_text(out, spec->summary); }
    for (const dpl_opt *o = spec->opts; o->name; o++) {
        if (o->group || !open) {
            fprintf(out, "%s.Ss %s\n.Bl -tag -width Ds\n", open ? ".El\n" : "",
                    o->group ? o->group : "General");
        }
        open = 1;
        put_row(out, o);
    }
    if (!open) fputs(".Bl -tag -width Ds\n", out);
    fputs(".It Fl h , Fl -help\nThe most used options; all of them with\n.Fl -help .\n.El\n", out);
}

/* --- all formats --- */

void dpl_opt_doc_begin(const char *program, dpl_opt_doc format, FILE *out)
{
    if (format == DPL_OPT_DOC_MAN) return;
    if (format == DPL_OPT_DOC_ZSH) fprintf(out, "#compdef %s\n", program);
    fprintf(out, "# Completions of %s, made from its option table.\n", program);
}

void dpl_opt_doc_end(const char *program, const dpl_opt_command *commands, int n,
                     dpl_opt_doc format, FILE *out)
{
    char function[64];

    if (format == DPL_OPT_DOC_MAN) return;
    if (n) dpl_opt_doc_choose(program, commands, n, format, out);
    snprintf(function, sizeof function, "_%s", program);
    if (format == DPL_OPT_DOC_BASH) fprintf(out, "complete -F %s %s\n", function, program);
    if (format == DPL_OPT_DOC_ZSH) fprintf(out, "%s \"$@\"\n", function);
}

void dpl_opt_doc_table(const dpl_opt_spec *spec, dpl_opt_doc format, FILE *out)
{
    const int whole = !subcommand(spec);

    if (whole) dpl_opt_doc_begin(spec->program, format, out);
    switch (format) {
    case DPL_OPT_DOC_MAN: man_table(spec, out); break;
    case DPL_OPT_DOC_BASH: dpl_opt_doc_bash(spec, out); break;
    case DPL_OPT_DOC_ZSH: dpl_opt_doc_zsh(spec, out); break;
    case DPL_OPT_DOC_FISH: dpl_opt_doc_fish(spec, out); break;
    }
    if (whole) dpl_opt_doc_end(spec->program, NULL, 0, format, out);
}
