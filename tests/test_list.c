/* SPDX-License-Identifier: Apache-2.0 */
/* List files: what each kind of line gives, what labels mean, which line is named when one cannot be
 * used, and where relative paths begin. */
#include "base/text.h"
#include "loader/source.h"
#include "loader/source_list_parse.h"
#include "tests/loaderutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The list as "label:path;" of every sample, then "|" and the classes, each with a comma. */
static const char *shown(const dpl_list *l)
{
    static char out[4096];
    size_t at = 0;

    out[0] = 0;
    for (uint64_t i = 0; i < l->count; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%d:%s;", l->label[i],
                               l->text + l->path[i]);
    at += (size_t)snprintf(out + at, sizeof out - at, "|");
    for (uint64_t c = 0; c < l->titles.count; c++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s,", dpl_name_at(&l->titles, c));
    return out;
}

/* Parse n bytes; the text ends at an unreadable page but for the one byte that is asked for. */
static int parse(dpl_list *l, const char *text, size_t n, const char *const *classes, int n_classes,
                 dpl_text *why)
{
    char *copy = (char *)test_guarded_bytes(n + 1, 0);

    memcpy(copy, text, n);
    memset(l, 0, sizeof *l);
    return dpl_list_parse(l, copy, n, "l.txt", classes, n_classes, why);
}

static void gives_n(const char *text, size_t n, const char *const *classes, int n_classes,
                    const char *want)
{
    dpl_list l;
    dpl_text why = { "" };

    if (parse(&l, text, n, classes, n_classes, &why)) fail_msg("\"%s\": %s", text, why.s);
    assert_string_equal(shown(&l), want);
    dpl_list_fini(&l);
    test_free_all();
}

static void gives(const char *text, const char *want)
{
    gives_n(text, strlen(text), NULL, 0, want);
}

static void refuses_n(const char *text, size_t n, const char *const *classes, int n_classes,
                      const char *part)
{
    dpl_list l;
    dpl_text why = { "" };

    assert_int_equal(parse(&l, text, n, classes, n_classes, &why), DPL_EDATA);
    assert_null(l.path);
    if (!strstr(why.s, part)) fail_msg("\"%s\" does not say \"%s\"", why.s, part);
    test_free_all();
}

static void refuses(const char *text, const char *part)
{
    refuses_n(text, strlen(text), NULL, 0, part);
}

static void lines_end_with_lf_crlf_or_the_file(void **state)
{
    (void)state;
    gives("a.jpg\t0\nb.jpg\t1\n", "0:a.jpg;1:b.jpg;|0,1,");
    gives("a.jpg\t0\nb.jpg\t1", "0:a.jpg;1:b.jpg;|0,1,");
    gives("a.jpg\t0\r\nb.jpg\t1\r\n", "0:a.jpg;1:b.jpg;|0,1,");
    gives("a.jpg\t0\r\nb.jpg\t1\r", "0:a.jpg;1:b.jpg;|0,1,");
    gives("\xEF\xBB\xBF"
          "a.jpg\t0\n",
          "0:a.jpg;|0,");
    gives("a\rb.jpg\t0\n", "0:a\rb.jpg;|0,"); /* only before LF is CR part of the line's end */
}

static void empty_lines_and_comments_are_skipped(void **state)
{
    (void)state;
    gives("\n# a\t1\n\r\na.jpg\t0\n#\n\n./#b.jpg\t0\n", "0:a.jpg;0:./#b.jpg;|0,");
    refuses("", "l.txt: no pictures in it");
    refuses("\n#x\t1\n", "l.txt: no pictures in it");
}

static void paths_may_hold_anything_but_their_separators(void **state)
{
    (void)state;
    gives(" a b .jpg\tcat\n", "0: a b .jpg;|cat,");
    gives("a\tb.jpg\tcat\n", "0:a\tb.jpg;|cat,"); /* the last tab counts */
    gives("a\tb.jpg\t\n", "-1:a\tb.jpg;|");
    gives("m\xC3\xBCller/\xE7\x8C\xAB.jpg\t\xE7\x8C\xAB\n",
          "0:m\xC3\xBCller/\xE7\x8C\xAB.jpg;|\xE7\x8C\xAB,");
    gives("\xFF\xFE.jpg\t\xFF\n", "0:\xFF\xFE.jpg;|\xFF,"); /* not UTF-8 */
    gives("/a/%s%n.jpg\t0\n", "0:/a/%s%n.jpg;|0,");
    gives("a\t0\na\t1\na\t0\n", "0:a;1:a;0:a;|0,1,"); /* the same one again */
    refuses("a\t0\n\n\t1\n", "l.txt:3: no path before the tab");
    refuses_n("a\t0\nb\0c\t1\n", 10, NULL, 0, "l.txt:2: a zero byte");
}

static void long_paths_are_refused_by_line(void **state)
{
    char text[5000];
    dpl_list l;
    dpl_text why;

    (void)state;
    memset(text, 'p', sizeof text);
    memcpy(text, "a\t0\n", 4);
    memcpy(text + 4 + 4096, "\t0\n", 3);
    refuses_n(text, 4 + 4096 + 3, NULL, 0, "l.txt:2: the path is longer than 4095");
    memcpy(text + 4 + 4095, "\t0\n", 3);
    assert_int_equal(parse(&l, text, 4 + 4095 + 3, NULL, 0, &why), DPL_OK);
    assert_int_equal(strlen(l.text + l.path[1]), 4095);
    dpl_list_fini(&l);
    test_free_all();
}

static void labels_that_are_all_numbers_are_indices(void **state)
{
    (void)state;
    gives("a\t3\nb\t1\n", "3:a;1:b;|0,1,2,3,");
    gives("a\t 1 \nb\t0  \n", "1:a;0:b;|0,1,"); /* blanks around a label do not count */
    gives("a\t10\nb\t9\n", "10:a;9:b;|0,1,2,3,4,5,6,7,8,9,10,");
    refuses("a\t0\nb\t1048576\n", "l.txt:2: label 1048576: expected 0..1048575");
    refuses("a\t0\nb\t99999999999999999999\n", "l.txt:2: label 99999999999999999999: expected 0..");
}

static void other_labels_are_names_sorted_by_bytes(void **state)
{
    (void)state;
    gives("a\tdog\nb\tcat\nc\tdog\nd\tEmu\n", "2:a;1:b;2:c;0:d;|Emu,cat,dog,");
    gives("a\t10\nb\t9\nc\tx\n", "0:a;1:b;2:c;|10,9,x,"); /* one name makes all of them names */
    gives("a\t01\nb\t1\n", "0:a;1:b;|01,1,");
    gives("a\t-2\nb\t+1\n", "1:a;0:b;|+1,-2,");
    gives("a\tgreat white shark\n", "0:a;|great white shark,");
}

static void labels_may_be_missing_but_not_their_tab(void **state)
{
    (void)state;
    gives("a\t\nb\t-1\nc\t0\n", "-1:a;-1:b;0:c;|0,");
    gives("a\tx\nb\t\nc\t-1\n", "0:a;-1:b;-1:c;|x,");
    gives("a.jpg\nb c.jpg\n", "-1:a.jpg;-1:b c.jpg;|"); /* no tab anywhere: a list of paths */
    refuses("a\t0\n\nb.jpg 1\n", "l.txt:3: no tab, but line 1 has one");
    refuses("a.jpg 1\nb\t0\n", "l.txt:1: no tab, but line 2 has one");
}

static void given_classes_are_names_or_else_indices(void **state)
{
    static const char *const pets[] = { "dog", "cat", "emu" };
    static const char *const digits[] = { "1", "2", "3" };
    static const char byname[] = "a\tcat\nb\tdog\n", byindex[] = "a\t2\nb\t0\nc\t-1\n";
    static const char mixed[] = "a\tcat\nb\t0\n", beyond[] = "a\t0\n#\nb\t3\n";
    static const char unknown[] = "a\tcat\nb\tcow\n";

    (void)state;
    gives_n(byname, sizeof byname - 1, pets, 3, "1:a;0:b;|dog,cat,emu,");
    gives_n(byindex, sizeof byindex - 1, pets, 3, "2:a;0:b;-1:c;|dog,cat,emu,");
    refuses_n(mixed, sizeof mixed - 1, pets, 3, "l.txt:2: label 0 is not among the 3 classes");
    refuses_n(unknown, sizeof unknown - 1, pets, 3, "l.txt:2: label cow is not among the 3");
    refuses_n(beyond, sizeof beyond - 1, pets, 3, "l.txt:3: label 3: expected 0..2");
    gives_n("a\t1\nb\t3\n", 8, digits, 3, "0:a;2:b;|1,2,3,"); /* all are names: names they are */
    gives_n("a\t0\nb\t2\n", 8, digits, 3, "0:a;2:b;|1,2,3,"); /* 0 is none: indices */
}

static void many_labels_keep_apart(void **state)
{
    enum { N = 5000 };
    char *text = malloc(N * 32);
    size_t at = 0;
    dpl_list l = { 0 };
    dpl_text why;

    (void)state;
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, "%d.jpg\tc%05d\n", i, (i * 7919) % N);
    assert_int_equal(dpl_list_parse(&l, text, at, "l", NULL, 0, &why), DPL_OK);
    assert_int_equal(l.titles.count, N);
    for (int i = 0; i < N; i++) assert_int_equal(l.label[i], (i * 7919) % N);
    dpl_list_fini(&l);
    free(text);
}

/* --- as a source --- */

static dpl_options list_options(const char *list)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.list = list;
    return opt;
}

static void read_is(dpl_samples *s, uint64_t i, const char *want)
{
    void *buf = NULL;
    size_t cap = 0, len = 0;
    dpl_text why = { "" };

    if (s->ops->read(s, i, &buf, &cap, &len, 1000, &why)) fail_msg("%s", why.s);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(buf, want, len);
    free(buf);
}

static void relative_paths_begin_at_the_list_or_at_path(void **state)
{
    const char *root = test_tempdir(), *other = test_tempdir();
    const char *list = test_format("%s/l.txt", root);
    const char *text = test_format("a b.jpg\tx\n%s/far.jpg\ty\ngone.jpg\ty\n", other);
    dpl_options opt = list_options(list);
    char name[8192];
    void *buf = NULL;
    size_t cap = 0, len;
    dpl_samples *s;
    dpl_text why = { "" };

    (void)state;
    test_write_file(list, text, strlen(text));
    test_write_file(test_format("%s/a b.jpg", root), "root", 4);
    test_write_file(test_format("%s/a b.jpg", other), "other", 5);
    test_write_file(test_format("%s/far.jpg", other), "far", 3);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_OK);
    read_is(s, 0, "root");
    read_is(s, 1, "far");
    assert_string_equal(s->ops->name(s, 0, name, sizeof name), test_format("%s/a b.jpg", root));
    assert_string_equal(s->ops->name(s, 1, name, sizeof name), test_format("%s/far.jpg", other));
    assert_int_equal(s->ops->read(s, 2, &buf, &cap, &len, 1000, &why), DPL_EIO);
    assert_int_equal(s->classes, 2);
    assert_int_equal(s->class_counts[1], 2);
    dpl_samples_close(&s);
    opt.path = test_format("%s//", other);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_OK);
    read_is(s, 0, "other");
    dpl_samples_close(&s);
    assert_int_equal(chdir(root), 0);
    opt = list_options("l.txt");
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_OK);
    read_is(s, 0, "root");
    dpl_samples_close(&s);
    free(buf);
}

static void lists_that_cannot_be_read_are_named(void **state)
{
    const char *root = test_tempdir(), *list = test_format("%s/l.txt", root);
    dpl_options opt = list_options(list);
    dpl_samples *s;
    dpl_text why = { "" };

    (void)state;
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EIO);
    assert_non_null(strstr(why.s, test_format("list %s: No such file", list)));
    test_write_file(list, "", 0);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EDATA);
    test_write_file(list, "a\t0\nb\n", 6);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EDATA);
    assert_non_null(strstr(why.s, test_format("%s:2: no tab", list)));
    test_write_file(list, "a\t0\n", 4);
    opt.path = test_format("%s/none", root);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EIO);
    assert_non_null(strstr(why.s, "/none: No such file"));
}

static void senseless_combinations_are_refused(void **state)
{
    static const dpl_source source = { NULL, NULL, NULL, NULL, NULL };
    dpl_options opt = list_options("l.txt");
    dpl_loader *l;

    (void)state;
    opt.source = &source;
    assert_int_equal(dpl_open(&l, &opt), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(NULL), "list and source are both set"));
    opt = list_options("");
    assert_int_equal(dpl_open(&l, &opt), DPL_EINVAL);
    opt = list_options("l.txt");
    opt.index = "i";
    assert_int_equal(dpl_open(&l, &opt), DPL_EINVAL);
    assert_non_null(strstr(dpl_error_text(NULL), "only a folder is indexed, not a list"));
}

/* The same pictures from a list that repeats the folder's order are the same batches. */
static void list_and_folder_give_the_same_epoch(void **state)
{
    enum { CLASSES = 3, FILES = 7, N = CLASSES * FILES };
    const char *root = test_tempdir(), *there = test_tempdir();
    char list[512];
    test_entry a[N], b[N];
    char text[4096];
    size_t at = 0;
    dpl_options opt;

    (void)state;
    snprintf(list, sizeof list, "%s/l.txt", there);
    test_make_tree(root, CLASSES, FILES);
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < FILES; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "c%d/%04d.jpg\tc%d\n", c, i, c);
    test_write_file(list, text, at);
    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.batch = 4;
    opt.width = opt.height = 32;
    opt.epochs = 1;
    assert_int_equal(test_trace(&opt, 0, a, N), N);
    opt.list = list;
    assert_int_equal(test_trace(&opt, 0, b, N), N);
    assert_memory_equal(a, b, sizeof a);
}

static void list_memory_is_small(void **state)
{
    enum { N = 100000 };
    const char *list = test_format("%s/l.txt", test_tempdir());
    char *text = malloc((size_t)N * 64);
    dpl_options opt = list_options(list);
    size_t at = 0;
    dpl_samples *s;
    dpl_text why;

    (void)state;
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, "train/n%08d/n%08d_%d.JPEG\t%d\n", i % 1000, i % 1000, i,
                              i % 1000);
    test_write_file(list, text, at);
    free(text);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_OK);
    assert_int_equal(s->count, N);
    assert_true(s->index_bytes < (size_t)N * 100);
    dpl_samples_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_lf_crlf_or_the_file),
        cmocka_unit_test(empty_lines_and_comments_are_skipped),
        cmocka_unit_test(paths_may_hold_anything_but_their_separators),
        cmocka_unit_test(long_paths_are_refused_by_line),
        cmocka_unit_test(labels_that_are_all_numbers_are_indices),
        cmocka_unit_test(other_labels_are_names_sorted_by_bytes),
        cmocka_unit_test(labels_may_be_missing_but_not_their_tab),
        cmocka_unit_test(given_classes_are_names_or_else_indices),
        cmocka_unit_test(many_labels_keep_apart),
        cmocka_unit_test(relative_paths_begin_at_the_list_or_at_path),
        cmocka_unit_test(lists_that_cannot_be_read_are_named),
        cmocka_unit_test(senseless_combinations_are_refused),
        cmocka_unit_test(list_and_folder_give_the_same_epoch),
        cmocka_unit_test(list_memory_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
