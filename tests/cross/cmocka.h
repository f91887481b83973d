/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tests use of cmocka, for architectures for which it is not installed; see
 * cmocka_small.c. Found in place of the library's header when tests are built with a cross compiler. */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <stddef.h>
#include <stdint.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

/* End the test: failed with printf's text, or failed unless ok. */
_Noreturn void small_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void small_expect(int ok, const char *file, int line, const char *what);
void small_expect_equal(long long a, long long b, const char *file, int line, const char *what);
/* TAP on standard output; at last `teardown` unless NULL. @return how many tests failed */
int small_run(const struct CMUnitTest *tests, size_t n, int (*teardown)(void **state));

#define cmocka_unit_test(function)                                                                 \
    {                                                                                              \
#        function, function                                                                        \
    }
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    small_run(tests, sizeof(tests) / sizeof *(tests), teardown)
/* every variant is there on the architectures that tests are cross-built for */
#define skip()                     small_fail(__FILE__, __LINE__, "skipped: the variant was not chosen")
#define fail_msg(...)              small_fail(__FILE__, __LINE__, __VA_ARGS__)
#define assert_true(v)             small_expect(!!(v), __FILE__, __LINE__, #v)
#define assert_false(v)            small_expect(!(v), __FILE__, __LINE__, "not " #v)
#define assert_non_null(p)         small_expect((p) != NULL, __FILE__, __LINE__, #p " is not NULL")
#define assert_ptr_equal(a, b)     small_expect((a) == (b), __FILE__, __LINE__, #a " is " #b)
#define assert_ptr_not_equal(a, b) small_expect((a) != (b), __FILE__, __LINE__, #a " is not " #b)
#define assert_int_equal(a, b)                                                                     \
    small_expect_equal((long long)(a), (long long)(b), __FILE__, __LINE__, #a " is " #b)
#define assert_int_not_equal(a, b)                                                                 \
    small_expect((long long)(a) != (long long)(b), __FILE__, __LINE__, #a " is not " #b)
#define assert_in_range(v, low, high)                                                              \
    small_expect((v) >= (low) && (v) <= (high), __FILE__, __LINE__, #v " in " #low " to " #high)
#define assert_memory_equal(a, b, n)                                                               \
    small_expect(!memcmp(a, b, n), __FILE__, __LINE__, #a " holds the same as " #b)
#define assert_memory_not_equal(a, b, n)                                                           \
    small_expect(!!memcmp(a, b, n), __FILE__, __LINE__, #a " differs from " #b)

#endif
