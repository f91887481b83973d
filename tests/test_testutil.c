/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' own tools: a guard that does not guard would make other tests pass for nothing. */
#include "tests/testutil.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signal or exit code of a child that runs f. */
static int status_of_child(void (*f)(void))
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would print and exit */
        f();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_past_end(void)
{
    const volatile uint8_t *p = test_guarded_bytes(100, 1);

    (void)p[100];
}

static void read_last(void)
{
    const volatile uint8_t *p = test_guarded_bytes(100, 1);

    (void)p[99];
}

static void guarded_bytes_end_at_unreadable_page(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(read_past_end), SIGSEGV);
    assert_int_equal(status_of_child(read_last), 0);
}

static void guarded_bytes_depend_on_seed_only(void **state)
{
    const uint8_t *a = test_guarded_bytes(1000, 1), *b = test_guarded_bytes(1000, 1);
    const uint8_t *c = test_guarded_bytes(1000, 2);

    (void)state;
    assert_memory_equal(a, b, 1000);
    assert_memory_not_equal(a, c, 1000);
    test_free_all();
}

static void canary_sees_writes_on_both_sides(void **state)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 1000 };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        uint8_t *p = test_canary(n);
        memset(p, 0, n);
        assert_true(test_canary_ok(p, n));
        p[n] ^= 1;
        assert_false(test_canary_ok(p, n));
        p[n] ^= 1;
        *(p - 1) ^= 1;
        assert_false(test_canary_ok(p, n));
    }
    test_free_all();
}

static void temporary_folder_outlives_children_not_its_owner(void **state)
{
    const char *path = test_tempdir();
    char name[4096] = "";
    int pipes[2];
    pid_t pid;

    (void)state;
    if (!fork()) exit(0); /* runs the exit handlers that it inherited */
    wait(NULL);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) { /* a fresh process image makes, fills and leaves a folder of its own */
        dup2(pipes[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_testutil", "--make-folder", (char *)NULL);
        _exit(1);
    }
    close(pipes[1]);
    assert_true(read(pipes[0], name, sizeof name - 1) > 0);
    close(pipes[0]);
    waitpid(pid, NULL, 0);
    assert_non_null(strstr(name, "dpl-test-"));
    assert_int_equal(access(name, F_OK), -1);
}

static int make_folder_and_leave(void)
{
    const char *path = test_tempdir();

    test_make_folder(test_format("%s/a/b", path));
    test_write_file(test_format("%s/a/b/c", path), "x", 1);
    if (chmod(test_format("%s/a", path), 0555)) return 1;
    return write(STDOUT_FILENO, path, strlen(path)) > 0 ? 0 : 1;
}

static void files_come_back_as_written(void **state)
{
    const char *path = test_format("%s/f", test_tempdir());
    const size_t n = 200000;
    uint8_t *data = test_guarded_bytes(n, 3), *back;
    size_t len;

    (void)state;
    test_write_file(path, data, n);
    back = test_read_file(path, &len);
    assert_int_equal(len, n);
    assert_memory_equal(back, data, n);
    free(back);
    test_free_all();
}

static void tree_has_classes_and_jpegs(void **state)
{
    const char *root = test_tempdir();
    struct stat st;
    uint8_t *a, *b;
    size_t na, nb;

    (void)state;
    test_make_tree(root, 2, 3);
    a = test_read_file(test_format("%s/c1/0002.jpg", root), &na);
    b = test_read_file(test_format("%s/c1/0001.jpg", root), &nb);
    assert_int_equal(a[0] << 8 | a[1], 0xFFD8);
    assert_false(na == nb && !memcmp(a, b, na));
    assert_int_equal(stat(test_format("%s/c2", root), &st), -1);
    assert_int_equal(stat(test_format("%s/c0/0003.jpg", root), &st), -1);
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarded_bytes_end_at_unreadable_page),
        cmocka_unit_test(guarded_bytes_depend_on_seed_only),
        cmocka_unit_test(canary_sees_writes_on_both_sides),
        cmocka_unit_test(temporary_folder_outlives_children_not_its_owner),
        cmocka_unit_test(files_come_back_as_written),
        cmocka_unit_test(tree_has_classes_and_jpegs),
    };

    if (argc > 1 && !strcmp(argv[1], "--make-folder")) return make_folder_and_leave();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
