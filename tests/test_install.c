/* SPDX-License-Identifier: Apache-2.0 */
/* make install and make uninstall, and programs built against what was installed. The source tree is
 * named by ROOT, or found above BIN, the folder of the built programs. */
#include "tests/testutil.h"

#include "dpload.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *unusable; /* why nothing can be tested here, or NULL */
static char work[1024];      /* holds stage/ (make install DESTDIR=), tree/ (pictures) */
static char *root;           /* the source tree */
static char out[1 << 16];    /* standard output and errors of the last command */
static const char settings[] = "p='%s/stage/usr/local'; export PKG_CONFIG_SYSROOT_DIR='%s/stage' "
                               "PKG_CONFIG_PATH=$p/lib/pkgconfig\n";

/* Run a script with sh in work/. @return its exit code; what it printed is in out */
static int run(const char *script)
{
    char text[8192];
    uint8_t *got;
    size_t len;
    pid_t pid;
    int status = 0;
    int n = snprintf(text, sizeof text, settings, work, work);

    snprintf(text + n, sizeof text - (size_t)n, "%s", script);
    if (!(pid = fork())) {
        const int fd = open(test_format("%s/out", work), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (chdir(work) || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(126);
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(126);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    got = test_read_file(test_format("%s/out", work), &len);
    if (len >= sizeof out) len = sizeof out - 1;
    memcpy(out, got, len);
    out[len] = '\0';
    free(got);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void must(const char *script)
{
    const int code = run(script);

    if (code) fail_msg("exit %d: %s\n%s", code, script, out);
}

/* BIN is ROOT/build/bin or ROOT/build/CONFIGURATION/bin. What a configuration with sanitizers installs
 * needs their libraries, too. */
static void find_root(void)
{
    static const char *const sanitizers[] = { "asan", "tsan", "ubsan", "fuzz" };
    const char *given = getenv("ROOT"), *bin = getenv("BIN");
    char *build = NULL;

    root = realpath(bin ? bin : "build/bin", NULL);
    for (char *at = root; at && (at = strstr(at, "/build/")); at++) build = at;
    if (!build) {
        unusable = "the programs are not built, or not in a folder build/";
        return;
    }
    for (int i = 0; i < 4; i++)
        if (!strncmp(build + strlen("/build/"), sanitizers[i], strlen(sanitizers[i])))
            unusable = "a build with sanitizers";
    *build = '\0';
    if (given) {
        free(root);
        if (!(root = realpath(given, NULL))) unusable = "ROOT is no folder";
    }
    if (root && access(test_format("%s/loader/libdpload.map", root), R_OK))
        unusable = "no source tree";
}

/* What make above told its children about jobs does not hold here; settings of variables do. */
static void keep_make_variables(void)
{
    const char *flags = getenv("MAKEFLAGS"), *variables = flags ? strstr(flags, "-- ") : NULL;
    char text[4096];

    snprintf(text, sizeof text, "%s", variables ? variables : "");
    setenv("MAKEFLAGS", text, 1);
    unsetenv("MFLAGS");
    unsetenv("PREFIX");
    unsetenv("LIBDIR");
    unsetenv("DESTDIR");
}

static int set_up(void **state)
{
    char tree[2048];
    (void)state;

    find_root();
    snprintf(work, sizeof work, "%s", test_tempdir());
    if (run("command -v make && command -v cc && command -v pkg-config && command -v readelf"))
        unusable = "no make, cc, pkg-config or readelf";
    if (unusable) {
        fprintf(stderr, "skipped: %s\n", unusable);
        return 0;
    }
    keep_make_variables();
    setenv("ROOT", root, 1);
    snprintf(tree, sizeof tree, "%s/tree", work);
    test_make_tree(tree, 3, 20);
    if (run("make -s -C \"$ROOT\" install DESTDIR=\"$PWD/stage\"")) {
        fprintf(stderr, "%s", out);
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(root);
    return 0;
}

static void need_install(void)
{
    if (unusable) skip();
}

/* --- files --- */

static const char listing[] =
    "find . ! -type d ! -name '*_cuda.so' -printf '%M %P %l\\n' | LC_ALL=C sort -k 2";

static void installs_these_files_only(void **state)
{
    (void)state;
    need_install();
    must(test_format("cd stage && %s", listing));
    assert_string_equal(out, "-rwxr-xr-x usr/local/bin/dpload \n"
                             "-rwxr-xr-x usr/local/bin/dptrain \n"
                             "-rw-r--r-- usr/local/include/dpload.h \n"
                             "-rw-r--r-- usr/local/lib/libdpload.a \n"
                             "lrwxrwxrwx usr/local/lib/libdpload.so libdpload.so.0\n"
                             "-rw-r--r-- usr/local/lib/libdpload.so.0 \n"
                             "-rw-r--r-- usr/local/lib/pkgconfig/dpload.pc \n"
                             "-rw-r--r-- usr/local/share/bash-completion/completions/dpload \n"
                             "-rw-r--r-- usr/local/share/bash-completion/completions/dptrain \n"
                             "-rw-r--r-- usr/local/share/fish/vendor_completions.d/dpload.fish \n"
                             "-rw-r--r-- usr/local/share/fish/vendor_completions.d/dptrain.fish \n"
                             "-rw-r--r-- usr/local/share/man/man1/dpload.1 \n"
                             "-rw-r--r-- usr/local/share/man/man1/dptrain.1 \n"
                             "-rw-r--r-- usr/local/share/man/man3/dpload.3 \n"
                             "-rw-r--r-- usr/local/share/zsh/site-functions/_dpload \n"
                             "-rw-r--r-- usr/local/share/zsh/site-functions/_dptrain \n");
}

static void cuda_parts_go_where_the_library_is_if_they_were_built(void **state)
{
    static const char *const parts[] = { "libdpload_cuda.so", "libdptrain_cuda.so" };
    (void)state;

    need_install();
    for (size_t i = 0; i < 2; i++) {
        const int built = !run(test_format("test -e \"$LIB/%s\"", parts[i]));

        must(test_format("cd stage; find . -name '%s*'", parts[i]));
        assert_string_equal(out, built ? test_format("./usr/local/lib/%s\n", parts[i]) : "");
    }
}

static void other_folders_are_kept_to(void **state)
{
    (void)state;
    need_install();
    must("umask 077; mkdir -p 'with blank/opt'; touch 'with blank/opt/theirs'\n"
         "make -s -C \"$ROOT\" install DESTDIR=\"$PWD/with blank\" PREFIX=/opt "
         "LIBDIR=/lib64\n"
         "cd 'with blank'; find . -name '*dpload*' -path '*lib*' ! -name '*_cuda.so' | LC_ALL=C "
         "sort");
    assert_string_equal(out, "./lib64/libdpload.a\n./lib64/libdpload.so\n./lib64/libdpload.so.0\n"
                             "./lib64/pkgconfig/dpload.pc\n");
    must("cd 'with blank'; sed -n 's/^prefix=//p; s/^libdir=//p' lib64/pkgconfig/dpload.pc");
    assert_string_equal(out, "/opt\n/lib64\n");
    must("find 'with blank/opt/bin' -perm 755 | LC_ALL=C sort");
    assert_string_equal(out, "with blank/opt/bin\nwith blank/opt/bin/dpload\n"
                             "with blank/opt/bin/dptrain\n");
    must("make -s -C \"$ROOT\" uninstall DESTDIR=\"$PWD/with blank\" PREFIX=/opt "
         "LIBDIR=/lib64\n"
         "find 'with blank' ! -type d");
    assert_string_equal(out, "with blank/opt/theirs\n");
}

static void relative_prefix_is_refused(void **state)
{
    (void)state;
    need_install();
    assert_int_not_equal(run("make -C \"$ROOT\" install DESTDIR=\"$PWD/none\" PREFIX=opt"), 0);
    assert_non_null(strstr(out, "must be absolute paths, found 'opt'"));
    assert_int_not_equal(run("ls none"), 0);
}

/* A stand-in for ldconfig comes first in PATH. */
static void ldconfig_is_for_the_running_system(void **state)
{
    (void)state;
    need_install();
    must("mkdir fake; printf '#!/bin/sh\\necho called\\n' >fake/ldconfig; chmod +x fake/ldconfig\n"
         "PATH=$PWD/fake:$PATH make -s -C \"$ROOT\" install "
         "DESTDIR=\"$PWD/made\"");
    assert_null(strstr(out, "called"));
    must("PATH=$PWD/fake:$PATH make -s -C \"$ROOT\" install PREFIX=\"$PWD/real\"");
    assert_int_equal(!!strstr(out, "called"), geteuid() == 0);
    must("PATH=$PWD/fake:$PATH make -s -C \"$ROOT\" uninstall "
         "PREFIX=\"$PWD/real\"");
    assert_int_equal(!!strstr(out, "called"), geteuid() == 0);
    must("find real ! -type d");
    assert_string_equal(out, "");
}

/* Last: takes away what the other tests use. */
static void uninstall_leaves_nothing(void **state)
{
    (void)state;
    need_install();
    must("touch stage/usr/local/lib/theirs\n"
         "make -s -C \"$ROOT\" uninstall DESTDIR=\"$PWD/stage\"\n"
         "find stage ! -type d");
    assert_string_equal(out, "stage/usr/local/lib/theirs\n");
}

/* --- the library --- */

static void shared_library_exports_the_header(void **state)
{
    (void)state;
    need_install();
    must("readelf -d $p/lib/libdpload.so | sed -n 's/.*(SONAME).*\\[\\(.*\\)\\]/\\1/p'");
    assert_string_equal(out, "libdpload.so.0\n");
    must("readelf -W --dyn-syms $p/lib/libdpload.so.0 | awk '$7 != \"UND\" && $4 == \"FUNC\" "
         "{ sub(/@.*/, \"\", $8); print $8 }' | LC_ALL=C sort >exported\n"
         "sed -n 's/^DPL_API .*\\(dpl_[a-z_]*\\)(.*/\\1/p' $p/include/dpload.h | LC_ALL=C sort "
         ">declared\n"
         "[ $(wc -l <declared) -gt 10 ] && diff declared exported");
    must("while read -r name; do grep -q \"^\\.Fn $name \" $p/share/man/man3/dpload.3 || echo "
         "$name; "
         "done <declared\n"
         "grep -o '^ *X(DPL_[A-Z]*' $p/include/dpload.h | tr -d ' X(' | while read -r name; do "
         "grep -q \"^\\.[ItDv ]* $name\" $p/share/man/man3/dpload.3 || echo $name; done");
    assert_string_equal(out, ""); /* the manual misses none */
}

static void version_is_the_same_everywhere(void **state)
{
    const char *want =
        test_format("%s\ndptrain %s\ndpload %s\n", dpl_version(), dpl_version(), dpl_version());
    (void)state;

    need_install();
    must("pkg-config --modversion dpload; $p/bin/dptrain --version; $p/bin/dpload --version");
    assert_string_equal(out, want);
}

/* Builds every example, runs each on the pictures. static_flag: for cc and pkg-config. */
static void examples_work(const char *cc_flag, const char *static_flag)
{
    must(test_format(
        "for source in \"$ROOT\"/examples/*.c; do name=$(basename $source .c)\n"
        "cc -Wall -Werror %s -o $name $source $(pkg-config %s --cflags --libs dpload) || "
        "exit\n"
        "done; ls 0[1-5]* | wc -l",
        cc_flag, static_flag));
    assert_string_equal(out, "5\n");
    must(
        "[ -z \"$(ls 0[1-5]* | grep -v _)\" ] || exit\n" /* files of this test do not count */
        "for name in 0*; do case $name in *own_source) arg=tree/*/0000.jpg ;; *) arg=tree ;; esac\n"
        "timeout 60 ./$name $arg >text || { echo \"$name: $?\"; exit 1; }\n"
        "[ -s text ] || { echo \"$name printed nothing\"; exit 1; }\n"
        "done");
}

static void examples_build_shared(void **state)
{
    (void)state;
    need_install();
    setenv("LD_LIBRARY_PATH", test_format("%s/stage/usr/local/lib", work), 1);
    examples_work("", "");
    must("readelf -d 01_first_batch | grep NEEDED");
    assert_non_null(strstr(out, "[libdpload.so.0]"));
    unsetenv("LD_LIBRARY_PATH");
}

static void examples_build_static(void **state)
{
    (void)state;
    need_install();
    if (run("echo 'int main(void) { return 0; }' >probe.c\n"
            "cc -static -o probe probe.c $(pkg-config --static --libs libjpeg libpng zlib)"))
        skip(); /* a system without static libraries */
    examples_work("-static", "--static");
    must("readelf -d 01_first_batch");
    assert_non_null(strstr(out, "There is no dynamic section"));
}

/* --- programs and documents --- */

static void installed_programs_run(void **state)
{
    (void)state;
    need_install();
    must("$p/bin/dpload check tree && $p/bin/dpload bench --size 32 --hash tree");
    assert_non_null(strstr(out, "60 pictures: 60 decoded in full ("));
}

static void man_pages_are_clean(void **state)
{
    (void)state;
    need_install();
    if (run("command -v mandoc")) skip();
    must("mandoc -T lint -W warning $p/share/man/man*/*");
    must("mandoc -T ascii $p/share/man/man1/dptrain.1 | col -b");
    assert_non_null(strstr(out, "\n     -j, --workers N\n"));
    assert_null(strstr(out, "@OPTIONS@"));
    must("mandoc -T ascii $p/share/man/man1/dpload.1 | col -b");
    assert_non_null(strstr(out, "\nOPTIONS OF SHOW\n"));
}

/* The files are what the programs print, and each is one that its shell reads. */
static void completions_are_current(void **state)
{
    (void)state;
    need_install();
    must("for name in dptrain dpload; do\n"
         "$p/bin/$name --print-options=bash | cmp - $p/share/bash-completion/completions/$name\n"
         "$p/bin/$name --print-options=zsh | cmp - $p/share/zsh/site-functions/_$name\n"
         "$p/bin/$name --print-options=fish | cmp - $p/share/fish/vendor_completions.d/$name.fish\n"
         "if command -v bash; then bash -n $p/share/bash-completion/completions/$name; fi\n"
         "if command -v zsh; then zsh -n $p/share/zsh/site-functions/_$name; fi\n"
         "if command -v fish; then fish -n $p/share/fish/vendor_completions.d/$name.fish; fi\n"
         "done >/dev/null");
    assert_string_equal(out, "");
    must("head -n 1 $p/share/zsh/site-functions/_dpload");
    assert_string_equal(out, "#compdef dpload\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(installs_these_files_only),
        cmocka_unit_test(cuda_parts_go_where_the_library_is_if_they_were_built),
        cmocka_unit_test(other_folders_are_kept_to),
        cmocka_unit_test(relative_prefix_is_refused),
        cmocka_unit_test(ldconfig_is_for_the_running_system),
        cmocka_unit_test(shared_library_exports_the_header),
        cmocka_unit_test(version_is_the_same_everywhere),
        cmocka_unit_test(examples_build_shared),
        cmocka_unit_test(examples_build_static),
        cmocka_unit_test(installed_programs_run),
        cmocka_unit_test(man_pages_are_clean),
        cmocka_unit_test(completions_are_current),
        cmocka_unit_test(uninstall_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
