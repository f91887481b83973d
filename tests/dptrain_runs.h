/* SPDX-License-Identifier: Apache-2.0 */
/* Running the built dptrain as a user does, for the tests of the program. */
#ifndef TESTS_DPTRAIN_RUNS_H
#define TESTS_DPTRAIN_RUNS_H

#include "tests/testutil.h"

#include <stddef.h>
#include <sys/types.h>

typedef struct test_run {
    int code;        /* exit code, or 1000 + signal that killed it */
    char *out, *err; /* what it wrote; freed by test_run_free() */
    double seconds;  /* it took */
} test_run;

/** Run dptrain with these words (separated by blanks) to its end, in a folder of the test's own:
 *  test_work(). Ends the test when it takes over two minutes. */
void test_dptrain(test_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same, and send `sig` once the file below test_work() holds at least `lines` lines. */
void test_dptrain_signal(test_run *r, int sig, const char *file, int lines, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/** The signal of the runs that follow comes together with this one; 0 = alone. */
void test_dptrain_second_signal(int sig);
/** Files of the runs that follow may not grow beyond this many bytes; 0 = no limit. */
void test_dptrain_file_limit(size_t bytes);
/** The runs that follow start with this descriptor closed; -1 = with all open. */
void test_dptrain_close(int fd);
void test_run_free(test_run *r);

/** Folder the runs start in; a made data set of 3 classes, 12 + 4 pictures each, is "data" in it. */
const char *test_work(void);

/** test_make_tree() below test_work(). */
void test_work_tree(const char *name, int classes, int files);

/** The numbers behind "key": in every line of a log.jsonl below test_work(), in order; lines without
 *  the key are left out. @return how many, at most max */
int test_log_numbers(const char *file, const char *key, double *out, int max);

#endif
