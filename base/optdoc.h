/* SPDX-License-Identifier: Apache-2.0 */
/* An option table as the OPTIONS part of a man page or as a shell's completions. `make install` asks
 * the built programs for them with --print-options=FORMAT, so that neither can drift from the table. */
#ifndef DPL_BASE_OPTDOC_H
#define DPL_BASE_OPTDOC_H

#include "base/optparse.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_opt_doc {
    DPL_OPT_DOC_MAN, /* sections in mdoc(7) */
    DPL_OPT_DOC_BASH,
    DPL_OPT_DOC_ZSH,
    DPL_OPT_DOC_FISH
} dpl_opt_doc;

/** A subcommand of a program. */
typedef struct dpl_opt_command {
    const char *name, *summary;
} dpl_opt_command;

/** Whether the command line is "PROGRAM --print-options=FORMAT" and nothing else. The option is in no
 *  table and no help.
 *  @return DPL_OPT_RUN: it is not; DPL_OPT_HELPED: *format is set; DPL_EINVAL: no such format */
int dpl_opt_doc_asked(int argc, char **argv, dpl_opt_doc *format, dpl_text *why);

/** The table of one program, complete; when spec->program is two words ("dpload bench") that of a
 *  subcommand, to stand between _begin and _end. */
void dpl_opt_doc_table(const dpl_opt_spec *spec, dpl_opt_doc format, FILE *out);

/** Before and after the tables of a program with subcommands. */
void dpl_opt_doc_begin(const char *program, dpl_opt_doc format, FILE *out);
void dpl_opt_doc_end(const char *program, const dpl_opt_command *commands, int n,
                     dpl_opt_doc format, FILE *out);

/* --- between optdoc.c and optcomplete.c --- */

void dpl_opt_doc_bash(const dpl_opt_spec *spec, FILE *out);
void dpl_opt_doc_zsh(const dpl_opt_spec *spec, FILE *out);
void dpl_opt_doc_fish(const dpl_opt_spec *spec, FILE *out);
/** The part that finds the subcommand. */
void dpl_opt_doc_choose(const char *program, const dpl_opt_command *commands, int n,
                        dpl_opt_doc format, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
