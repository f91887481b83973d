/* SPDX-License-Identifier: Apache-2.0 */
/* What really goes wrong around picture folders: names, structure, access and change under way, labels,
 * and what a run does about a bad picture. As in test_fault_cases.c. */
#include "base/clock.h"
#include "tests/fault_set.h"
#include "tests/loaderutil.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const tool_jpeg_spec usual = { .quality = 85 };

static fault_file picture(void)
{
    return fault_jpeg(&usual, 40, 30, 1);
}

/* The loader's classes in label order, "a b ", or the text of a refusal. */
static const char *classes_of(const dpl_options *opt)
{
    static char text[4096];
    dpl_loader *l;
    dpl_info info;

    text[0] = 0;
    if (dpl_open(&l, opt)) return dpl_error_text(NULL);
    dpl_info_get(l, &info);
    for (int c = 0; c < info.classes; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", info.class_names[c]);
    dpl_close(&l);
    return text;
}

static void expect_classes(const fault_set *s, const char *want)
{
    const dpl_options opt = fault_options(s);

    assert_string_equal(classes_of(&opt), want);
}

/* A whole run stops before its first batch, within two seconds, and says this. */
static void expect_stop(const fault_set *s, const char *path, const char *text)
{
    const int64_t start = dpl_now_ns();
    dpl_options opt = fault_options(s);
    const char *out, *err, *why;
    int code;

    opt.path = path;
    why = classes_of(&opt);
    if (!strstr(why, text)) fail_msg("\"%s\" does not say \"%s\"", why, text);
    assert_true(dpl_now_ns() - start < 2000000000);
    code = fault_run(s, &out, &err, "dptrain --epochs 1 -o %s/none '%s'", test_tempdir(), path);
    if (code < 0) return;
    if (code != 3 || !strstr(err, text)) fail_msg("exit %d: %s", code, err);
}

/* --- A9: names --- */

/* A9-01, A9-02, A9-04, A9-05: any bytes are a name, in any locale. */
static void a9_names_may_be_odd(void **state)
{
    static const char *const paths[] = {
        "a/m\xc3\xbcller 1.jpg",
        "a/a b.jpg",
        "b/1421_0.jpeg?itok=x.jpg",
        "\xe7\x8c\xab/1.jpg",
        "\xc3\xa9t\xc3\xa9/%s%n.jpg",
        "b/\xff\xfe.jpg",
        "a/X.JPG",
        "a/X.Jpeg",
        "b/X.JPEG",
        "b/X.PNG",
    };
    char longest[300];
    const char *out, *err;
    fault_set s;

    (void)state;
    fault_begin(&s);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        fault_add(&s, paths[i], picture(), FAULT_OK, NULL);
    memset(longest, 'n', 255);
    strcpy(longest + 251, ".jpg");
    fault_add(&s, test_format("a/%s", longest), picture(), FAULT_OK, NULL);
    fault_add(&s, "\xe7\x8c\xab/bad \xc3\xa9.jpg", fault_gif(), FAULT_BAD, "GIF");
    for (int i = 0; i < 2; i++) {
        const char *locale = i ? "C.UTF-8" : "C";

        assert_non_null(setlocale(LC_ALL, locale));
        expect_classes(&s, "a b \xc3\xa9t\xc3\xa9 \xe7\x8c\xab ");
        if (fault_run(&s, &out, &err, "LC_ALL=%s dpload check .", locale) < 0) continue;
        assert_non_null(strstr(out, "\xe7\x8c\xab/bad \xc3\xa9.jpg\tGIF"));
        assert_non_null(
            strstr(out, "14 pictures: 13 decoded in full (0 with a warning), 1 bad; 0 other"));
    }
    setlocale(LC_ALL, "C");
    fault_judge(&s);
}

/* A9-02: a list with CRLF, a blank last line and names with blanks; a line that is of no use is
 * named by its number. */
static void a9_lists_may_come_from_elsewhere(void **state)
{
    static const char list[] = "a/a b.jpg\ta\r\nb/1421_0.jpeg?itok=x.jpg\tb\r\na/good.jpg\ta\r\n"
                               "a/none.jpg\ta\r\n\r\n";
    static const char flawed[] = "a/good.jpg\t0\r\n\r\nb/good.jpg\r\n";
    fault_set s;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/a b.jpg", picture(), FAULT_OK, NULL);
    fault_add(&s, "b/1421_0.jpeg?itok=x.jpg", picture(), FAULT_OK, NULL);
    test_write_file(test_format("%s/list", s.root), list, sizeof list - 1);
    opt = fault_options(&s);
    opt.list = test_format("%s/list", s.root);
    opt.shuffle = 0;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(b.planned, 4);
    assert_int_equal(b.n, 3);
    for (int k = 0; k < 3; k++) assert_int_equal(b.part[0].labels[k], k == 1);
    assert_int_equal(dpl_bad_get(l, 0, &bad), DPL_OK);
    assert_non_null(strstr(bad.path, "a/none.jpg"));
    assert_non_null(strstr(bad.reason, "o such file"));
    dpl_close(&l);
    test_write_file(test_format("%s/flawed", s.root), flawed, sizeof flawed - 1);
    opt.list = test_format("%s/flawed", s.root);
    assert_int_equal(dpl_open(&l, &opt), DPL_EDATA);
    assert_non_null(strstr(dpl_error_text(NULL), "/flawed:3: "));
    fault_free_all();
}

/* A picture below `levels` nested folders of 214 bytes in class "a". */
static void make_deep(const fault_set *s, int levels)
{
    const fault_file f = picture();
    char name[215];
    int fd, out;

    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_true((fd = open(test_format("%s/a", s->root), O_RDONLY | O_DIRECTORY)) >= 0);
    for (int i = 0; i < levels; i++) {
        const int parent = fd;

        assert_true(!mkdirat(parent, name, 0777) || errno == EEXIST);
        assert_true((fd = openat(parent, name, O_RDONLY | O_DIRECTORY)) >= 0);
        close(parent);
    }
    assert_true((out = openat(fd, "x.jpg", O_WRONLY | O_CREAT, 0666)) >= 0);
    assert_int_equal(write(out, f.bytes, f.len), (ssize_t)f.len);
    close(out);
    close(fd);
}

/* A9-05: 19 such folders can be reached by a relative path, not by an absolute one; 25 by none. Then
 * the file is not left out in silence. */
static void a9_paths_near_the_limit(void **state)
{
    const char *out, *err, *text;
    dpl_options opt;
    fault_set s;
    int code;

    (void)state;
    fault_begin(&s);
    opt = fault_options(&s);
    make_deep(&s, 19);
    code = fault_run(&s, &out, &err, "dpload check .");
    if (code >= 0) {
        assert_int_equal(code, 0);
        assert_non_null(strstr(out, "3 pictures: 3 decoded in full ("));
    }
    text = classes_of(&opt);
    assert_true(!strcmp(text, "a b ") || strstr(text, "too long"));
    make_deep(&s, 25);
    code = fault_run(&s, &out, &err, "dpload check .");
    if (code >= 0 && !(code == 3 && strstr(err, "too long") && strstr(err, "/a/dddd")) &&
        !(code == 0 && strstr(out, "4 pictures")))
        fail_msg("exit %d\n%s%s", code, out, err);
    fault_free_all();
}

/* --- A10: folder structure --- */

/* A10-01, A10-03, A10-04 */
static void a10_what_is_a_class_and_what_is_not(void **state)
{
    const char *other = test_tempdir(), *parent = test_tempdir(), *out, *err;
    const fault_file f = picture();
    fault_set s;

    (void)state;
    fault_begin(&s);
    test_make_folder(test_format("%s/.ipynb_checkpoints", s.root));
    expect_classes(&s, "a b ");
    test_write_file(test_format("%s/.ipynb_checkpoints/1.jpg", s.root), f.bytes, f.len);
    test_make_folder(test_format("%s/.git", s.root));
    expect_classes(&s, "a b ");
    fault_add(&s, "a/sub/deep/x.jpg", f, FAULT_OK, NULL); /* its class is "a" */
    test_make_folder(test_format("%s/linked", other));
    test_write_file(test_format("%s/linked/y.jpg", other), f.bytes, f.len);
    assert_int_equal(symlink(test_format("%s/linked", other), test_format("%s/c", s.root)), 0);
    fault_expect(&s, "c/y.jpg", FAULT_OK, NULL);
    assert_int_equal(
        symlink(test_format("%s/linked/y.jpg", other), test_format("%s/a/link.jpg", s.root)), 0);
    fault_expect(&s, "a/link.jpg", FAULT_OK, NULL);
    assert_int_equal(symlink("nowhere", test_format("%s/b/dangling.jpg", s.root)), 0);
    fault_expect(&s, "b/dangling.jpg", FAULT_BAD, "o such file");
    assert_int_equal(symlink("loop.jpg", test_format("%s/b/loop.jpg", s.root)), 0);
    fault_expect(&s, "b/loop.jpg", FAULT_BAD, "ymbolic links");
    assert_int_equal(mkfifo(test_format("%s/b/pipe.jpg", s.root), 0666), 0);
    fault_expect(&s, "b/pipe.jpg", FAULT_BAD, "not a regular file");
    assert_int_equal(symlink("/dev/zero", test_format("%s/b/zero.jpg", s.root)), 0);
    fault_expect(&s, "b/zero.jpg", FAULT_BAD, "not a regular file");
    test_make_folder(test_format("%s/a/folder.jpg", s.root)); /* no picture, an empty folder */
    assert_int_equal(symlink(s.root, test_format("%s/root", parent)), 0);
    if (fault_run(&s, &out, &err, "dpload check -v %s", parent) >= 0)
        assert_non_null(strstr(err, "pictures in 1 classes")); /* a wrong root shows at once */
    fault_judge(&s);
    expect_classes(&s, "a b c ");
}

/* A10-02, A10-08 */
static void a10_nothing_to_train_on_stops(void **state)
{
    static const char accepted[] = "accepted: jpg, jpeg, png, webp";
    const char *empty = test_tempdir(), *texts = test_tempdir();
    fault_set s;

    (void)state;
    fault_begin(&s);
    test_make_folder(test_format("%s/zzz", s.root));
    expect_stop(&s, s.root, "/zzz: this class folder holds no pictures");
    expect_stop(&s, empty, accepted);
    test_write_file(test_format("%s/1.txt", texts), "x", 1);
    expect_stop(&s, texts, accepted);
    expect_stop(&s, test_format("%s/none", s.root), "No such file or directory");
    fault_free_all();
}

/* --- A11: access, change under way --- */

static struct {
    int fail; /* atomic: reads that will fail; -1 = all */
    int error;
} reads;

/* In place of the C library's: what the loader reads. */
ssize_t read(int fd, void *buf, size_t n)
{
    int left = __atomic_load_n(&reads.fail, __ATOMIC_SEQ_CST);

    if (left > 0) left = __atomic_fetch_sub(&reads.fail, 1, __ATOMIC_SEQ_CST);
    if (left) {
        errno = reads.error;
        return -1;
    }
    return syscall(SYS_read, fd, buf, n);
}

/* A11-01: as somebody who may not read it. */
static void a11_unreadable_is_named(void **state)
{
    const uid_t me = geteuid();
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;
    fault_set s;

    (void)state;
    fault_begin(&s);
    fault_add(&s, "a/secret.jpg", picture(), FAULT_BAD, "ermission denied");
    assert_int_equal(chmod(test_format("%s/a/secret.jpg", s.root), 0), 0);
    assert_int_equal(chmod(s.root, 0755), 0);
    if (!me && seteuid(65534)) skip(); /* root reads everything */
    opt = fault_options(&s);
    opt.shuffle = 0;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.part[0].labels[1], 1);
    assert_int_equal(dpl_bad_get(l, 0, &bad), DPL_OK);
    assert_non_null(strstr(bad.path, "a/secret.jpg"));
    assert_non_null(strstr(bad.reason, "ermission denied"));
    dpl_close(&l);
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(chmod(test_format("%s/b", s.root), 0), 0);
    if (!me) assert_int_equal(seteuid(65534), 0);
    assert_int_equal(dpl_open(&l, &opt), DPL_EIO); /* a whole class would vanish */
    assert_non_null(strstr(dpl_error_text(NULL), "/b/: Permission denied"));
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(chmod(test_format("%s/b", s.root), 0755), 0);
    fault_free_all();
}

/* A11-02: three files of 40 go after the first batch. */
static void a11_deleted_files_are_bad_and_the_others_right(void **state)
{
    const char *root = test_tempdir();
    int n = 0, refused = 0;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;

    (void)state;
    test_make_tree(root, 2, 20);
    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.batch = 4;
    opt.prefetch = 1;
    opt.workers = 2;
    opt.width = opt.height = 16;
    opt.shuffle = 0;
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    for (int k = 0; k < 10; k++) {
        assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
        for (int i = 0; !k && i < 3; i++)
            assert_int_equal(unlink(test_format("%s/c1/%04d.jpg", root, 13 + i)), 0);
        n += b.n;
        assert_int_equal(b.n, k == 8 ? 1 : 4); /* ids 32 .. 35, of which 33 .. 35 are gone */
        for (int i = 0; i < b.n; i++) {
            assert_int_equal(b.part[0].ids[i], 4 * k + i);
            assert_int_equal(b.part[0].labels[i], k >= 5);
        }
        dpl_release(l, &b, NULL);
    }
    assert_int_equal(dpl_next(l, &b, -1), DPL_EOF);
    assert_int_equal(n, 37);
    for (; !dpl_bad_get(l, (uint64_t)refused, &bad); refused++)
        assert_non_null(strstr(bad.reason, "o such file"));
    assert_int_equal(refused, 3);
    dpl_close(&l);
}

/* A11-04: storage that fails once is asked again; storage that fails for good ends the run at the cap,
 * with the reason. */
static void a11_failing_storage(void **state)
{
    static const int errors[] = { EIO, ESTALE };
    const char *root = test_tempdir();
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    int err;

    (void)state;
    test_make_tree(root, 2, 10);
    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.batch = 4;
    opt.workers = 3;
    opt.width = opt.height = 16;
    opt.epochs = 1;
    for (size_t i = 0; i < 2; i++) {
        int n = 0;

        reads.error = errors[i];
        for (int all = 0; all < 2; all++) {
            __atomic_store_n(&reads.fail, all ? -1 : 2, __ATOMIC_SEQ_CST);
            assert_int_equal(dpl_open(&l, &opt), DPL_OK);
            while (!(err = dpl_next(l, &b, -1))) {
                if (!all) n += b.n;
                dpl_release(l, &b, NULL);
            }
            __atomic_store_n(&reads.fail, 0, __ATOMIC_SEQ_CST);
            assert_int_equal(err, all ? DPL_EDATA : DPL_EOF);
            if (all) {
                assert_non_null(strstr(dpl_error_text(l), "bad samples, the cap is 10"));
                assert_non_null(strstr(dpl_error_text(l), strerror(errors[i])));
            }
            dpl_close(&l);
        }
        assert_int_equal(n, 20);
    }
}

/* --- A12: labels --- */

/* A12-01, A12-02, A12-03: numbers follow the bytes of the names, whatever made the folders first and
 * whatever the locale; validation takes those of training. */
static void a12_labels_do_not_move(void **state)
{
    static const char *const names[] = { "0", "1", "10", "11", "2",        "3",       "9",
                                         "B", "I", "a",  "i",  "\xc4\xb0", "\xc4\xb1" };
    static const char *const locales[] = { "C", "C.UTF-8", "en_US.UTF-8", "tr_TR.UTF-8" };
    static const char want[] = "0 1 10 11 2 3 9 B I a i \xc4\xb0 \xc4\xb1 ";
    enum { N = sizeof names / sizeof *names };
    const fault_file f = picture();
    dpl_options opt;
    dpl_info info;
    dpl_loader *l;

    (void)state;
    dpl_options_init(&opt, sizeof opt);
    for (int backwards = 0; backwards < 2; backwards++) {
        opt.path = test_tempdir();
        for (int i = 0; i < N; i++) {
            const char *name = names[backwards ? N - 1 - i : i];

            test_make_folder(test_format("%s/%s", opt.path, name));
            test_write_file(test_format("%s/%s/1.jpg", opt.path, name), f.bytes, f.len);
        }
        for (size_t i = 0; i < 4; i++)
            if (setlocale(LC_ALL, locales[i])) assert_string_equal(classes_of(&opt), want);
        setlocale(LC_ALL, "C");
    }
    assert_int_equal(unlink(test_format("%s/10/1.jpg", opt.path)), 0);
    assert_int_equal(rmdir(test_format("%s/10", opt.path)), 0);
    opt.classes = names;
    opt.n_classes = N;
    assert_string_equal(classes_of(&opt), want);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_info_get(l, &info);
    assert_int_equal(info.samples, N - 1);
    for (int c = 0; c < N; c++) assert_int_equal(info.class_counts[c], c != 2);
    dpl_close(&l);
    fault_free_all();
}

/* --- what a run does about it --- */

/* With max_bad 0 the first bad picture ends the run: at the same sample, in the same words, for any
 * number of workers, within seconds, and not with exit code 0. */
static void a_bad_picture_ends_a_run_that_takes_none(void **state)
{
    char first[1024] = "";
    const char *out, *err;
    fault_set s;
    int code;

    (void)state;
    fault_begin(&s);
    for (int i = 0; i < 20; i++)
        fault_add(&s, test_format("a/%02d.jpg", i), picture(), FAULT_OK, NULL);
    fault_add(&s, "a/11x.jpg", fault_cut(picture(), 60), FAULT_BAD, "rows missing");
    fault_add(&s, "b/1.jpg", fault_gif(), FAULT_BAD, "GIF");
    for (int workers = 1; workers <= 8; workers *= 2) {
        const int64_t start = dpl_now_ns();
        dpl_options opt = fault_options(&s);
        dpl_loader *l;
        dpl_batch b;
        int end;

        opt.workers = workers;
        opt.max_bad = 0;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        while (!(end = dpl_next(l, &b, -1))) dpl_release(l, &b, NULL);
        assert_int_equal(end, DPL_EDATA);
        if (!*first) snprintf(first, sizeof first, "%s", dpl_error_text(l));
        assert_string_equal(dpl_error_text(l), first);
        assert_true(strstr(first, "a/11x.jpg: rows missing") || strstr(first, "b/1.jpg: GIF"));
        dpl_close(&l);
        assert_true(dpl_now_ns() - start < 5000000000);
    }
    code = fault_run(&s, &out, &err,
                     "dptrain -a tinynet --size 32 -b 8 --epochs 1 --max-bad 0 -o %s/out .",
                     test_tempdir());
    if (code >= 0) {
        if (code != 3) fail_msg("exit %d\n%s%s", code, out, err);
        assert_true(strstr(err, "a/11x.jpg: rows missing") || strstr(err, "b/1.jpg: GIF"));
    }
    fault_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a9_names_may_be_odd),
        cmocka_unit_test(a9_lists_may_come_from_elsewhere),
        cmocka_unit_test(a9_paths_near_the_limit),
        cmocka_unit_test(a10_what_is_a_class_and_what_is_not),
        cmocka_unit_test(a10_nothing_to_train_on_stops),
        cmocka_unit_test(a11_unreadable_is_named),
        cmocka_unit_test(a11_deleted_files_are_bad_and_the_others_right),
        cmocka_unit_test(a11_failing_storage),
        cmocka_unit_test(a12_labels_do_not_move),
        cmocka_unit_test(a_bad_picture_ends_a_run_that_takes_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
