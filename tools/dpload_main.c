/* SPDX-License-Identifier: Apache-2.0 */
/* dpload: the loader on its own. This file only finds the subcommand. */
#include "tools/dpload_cli.h"

#include <string.h>

static const char usage[] =
    "Usage: dpload bench|check|show [options] DIR\n"
    "Work with a folder of labelled pictures: one sub-folder per class, or train/ and val/.\n"
    "\n"
    "  dpload bench DIR               how fast pictures are loaded, and where the time goes\n"
    "  dpload check DIR               decode every picture, list the bad ones\n"
    "  dpload show DIR -o sheet.png   a sheet of augmented pictures to look at\n"
    "  dpload --version               version of the library\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong use, 3 bad data, 4 device not usable\n"
    "More: dpload bench -h, dpload bench --help, and so on\n";

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = { { "bench", cli_bench }, { "check", cli_check }, { "show", cli_show } };
    const char *name = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(name, commands[i].name)) return cli_end(commands[i].run(argc - 1, argv + 1));
    }
    if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
        fputs(usage, stdout);
        return cli_end(CLI_DONE);
    }
    if (!strcmp(name, "--version")) {
        printf("dpload %s\n", dpl_version());
        return cli_end(CLI_DONE);
    }
    fprintf(stderr, "dpload: %s%s%s; known are bench, check and show (dpload -h)\n",
            *name ? "unknown command \"" : "no command", name, *name ? "\"" : "");
    return CLI_USAGE;
}
