/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files, making folders. open, stat and read go through functions of this file, which count
 * the calls and let some of them fail or change the file. */
#include "base/files.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int opens, reads;
    int fail_reads, fail_opens; /* so many fail with error */
    int error;
    size_t most;               /* bytes that one read gives at most, 0 = all */
    void (*before_read)(void); /* once */
} calls;

int openat(int dirfd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    va_start(ap, flags);
    if (flags & O_CREAT) mode = va_arg(ap, mode_t);
    va_end(ap);
    calls.opens++;
    if (calls.fail_opens > 0) {
        calls.fail_opens--;
        errno = calls.error;
        return -1;
    }
    return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

ssize_t read(int fd, void *buf, size_t n)
{
    void (*before)(void) = calls.before_read;

    calls.reads++;
    calls.before_read = NULL;
    if (before) before();
    if (calls.fail_reads > 0) {
        calls.fail_reads--;
        errno = calls.error;
        return -1;
    }
    return syscall(SYS_read, fd, buf, calls.most && n > calls.most ? calls.most : n);
}

typedef struct reader {
    void *buf;
    size_t cap, len;
    dpl_text why;
} reader;

static int fetch(reader *r, const char *path, uint64_t limit)
{
    calls.opens = calls.reads = 0;
    strcpy(r->why.s, "unset");
    return dpl_read_file(AT_FDCWD, path, &r->buf, &r->cap, &r->len, limit, &r->why);
}

static int fresh(void **state)
{
    (void)state;
    memset(&calls, 0, sizeof calls);
    return 0;
}

static void all_bytes_by_one_open_and_one_read(void **state)
{
    static const size_t sizes[] = { 1, 2, 4095, 4096, 65535, 65536, 65537, 1000003 };
    const char *root = test_tempdir();
    reader r = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *data = test_guarded_bytes(sizes[i], i);
        const char *path = test_format("%s/f", root);
        test_write_file(path, data, sizes[i]);
        assert_int_equal(fetch(&r, path, UINT64_MAX), DPL_OK);
        assert_int_equal(calls.opens, 1);
        assert_int_equal(calls.reads, 1);
        assert_int_equal(r.len, sizes[i]);
        assert_memory_equal(r.buf, data, sizes[i]);
        test_free_all();
    }
    free(r.buf);
}

static void buffer_is_kept_for_smaller_files(void **state)
{
    const char *root = test_tempdir(), *big = test_format("%s/big", root);
    const char *small = test_format("%s/small", root);
    uint8_t *data = test_guarded_bytes(100000, 1);
    reader r = { 0 };
    void *kept;

    (void)state;
    test_write_file(big, data, 100000);
    test_write_file(small, data, 10);
    assert_int_equal(fetch(&r, big, 100000), DPL_OK);
    kept = r.buf;
    assert_int_equal(fetch(&r, small, 100000), DPL_OK);
    assert_ptr_equal(r.buf, kept);
    assert_int_equal(r.len, 10);
    free(r.buf);
    test_free_all();
}

static void path_is_relative_to_dirfd(void **state)
{
    const char *root = test_tempdir();
    const int dirfd = open(root, O_RDONLY | O_DIRECTORY);
    reader r = { 0 };

    (void)state;
    test_write_file(test_format("%s/f", root), "abc", 3);
    assert_int_equal(dpl_read_file(dirfd, "f", &r.buf, &r.cap, &r.len, 3, NULL), DPL_OK);
    assert_int_equal(r.len, 3);
    close(dirfd);
    free(r.buf);
}

static void short_reads_are_continued(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    uint8_t *data = test_guarded_bytes(1000, 1);
    reader r = { 0 };

    (void)state;
    test_write_file(path, data, 1000);
    calls.most = 300;
    assert_int_equal(fetch(&r, path, UINT64_MAX), DPL_OK);
    assert_int_equal(calls.reads, 4);
    assert_int_equal(r.len, 1000);
    assert_memory_equal(r.buf, data, 1000);
    free(r.buf);
    test_free_all();
}

static void passing_errors_are_retried_twice(void **state)
{
    static const int errors[] = { EIO, ESTALE, EINTR };
    const char *path = test_format("%s/f", test_tempdir());
    reader r = { 0 };

    (void)state;
    test_write_file(path, "abc", 3);
    for (int i = 0; i < 3; i++) {
        calls.error = errors[i];
        calls.fail_reads = 2;
        assert_int_equal(fetch(&r, path, 10), DPL_OK);
        assert_int_equal(calls.opens, 3);
        calls.fail_opens = 2;
        assert_int_equal(fetch(&r, path, 10), DPL_OK);
        assert_int_equal(calls.opens, 3);
        assert_memory_equal(r.buf, "abc", 3);
        calls.fail_reads = 3;
        assert_int_equal(fetch(&r, path, 10), DPL_EIO);
        assert_string_equal(r.why.s, strerror(errors[i]));
        assert_int_equal(r.len, 0);
        assert_int_equal(calls.opens, 3);
    }
    free(r.buf);
}

static void lasting_errors_are_not_retried(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    reader r = { 0 };

    (void)state;
    assert_int_equal(fetch(&r, path, 10), DPL_EIO);
    assert_string_equal(r.why.s, "No such file or directory");
    assert_int_equal(calls.opens, 1);
    test_write_file(path, "abc", 3);
    calls.error = EACCES;
    calls.fail_opens = 1;
    assert_int_equal(fetch(&r, path, 10), DPL_EIO);
    assert_string_equal(r.why.s, "Permission denied");
    calls.error = EMFILE;
    calls.fail_opens = 1;
    assert_int_equal(fetch(&r, path, 10), DPL_EIO);
    assert_string_equal(r.why.s, "too many open files (ulimit -n raises the limit)");
    free(r.buf);
}

static const char *changing;

static void grow_it(void)
{
    test_write_file(changing, "abcdef", 6);
}

static void shrink_it(void)
{
    test_write_file(changing, "ab", 2);
}

static void keep_growing(void)
{
    static char text[16] = "0123456789";
    static size_t n = 4;

    test_write_file(changing, text, n++);
    calls.before_read = keep_growing;
}

static void file_that_changes_is_read_anew(void **state)
{
    reader r = { 0 };

    (void)state;
    changing = test_format("%s/f", test_tempdir());
    test_write_file(changing, "abc", 3);
    calls.before_read = grow_it;
    assert_int_equal(fetch(&r, changing, 10), DPL_OK);
    assert_int_equal(r.len, 6);
    assert_memory_equal(r.buf, "abcdef", 6);
    calls.before_read = shrink_it;
    assert_int_equal(fetch(&r, changing, 10), DPL_OK);
    assert_int_equal(r.len, 2);
    assert_memory_equal(r.buf, "ab", 2);
    calls.before_read = keep_growing;
    assert_int_equal(fetch(&r, changing, 10), DPL_EIO);
    assert_string_equal(r.why.s, "the file changes while it is read");
    free(r.buf);
}

static void only_regular_files_are_read(void **state)
{
    const char *root = test_tempdir(), *fifo = test_format("%s/fifo.jpg", root);
    const char *link = test_format("%s/link.jpg", root), *gone = test_format("%s/gone", root);
    reader r = { 0 };

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(10); /* a blocked open ends the test */
    assert_int_equal(fetch(&r, fifo, 10), DPL_EDATA);
    assert_string_equal(r.why.s, "not a regular file");
    assert_int_equal(fetch(&r, "/dev/zero", 10), DPL_EDATA);
    assert_int_equal(calls.reads, 0);
    alarm(0);
    assert_int_equal(fetch(&r, root, 10), DPL_EDATA);
    assert_string_equal(r.why.s, "not a regular file: a folder");
    assert_int_equal(symlink(gone, link), 0);
    assert_int_equal(fetch(&r, link, 10), DPL_EIO);
    test_write_file(gone, "abc", 3);
    assert_int_equal(fetch(&r, link, 10), DPL_OK);
    free(r.buf);
}

static void empty_and_too_large_files_are_refused(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    reader r = { 0 };

    (void)state;
    test_write_file(path, "", 0);
    assert_int_equal(fetch(&r, path, 10), DPL_EDATA);
    assert_string_equal(r.why.s, "empty file");
    test_write_file(path, "01234567890", 11);
    assert_int_equal(fetch(&r, path, 11), DPL_OK);
    assert_int_equal(fetch(&r, path, 10), DPL_EDATA);
    assert_string_equal(r.why.s, "11 bytes, more than the limit of 10");
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* sparse: refused before any memory */
    assert_int_equal(fetch(&r, path, 1 << 30), DPL_EDATA);
    assert_true(r.cap <= 65536);
    free(r.buf);
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void no_descriptor_stays_open(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);
    const int before = count_fds();
    reader r = { 0 };

    (void)state;
    test_write_file(path, "abc", 3);
    assert_int_equal(fetch(&r, path, 10), DPL_OK);
    assert_int_equal(fetch(&r, path, 2), DPL_EDATA);
    assert_int_equal(fetch(&r, root, 2), DPL_EDATA);
    calls.error = EIO;
    calls.fail_reads = 9;
    assert_int_equal(fetch(&r, path, 10), DPL_EIO);
    assert_int_equal(count_fds(), before);
    free(r.buf);
}

static void folders_are_made_with_parents(void **state)
{
    const char *root = test_tempdir(), *deep = test_format("%s/a/b//c/", root);
    struct stat st;
    dpl_text why = { "" };

    (void)state;
    assert_int_equal(dpl_make_folder(deep, &why), DPL_OK);
    assert_int_equal(stat(test_format("%s/a/b/c", root), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(dpl_make_folder(deep, &why), DPL_OK); /* is there: fine */
    assert_int_equal(dpl_make_folder("/", &why), DPL_OK);
    assert_int_equal(dpl_make_folder("", &why), DPL_EIO);
}

static void folder_that_cannot_be_made_is_named(void **state)
{
    const char *root = test_tempdir(), *file = test_format("%s/file", root);
    dpl_text why = { "" };

    (void)state;
    test_write_file(file, "x", 1);
    assert_int_equal(dpl_make_folder(file, &why), DPL_EIO);
    assert_string_equal(why.s, test_format("%s: cannot create the folder: Not a directory", file));
    assert_int_equal(dpl_make_folder(test_format("%s/a/b", file), &why), DPL_EIO);
    assert_string_equal(why.s, test_format("%s: cannot create the folder: Not a directory", file));
}

static void paths_are_joined_by_one_slash(void **state)
{
    static const char *const cases[][3] = {
        { "a", "b", "a/b" },
        { "a/", "b", "a/b" },
        { "/", "b", "/b" },
        { "", "b", "b" },
    };

    (void)state;
    for (int i = 0; i < 4; i++) {
        char *path = dpl_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_bytes_by_one_open_and_one_read, fresh),
        cmocka_unit_test_setup(buffer_is_kept_for_smaller_files, fresh),
        cmocka_unit_test_setup(path_is_relative_to_dirfd, fresh),
        cmocka_unit_test_setup(short_reads_are_continued, fresh),
        cmocka_unit_test_setup(passing_errors_are_retried_twice, fresh),
        cmocka_unit_test_setup(lasting_errors_are_not_retried, fresh),
        cmocka_unit_test_setup(file_that_changes_is_read_anew, fresh),
        cmocka_unit_test_setup(only_regular_files_are_read, fresh),
        cmocka_unit_test_setup(empty_and_too_large_files_are_refused, fresh),
        cmocka_unit_test_setup(no_descriptor_stays_open, fresh),
        cmocka_unit_test_setup(folders_are_made_with_parents, fresh),
        cmocka_unit_test_setup(folder_that_cannot_be_made_is_named, fresh),
        cmocka_unit_test_setup(paths_are_joined_by_one_slash, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
