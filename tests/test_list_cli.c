/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and index files as a user of dpload meets them. BIN names the folder of the built programs. */
#include "tests/testutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char work[512]; /* holds set/c0 .. c2 with 4 pictures each; "" = no programs */
static char out[1 << 14];

static int set_up(void **state)
{
    const char *folder = getenv("BIN");
    char absolute[4096], set[600];
    struct stat st;

    (void)state;
    if (!realpath(folder ? folder : "build/bin", absolute) ||
        stat(test_format("%s/dpload", absolute), &st))
        return 0;
    setenv("BIN", absolute, 1);
    snprintf(work, sizeof work, "%s", test_tempdir());
    snprintf(set, sizeof set, "%s/set", work);
    test_make_tree(set, 3, 4);
    return 0;
}

/* Run "BIN/dpload ARGS" in the work folder; out is all it says. @return exit code */
static int run(const char *args)
{
    const int status = system(test_format("cd '%s' && \"$BIN\"/dpload %s >out 2>&1", work, args));
    uint8_t *got;
    size_t len;

    assert_true(WIFEXITED(status));
    got = test_read_file(test_format("%s/out", work), &len);
    if (len >= sizeof out) len = sizeof out - 1;
    memcpy(out, got, len);
    out[len] = 0;
    free(got);
    return WEXITSTATUS(status);
}

static void expect(int code, const char *text, const char *args)
{
    const int got = run(args);

    if (got != code || !strstr(out, text)) fail_msg("%s: exit %d, %s", args, got, out);
}

static void write_list(const char *name, const char *text)
{
    test_write_file(test_format("%s/%s", work, name), text, strlen(text));
}

static void lists_stand_for_folders(void **state)
{
    (void)state;
    if (!*work) skip();
    write_list("set/l.txt", "c0/0000.jpg\tcat\nc1/0000.jpg\tdog\nc1/0001.jpg\tdog\n");
    expect(0, "set/l.txt: 3 pictures in 2 classes", "bench --list set/l.txt --size 32");
    expect(0, "3 pictures: 3 decoded in full (", "check --list set/l.txt");
    expect(0, "sheet.png: 3 pictures", "show --list set/l.txt -o sheet.png");
    write_list("l.txt", "c0/0000.jpg\nc1/0000.jpg\n");
    expect(0, "l.txt: 2 pictures in 0 classes", "bench --list l.txt --size 32 set/");
    expect(3, "c0/0000.jpg\tNo such file", "check --list l.txt");
    expect(0, "\"list\":\"l.txt\"", "bench --list l.txt --json --size 32 set");
    expect(2, "l.txt has no train/ and val/", "bench --list l.txt --subset val set");
    expect(0, "set/l.txt: 1 pictures in 2 classes",
           "bench --list set/l.txt --subset val --val-split 50% --size 32");
}

static void faults_of_lists_are_named(void **state)
{
    (void)state;
    if (!*work) skip();
    write_list("bad.txt", "a.jpg\t0\n\nb.jpg\n");
    expect(3, "bad.txt:3: no tab, but line 1 has one", "bench --list bad.txt");
    expect(3, "list none.txt: No such file", "check --list none.txt");
    expect(2, "the folder is missing", "bench");
    expect(2, "only a folder is indexed", "bench --list bad.txt --index i");
}

static void index_files_are_told_of(void **state)
{
    char both[600];

    (void)state;
    if (!*work) skip();
    expect(0, "index i: No such file or directory; all folders were listed, and the index written",
           "bench --index i --size 32 set");
    expect(0, "index i: ", "check --index i set");
    expect(0, "\"index\":\"i: ", "bench --index i --json --size 32 set");
    write_list("text", "some text");
    expect(3, "text: not an index file", "bench --index text set");
    expect(0, "index none/i: cannot write", "bench --index none/i --size 32 set");
    snprintf(both, sizeof both, "%s/both/train", work); /* formatted texts do not live that long */
    test_make_tree(both, 1, 1);
    snprintf(both, sizeof both, "%s/both/val", work);
    test_make_tree(both, 1, 1);
    expect(2, "--index holds the listing of one folder", "check --index j both");
    expect(0, "1 pictures: 1 decoded in full", "check --index j --subset val both");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_stand_for_folders),
        cmocka_unit_test(faults_of_lists_are_named),
        cmocka_unit_test(index_files_are_told_of),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
