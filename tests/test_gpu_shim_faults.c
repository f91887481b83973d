/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs planted in kernels must be seen, each by who is there to see it: the shim itself, AddressSanitizer,
 * ThreadSanitizer, or values that come out wrong. Each runs as a child, and so does its right twin. */
#include "tests/fake/fake_cuda.h"
#include "tests/gpu_plants.h"
#include "tests/testutil.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#ifdef __has_feature
#    define HAS(feature) __has_feature(feature)
#else
#    define HAS(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer)
#    define UNDER "thread"
#elif defined(__SANITIZE_ADDRESS__) || HAS(address_sanitizer)
#    define UNDER "address"
#else
#    define UNDER "nothing"
#endif

enum { N = 96 };

/* --- what a child does; bug 0: the right program --- */

static void no_barrier(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->reverse(p, 1, 96, !bug, g->stream), 0);
}

/* Who is early writes what who is late has not read yet. */
static void one_barrier_too_few(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->swap_twice(p, !bug, g->stream), 0);
}

static void one_warp_barrier_too_few(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->warp_order(p, bug ? 2 : 1, g->stream), 0);
}

static void no_warp_barrier(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->warp_order(p, !bug, g->stream), 0);
}

/* One thread in each of two blocks: no barrier can order them. */
static void no_atomic(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->atomics(p, 65, !bug, g->stream), 0);
}

/* Two streams, and nothing that makes the second wait for the first. */
static void no_wait(test_gpu *g, int *p, int bug)
{
    void *other;

    assert_int_equal(g->k->stream_create(&other), 0);
    assert_int_equal(g->k->fill_int(p, 1, 96, g->stream), 0);
    if (!bug) assert_int_equal(g->k->sync(g->stream), 0);
    assert_int_equal(g->k->fill_int(p, 2, 96, other), 0);
    assert_int_equal(g->k->sync(other), 0);
    assert_int_equal(g->k->stream_destroy(other), 0);
}

static void beyond_memory(test_gpu *g, int *p, int bug)
{
    float v[64] = { 0 }, *from = test_gpu_put(g, v, sizeof v);

    assert_int_equal(g->k->copy((float *)(void *)p, from, 64, (size_t)bug, g->stream), 0);
    test_gpu_take(g, v, from, sizeof v);
}

static void beyond_shared(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->copy_shared(p, bug ? 32 : 31, g->stream), 0);
}

static void left_before_barrier(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->diverge(p, 64, bug ? 17 : 64, PLANTS_LEAVE, g->stream), 0);
}

static void other_barrier(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->diverge(p, 64, bug ? 17 : 64, PLANTS_OTHER_BARRIER, g->stream), 0);
}

static void warp_waits_for_nobody(test_gpu *g, int *p, int bug)
{
    assert_int_equal(g->k->diverge(p, 64, bug ? 17 : 64, PLANTS_WARP, g->stream), 0);
}

static const struct {
    const char *name;
    void (*run)(test_gpu *g, int *p, int bug);
    const char *seen_by;        /* UNDER, or "" = in every build */
    const char *first, *second; /* in what is said */
} plants_list[] = {
    { "no_barrier", no_barrier, "thread", "data race", "plants.cu:" },
    { "one_barrier_too_few", one_barrier_too_few, "thread", "data race", "plants.cu:" },
    { "one_warp_barrier_too_few", one_warp_barrier_too_few, "thread", "data race", "plants.cu:" },
    { "no_warp_barrier", no_warp_barrier, "thread", "data race", "plants.cu:" },
    { "no_atomic", no_atomic, "thread", "data race", "plants.cu:" },
    { "no_wait", no_wait, "thread", "data race", "plants.cu:" },
    { "beyond_memory", beyond_memory, "address", "heap-buffer-overflow", "plants.cu:" },
    { "beyond_shared", beyond_shared, "address", "global-buffer-overflow", "plants.cu:" },
    { "left_before_barrier", left_before_barrier, "", "kernel",
      "block (0,0,0): 17 threads wait at __syncthreads (tests/fake/cuda/plants.cu:" },
    { "other_barrier", other_barrier, "", "threads wait at different __syncthreads", "plants.cu:" },
    { "warp_waits_for_nobody", warp_waits_for_nobody, "", "waits in a warp operation",
      "for threads that never come" },
};
enum { PLANTS = sizeof plants_list / sizeof *plants_list };

static int child_main(size_t plant, int bug)
{
    int v[N] = { 0 }, *p;
    test_gpu g;

    test_gpu_open(&g);
    p = test_gpu_put(&g, v, sizeof v);
    plants_list[plant].run(&g, p, bug);
    test_gpu_take(&g, v, p, sizeof v);
    test_gpu_close(&g);
    return 0;
}

/* --- the parent --- */

/* @return the child's wait status; *said: what it wrote, in a rotating buffer's file */
static int child(size_t plant, int bug, const char *order, char **said)
{
    const char *const file = test_format("%s/said", test_tempdir());
    char which[8], bugs[2] = { (char)('0' + bug) }, environment[64];
    char *argv[] = { (char *)"test", (char *)"planted", which, bugs, NULL };
    char *envp[] = { environment, (char *)"TSAN_OPTIONS=exitcode=66:atexit_sleep_ms=50",
                     (char *)"ASAN_OPTIONS=exitcode=66", NULL };
    posix_spawn_file_actions_t actions;
    size_t len;
    pid_t pid;
    int status;

    snprintf(which, sizeof which, "%zu", plant);
    snprintf(environment, sizeof environment, "FAKE_CUDA_ORDER=%s", order);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, envp), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *said = (char *)test_read_file(file, &len);
    *said = realloc(*said, len + 1);
    (*said)[len] = '\0';
    return status;
}

static void planted_bugs_are_seen(void **state)
{
    (void)state;
    if (!test_fake_cuda()) skip();
    for (size_t i = 0; i < PLANTS; i++) {
        const char *const by = plants_list[i].seen_by;
        char *said;

        if (child(i, 0, "0", &said)) fail_msg("%s without its bug: %s", plants_list[i].name, said);
        free(said);
        if (*by && strcmp(by, UNDER) != 0) continue;
        if (!child(i, 1, "0", &said)) fail_msg("%s was not seen", plants_list[i].name);
        if (!strstr(said, plants_list[i].first) || !strstr(said, plants_list[i].second))
            fail_msg("%s: %s", plants_list[i].name, said);
        free(said);
    }
}

/* Without a sanitizer a missing barrier shows in values: in none of the orders they are right. */
static void a_missing_barrier_changes_values(void **state)
{
    static const char *const orders[] = { "0", "1", "2", "3" };
    test_gpu g;
    int wrong = 0;

    (void)state;
    if (strcmp(UNDER, "thread") == 0) skip(); /* it would report */
    if (!test_fake_cuda()) skip();
    test_gpu_open(&g);
    for (size_t k = 0; k < 4; k++) {
        int v[N], *p;

        for (int i = 0; i < N; i++) v[i] = i;
        p = test_gpu_put(&g, v, sizeof v);
        setenv("FAKE_CUDA_ORDER", orders[k], 1);
        assert_int_equal(g.k->reverse(p, 1, N, 0, g.stream), 0);
        test_gpu_take(&g, v, p, sizeof v);
        for (int i = 0; i < N; i++) {
            if (v[i] == N - 1 - i) continue;
            wrong++;
            break;
        }
    }
    unsetenv("FAKE_CUDA_ORDER");
    test_gpu_close(&g);
    assert_int_equal(wrong, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_bugs_are_seen),
        cmocka_unit_test(a_missing_barrier_changes_values),
    };

    if (argc == 4 && !strcmp(argv[1], "planted"))
        return child_main((size_t)atoi(argv[2]), atoi(argv[3]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
