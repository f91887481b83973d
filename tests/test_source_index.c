/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: the same samples as a plain listing, whatever changed in the tree. */
#include "base/text.h"
#include "loader/source.h"
#include "tests/indexutil.h"
#include "tests/loaderutil.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREES = 9 };

/* Made before the first test, so that one wait is enough for their folders to have settled. */
static char tree[TREES][256], outside[TREES][256], files[256];

static int make_trees(void **state)
{
    (void)state;
    snprintf(files, sizeof files, "%s", test_tempdir());
    for (int k = 0; k < TREES; k++) {
        snprintf(tree[k], sizeof tree[k], "%s", test_tempdir());
        snprintf(outside[k], sizeof outside[k], "%s", test_tempdir());
        test_index_tree(tree[k], outside[k]);
    }
    test_index_settle();
    return 0;
}

static void index_gives_what_listing_gives(void **state)
{
    char index[512];
    dpl_options opt;
    dpl_samples *s;
    void *buf = NULL;
    size_t cap = 0, len;
    dpl_text why;

    (void)state;
    snprintf(index, sizeof index, "%s/equal", files);
    test_index_written(tree[0], index, "No such file");
    test_index_used(tree[0], index);
    opt = test_index_options(test_format("%s//", tree[0]), index);
    s = test_index_open(&opt);
    assert_int_equal(s->total, 9);
    assert_int_equal(s->ignored_files, 2);
    assert_string_equal(s->ignored_example, test_format("%s/README", tree[0]));
    for (uint64_t i = 0; i < s->total; i++)
        assert_int_equal(s->ops->read(s, i, &buf, &cap, &len, 10, &why), DPL_OK);
    dpl_samples_close(&s);
    free(buf);
}

static void classes_of_the_caller_choose_the_order(void **state)
{
    static const char *const classes[] = { "z", "none", "q", "m\xC3\xBCl", "a" };
    static char a[1 << 16], b[1 << 16];
    char index[512];
    dpl_options opt = test_index_options(tree[1], NULL);
    dpl_samples *s;

    (void)state;
    snprintf(index, sizeof index, "%s/classes", files);
    opt.classes = classes;
    opt.n_classes = 5;
    s = test_index_open(&opt);
    test_index_describe(s, a, sizeof a);
    dpl_samples_close(&s);
    test_index_written(tree[1], index,
                       "No such file"); /* without classes: they are no part of the index */
    opt.index = index;
    s = test_index_open(&opt);
    assert_int_equal(s->index_use, DPL_INDEX_USED);
    test_index_describe(s, b, sizeof b);
    dpl_samples_close(&s);
    assert_string_equal(a, b);
}

static void threads_do_not_matter(void **state)
{
    static char first[1 << 16], other[1 << 16];
    const char *root = test_tempdir();

    (void)state;
    for (int c = 0; c < 40; c++)
        for (int i = 0; i <= c % 5; i++)
            test_index_put(root, test_format("c%d/s%d/%d.jpg", c, i % 2, i));
    test_index_put(root, "c31/x.txt");
    test_index_put(root, "c9/y.txt");
    for (int threads = 1; threads <= 8; threads++) {
        dpl_options opt = test_index_options(root, NULL);
        dpl_samples *s;

        opt.workers = threads;
        s = test_index_open(&opt);
        test_index_describe(s, threads == 1 ? first : other, sizeof first);
        assert_string_equal(s->ignored_example, test_format("%s/c31/x.txt", root));
        dpl_samples_close(&s);
        if (threads > 1) assert_string_equal(first, other);
    }
}

/* Folders too deep in two classes: the first class is named, and no thread is left behind. */
static void the_first_fault_is_told(void **state)
{
    const char *root = test_tempdir();
    char deep[512] = "";

    (void)state;
    for (int k = 0; k < 70; k++) strcat(deep, "/d");
    for (int c = 0; c < 30; c++) test_index_put(root, test_format("c%02d/1.jpg", c));
    test_make_folder(test_format("%s/c11%s", root, deep));
    test_make_folder(test_format("%s/c29%s", root, deep));
    for (int k = 0; k < 20; k++) {
        dpl_options opt = test_index_options(root, NULL);
        dpl_samples *s;
        dpl_text why = { "" };

        opt.workers = 1 + k % 4;
        assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EDATA);
        assert_null(s);
        assert_non_null(strstr(why.s, "c11/d"));
    }
}

/* --- changes of the tree --- */

static void add_file(int k)
{
    test_index_put(tree[k], "a/1.jpg");
}

static void remove_file(int k)
{
    assert_int_equal(unlink(test_format("%s/a/sub.jpg", tree[k])), 0);
}

static void rename_file(int k)
{
    const char *from = test_format("%s/a/sub/deep/1.jpg", tree[k]);

    assert_int_equal(rename(from, test_format("%s/a/sub/deep/0.jpg", tree[k])), 0);
}

static void rename_class(int k)
{
    assert_int_equal(rename(test_format("%s/a", tree[k]), test_format("%s/b", tree[k])), 0);
}

static void add_class(int k)
{
    test_index_put(tree[k], "new/1.jpg");
}

static void add_behind_link(int k)
{
    test_index_put(outside[k], "far/in/3.jpg");
}

/* Programs that copy trees set a folder's time back after filling it. */
static void add_and_set_time_back(int k)
{
    const char *folder = test_format("%s/z", tree[k]);
    struct stat st;

    assert_int_equal(stat(folder, &st), 0);
    test_index_put(tree[k], "z/new.jpg");
    assert_int_equal(utimensat(AT_FDCWD, folder, (struct timespec[]){ st.st_atim, st.st_mtim }, 0),
                     0);
}

static void every_change_is_noticed(void **state)
{
    static const struct {
        void (*change)(int k);
        const char *says;
    } kinds[] = {
        { add_file, ": a/ changed;" },
        { remove_file, ": a/ changed;" },
        { rename_file, ": a/sub/deep/ changed;" },
        { rename_class, ": . changed;" },
        { add_class, ": . changed;" },
        { add_behind_link, ": q/in/ changed;" },
        { add_and_set_time_back, ": z/ changed;" },
    };

    (void)state;
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++) {
        char index[512];

        snprintf(index, sizeof index, "%s/change%d", files, k);
        test_index_written(tree[2 + k], index, "No such file");
        test_index_used(tree[2 + k], index);
        kinds[k].change(2 + k);
        test_index_written(tree[2 + k], index, kinds[k].says);
    }
}

/* A change right after the listing may leave the folder's time as it was: fresh folders are listed
 * once more. */
static void fresh_folders_are_not_trusted(void **state)
{
    const char *root = test_tempdir();
    char index[512];

    (void)state;
    snprintf(index, sizeof index, "%s/fresh", files);
    test_index_put(root, "a/1.jpg");
    test_index_written(root, index, "No such file");
    test_index_written(root, index, "or just before");
}

static void loader_tells_what_became_of_the_index(void **state)
{
    enum { N = 12 };
    char root[256], index[512];
    test_entry a[N], b[N];
    dpl_options opt;
    dpl_loader *l;
    dpl_info info;

    (void)state;
    snprintf(root, sizeof root, "%s", test_tempdir());
    snprintf(index, sizeof index, "%s/loader", files);
    test_make_tree(root, 3, 4);
    opt = test_index_options(root, NULL);
    opt.batch = 5;
    opt.width = opt.height = 32;
    opt.epochs = 1;
    assert_int_equal(test_trace(&opt, 0, a, N), N);
    opt.index = index;
    assert_int_equal(test_trace(&opt, 0, b, N), N);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_info_get(l, &info);
    assert_int_equal(info.index_use, DPL_INDEX_WRITTEN); /* the tree is fresh */
    assert_non_null(strstr(info.index_text, "or just before; all folders were listed"));
    dpl_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_gives_what_listing_gives),
        cmocka_unit_test(classes_of_the_caller_choose_the_order),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(the_first_fault_is_told),
        cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(fresh_folders_are_not_trusted),
        cmocka_unit_test(loader_tells_what_became_of_the_index),
    };

    return cmocka_run_group_tests(tests, make_trees, NULL);
}
