/* SPDX-License-Identifier: Apache-2.0 */
/* A run of dptrain inside the test program, step by step, so that a test can look at it or put its own
 * parts in. It starts in test_work() and says nothing. */
#ifndef TESTS_RUN_INSIDE_H
#define TESTS_RUN_INSIDE_H

#include "tests/dptrain_runs.h"
#include "trainer/run.h"

typedef struct test_inside {
    dpt_cli cli;
    dpt_report report;
    dpt_run run;
    char words[1024], *argv[64];
    dpl_text why;
} test_inside;

/** The command line "dptrain -qq WORDS", and which process that is; fails the test when they make no
 *  sense. One thread at a time. */
void test_inside_open(test_inside *x, const char *words);
/** --resume and the devices; the loaders; both. One thread at a time. @return a dpt_exit; x->why */
int test_inside_devices(test_inside *x);
int test_inside_data(test_inside *x);
int test_inside_prepare(test_inside *x);
/** Model, team, run folder. This and what follows may run in a thread of its own. */
int test_inside_model(test_inside *x);
void test_inside_close(test_inside *x);

#endif
