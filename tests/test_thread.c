/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, timed waits, processor shares. */
#include "base/clock.h"
#include "base/thread.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 77 };

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int open; /* guarded by lock */
} gate;

static void gate_init(gate *g)
{
    g->open = 0;
    assert_int_equal(pthread_mutex_init(&g->lock, NULL), 0);
    assert_int_equal(dpl_cond_init(&g->changed), 0);
}

static void gate_fini(gate *g)
{
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

static void *open_gate(void *arg)
{
    gate *g = arg;

    pthread_mutex_lock(&g->lock);
    g->open = 1;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void wait_ends_at_its_deadline(void **state)
{
    gate g;
    int64_t start, end;
    int err = 0;

    (void)state;
    gate_init(&g);
    pthread_mutex_lock(&g.lock);
    start = dpl_now_ns();
    while (!err) err = dpl_cond_wait_until(&g.changed, &g.lock, start + 30000000);
    end = dpl_now_ns();
    assert_int_equal(err, ETIMEDOUT);
    assert_true(end - start >= 30000000);
    assert_true(end - start < 5000000000); /* another clock would wait for ever, or not at all */
    assert_int_equal(dpl_cond_wait_until(&g.changed, &g.lock, 0), ETIMEDOUT);
    assert_int_equal(dpl_cond_wait_until(&g.changed, &g.lock, -5), ETIMEDOUT);
    pthread_mutex_unlock(&g.lock);
    gate_fini(&g);
}

static void wait_is_woken(void **state)
{
    pthread_t t;
    gate g;

    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        const int64_t deadline = limited ? dpl_now_ns() + 60000000000 : -1;
        int err = 0;
        gate_init(&g);
        pthread_mutex_lock(&g.lock);
        assert_int_equal(dpl_thread_start(&t, "opener", open_gate, &g), DPL_OK);
        while (!g.open && !err) err = dpl_cond_wait_until(&g.changed, &g.lock, deadline);
        pthread_mutex_unlock(&g.lock);
        assert_int_equal(err, 0);
        pthread_join(t, NULL);
        gate_fini(&g);
    }
}

static void *report_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return arg;
}

static void threads_take_no_signals_but_faults(void **state)
{
    static const int blocked[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGPIPE, SIGCHLD };
    static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    sigset_t none, before, after, seen;
    pthread_t t;
    void *back;

    (void)state;
    sigemptyset(&seen);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    assert_int_equal(dpl_thread_start(&t, "mask", report_mask, &seen), DPL_OK);
    assert_int_equal(pthread_join(t, &back), 0);
    assert_ptr_equal(back, &seen);
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_int_equal(sigismember(&seen, blocked[i]), 1);
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        assert_int_equal(sigismember(&seen, open[i]), 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int s = 1; s < 32; s++) assert_int_equal(sigismember(&after, s), 0); /* as it was */
}

static void *wait_for_gate(void *arg)
{
    gate *g = arg;

    pthread_mutex_lock(&g->lock);
    while (!g->open) dpl_cond_wait_until(&g->changed, &g->lock, -1);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void names_are_kept_to_15_bytes(void **state)
{
    char name[32];
    pthread_t t;
    gate g;

    (void)state;
    gate_init(&g);
    assert_int_equal(dpl_thread_start(&t, "a-name-that-is-too-long", wait_for_gate, &g), DPL_OK);
    assert_int_equal(pthread_getname_np(t, name, sizeof name), 0);
    assert_string_equal(name, "a-name-that-is-");
    open_gate(&g);
    pthread_join(t, NULL);
    gate_fini(&g);
}

/* As a user with a limit on threads that is reached already. */
static int start_past_limit(void)
{
    const struct rlimit none = { 1, 1 };
    pthread_t t;

    if (setrlimit(RLIMIT_NPROC, &none)) return 1;
    if (!getuid() && (setgid(65534) || setuid(65534))) return CANNOT_RUN;
    return dpl_thread_start(&t, "t", wait_for_gate, NULL) == DPL_ENOMEM ? 0 : 3;
}

static void thread_limit_is_an_error(void **state)
{
    int status = 0;
    const pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (!pid) _exit(start_past_limit());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_RUN) skip(); /* a container with a single user */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int own_cpus(cpu_set_t *set)
{
    assert_int_equal(sched_getaffinity(0, sizeof *set, set), 0);
    return CPU_COUNT(set);
}

/* In a child: a binding cannot leak into other tests. */
static void in_child(int (*f)(void))
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) _exit(f());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int bind_to_one(void)
{
    const char *why = "";
    cpu_set_t set, one;
    int cpu = 0;

    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(cpu, &set)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) return 1;
    if (dpl_cpus_usable(&why) != 1) return 2;
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1 && strcmp(why, "affinity")) return 3;
    return dpl_cpus_usable(NULL) == 1 ? 0 : 4;
}

static void usable_honours_affinity(void **state)
{
    cpu_set_t set;
    const char *why = NULL;
    const int n = dpl_cpus_usable(&why);

    (void)state;
    assert_in_range(n, 1, own_cpus(&set));
    assert_true(!strcmp(why, "all processors") || !strcmp(why, "affinity") ||
                !strcmp(why, "cgroup quota"));
    in_child(bind_to_one);
}

static void shares_add_up(void **state)
{
    const int usable = dpl_cpus_usable(NULL);

    (void)state;
    for (int n = 1; n <= usable + 2; n++) {
        int sum = 0, least = usable, most = 0;
        for (int k = 0; k < n; k++) {
            const int share = dpl_cpus_share(k, n);
            assert_true(share >= 1);
            sum += share;
            least = share < least ? share : least;
            most = share > most ? share : most;
        }
        assert_true(most - least <= 1);
        assert_int_equal(sum, n <= usable ? usable : n);
    }
    assert_int_equal(dpl_cpus_share(-1, 2), 1);
    assert_int_equal(dpl_cpus_share(2, 2), 1);
    assert_int_equal(dpl_cpus_share(0, 0), 1);
}

/* Each share in a process of its own; together they are all processors, none twice. */
static int bind_shares(void)
{
    cpu_set_t all, mine, sum;
    const int usable = dpl_cpus_usable(NULL);

    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&sum);
    for (int k = 0; k < 2; k++) {
        const int want = dpl_cpus_share(k, 2);
        if (dpl_cpus_bind_share(k, 2) != want) return 1;
        sched_getaffinity(0, sizeof mine, &mine);
        if (usable == CPU_COUNT(&all) && CPU_COUNT(&mine) != want) return 2;
        CPU_AND(&mine, &mine, &all);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &mine)) continue;
            if (CPU_ISSET(cpu, &sum)) return 3;
            CPU_SET(cpu, &sum);
        }
        sched_setaffinity(0, sizeof all, &all);
    }
    return CPU_EQUAL(&sum, &all) ? 0 : 4;
}

static int bind_more_shares_than_processors(void)
{
    const int many = dpl_cpus_usable(NULL) + 1;
    cpu_set_t before, after;

    sched_getaffinity(0, sizeof before, &before);
    for (int k = 0; k < many; k++) {
        if (dpl_cpus_bind_share(k, many) != 1) return 1;
        sched_getaffinity(0, sizeof after, &after);
        if (!CPU_EQUAL(&before, &after)) return 2;
    }
    return 0;
}

static void binding_splits_the_processors(void **state)
{
    (void)state;
    in_child(bind_more_shares_than_processors);
    if (dpl_cpus_usable(NULL) < 2) skip();
    in_child(bind_shares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_ends_at_its_deadline),
        cmocka_unit_test(wait_is_woken),
        cmocka_unit_test(threads_take_no_signals_but_faults),
        cmocka_unit_test(names_are_kept_to_15_bytes),
        cmocka_unit_test(thread_limit_is_an_error),
        cmocka_unit_test(usable_honours_affinity),
        cmocka_unit_test(shares_add_up),
        cmocka_unit_test(binding_splits_the_processors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
