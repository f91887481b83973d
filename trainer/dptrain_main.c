/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain [options] DIR: train a picture classifier. */
#include "trainer/cli.h"
#include "trainer/interrupt.h"
#include "trainer/report.h"
#include "trainer/run.h"

#include <errno.h>
#include <string.h>

/* Options that only print. */
static int prints_only(const dpt_cli *cli)
{
    if (cli->opt.version)
        printf("dptrain %s\n", dpl_version());
    else if (cli->opt.print_config)
        dpt_cli_print_config(cli, stdout);
    return cli->opt.version || cli->opt.print_config;
}

int main(int argc, char **argv)
{
    dpl_text why = { "" };
    dpt_report report;
    dpt_cli cli;
    int helped = 0;
    int rc = dpt_cli_parse(&cli, argc, argv, NULL, 0, stdout, &helped, &why);

    dpt_report_init(&report, &cli.opt);
    if (!rc && !helped && !prints_only(&cli)) {
        dpt_interrupt_install();
        rc = dpt_run_main(&cli, argc, argv, &report, &why);
    }
    if (rc) dpt_report_error(&report, why.s);
    if (fflush(stdout) || ferror(stdout)) { /* results that nobody got are not "done" */
        dpl_fail(&why, 0, "cannot write to stdout: %s", strerror(errno));
        dpt_report_error(&report, why.s);
        if (!rc) rc = DPT_EXIT_FAILED;
    }
    dpt_cli_fini(&cli);
    return rc;
}
