/* SPDX-License-Identifier: Apache-2.0 */
/* A run of dptrain inside the test program; see run_inside.h. */
#include "tests/run_inside.h"

#include "trainer/split_auto.h"

#include <string.h>
#include <unistd.h>

void test_inside_open(test_inside *x, const char *words)
{
    char *save = NULL;
    int argc = 0, helped;

    memset(x, 0, sizeof *x);
    snprintf(x->words, sizeof x->words, "dptrain -qq %s", words);
    for (char *w = strtok_r(x->words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        x->argv[argc++] = w;
    assert_int_equal(chdir(test_work()), 0);
    if (dpt_cli_parse(&x->cli, argc, x->argv, NULL, 0, stdout, &helped, &x->why))
        fail_msg("%s: %s", words, x->why.s);
    dpt_report_init(&x->report, &x->cli.opt);
    x->report.out = x->report.err;
    x->run = (dpt_run){ .cli = &x->cli,
                        .opt = &x->cli.opt,
                        .report = &x->report,
                        .argc = argc,
                        .argv = x->argv,
                        .world = 1 };
    if (dpt_run_processes(&x->run, &x->why)) fail_msg("%s: %s", words, x->why.s);
    x->why.s[0] = '\0';
}

int test_inside_devices(test_inside *x)
{
    dpt_run *r = &x->run;
    int rc;

    if ((rc = dpt_run_resume(r, &x->why)) || (rc = dpt_run_devices(r, &x->why))) return rc;
    return dpt_run_check_kind(r, &x->why);
}

int test_inside_data(test_inside *x)
{
    dpt_run *r = &x->run;
    int rc;

    if ((rc = dpt_run_find(r, &x->why))) return rc;
    if (r->split_auto && (rc = dpt_run_split_auto(r, &x->why))) return rc;
    if ((rc = dpt_run_meet(r, &x->why))) return rc;
    return dpt_run_data(r, &x->why);
}

int test_inside_prepare(test_inside *x)
{
    const int rc = test_inside_devices(x);

    return rc ? rc : test_inside_data(x);
}

int test_inside_model(test_inside *x)
{
    const int rc = dpt_run_model(&x->run, &x->why);

    return rc ? rc : dpt_run_folder(&x->run, &x->why);
}

void test_inside_close(test_inside *x)
{
    dpt_run_release(&x->run);
    dpt_cli_fini(&x->cli);
}
