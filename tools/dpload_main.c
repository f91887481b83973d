/* SPDX-License-Identifier: Apache-2.0 */
/* dpload: the loader on its own. This file only finds the subcommand. */
#include "base/files.h"
#include "base/optdoc.h"
#include "tools/dpload_cli.h"

#include <string.h>

static const struct {
    const char *operands;
    int (*run)(int argc, char **argv);
    dpl_opt_command is;
} commands[] = {
    { "DIR", cli_bench, { "bench", "how fast pictures are loaded, and where the time goes" } },
    { "DIR", cli_check, { "check", "decode every picture, list the bad ones" } },
    { "DIR -o sheet.png", cli_show, { "show", "a sheet of augmented pictures to look at" } },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(void)
{
    char line[64];

    fputs("Usage: dpload bench|check|show [options] DIR\n"
          "Work with a folder of labelled pictures: one sub-folder per class, or train/ and val/.\n"
          "\n",
          stdout);
    for (int i = 0; i < COMMANDS; i++) {
        snprintf(line, sizeof line, "dpload %s %s", commands[i].is.name, commands[i].operands);
        printf("  %-30s %s\n", line, commands[i].is.summary);
    }
    fputs("  dpload --version               version of the library\n"
          "\n"
          "Exit codes: 0 done, 1 failed, 2 wrong use, 3 bad data, 4 device not usable\n"
          "More: dpload bench -h, dpload bench --help, and so on\n",
          stdout);
}

/* The options of all subcommands, as `make install` asks for them. */
static int print_options(dpl_opt_doc format, int argc, char **argv)
{
    dpl_opt_command list[COMMANDS];
    int code;

    dpl_opt_doc_begin("dpload", format, stdout);
    for (int i = 0; i < COMMANDS; i++) {
        list[i] = commands[i].is;
        if ((code = commands[i].run(argc, argv))) return code;
    }
    dpl_opt_doc_end("dpload", list, COMMANDS, format, stdout);
    return CLI_DONE;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    dpl_opt_doc format = DPL_OPT_DOC_MAN;
    dpl_text why = { "" };
    int asked;

    dpl_keep_standard_files();
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].is.name) != 0) continue;
        return cli_end(commands[i].run(argc - 1, argv + 1));
    }
    if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
        print_usage();
        return cli_end(CLI_DONE);
    }
    if (!strcmp(name, "--version")) {
        printf("dpload %s\n", dpl_version());
        return cli_end(CLI_DONE);
    }
    asked = dpl_opt_doc_asked(argc, argv, &format, &why);
    if (asked < 0) return cli_fail(asked, why.s);
    if (asked) return cli_end(print_options(format, argc, argv));
    fprintf(stderr, "dpload: %s%s%s; known are bench, check and show (dpload -h)\n",
            *name ? "unknown command \"" : "no command", name, *name ? "\"" : "");
    return CLI_USAGE;
}
