/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain [options] DIR: train a picture classifier. dptrain devices: what there is to train on. */
#include "base/files.h"
#include "trainer/cli.h"
#include "trainer/devices.h"
#include "trainer/interrupt.h"
#include "trainer/report.h"
#include "trainer/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Threads of oneDNN's OpenMP spin while they wait for each other, on the cores that loader threads and
 * other programs need: on a busy machine a step then took three times as long. libgomp reads the
 * policy when it is loaded, before main(), so the program sets it and starts over, once. A policy
 * that the user chose stays; if /proc is not there, the default one does. */
static void wait_without_spinning(char **argv)
{
#ifdef DPT_HAVE_DNNL
    if (getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1)) return;
    execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}

/* Options that only print. */
static int prints_only(const dpt_cli *cli)
{
    if (cli->opt.version)
        printf("dptrain %s\n", dpl_version());
    else if (cli->opt.print_config)
        dpt_cli_print_config(cli, stdout);
    return cli->opt.version || cli->opt.print_config;
}

/* Train, or list what there is to train on. A folder called "devices" is ./devices. */
static int run(dpt_cli *cli, dpt_report *report, int argc, char **argv, dpl_text *why)
{
    int helped = 0, rc;

    if (argc > 1 && !strcmp(argv[1], "devices")) {
        cli->opt.progress = "none";
        dpt_report_init(report, &cli->opt);
        return dpt_devices_main(argc - 1, argv + 1, stdout, why);
    }
    rc = dpt_cli_parse(cli, argc, argv, NULL, 0, stdout, &helped, why);
    dpt_report_init(report, &cli->opt);
    if (rc || helped || prints_only(cli)) return rc;
    dpt_interrupt_install();
    return dpt_run_main(cli, argc, argv, report, why);
}

int main(int argc, char **argv)
{
    dpl_text why = { "" };
    dpt_report report;
    dpt_cli cli = { .held = NULL };
    int rc;

    dpl_keep_standard_files();
    wait_without_spinning(argv);
    rc = run(&cli, &report, argc, argv, &why);
    if (rc) dpt_report_error(&report, why.s);
    if (fflush(stdout) || ferror(stdout)) { /* results that nobody got are not "done" */
        dpl_fail(&why, 0, "cannot write to stdout: %s", strerror(errno));
        dpt_report_error(&report, why.s);
        if (!rc) rc = DPT_EXIT_FAILED;
    }
    dpt_cli_fini(&cli);
    return rc;
}
