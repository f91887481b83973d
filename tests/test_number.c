/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes and times against exact fractions (tests/scripts/make_numbers.py), and against a
 * grammar for whatever else is typed. */
#include "base/number.h"
#include "base/optparse.h"
#include "tests/testutil.h"

#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sizes_are_exact(void **state)
{
    FILE *f = fopen("tests/data/number_sizes.txt", "r");
    char text[128], want[64], got[64];
    int n = 0;

    (void)state;
    assert_non_null(f);
    for (; fscanf(f, "%127s %63s", text, want) == 2; n++) {
        uint64_t v = 0;
        snprintf(got, sizeof got, "-");
        if (!dpl_parse_size(text, &v)) snprintf(got, sizeof got, "%" PRIu64, v);
        if (strcmp(got, want)) fail_msg("size %s: %s instead of %s", text, got, want);
    }
    fclose(f);
    assert_true(n > 400);
}

static void times_are_exact(void **state)
{
    FILE *f = fopen("tests/data/number_times.txt", "r");
    char text[128], want[64], got[64];
    int n = 0;

    (void)state;
    assert_non_null(f);
    for (; fscanf(f, "%127s %63s", text, want) == 2; n++) {
        int64_t v = 0;
        snprintf(got, sizeof got, "-");
        if (!dpl_parse_time_ns(text, &v)) snprintf(got, sizeof got, "%" PRId64, v);
        if (strcmp(got, want)) fail_msg("time %s: %s instead of %s", text, got, want);
    }
    fclose(f);
    assert_true(n > 400);
}

static void documented_examples_hold(void **state)
{
    uint64_t size;
    int64_t ns;

    (void)state;
    assert_int_equal(dpl_parse_size("4k", &size), 0);
    assert_int_equal(size, 4000);
    assert_int_equal(dpl_parse_size("2GiB", &size), 0);
    assert_true(size == UINT64_C(2147483648));
    assert_int_equal(dpl_parse_size("1.5M", &size), 0);
    assert_int_equal(size, 1500000);
    assert_int_equal(dpl_parse_time_ns("38ms", &ns), 0);
    assert_int_equal(ns, 38000000);
    assert_int_equal(dpl_parse_time_ns("1.5s", &ns), 0);
    assert_int_equal(ns, 1500000000);
    assert_int_equal(dpl_parse_time_ns("2h", &ns), 0);
    assert_true(ns == INT64_C(7200000000000));
    assert_int_equal(dpl_parse_time_ns("0.25", &ns), 0);
    assert_int_equal(ns, 250000000);
}

/* Random letters of the alphabet that sizes and times are written in: taken exactly when the grammar
 * takes it. Few and small digits, so that nothing overflows. */
static void only_the_grammar_is_taken(void **state)
{
    static const char alphabet[] = "0123.. kKmMiIbBusnhe-+,xGT";
    regex_t size, half_byte, time, half_ns;

    (void)state;
    assert_false(regcomp(&size, "^[0-9]+([.][0-9]+)?([kmgt]i?)?b?$", REG_EXTENDED | REG_ICASE));
    assert_false(regcomp(&half_byte, "^[0-9]+[.][0-9]+b?$", REG_EXTENDED | REG_ICASE));
    assert_false(regcomp(&time, "^[0-9]+([.][0-9]+)?(ns|us|ms|s|m|h)?$", REG_EXTENDED));
    assert_false(regcomp(&half_ns, "[.].*ns$", REG_EXTENDED));
    for (uint64_t seed = 0; seed < 20000; seed++) {
        const uint8_t *r = test_guarded_bytes(7, seed);
        char text[8] = "";
        uint64_t v;
        int64_t ns;
        for (int i = 0; i < r[0] % 7; i++) text[i] = alphabet[r[i + 1] % (sizeof alphabet - 1)];
        if (r[0] & 64) text[0] = '1';
        assert_int_equal(!dpl_parse_size(text, &v), !regexec(&size, text, 0, NULL, 0) &&
                                                        regexec(&half_byte, text, 0, NULL, 0));
        assert_int_equal(!dpl_parse_time_ns(text, &ns),
                         !regexec(&time, text, 0, NULL, 0) && regexec(&half_ns, text, 0, NULL, 0));
        test_free_all();
    }
    regfree(&size);
    regfree(&half_byte);
    regfree(&time);
    regfree(&half_ns);
}

static void whole_numbers_keep_their_limits(void **state)
{
    static const char *const bad[] = {
        "", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "--1", "ten"
    };
    int64_t i;
    uint64_t u;

    (void)state;
    assert_int_equal(dpl_parse_int("-9223372036854775808", &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(dpl_parse_int("9223372036854775807", &i), 0);
    assert_true(i == INT64_MAX);
    assert_int_equal(dpl_parse_int("-0", &i), 0);
    assert_true(i == 0);
    assert_int_equal(dpl_parse_int("-17", &i), 0);
    assert_true(i == -17);
    assert_int_equal(dpl_parse_int("9223372036854775808", &i), -1);
    assert_int_equal(dpl_parse_int("-9223372036854775809", &i), -1);
    assert_int_equal(dpl_parse_uint("18446744073709551615", &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(dpl_parse_uint("18446744073709551616", &u), -1);
    assert_int_equal(dpl_parse_uint("-1", &u), -1);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_int_equal(dpl_parse_int(bad[k], &i), -1);
        assert_int_equal(dpl_parse_uint(bad[k], &u), -1);
    }
}

static void doubles_are_finite_decimals(void **state)
{
    static const char *const bad[] = { "",    "-",  ".",  "nan", "inf", "0x1p3", "1e999",
                                       "1,5", " 1", "1 ", "1e",  "--1", "1.2.3" };
    double v;

    (void)state;
    assert_int_equal(dpl_parse_double("-1.25e2", &v), 0);
    assert_true(v == -125);
    assert_int_equal(dpl_parse_double(".5", &v), 0);
    assert_true(v == 0.5);
    assert_int_equal(dpl_parse_double("1e-400", &v), 0); /* as small as that is zero */
    assert_true(v == 0);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_int_equal(dpl_parse_double(bad[k], &v), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(times_are_exact),
        cmocka_unit_test(documented_examples_hold),
        cmocka_unit_test(only_the_grammar_is_taken),
        cmocka_unit_test(whole_numbers_keep_their_limits),
        cmocka_unit_test(doubles_are_finite_decimals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
