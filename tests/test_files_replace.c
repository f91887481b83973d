/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing files: whatever fails, and wherever the process is killed, the old file or the new one
 * is there. fsync and rename go through functions of this file. */
#include "base/files.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 77 };

/* What was called, one letter each: 's' fsync of a file, 'd' fsync of a folder, 'r' rename. */
static char log_text[16];
static int fail_at, die_at; /* the call with this number, 0 = none */
static int fail_errno;

/* @return -1 with errno when this call is to fail */
static int called(char what)
{
    const size_t n = strlen(log_text);

    if (n + 1 < sizeof log_text) log_text[n] = what;
    if ((int)n + 1 == die_at) _exit(9);
    if ((int)n + 1 != fail_at) return 0;
    errno = fail_errno;
    return -1;
}

int fsync(int fd)
{
    struct stat st;
    const int folder = !fstat(fd, &st) && S_ISDIR(st.st_mode);

    return called(folder ? 'd' : 's') ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return called('r') ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int fresh(void **state)
{
    (void)state;
    memset(log_text, 0, sizeof log_text);
    fail_at = die_at = 0;
    return 0;
}

static void assert_holds(const char *path, const char *text)
{
    size_t len;
    char *data = (char *)test_read_file(path, &len);

    assert_int_equal(len, strlen(text));
    assert_string_equal(data, text);
    free(data);
}

static int entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

/* Puts text in path's place. */
static int put(const char *path, const char *text, dpl_text *why)
{
    dpl_replace r;
    const int err = dpl_replace_open(&r, path, why);

    if (err) return err;
    fputs(text, r.f);
    return dpl_replace_commit(&r, why);
}

static void file_is_synced_renamed_and_folder_synced(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);

    (void)state;
    assert_int_equal(put(path, "one", NULL), DPL_OK);
    assert_holds(path, "one");
    assert_string_equal(log_text, "srd");
    assert_int_equal(put(path, "two", NULL), DPL_OK);
    assert_holds(path, "two");
    assert_int_equal(entries(root), 1);
}

static void target_stays_until_commit_and_after_abort(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);
    dpl_replace r, other;

    (void)state;
    test_write_file(path, "old", 3);
    assert_int_equal(dpl_replace_open(&r, path, NULL), DPL_OK);
    assert_int_equal(dpl_replace_open(&other, path, NULL), DPL_OK); /* has a name of its own */
    fputs("new", r.f);
    fputs("other", other.f);
    fflush(r.f);
    assert_holds(path, "old");
    dpl_replace_abort(&other);
    dpl_replace_abort(&other); /* closed: nothing happens */
    assert_int_equal(entries(root), 2);
    assert_int_equal(dpl_replace_commit(&r, NULL), DPL_OK);
    assert_null(r.f);
    dpl_replace_abort(&r);
    assert_holds(path, "new");
    assert_int_equal(entries(root), 1);
}

static void failing_call_leaves_old_file_and_no_litter(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);

    (void)state;
    test_write_file(path, "old", 3);
    for (int n = 1; n <= 2; n++) { /* fsync of the file, rename */
        dpl_text why = { "" };
        fresh(NULL);
        fail_at = n;
        fail_errno = n == 1 ? EIO : ENOSPC;
        assert_int_equal(put(path, "new", &why), DPL_EIO);
        assert_string_equal(why.s, test_format("%s: cannot write: %s", path, strerror(fail_errno)));
        assert_holds(path, "old");
        assert_int_equal(entries(root), 1);
    }
}

static void failing_folder_sync_is_told(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    dpl_text why = { "" };

    (void)state;
    fail_at = 3;
    fail_errno = EIO;
    assert_int_equal(put(path, "new", &why), DPL_EIO);
    assert_non_null(strstr(why.s, "folder cannot be synced: Input/output error"));
    assert_holds(path, "new");
}

static void file_system_without_fsync_is_fine(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());

    (void)state;
    fail_errno = EINVAL;
    for (fail_at = 1; fail_at <= 3; fail_at += 2) {
        memset(log_text, 0, sizeof log_text);
        assert_int_equal(put(path, "new", NULL), DPL_OK);
    }
}

static void kill_at_any_moment_leaves_old_or_new(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);

    (void)state;
    for (int n = 0; n <= 4; n++) { /* 0: killed while writing; 4: not killed */
        int status;
        pid_t pid;
        test_write_file(path, "old", 3);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
            dpl_replace r;
            fresh(NULL);
            die_at = n;
            if (dpl_replace_open(&r, path, NULL)) _exit(1);
            fputs("new", r.f);
            if (!n && !fflush(r.f)) _exit(9);
            _exit(dpl_replace_commit(&r, NULL) ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), n == 4 ? 0 : 9);
        assert_holds(path, n < 3 ? "old" : "new");
        assert_int_equal(put(path, "next", NULL), DPL_OK); /* what was left does not disturb */
        assert_holds(path, "next");
    }
}

/* In a child, because the limit and the identity cannot be taken back. @return its exit code */
static int in_child(int (*f)(const char *), const char *arg)
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) _exit(f(arg));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Files may not grow past 1000 bytes: writes fail as they do on a full disk. */
static int write_past_limit(const char *path)
{
    const struct rlimit limit = { 1000, 1000 };
    dpl_text why = { "" };
    dpl_replace r;

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) || dpl_replace_open(&r, path, &why)) return 1;
    for (int i = 0; i < 100000; i++) putc('x', r.f);
    if (dpl_replace_commit(&r, &why) != DPL_EIO) return 2;
    if (!strstr(why.s, path) || !strstr(why.s, ": cannot write: ")) return 3;
    /* Little enough to fail only when the buffer goes out at the end: the cause is known. */
    if (dpl_replace_open(&r, path, &why)) return 4;
    for (int i = 0; i < 2000; i++) putc('x', r.f);
    if (dpl_replace_commit(&r, &why) != DPL_EIO) return 5;
    return strstr(why.s, ": cannot write: File too large") ? 0 : 6;
}

/* A write fails in the middle, then there is room again: a file with a hole, and all later calls
 * succeed. */
static int write_past_limit_for_a_moment(const char *path)
{
    struct rlimit limit;
    dpl_text why = { "" };
    dpl_replace r;

    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &limit)) return 1;
    limit.rlim_cur = 1000;
    if (setrlimit(RLIMIT_FSIZE, &limit) || dpl_replace_open(&r, path, &why)) return 2;
    for (int i = 0; i < 100000; i++) putc('x', r.f);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 3;
    if (dpl_replace_commit(&r, &why) != DPL_EIO) return 4;
    return strstr(why.s, ": cannot write: ") ? 0 : 5;
}

static void failing_write_is_found_at_commit(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);

    (void)state;
    test_write_file(path, "old", 3);
    assert_int_equal(in_child(write_past_limit, path), 0);
    assert_int_equal(in_child(write_past_limit_for_a_moment, path), 0);
    assert_holds(path, "old");
    assert_int_equal(entries(root), 1);
}

/* As somebody to whom folder rights apply. */
static int write_to_locked_folder(const char *path)
{
    dpl_text why = { "" };
    dpl_replace r;

    if (!getuid() && (setgid(65534) || setuid(65534))) return CANNOT_RUN;
    if (dpl_replace_open(&r, path, &why) != DPL_EIO || r.f) return 2;
    return strcmp(why.s, test_format("%s: cannot write: Permission denied", path)) ? 3 : 0;
}

static void locked_folder_is_told_at_open(void **state)
{
    const char *root = test_tempdir(), *path = test_format("%s/f", root);
    int rc;

    (void)state;
    test_write_file(path, "old", 3);
    assert_int_equal(chmod(root, 0555), 0);
    rc = in_child(write_to_locked_folder, path);
    if (rc == CANNOT_RUN) skip(); /* a container with a single user */
    assert_int_equal(rc, 0);
    assert_holds(path, "old");
}

static void missing_folder_is_told_at_open(void **state)
{
    const char *path = test_format("%s/none/f", test_tempdir());
    dpl_text why = { "" };
    dpl_replace r;

    (void)state;
    assert_int_equal(dpl_replace_open(&r, path, &why), DPL_EIO);
    assert_null(r.f);
    assert_string_equal(why.s, test_format("%s: cannot write: No such file or directory", path));
}

static void only_regular_files_are_replaced(void **state)
{
    const char *root = test_tempdir();
    struct stat st;
    dpl_text why = { "" };
    dpl_replace r;

    (void)state;
    assert_int_equal(dpl_replace_open(&r, root, &why), DPL_EIO);
    assert_string_equal(why.s, test_format("%s: cannot write: it is a folder", root));
    assert_int_equal(dpl_replace_open(&r, "/dev/null", &why), DPL_EIO);
    assert_string_equal(why.s, "/dev/null: cannot write: it is not a regular file");
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void symbolic_link_stays_a_link(void **state)
{
    const char *root = test_tempdir(), *file = test_format("%s/file", root);
    const char *link = test_format("%s/link", root);
    struct stat st;

    (void)state;
    test_write_file(file, "old", 3);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(put(link, "new", NULL), DPL_OK);
    assert_holds(file, "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void new_file_has_the_usual_rights(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    const mode_t mask = umask(027);
    struct stat st;

    (void)state;
    assert_int_equal(put(path, "x", NULL), DPL_OK);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void path_without_folder_is_in_the_current_one(void **state)
{
    char old[4096];

    (void)state;
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(test_tempdir()), 0);
    assert_int_equal(put("f", "here", NULL), DPL_OK);
    assert_holds("f", "here");
    assert_string_equal(log_text, "srd");
    assert_int_equal(chdir(old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(file_is_synced_renamed_and_folder_synced, fresh),
        cmocka_unit_test_setup(target_stays_until_commit_and_after_abort, fresh),
        cmocka_unit_test_setup(failing_call_leaves_old_file_and_no_litter, fresh),
        cmocka_unit_test_setup(failing_folder_sync_is_told, fresh),
        cmocka_unit_test_setup(file_system_without_fsync_is_fine, fresh),
        cmocka_unit_test_setup(kill_at_any_moment_leaves_old_or_new, fresh),
        cmocka_unit_test_setup(failing_write_is_found_at_commit, fresh),
        cmocka_unit_test_setup(locked_folder_is_told_at_open, fresh),
        cmocka_unit_test_setup(missing_folder_is_told_at_open, fresh),
        cmocka_unit_test_setup(only_regular_files_are_replaced, fresh),
        cmocka_unit_test_setup(symbolic_link_stays_a_link, fresh),
        cmocka_unit_test_setup(new_file_has_the_usual_rights, fresh),
        cmocka_unit_test_setup(path_without_folder_is_in_the_current_one, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
