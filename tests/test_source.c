/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: what is listed of a folder tree, in what order, with which labels; the validation split;
 * the caller's own functions. */
#include "base/text.h"
#include "loader/source.h"
#include "loader/source_walk.h"
#include "tests/loaderutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dpl_options folder_options(const char *path)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.path = path;
    return opt;
}

static void put(const char *root, const char *name)
{
    char path[8192], *slash;

    snprintf(path, sizeof path, "%s/%s", root, name);
    slash = strrchr(path, '/');
    *slash = 0;
    test_make_folder(path);
    *slash = '/';
    test_write_file(path, "x", 1);
}

/* The listing as "label:name below root;" of every sample. */
static const char *listing(const dpl_samples *s, const char *root)
{
    static char out[8192];
    size_t at = 0;

    out[0] = 0;
    for (uint64_t k = 0; k < s->count; k++) {
        const uint64_t i = dpl_samples_index(s, k);
        char buf[DPL_PATH_BYTES];
        const char *name = s->ops->name(s, i, buf, sizeof buf);

        assert_int_equal(strncmp(name, root, strlen(root)), 0);
        at += (size_t)snprintf(out + at, sizeof out - at, "%d:%s;", s->ops->label(s, i),
                               name + strlen(root) + 1);
    }
    return out;
}

static dpl_samples *open_ok(const dpl_options *opt)
{
    dpl_samples *s;
    dpl_text why;

    if (dpl_samples_open(&s, opt, &why)) fail_msg("open: %s", why.s);
    return s;
}

static void refused(const dpl_options *opt, int status, const char *part)
{
    dpl_samples *s;
    dpl_text why = { "" };

    assert_int_equal(dpl_samples_open(&s, opt, &why), status);
    assert_null(s);
    if (!strstr(why.s, part)) fail_msg("\"%s\" does not say \"%s\"", why.s, part);
}

static void classes_and_files_are_sorted_by_bytes(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt =
        folder_options(test_format("%s//", root)); /* a slash at the end is harmless */
    dpl_samples *s;

    (void)state;
    put(root, "10/b.jpg");
    put(root, "10/a.JPEG");
    put(root, "2/x.png");
    put(root, "Z/1.webp");
    put(root, "a/sub/deep/3.JPG");
    put(root, "a/sub.jpg");
    put(root, "a/Y.gif");
    s = open_ok(&opt);
    assert_string_equal(listing(s, root), "0:10/a.JPEG;0:10/b.jpg;1:2/x.png;2:Z/1.webp;3:a/Y.gif;"
                                          "3:a/sub.jpg;3:a/sub/deep/3.JPG;");
    assert_int_equal(s->classes, 4);
    assert_string_equal(s->class_names[1], "2");
    assert_int_equal(s->class_counts[0], 2);
    assert_int_equal(s->class_counts[3], 3);
    assert_int_equal(s->ignored_files, 0);
    dpl_samples_close(&s);
    assert_null(s);
}

static void hidden_and_junk_are_silent_others_are_counted(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);
    dpl_samples *s;

    (void)state;
    put(root, "a/1.jpg");
    put(root, "a/.hidden.jpg");
    put(root, "a/.DS_Store");
    put(root, "a/Thumbs.db");
    put(root, "a/desktop.ini");
    put(root, ".ipynb_checkpoints/2.jpg");
    put(root, "__MACOSX/a/1.jpg");
    s = open_ok(&opt);
    assert_string_equal(listing(s, root), "0:a/1.jpg;");
    assert_int_equal(s->ignored_files, 0);
    assert_null(s->ignored_example);
    dpl_samples_close(&s);
    put(root, "a/notes.txt");
    put(root, "a/jpg");
    put(root, "README");
    s = open_ok(&opt);
    assert_string_equal(listing(s, root), "0:a/1.jpg;");
    assert_int_equal(s->ignored_files, 3);
    assert_string_equal(s->ignored_example, test_format("%s/README", root));
    dpl_samples_close(&s);
}

static void names_may_be_odd(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);
    char name[300], path[600], buf[DPL_PATH_BYTES];
    dpl_samples *s;
    void *bytes = NULL;
    size_t cap = 0, len = 0;
    dpl_text why;

    (void)state;
    memset(name, 'n', 255);
    strcpy(name + 251, ".jpg");
    snprintf(path, sizeof path, "w/%s", name);
    put(root, path);
    put(root, "w/a b.jpg");
    put(root, "w/1421_0.jpeg?itok=x.jpg");
    put(root, "w/m\xC3\xBCller 1.jpg");
    put(root, "w/\xFF\xFE.jpg"); /* not UTF-8 */
    put(root, "w/%s%n.jpg");
    put(root, "\xE7\x8C\xAB/line\nbreak.jpg");
    s = open_ok(&opt);
    assert_int_equal(s->count, 7);
    assert_int_equal(s->classes, 2);
    for (uint64_t i = 0; i < s->count; i++) {
        assert_int_equal(s->ops->read(s, i, &bytes, &cap, &len, 1000, &why), DPL_OK);
        assert_int_equal(len, 1);
        assert_int_equal(access(s->ops->name(s, i, buf, sizeof buf), R_OK), 0);
    }
    free(bytes);
    dpl_samples_close(&s);
}

static void links_are_followed_and_loops_end(void **state)
{
    const char *root = test_tempdir(), *other = test_tempdir();
    dpl_options opt = folder_options(root);
    void *bytes = NULL;
    size_t cap = 0, len = 0;
    dpl_samples *s;
    dpl_text why;

    (void)state;
    put(other, "far/1.jpg");
    put(other, "2.jpg");
    put(root, "a/0.jpg");
    assert_int_equal(symlink(test_format("%s/far", other), test_format("%s/b", root)), 0);
    assert_int_equal(symlink(test_format("%s/2.jpg", other), test_format("%s/a/2.jpg", root)), 0);
    assert_int_equal(symlink("nowhere", test_format("%s/a/gone.jpg", root)), 0);
    assert_int_equal(symlink("..", test_format("%s/a/loop", root)), 0);
    assert_int_equal(symlink(".", test_format("%s/a/self", root)), 0);
    s = open_ok(&opt);
    assert_string_equal(listing(s, root), "0:a/0.jpg;0:a/2.jpg;0:a/gone.jpg;1:b/1.jpg;");
    for (uint64_t i = 0; i < s->count; i++) {
        char buf[DPL_PATH_BYTES];
        const char *name = s->ops->name(s, i, buf, sizeof buf);
        const int err = s->ops->read(s, i, &bytes, &cap, &len, 1000, &why);

        assert_int_equal(err, strstr(name, "gone") ? DPL_EIO : DPL_OK);
    }
    free(bytes);
    dpl_samples_close(&s);
    assert_int_equal(symlink("nowhere", test_format("%s/c", root)), 0);
    refused(&opt, DPL_EIO, "dangling link");
}

static void bad_trees_are_refused_by_name(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);

    (void)state;
    refused(&opt, DPL_EDATA, "jpg, jpeg, png, webp");
    put(root, "loose.jpg");
    refused(&opt, DPL_EDATA, "1 pictures but no class folders");
    put(root, "a/1.jpg");
    test_make_folder(test_format("%s/zzz", root));
    refused(&opt, DPL_EDATA, "/zzz: this class folder holds no pictures");
    put(root, "zzz/1.txt");
    refused(&opt, DPL_EDATA, "/zzz: this class folder holds no pictures");
    opt.path = test_format("%s/missing", root);
    refused(&opt, DPL_EIO, "/missing: No such file or directory");
    opt.path = test_format("%s/loose.jpg", root);
    refused(&opt, DPL_EIO, "Not a directory");
}

static void unreadable_class_is_refused(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);

    const uid_t me = geteuid();

    (void)state;
    put(root, "a/1.jpg");
    put(root, "b/1.jpg");
    assert_int_equal(chmod(test_format("%s/b", root), 0), 0);
    assert_int_equal(chmod(root, 0755), 0);
    if (!me && seteuid(65534)) skip(); /* root reads everything: be somebody else for a moment */
    refused(&opt, DPL_EIO, "/b/: Permission denied");
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(chmod(test_format("%s/b", root), 0755), 0);
}

static void labels_of_validation_come_from_the_given_classes(void **state)
{
    static const char *const classes[] = { "c", "a", "b" }; /* label order need not be sorted */
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);
    dpl_samples *s;

    (void)state;
    put(root, "a/1.jpg");
    put(root, "c/2.jpg");
    opt.classes = classes;
    opt.n_classes = 3;
    s = open_ok(&opt);
    assert_string_equal(listing(s, root), "0:c/2.jpg;1:a/1.jpg;");
    assert_int_equal(s->class_counts[2], 0);
    dpl_samples_close(&s);
    opt.n_classes = 2;
    s = open_ok(&opt);
    dpl_samples_close(&s);
    put(root, "b/3.jpg");
    refused(&opt, DPL_EDATA, "/b: this class is not among the 2 classes");
}

/* 80 bytes a sample with names as ImageNet has them. */
static void index_is_compact(void **state)
{
    const char *root = test_tempdir();
    dpl_options opt = folder_options(root);
    dpl_samples *s;

    (void)state;
    for (int i = 0; i < 2000; i++)
        put(root, test_format("n01440764_with_a_long_name/n01440764_%05d.JPEG", i));
    s = open_ok(&opt);
    assert_int_equal(s->count, 2000);
    assert_true(s->index_bytes >= 2000 * 21);
    assert_true(s->index_bytes < 2000 * 40);
    dpl_samples_close(&s);
}

enum { SPLIT = 103 };

static uint64_t take(const dpl_options *opt, uint8_t seen[SPLIT], uint64_t counts[7])
{
    dpl_samples *s = open_ok(opt);
    const uint64_t n = s->count;

    for (uint64_t k = 0; k < n; k++) {
        assert_true(dpl_samples_index(s, k) < SPLIT);
        seen[dpl_samples_index(s, k)]++;
    }
    memcpy(counts, s->class_counts, 7 * sizeof *counts);
    dpl_samples_close(&s);
    return n;
}

static void val_split_is_disjoint_complete_and_per_class(void **state)
{
    static const double shares[] = { 0.001, 0.1, 0.25, 0.5, 0.9 };
    test_memory m;

    (void)state;
    test_memory_gray(&m, SPLIT); /* classes of 15 (labels 0..4) and 14 samples */
    for (size_t k = 0; k < 5; k++) {
        uint8_t train[SPLIT] = { 0 }, val[SPLIT] = { 0 }, other[SPLIT] = { 0 };
        uint64_t in_train[7], in_val[7];
        dpl_options opt = test_loader_options(&m);

        opt.val_split = shares[k];
        opt.subset = DPL_SUBSET_TRAIN;
        assert_true(take(&opt, train, in_train) > 0);
        opt.subset = DPL_SUBSET_VAL;
        take(&opt, val, in_val);
        for (int i = 0; i < SPLIT; i++) assert_int_equal(train[i] + val[i], 1);
        for (int c = 0; c < 7; c++) {
            const double n = c < 5 ? 15 : 14, want = n * shares[k];

            assert_int_equal(in_train[c] + in_val[c], (uint64_t)n);
            assert_true((double)in_val[c] <= want + 0.5 || in_val[c] == 1);
            assert_true((double)in_val[c] >= want - 0.5 && in_val[c] >= 1);
            assert_true(in_train[c] >= 1);
        }
        take(&opt, other, in_val); /* the same again */
        assert_memory_equal(other, val, sizeof val);
        opt.seed = 1;
        memset(other, 0, sizeof other);
        take(&opt, other, in_val);
        if (k > 0) assert_memory_not_equal(other, val, sizeof val);
    }
    test_memory_free(&m);
}

/* --- the caller's own functions --- */

typedef struct own {
    uint64_t count;
    int64_t len;
    int32_t label;
    int grows;
} own;

static uint64_t own_count(void *user)
{
    return ((own *)user)->count;
}

static int64_t own_read(void *user, uint64_t i, void *buf, size_t cap)
{
    own *o = user;

    if (o->grows) return (int64_t)cap + 1;
    if (o->len > 0) memset(buf, (int)i + 1, (size_t)o->len < cap ? (size_t)o->len : cap);
    return o->len;
}

static int32_t own_label(void *user, uint64_t i)
{
    return i == 2 ? ((own *)user)->label : -1;
}

static void own_source_reads_with_growing_buffers(void **state)
{
    own o = { .count = 3, .len = 1 << 20, .label = 4 };
    const dpl_source src = { &o, own_count, own_read, own_label, NULL };
    dpl_options opt = folder_options(NULL);
    size_t cap = 0, len = 0;
    uint8_t *bytes;
    void *buf = NULL;
    char name[64];
    dpl_samples *s;
    dpl_text why;

    (void)state;
    opt.source = &src;
    s = open_ok(&opt);
    assert_int_equal(s->classes, 5);
    assert_int_equal(s->class_counts[4], 1);
    assert_int_equal(s->ops->label(s, 0), -1);
    assert_string_equal(s->ops->name(s, 1, name, sizeof name), "sample 1");
    assert_int_equal(s->ops->read(s, 1, &buf, &cap, &len, 1 << 20, &why), DPL_OK);
    assert_int_equal(len, 1 << 20);
    bytes = buf;
    assert_int_equal(bytes[0], 2);
    assert_int_equal(bytes[len - 1], 2);
    assert_int_equal(s->ops->read(s, 1, &buf, &cap, &len, 1000, &why), DPL_EDATA);
    assert_non_null(strstr(why.s, "1048576 bytes, the limit is 1000"));
    o.len = -5;
    assert_int_equal(s->ops->read(s, 1, &buf, &cap, &len, 1000, &why), DPL_EIO);
    o.grows = 1;
    assert_int_equal(s->ops->read(s, 1, &buf, &cap, &len, 1 << 30, &why), DPL_EDATA);
    free(buf);
    dpl_samples_close(&s);
}

static void own_source_is_checked(void **state)
{
    static const char *const classes[] = { "a", "b" };
    own o = { .count = 3, .len = 1, .label = 2 };
    dpl_source src = { &o, own_count, own_read, own_label, NULL };
    dpl_options opt = folder_options(NULL);

    (void)state;
    opt.source = &src;
    opt.classes = classes;
    opt.n_classes = 2;
    refused(&opt, DPL_EDATA, "sample 2 has label 2: expected -1..1");
    o.label = -2;
    refused(&opt, DPL_EDATA, "sample 2 has label -2");
    o.count = 0;
    refused(&opt, DPL_EDATA, "0 samples");
    src.read = NULL;
    refused(&opt, DPL_EINVAL, "must be set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_files_are_sorted_by_bytes),
        cmocka_unit_test(hidden_and_junk_are_silent_others_are_counted),
        cmocka_unit_test(names_may_be_odd),
        cmocka_unit_test(links_are_followed_and_loops_end),
        cmocka_unit_test(bad_trees_are_refused_by_name),
        cmocka_unit_test(unreadable_class_is_refused),
        cmocka_unit_test(labels_of_validation_come_from_the_given_classes),
        cmocka_unit_test(index_is_compact),
        cmocka_unit_test(val_split_is_disjoint_complete_and_per_class),
        cmocka_unit_test(own_source_reads_with_growing_buffers),
        cmocka_unit_test(own_source_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
