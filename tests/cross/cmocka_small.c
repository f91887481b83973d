/* SPDX-License-Identifier: Apache-2.0 */
/* A test runner of one page; see cmocka.h beside it. */
#include "tests/cross/cmocka.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

static jmp_buf ended; /* of the test that runs */

void small_fail(const char *file, int line, const char *format, ...)
{
    va_list ap;

    printf("# %s:%d: ", file, line);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    puts("");
    longjmp(ended, 1);
}

void small_expect(int ok, const char *file, int line, const char *what)
{
    if (!ok) small_fail(file, line, "expected: %s", what);
}

void small_expect_equal(long long a, long long b, const char *file, int line, const char *what)
{
    if (a != b) small_fail(file, line, "expected: %s; found %lld and %lld", what, a, b);
}

int small_run(const struct CMUnitTest *tests, size_t n, int (*teardown)(void **state))
{
    volatile int failed = 0; /* survives longjmp() */

    printf("1..%zu\n", n);
    for (volatile size_t i = 0; i < n; i++) {
        const int end = setjmp(ended);

        if (!end) tests[i].run(&(void *){ NULL });
        failed += end;
        printf("%s %zu - %s\n", end ? "not ok" : "ok", i + 1, tests[i].name);
        fflush(stdout);
    }
    if (teardown) teardown(&(void *){ NULL });
    return failed;
}
