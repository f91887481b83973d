/* SPDX-License-Identifier: Apache-2.0 */
/* Running the built dptrain as a user does, for the tests of the program. */
#include "tests/dptrain_runs.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 64, LIMIT_S = 120 };

static size_t file_limit;
static int closed = -1, second;

void test_dptrain_file_limit(size_t bytes)
{
    file_limit = bytes;
}

void test_dptrain_second_signal(int sig)
{
    second = sig;
}

void test_dptrain_close(int fd)
{
    closed = fd;
}

static const char *program(void)
{
    static char path[4096];
    const char *bin = getenv("BIN");

    if (!*path && !realpath(test_format("%s/dptrain", bin ? bin : "build/bin"), path))
        fail_msg("%s/dptrain is not built (make all, or set BIN)", bin ? bin : "build/bin");
    return path;
}

const char *test_work(void)
{
    static const char *work;

    if (work) return work;
    program(); /* while the current folder is still the test's */
    work = test_tempdir();
    test_work_tree("data/train", 3, 12);
    test_work_tree("data/val", 3, 4);
    return work;
}

void test_work_tree(const char *name, int classes, int files)
{
    char root[4096]; /* the formatted text would not live long enough */

    snprintf(root, sizeof root, "%s/%s", test_work(), name);
    test_make_tree(root, classes, files);
}

static int lines_in(const char *path)
{
    FILE *f = fopen(path, "r");
    int n = 0;

    if (!f) return 0;
    for (int c; (c = getc(f)) != EOF;) n += c == '\n';
    fclose(f);
    return n;
}

static pid_t start(char *words, const char *work)
{
    char *argv[WORDS + 1];
    int n = 0;
    pid_t pid;

    argv[n++] = (char *)(size_t)program();
    for (char *save = NULL, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        assert_true(n < WORDS);
        argv[n++] = w;
    }
    argv[n] = NULL;
    pid = fork();
    assert_true(pid >= 0);
    if (pid) return pid;
    if (chdir(work) || dup2(open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), 1) < 0 ||
        dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666), 2) < 0)
        _exit(127);
    if (file_limit) setrlimit(RLIMIT_FSIZE, &(struct rlimit){ file_limit, file_limit });
    if (closed >= 0) close(closed);
    signal(SIGINT, SIG_DFL); /* a test in the background of a shell would pass on SIG_IGN */
    execv(argv[0], argv);
    _exit(127);
}

static char *text_of(const char *name)
{
    size_t len;
    uint8_t *data = test_read_file(test_format("%s/%s", test_work(), name), &len);
    char *s = malloc(len + 1);

    assert_non_null(s);
    memcpy(s, data, len);
    s[len] = '\0';
    free(data);
    return s;
}

/* Both wait for the stopped program, so that it gets them at one moment. */
static void send_signals(pid_t pid, int sig)
{
    if (second) kill(pid, SIGSTOP);
    kill(pid, sig);
    if (second) {
        kill(pid, second);
        kill(pid, SIGCONT);
    }
}

static void run(test_run *r, int sig, const char *file, int lines, char *words)
{
    const char *work = test_work();
    const int64_t began = dpl_now_ns();
    pid_t pid;
    int status = 0;

    unlink(test_format("%s/out", work)); /* what an earlier run wrote must not count as lines */
    unlink(test_format("%s/err", work));
    pid = start(words, work);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (sig && lines_in(test_format("%s/%s", work, file)) >= lines) {
            send_signals(pid, sig);
            sig = 0;
        }
        if (dpl_now_ns() - began > LIMIT_S * 1000000000ll) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            fail_msg("dptrain took over %d s: %s", LIMIT_S, text_of("err"));
        }
        usleep(2000);
    }
    r->seconds = (double)(dpl_now_ns() - began) / 1e9;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    r->out = text_of("out");
    r->err = text_of("err");
}

void test_dptrain(test_run *r, const char *format, ...)
{
    char words[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(words, sizeof words, format, ap);
    va_end(ap);
    run(r, 0, NULL, 0, words);
}

void test_dptrain_signal(test_run *r, int sig, const char *file, int lines, const char *format, ...)
{
    char words[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(words, sizeof words, format, ap);
    va_end(ap);
    run(r, sig, file, lines, words);
}

void test_run_free(test_run *r)
{
    free(r->out);
    free(r->err);
    memset(r, 0, sizeof *r);
}

int test_log_numbers(const char *file, const char *key, double *out, int max)
{
    char *text = text_of(file), *save = NULL;
    const char *quoted = test_format("\"%s\":", key);
    int n = 0;

    for (char *l = strtok_r(text, "\n", &save); l && n < max; l = strtok_r(NULL, "\n", &save)) {
        const char *at = strstr(l, quoted);
        if (at) out[n++] = strtod(at + strlen(quoted), NULL);
    }
    free(text);
    return n;
}
