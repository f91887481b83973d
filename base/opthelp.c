/* SPDX-License-Identifier: Apache-2.0 */
/* -h and --help from the option table; see optparse.h. */
#include "base/optparse.h"

#include <string.h>

enum { WIDTH = 80, COLUMN_MAX = 30, ROW = 128 };

/* Words from column at, then lines that start at column indent. */
static void put_wrapped(FILE *out, const char *text, int at, int indent)
{
    int fresh = 1; /* nothing on this line yet */

    while (*text) {
        const int n = (int)strcspn(text, " \n");
        if (n && !fresh && at + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            fresh = 1;
        }
        if (n) at += fprintf(out, "%s%.*s", fresh ? "" : " ", n, text);
        if (n) fresh = 0;
        text += n;
        if (*text == '\n' && text[1]) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            fresh = 1;
        }
        text += *text != 0;
    }
    putc('\n', out);
}

/* "  -j, --workers N" */
static void row_head(const dpl_opt *o, int full, char *buf)
{
    char letter[8] = "    ";

    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(buf, ROW, "  %s--%s%s%s%s", letter, full && o->type == DPL_OPT_FLAG ? "[no-]" : "",
             o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

static int column_of(const dpl_opt_spec *spec, int full)
{
    char head[ROW];
    int column = 16;

    for (const dpl_opt *o = spec->opts; o->name; o++) {
        int n;
        if (!full && !o->brief) continue;
        row_head(o, full, head);
        n = (int)strlen(head) + 2;
        if (n > column && n <= COLUMN_MAX) column = n;
    }
    return column;
}

static void put_row(FILE *out, const char *head, const char *help, int column)
{
    int at = (int)strlen(head);

    fputs(head, out);
    if (at + 2 > column) {
        putc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", column - at, "");
    put_wrapped(out, help, column, column);
}

/* The help text, and in the full help the other names that are accepted. */
static void option_text(const dpl_opt *o, int full, char *buf, size_t len)
{
    size_t used = (size_t)snprintf(buf, len, "%s", o->help ? o->help : "");
    const char *join = "\nalso --";

    if (!full || !o->aliases) return;
    for (const char *a = o->aliases; *a && used < len; a += strspn(a, " ")) {
        const size_t n = strcspn(a, " ");
        used += (size_t)snprintf(buf + used, len - used, "%s%.*s", join, (int)n, a);
        join = ", --";
        a += n;
    }
}

static void put_options(const dpl_opt_spec *spec, FILE *out, int full)
{
    const int column = column_of(spec, full);
    char head[ROW], text[1024];

    for (const dpl_opt *o = spec->opts; o->name; o++) {
        if (full && (o->group || o == spec->opts)) {
            fprintf(out, "\n%s:\n", o->group ? o->group : "Options");
        }
        if (!full && !o->brief) continue;
        row_head(o, full, head);
        option_text(o, full, text, sizeof text);
        put_row(out, head, text, column);
    }
    if (full) fputs("\nHelp:\n", out);
    put_row(out, "  -h, --help",
            full ? "-h: the most used options; --help: all" : "--help: every option", column);
}

/* Each line of text, two columns in. */
static void put_lines(FILE *out, const char *text)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", n ? "  " : "", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void dpl_opt_help(const dpl_opt_spec *spec, FILE *out, int full)
{
    fprintf(out, "Usage: %s %s\n", spec->program, spec->usage);
    if (spec->summary) put_wrapped(out, spec->summary, 0, 0);
    if (!full) putc('\n', out);
    put_options(spec, out, full);
    if (full && spec->env) {
        fprintf(out,
                "\nEnvironment:\n  %sNAME=VALUE stands for --name VALUE, with _ for each dash;\n"
                "  the command line wins.\n",
                spec->env);
    }
    if (spec->examples) {
        fputs("\nExamples:\n", out);
        put_lines(out, spec->examples);
    }
    if (spec->see) fprintf(out, "%s%s\n", full ? "\n" : "", spec->see);
}
