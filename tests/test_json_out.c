/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer against Python's json module (tests/scripts/make_json.py) and a JSON reader. */
#include "base/json_out.h"
#include "base/number.h"
#include "tests/testutil.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sink {
    dpl_json j;
    FILE *f;
    char *text;
    size_t len;
} sink;

static void open_sink(sink *s)
{
    memset(s, 0, sizeof *s);
    s->f = open_memstream(&s->text, &s->len);
    assert_non_null(s->f);
    dpl_json_begin(&s->j, s->f);
}

/* Compares and frees. */
static void assert_written(sink *s, const char *want)
{
    assert_int_equal(fclose(s->f), 0);
    assert_string_equal(s->text, want);
    free(s->text);
}

static void commas_and_nesting_are_right(void **state)
{
    sink s;

    (void)state;
    open_sink(&s);
    dpl_json_object(&s.j, NULL);
    dpl_json_int(&s.j, "a", -3);
    dpl_json_array(&s.j, "b");
    dpl_json_end(&s.j);
    dpl_json_array(&s.j, "c");
    dpl_json_bool(&s.j, NULL, 1);
    dpl_json_object(&s.j, NULL);
    dpl_json_end(&s.j);
    dpl_json_object(&s.j, NULL);
    dpl_json_string(&s.j, "d", NULL);
    dpl_json_bool(&s.j, "e\"", 0);
    dpl_json_end(&s.j);
    dpl_json_end(&s.j);
    dpl_json_number(&s.j, "f", 0.5);
    dpl_json_end(&s.j);
    assert_int_equal(s.j.depth, 0);
    assert_written(&s,
                   "{\"a\":-3,\"b\":[],\"c\":[true,{},{\"d\":null,\"e\\\"\":false}],\"f\":0.5}");
}

static void integers_keep_all_digits(void **state)
{
    sink s;

    (void)state;
    open_sink(&s);
    dpl_json_array(&s.j, NULL);
    dpl_json_int(&s.j, NULL, INT64_MIN);
    dpl_json_int(&s.j, NULL, INT64_MAX);
    dpl_json_uint(&s.j, NULL, UINT64_MAX);
    dpl_json_end(&s.j);
    assert_written(&s, "[-9223372036854775808,9223372036854775807,18446744073709551615]");
}

static void numbers_that_json_lacks_become_null(void **state)
{
    sink s;

    (void)state;
    open_sink(&s);
    dpl_json_array(&s.j, NULL);
    dpl_json_number(&s.j, NULL, NAN);
    dpl_json_number(&s.j, NULL, INFINITY);
    dpl_json_number(&s.j, NULL, -INFINITY);
    dpl_json_end(&s.j);
    assert_written(&s, "[null,null,null]");
}

static void deepest_nesting_works(void **state)
{
    char want[2 * DPL_JSON_DEPTH + 1] = "";
    sink s;

    (void)state;
    open_sink(&s);
    for (int i = 0; i < DPL_JSON_DEPTH; i++) dpl_json_array(&s.j, NULL);
    for (int i = 0; i < DPL_JSON_DEPTH; i++) dpl_json_end(&s.j);
    memset(want, '[', DPL_JSON_DEPTH);
    memset(want + DPL_JSON_DEPTH, ']', DPL_JSON_DEPTH);
    assert_written(&s, want);
}

static size_t from_hex(const char *hex, char *out)
{
    size_t n = 0;

    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) out[n] = (char)byte;
    out[n] = 0;
    return n;
}

static void strings_are_what_python_writes(void **state)
{
    FILE *f = fopen("tests/data/json_strings.txt", "r");
    char in_hex[256], out_hex[1024], in[128], want[512];
    int n = 0;

    (void)state;
    assert_non_null(f);
    for (; fscanf(f, "%255s %1023s", in_hex, out_hex) == 2; n++) {
        sink s;
        from_hex(in_hex, in);
        from_hex(out_hex, want);
        open_sink(&s);
        dpl_json_string(&s.j, NULL, in);
        assert_written(&s, want);
    }
    fclose(f);
    assert_true(n > 500);
}

/* Digits of the number without zeros at either end. */
static int significant_digits(const char *s)
{
    char digits[64];
    int n = 0, first = 0;

    for (; *s && *s != 'e'; s++) {
        if (*s >= '0' && *s <= '9') digits[n++] = *s;
    }
    while (first < n && digits[first] == '0') first++;
    while (n > first && digits[n - 1] == '0') n--;
    return n - first;
}

static void numbers_are_as_short_as_python_writes_them(void **state)
{
    FILE *f = fopen("tests/data/json_numbers.txt", "r");
    char hex[64], shortest[64], text[DPL_NUMBER_MAX];
    int n = 0;

    (void)state;
    assert_non_null(f);
    for (; fscanf(f, "%63s %63s", hex, shortest) == 2; n++) {
        const double v = strtod(hex, NULL);
        double back;
        assert_true(dpl_number_text(v, text, sizeof text) < (int)sizeof text);
        assert_int_equal(dpl_parse_double(text, &back), 0);
        assert_memory_equal(&back, &v, sizeof v);
        assert_int_equal(significant_digits(text), significant_digits(shortest));
    }
    fclose(f);
    assert_true(n > 400);
}

static void whole_numbers_look_like_that(void **state)
{
    char text[DPL_NUMBER_MAX];

    (void)state;
    dpl_number_text(100, text, sizeof text);
    assert_string_equal(text, "100");
    dpl_number_text(178956970, text, sizeof text);
    assert_string_equal(text, "178956970");
    dpl_number_text(0.1, text, sizeof text);
    assert_string_equal(text, "0.1");
    dpl_number_text(-1e-7, text, sizeof text);
    assert_string_equal(text, "-1e-07");
}

/* A locale with a comma, made here, because few machines have one. */
static int use_comma(void)
{
    static const char source[] = "comment_char %\nescape_char /\nLC_NUMERIC\n"
                                 "decimal_point \"<U002C>\"\nthousands_sep \"\"\ngrouping -1\n"
                                 "END LC_NUMERIC\n";
    const char *root = test_tempdir(), *path = test_format("%s/source", root);

    test_write_file(path, source, sizeof source - 1);
    setenv("LOCPATH", root, 1);
    if (system(test_format("localedef -c -i %s %s/comma >%s/log 2>&1", path, root, root)) == -1) {
        return 0;
    }
    return setlocale(LC_NUMERIC, "comma") != NULL;
}

static void decimal_point_stays_in_other_locales(void **state)
{
    char text[DPL_NUMBER_MAX], tiny[DPL_NUMBER_MAX], check[8];
    double back = 0;
    int err;

    (void)state;
    if (!use_comma()) skip(); /* no localedef here */
    snprintf(check, sizeof check, "%.1f", 0.5);
    dpl_number_text(1234.5, text, sizeof text);
    dpl_number_text(-2.5e-300, tiny, sizeof tiny);
    err = dpl_parse_double("0.25", &back);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(check, "0,5");
    assert_string_equal(text, "1234.5");
    assert_string_equal(tiny, "-2.5e-300");
    assert_int_equal(err, 0);
    assert_true(back == 0.25);
}

/* Any sequence of calls that the header allows gives a text that another library accepts. */
static void random_documents_are_valid(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const uint8_t *r = test_guarded_bytes(300, seed);
        json_t *root;
        sink s;
        open_sink(&s);
        dpl_json_array(&s.j, NULL);
        for (int i = 0; i < 100; i++) {
            const int in_object = s.j.open[s.j.depth - 1] == '{';
            const char *key = in_object ? test_format("k%d", i) : NULL;
            const char junk[3] = { (char)r[3 * i + 1], (char)r[3 * i + 2], 0 };
            const int kind = r[3 * i] % 6;
            if (kind == 0 && s.j.depth < DPL_JSON_DEPTH)
                dpl_json_object(&s.j, key);
            else if (kind == 1 && s.j.depth < DPL_JSON_DEPTH)
                dpl_json_array(&s.j, key);
            else if (kind == 2 && s.j.depth > 1)
                dpl_json_end(&s.j);
            else if (kind == 3)
                dpl_json_number(&s.j, key, ldexp(r[3 * i + 1], r[3 * i + 2] - 128));
            else
                dpl_json_string(&s.j, key, junk);
        }
        while (s.j.depth) dpl_json_end(&s.j);
        fclose(s.f);
        root = json_loads(s.text, 0, NULL);
        assert_non_null(root);
        json_decref(root);
        free(s.text);
        test_free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_nesting_are_right),
        cmocka_unit_test(integers_keep_all_digits),
        cmocka_unit_test(numbers_that_json_lacks_become_null),
        cmocka_unit_test(deepest_nesting_works),
        cmocka_unit_test(strings_are_what_python_writes),
        cmocka_unit_test(numbers_are_as_short_as_python_writes_them),
        cmocka_unit_test(whole_numbers_look_like_that),
        cmocka_unit_test(decimal_point_stays_in_other_locales),
        cmocka_unit_test(random_documents_are_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
