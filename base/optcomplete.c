/* SPDX-License-Identifier: Apache-2.0 */
/* The option table as completions of bash, zsh and fish; see optdoc.h. */
#include "base/optdoc.h"

#include <string.h>

typedef enum kind { NO_VALUE, CHOICE, FOLDER, FILE_NAME, OTHER } kind;

/* What stands behind an option. */
static kind value_kind(const dpl_opt *o)
{
    if (o->type == DPL_OPT_FLAG || o->type == DPL_OPT_COUNT) return NO_VALUE;
    if (o->type == DPL_OPT_CHOICE) return CHOICE;
    if (o->type != DPL_OPT_STRING || !o->arg) return OTHER;
    if (!strcmp(o->arg, "DIR")) return FOLDER;
    return !strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH") ? FILE_NAME : OTHER;
}

static int takes_folder(const dpl_opt_spec *spec)
{
    return spec->usage && strstr(spec->usage, "DIR");
}

/* "_dpload_bench" */
static void put_function(FILE *out, const char *program)
{
    putc('_', out);
    for (; *program; program++) putc(*program == ' ' ? '_' : *program, out);
}

/* "step cosine const" */
static void put_choices(FILE *out, const char *choices)
{
    for (; *choices; choices++)
        if (*choices != '|')
            putc(*choices, out);
        else if (choices[1] != '|') /* else a value without a name */
            putc(' ', out);
}

/* Inside single quotes; each letter of `special` gets a backslash. `quote` stands for a quote. */
static void put_quoted(FILE *out, const char *text, const char *special, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *text)) putc('\\', out);
        putc(*text == '\n' ? ' ' : *text, out);
    }
}

/* --- bash: one function that looks at the word before the cursor --- */

/* compopt: a blank in a name gets its backslash, a folder its slash */
#define BASH_PATHS(letter)                                                                         \
    " compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -" letter " -- "          \
    "\"$cur\");"

/* "-o|--output|--output-dir) ... ;;" */
static void bash_value(FILE *out, const dpl_opt *o)
{
    fputs("    ", out);
    if (o->letter) fprintf(out, "-%c|", o->letter);
    fprintf(out, "--%s", o->name);
    for (const char *a = o->aliases; a && *a; a += strspn(a, " ")) {
        const int n = (int)strcspn(a, " ");
        fprintf(out, "|--%.*s", n, a);
        a += n;
    }
    putc(')', out);
    switch (value_kind(o)) {
    case CHOICE:
        fputs(" mapfile -t COMPREPLY < <(compgen -W '", out);
        put_choices(out, o->choices);
        fputs("' -- \"$cur\");", out);
        break;
    case FOLDER: fputs(BASH_PATHS("d"), out); break;
    case FILE_NAME: fputs(BASH_PATHS("f"), out); break;
    default: break;
    }
    fputs(" return ;;\n", out);
}

void dpl_opt_doc_bash(const dpl_opt_spec *spec, FILE *out)
{
    put_function(out, spec->program);
    fputs(
        "() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]} # --name=value is three words\n"
        "    [[ $cur == = ]] && cur=\n"
        "    COMPREPLY=()\n"
        "    case $prev in\n",
        out);
    for (const dpl_opt *o = spec->opts; o->name; o++) {
        if (value_kind(o) != NO_VALUE) bash_value(out, o);
    }
    fputs("    esac\n    if [[ $cur == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '",
          out);
    for (const dpl_opt *o = spec->opts; o->name; o++) {
        if (o->letter) fprintf(out, "-%c ", o->letter);
        fprintf(out, "--%s ", o->name);
        if (o->type == DPL_OPT_FLAG) fprintf(out, "--no-%s ", o->name);
    }
    fputs("-h --help' -- \"$cur\")\n", out);
    if (takes_folder(spec)) { fputs("    else\n       " BASH_PATHS("d") "\n", out); }
    fputs("    fi\n}\n", out);
}

/* --- zsh: specifications for _arguments --- */

static void zsh_text(FILE *out, const dpl_opt *o, const char *before)
{
    fprintf(out, "[%s", before);
    put_quoted(out, o->help ? o->help : "", "[]\\:", "'\\''");
    putc(']', out);
}

static void zsh_value(FILE *out, const dpl_opt *o)
{
    const char *arg = o->arg ? o->arg : "VALUE";

    switch (value_kind(o)) {
    case NO_VALUE: break;
    case CHOICE:
        fprintf(out, ":%s:(", arg);
        put_choices(out, o->choices);
        putc(')', out);
        break;
    case FOLDER: fprintf(out, ":%s:_files -/", arg); break;
    case FILE_NAME: fprintf(out, ":%s:_files", arg); break;
    case OTHER: fprintf(out, ":%s: ", arg); break;
    }
}

/* Options that this one excludes on the rest of the line, its other names among them. */
static void zsh_excludes(FILE *out, const dpl_opt *o)
{
    const char *join = "";

    if (o->type == DPL_OPT_COUNT) {
        fputs("'*'", out);
        return;
    }
    if (!o->letter && o->type != DPL_OPT_FLAG) return;
    fputs("'(", out);
    if (o->letter) join = " ", fprintf(out, "-%c", o->letter);
    fprintf(out, "%s--%s", join, o->name);
    if (o->type == DPL_OPT_FLAG) fprintf(out, " --no-%s", o->name);
    fputs(")'", out);
}

static void zsh_row(FILE *out, const dpl_opt *o)
{
    const int value = value_kind(o) != NO_VALUE;

    fputs(" \\\n        ", out);
    zsh_excludes(out, o);
    if (o->letter)
        fprintf(out, "{-%c%s,--%s%s}'", o->letter, value ? "+" : "", o->name, value ? "=" : "");
    else
        fprintf(out, "'--%s%s", o->name, value ? "=" : "");
    zsh_text(out, o, "");
    zsh_value(out, o);
    putc('\'', out);
    if (o->type != DPL_OPT_FLAG) return;
    fputs(" \\\n        ", out);
    zsh_excludes(out, o);
    fprintf(out, "'--no-%s", o->name);
    zsh_text(out, o, "off\\: ");
    putc('\'', out);
}

void dpl_opt_doc_zsh(const dpl_opt_spec *spec, FILE *out)
{
    put_function(out, spec->program);
    fputs("() {\n    _arguments -s -S", out);
    for (const dpl_opt *o = spec->opts; o->name; o++) zsh_row(out, o);
    fputs(" \\\n        '(- *)'{-h,--help}'[-h\\: the most used options; --help\\: all]'", out);
    if (takes_folder(spec)) fputs(" \\\n        '1:DIR:_files -/'", out);
    fputs("\n}\n", out);
}

/* --- fish: one line for each option --- */

/* "complete -c dpload -n '__fish_seen_subcommand_from bench'" */
static void fish_head(FILE *out, const char *program)
{
    const int n = (int)strcspn(program, " ");

    fprintf(out, "complete -c %.*s", n, program);
    if (program[n]) fprintf(out, " -n '__fish_seen_subcommand_from %s'", program + n + 1);
}

static void fish_text(FILE *out, const char *before, const char *text)
{
    fprintf(out, " -d '%s", before);
    put_quoted(out, text ? text : "", "\\", "\\'");
    fputs("'\n", out);
}

static void fish_row(FILE *out, const dpl_opt_spec *spec, const dpl_opt *o)
{
    fish_head(out, spec->program);
    if (o->letter) fprintf(out, " -s %c", o->letter);
    fprintf(out, " -l %s", o->name);
    switch (value_kind(o)) {
    case NO_VALUE: break;
    case CHOICE:
        fputs(" -x -a '", out);
        put_choices(out, o->choices);
        putc('\'', out);
        break;
    case FOLDER: fputs(" -x -a '(__fish_complete_directories)'", out); break;
    case FILE_NAME: fputs(" -r -F", out); break;
    case OTHER: fputs(" -x", out); break;
    }
    fish_text(out, "", o->help);
    if (o->type != DPL_OPT_FLAG) return;
    fish_head(out, spec->program);
    fprintf(out, " -l no-%s", o->name);
    fish_text(out, "off: ", o->help);
}

void dpl_opt_doc_fish(const dpl_opt_spec *spec, FILE *out)
{
    for (const dpl_opt *o = spec->opts; o->name; o++) fish_row(out, spec, o);
    fish_head(out, spec->program);
    fputs(" -s h -l help", out);
    fish_text(out, "", "-h: the most used options; --help: all");
    if (!takes_folder(spec)) return;
    fish_head(out, spec->program);
    fputs(" -f -a '(__fish_complete_directories)'\n", out);
}

/* --- subcommands --- */

static void choose_bash(const char *program, const dpl_opt_command *c, int n, FILE *out)
{
    fprintf(out,
            "_%s() {\n    if ((COMP_CWORD == 1)); then\n"
            "        mapfile -t COMPREPLY < <(compgen -W '",
            program);
    for (int i = 0; i < n; i++) fprintf(out, "%s ", c[i].name);
    fputs("-h --help --version' -- \"${COMP_WORDS[1]}\")\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "    %s) _%s_%s ;;\n", c[i].name, program, c[i].name);
    }
    fputs("    esac\n}\n", out);
}

static void choose_zsh(const char *program, const dpl_opt_command *c, int n, FILE *out)
{
    fprintf(out,
            "_%s() {\n    local curcontext=$curcontext state line\n    typeset -A opt_args\n"
            "    _arguments -C '(- *)'{-h,--help}'[help]' '(- *)--version[version]' \\\n"
            "        '1:command:((",
            program);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%s%s\\:\"", i ? " " : "", c[i].name);
        put_quoted(out, c[i].summary, "\"\\:`$", "'\\''");
        putc('"', out);
    }
    fputs("))' '*::option:->rest'\n    [[ $state == rest ]] || return\n    case $line[1] in\n",
          out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "    %s) _%s_%s ;;\n", c[i].name, program, c[i].name);
    }
    fputs("    esac\n}\n", out);
}

static void choose_fish(const char *program, const dpl_opt_command *c, int n, FILE *out)
{
    for (int i = 0; i < n; i++) {
        fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s", program, c[i].name);
        fish_text(out, "", c[i].summary);
    }
    fprintf(out, "complete -c %s -n __fish_use_subcommand -s h -l help -d help\n", program);
    fprintf(out, "complete -c %s -n __fish_use_subcommand -l version -d version\n", program);
}

void dpl_opt_doc_choose(const char *program, const dpl_opt_command *commands, int n,
                        dpl_opt_doc format, FILE *out)
{
    switch (format) {
    case DPL_OPT_DOC_MAN: break;
    case DPL_OPT_DOC_BASH: choose_bash(program, commands, n, out); break;
    case DPL_OPT_DOC_ZSH: choose_zsh(program, commands, n, out); break;
    case DPL_OPT_DOC_FISH: choose_fish(program, commands, n, out); break;
    }
}
