/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over GPUs, as they are built into libdptrain_cuda.so. Over the fakes: also everything that
 * can go wrong with a peer. Beside the real plug-in: right sums, on as many GPUs as there are. */
#include "base/clock.h"
#include "dpload.h"
#include "tests/comm_cases.h"
#include "tests/device_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = TEST_COMM_FLOATS };

static int set_up(void **state)
{
    (void)state;
    test_comm_reset();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!test_comm.nccl) return 0;
    assert_int_equal(test_comm.nccl->alive(), 0);
    assert_int_equal(test_comm.cuda->alive(), 0);
    return 0;
}

/* --- right sums --- */

/* Small whole numbers: exact in any order. */
static float part(int rank, int i)
{
    return (float)((rank + 1) * (i % 7 - 3));
}

static int sums(test_member *m)
{
    const int ranks = m->opt.ranks, sum = ranks * (ranks + 1) / 2;
    double d[3] = { m->opt.rank + 0.5, 1e-9, -m->opt.rank };
    int err;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) m->host[i] = part(m->opt.rank, i + round);
        if ((err = test_comm_sum(m, N))) return err;
        for (int i = 0; i < N; i++)
            if (m->host[i] != (float)(sum * ((i + round) % 7 - 3))) return test_wrong(m, "sum", i);
    }
    memcpy(m->host, d, sizeof d);
    if ((err = test_comm_put(m, sizeof d)) ||
        (err = test_comm.calls->sum_double(m->c, (double *)m->dev, 3, test_native(m), &m->why)) ||
        (err = test_comm_get(m, sizeof d)))
        return err;
    memcpy(d, m->host, sizeof d);
    if (d[0] != ranks * ranks / 2.0 || d[2] != -ranks * (ranks - 1) / 2.0)
        return test_wrong(m, "double", 0);
    for (int i = 0; i < N; i++) m->host[i] = m->opt.rank ? -1.0f : (float)i;
    if ((err = test_comm_put(m, N * sizeof(float))) ||
        (err = test_comm.calls->broadcast(m->c, m->dev, N * sizeof(float) - 3, test_native(m),
                                          &m->why)) ||
        (err = test_comm_get(m, N * sizeof(float))))
        return err;
    for (int i = 0; i < N - 1; i++)
        if (m->host[i] != (float)i) return test_wrong(m, "broadcast", i);
    return test_comm.calls->poll(m->c, &m->why);
}

static void everyone_gets_the_sum(void **state)
{
    (void)state;

    need_comm();
    for (int ranks = 1; ranks <= test_comm.gpus; ranks++) {
        test_member m[TEST_RANKS_MAX] = { { .turn = 0 } };

        test_comm_run(m, ranks, NULL, sums);
        for (int r = 0; r < ranks; r++)
            if (m[r].err) fail_msg("%d of %d: %s", r, ranks, m[r].why.s);
    }
}

/* Numbers whose sum depends on the order, and ranks that come in another order each time. */
static int rounded_sum(test_member *m)
{
    int err;

    for (int i = 0; i < N; i++) m->host[i] = 1.0f / (float)(1 + i + 17 * m->opt.rank * m->opt.rank);
    test_pause_ms(((m->opt.rank + m->turn) % m->opt.ranks) * 15);
    if ((err = test_comm_sum(m, N))) return err;
    memcpy(m->out, m->host, sizeof m->out);
    return DPL_OK;
}

static void the_order_of_threads_does_not_matter(void **state)
{
    test_member *m = calloc(TEST_RANKS_MAX, sizeof *m);
    float first[N];
    (void)state;

    if (!test_comm.calls) free(m);
    need_comm();
    for (int turn = 0; turn < 3; turn++) {
        for (int r = 0; r < TEST_RANKS_MAX; r++) m[r].turn = turn;
        test_comm_run(m, test_comm.gpus, NULL, rounded_sum);
        for (int r = 0; r < test_comm.gpus; r++) {
            if (m[r].err) fail_msg("%s", m[r].why.s);
            if (!turn && !r) memcpy(first, m[0].out, sizeof first);
            assert_memory_equal(first, m[r].out, sizeof first);
        }
    }
    free(m);
}

/* --- joining --- */

static int nothing(test_member *m)
{
    (void)m;
    return DPL_OK;
}

static void expect(const test_member *m, int err, const char *text)
{
    if (m->err != err || !strstr(m->why.s, text))
        fail_msg("rank %d gave %d: %s", m->opt.rank, m->err, m->why.s);
}

static void a_member_that_does_not_come_is_a_time_out(void **state)
{
    test_member m[4] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    for (int r = 0; r < 4; r++) m[r].opt.timeout_ms = 300;
    m[2].absent = 1;
    test_comm_run(m, 4, NULL, nothing);
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        expect(&m[r], DPL_ETIMEOUT, "joining: the other ranks did not come within 0.3 s");
        expect(&m[r], DPL_ETIMEOUT, test_format("rank %d of 4 (GPU %d)", r, r));
    }
}

static void joining_can_be_canceled(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    int word = 0;
    (void)state;

    need_fakes();
    test_comm.nccl->never_ready(1, 1);
    test_comm.nccl->never_ready(0, 1);
    for (int turn = 0; turn < 2; turn++) {
        word = 0;
        for (int r = 0; r < 2; r++) {
            m[r].opt.cancel = turn ? NULL : &word;
            m[r].opt.failed = turn ? &word : NULL;
        }
        test_comm_run(m, 2, &word, nothing);
        expect(&m[0], DPL_ECANCELED,
               turn ? "another GPU of this process failed" : "canceled in joining");
        expect(&m[1], DPL_ECANCELED, "rank 1 of 2");
    }
}

static int abort_it(test_member *m)
{
    const int64_t start = dpl_now_ns();

    test_comm.calls->abort(m->c);
    return dpl_now_ns() - start < 1500 * INT64_C(1000000) ? DPL_OK : DPL_EINTERNAL;
}

/* NCCL's own can wait for ever for a process that is gone. */
static void an_abort_that_does_not_end_holds_nobody(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    if (test_device_has_tsan())
        skip(); /* it takes the end of a detached thread's memory for a race */
    m[0].opt.timeout_ms = m[1].opt.timeout_ms = 300;
    test_comm.nccl->abort_takes(2000);
    test_comm_run(m, 2, NULL, abort_it);
    for (int r = 0; r < 2; r++) assert_int_equal(m[r].err, DPL_OK);
    while (test_comm.nccl->alive()) test_pause_ms(10);
    test_comm.nccl->reset();
}

/* NCCL itself gives up sooner than the time limit says. */
static void the_first_process_may_come_last(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm.nccl->nobody_listens(5);
    test_comm_run(m, 2, NULL, sums);
    for (int r = 0; r < 2; r++)
        if (m[r].err) fail_msg("%d: %s", r, m[r].why.s);
    test_comm.nccl->nobody_listens(1000000);
    m[1].absent = 1;
    m[0].opt.timeout_ms = 300;
    test_comm_run(m, 2, NULL, nothing);
    expect(&m[0], DPL_ETIMEOUT,
           "joining: the other ranks did not come within 0.3 s; nobody listened at rank 0's");
    test_comm.nccl->reset();
}

static void a_failed_start_gives_nccls_words(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    m[1].absent = 1;
    test_comm.nccl->inject(FAKE_NCCL_INIT, 1, 2 /* system error */);
    test_comm_run(m, 2, NULL, nothing);
    expect(&m[0], DPL_EDEVICE, "rank 0 of 2 (GPU 0): joining: unhandled system error");
    test_comm.cuda->inject(FAKE_EVENT, 2, 2, 0);
    m[0].err = 0;
    test_comm_run(m, 2, NULL, nothing);
    expect(&m[0], DPL_EDEVICE, "cudaEventCreateWithFlags: out of memory (CUDA error 2)");
    test_comm.nccl->inject(FAKE_NCCL_ID, 1, 2);
    assert_int_equal(test_comm.calls->id_get(&(dpt_comm_id){ { 0 } }, NULL, &m[0].why),
                     DPL_EDEVICE);
    assert_non_null(strstr(m[0].why.s, "ncclGetUniqueId: unhandled system error"));
}

static void two_members_on_one_gpu_are_refused(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    m[1].same_gpu = 1;
    m[0].opt.timeout_ms = m[1].opt.timeout_ms = 300;
    test_comm_run(m, 2, NULL, nothing);
    assert_true((m[0].err == DPL_EDEVICE) != (m[1].err == DPL_EDEVICE)); /* who came second */
    expect(&m[m[1].err == DPL_EDEVICE], DPL_EDEVICE, "invalid usage (Duplicate GPU detected");
}

static void the_address_is_given_to_nccl_unless_the_user_has(void **state)
{
    dpt_comm_id a, b;
    dpl_text why;
    (void)state;

    need_fakes();
    assert_int_equal(test_comm.calls->id_get(&a, "10.0.0.1:29501", &why), DPL_OK);
    assert_string_equal(getenv("NCCL_COMM_ID"), "10.0.0.1:29501");
    assert_int_equal(test_comm.calls->id_get(&b, "10.0.0.1:29501", &why), DPL_OK);
    assert_memory_equal(&a, &b, sizeof a); /* all processes get the same without talking */
    setenv("NCCL_COMM_ID", "10.0.0.2:7", 1);
    assert_int_equal(test_comm.calls->id_get(&b, "10.0.0.1:29501", &why), DPL_OK);
    assert_string_equal(getenv("NCCL_COMM_ID"), "10.0.0.2:7");
    unsetenv("NCCL_COMM_ID");
    assert_int_equal(test_comm.calls->id_get(&a, NULL, &why), DPL_OK);
    assert_null(getenv("NCCL_COMM_ID"));
    assert_int_equal(test_comm.calls->id_get(&b, NULL, &why), DPL_OK);
    assert_memory_not_equal(&a, &b, sizeof a);
}

static void an_old_nccl_is_refused(void **state)
{
    dpt_comm_id id;
    dpl_text why;
    (void)state;

    need_fakes();
    setenv("FAKE_NCCL_VERSION", "2708", 1);
    assert_int_equal(test_comm.calls->id_get(&id, NULL, &why), DPL_ENOTSUP);
    assert_string_equal(why.s, "libnccl.so.2 is version 2.7: 2.14 or a later 2.x is needed");
    setenv("FAKE_NCCL_VERSION", "21304", 1);
    assert_int_equal(test_comm.calls->id_get(&id, NULL, &why), DPL_ENOTSUP);
    assert_non_null(strstr(why.s, "version 2.13:"));
    setenv("FAKE_NCCL_VERSION", "21403", 1);
    assert_int_equal(test_comm.calls->id_get(&id, NULL, &why), DPL_OK);
    unsetenv("FAKE_NCCL_VERSION");
}

/* --- peers that fail --- */

/* Rank 2 makes no second sum; the others see that by polling, and get out. */
static int sum_without_one(test_member *m)
{
    int err;

    if ((err = test_comm_sum(m, N)) || m->opt.rank == 2) return err;
    if ((err = test_comm.calls->sum_float(m->c, m->dev, N, test_native(m), &m->why))) return err;
    while (!(err = test_comm.calls->poll(m->c, &m->why))) test_pause_ms(5);
    test_comm.calls->abort(m->c);
    test_comm.calls->abort(m->c);
    if (dpl_stream_sync(m->s)) return DPL_EINTERNAL;
    if (test_comm.calls->poll(m->c, NULL) != DPL_EDEVICE) return DPL_EINTERNAL;
    if (test_comm.calls->sum_float(m->c, m->dev, N, test_native(m), NULL) != DPL_EDEVICE)
        return DPL_EINTERNAL;
    return err;
}

static void a_collective_that_does_not_come_forward_is_seen(void **state)
{
    test_member m[4] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    for (int r = 0; r < 4; r++) m[r].opt.timeout_ms = 1500;
    test_comm_run(m, 4, NULL, sum_without_one);
    assert_int_equal(m[2].err, DPL_OK);
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        expect(
            &m[r], DPL_EDEVICE,
            test_format(
                "rank %d of 4 (GPU %d): collective 2 (sum of %d floats) has not come forward for "
                "1.5 s",
                r, r, N));
    }
    assert_int_equal(test_comm.nccl->faults(), 0); /* the fake waits longer */
}

/* The same, and the fake is the first to lose its patience: it names who is missing. */
static void the_fake_names_who_is_missing(void **state)
{
    test_member m[4] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm.nccl->patience_ms(1000);
    test_comm_run(m, 4, NULL, sum_without_one);
    assert_int_equal(test_comm.nccl->faults(), 3);
    expect(&m[1], DPL_EDEVICE, "rank 1 of 4 (GPU 1): a collective: remote process exited");
    if (!strstr(test_comm.nccl->fault(),
                test_format("hung in collective 2 (sum of %d float): only 3 of 4 "
                            "ranks came, missing: 2",
                            N)))
        fail_msg("%s", test_comm.nccl->fault());
}

static int until_it_fails(test_member *m)
{
    int err;

    test_comm_ready(m);
    while (!(err = test_comm.calls->poll(m->c, &m->why))) test_pause_ms(2);
    test_comm.calls->abort(m->c);
    return err;
}

static void poll_finds_an_asynchronous_error(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm_start(m, 2, until_it_fails);
    test_comm_wait_ready(&m[0]);
    test_comm_wait_ready(&m[1]);
    test_comm.nccl->fail_rank(1, 6 /* remote */);
    test_comm_join(&m[1]);
    expect(&m[1], DPL_EDEVICE,
           "rank 1 of 2 (GPU 1): a collective: remote process exited or there was a network error");
    test_comm.nccl->fail_rank(0, 1);
    test_comm_join(&m[0]);
    expect(&m[0], DPL_EDEVICE, "rank 0 of 2 (GPU 0): a collective: unhandled cuda error");
}

static int sums_of_other_lengths(test_member *m)
{
    int err = test_comm.calls->sum_float(m->c, m->dev, m->opt.rank == 1 ? N - 8 : N, test_native(m),
                                         &m->why);

    if (!err) err = until_it_fails(m);
    test_comm.calls->abort(m->c);
    dpl_stream_sync(m->s);
    return err;
}

static int another_order(test_member *m)
{
    int err;

    for (int i = 0; i < 2; i++) {
        err = i == m->opt.rank
                  ? test_comm.calls->broadcast(m->c, m->dev, 64, test_native(m), &m->why)
                  : test_comm.calls->sum_float(m->c, m->dev, 16, test_native(m), &m->why);
        if (err) break;
    }
    if (!err) err = until_it_fails(m);
    test_comm.calls->abort(m->c);
    dpl_stream_sync(m->s);
    return err;
}

static void ranks_that_ask_for_different_things_are_named(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm_run(m, 2, NULL, sums_of_other_lengths);
    expect(&m[0], DPL_EDEVICE, "invalid usage");
    expect(&m[1], DPL_EDEVICE, "invalid usage");
    assert_non_null(strstr(test_comm.nccl->fault(), "collective 1 differs: rank "));
    assert_non_null(strstr(test_comm.nccl->fault(), test_format("rank 1 sum of %d float", N - 8)));
    assert_non_null(strstr(test_comm.nccl->fault(), test_format("rank 0 sum of %d float", N)));
    test_comm_reset();
    test_comm_run(m, 2, NULL, another_order);
    assert_non_null(strstr(test_comm.nccl->fault(), "collective 1 differs: rank "));
    assert_non_null(strstr(test_comm.nccl->fault(), "broadcast of 64 byte from rank 0"));
}

/* Rank 0's stream is waiting for a peer: only another thread can end that. Both leave when they are
 * told. */
static int waits_for_ever(test_member *m)
{
    int err = DPL_OK;

    if (!m->opt.rank) err = test_comm.calls->sum_float(m->c, m->dev, N, test_native(m), &m->why);
    test_comm_ready(m);
    if (!m->opt.rank && !err) err = dpl_stream_sync(m->s);
    test_comm_await(m);
    test_comm.calls->abort(m->c);
    return err;
}

static void another_thread_can_abort(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm_start(m, 2, waits_for_ever);
    test_comm_wait_ready(&m[0]);
    test_comm_wait_ready(&m[1]);
    test_pause_ms(30);
    test_comm.calls->abort(m[0].c);
    for (int r = 0; r < 2; r++) {
        test_comm_go(&m[r]);
        test_comm_join(&m[r]);
    }
    assert_int_equal(m[0].err, DPL_OK);
}

static void a_call_that_fails_gives_nccls_words(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm.nccl->inject(FAKE_NCCL_SUM, 1, 3 /* internal */); /* of the first sum */
    m[0].opt.timeout_ms = m[1].opt.timeout_ms = 500;
    test_comm_run(m, 2, NULL, nothing);
    if (m[0].err == DPL_EDEVICE && strstr(m[0].why.s, "internal error")) return;
    expect(&m[1], DPL_EDEVICE, "(GPU 1): sum of 1 doubles: internal error");
}

/* GPU 1 is lost in the middle: its rank says so, the other one sees that nothing comes forward. */
static int a_gpu_is_lost(test_member *m)
{
    int err;

    if ((err = test_comm_sum(m, N))) return err;
    if (m->opt.rank == 1) test_comm.cuda->lose(m->opt.gpu, 719);
    err = test_comm.calls->sum_float(m->c, m->dev, N, test_native(m), &m->why);
    if (!err) return until_it_fails(m);
    test_comm.calls->abort(m->c);
    return err;
}

static void a_lost_gpu_ends_all(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    m[0].opt.timeout_ms = m[1].opt.timeout_ms = 1000;
    test_comm_run(m, 2, NULL, a_gpu_is_lost);
    assert_int_equal(m[0].err, DPL_EDEVICE);
    assert_int_equal(m[1].err, DPL_EDEVICE);
    if (!strstr(m[0].why.s, "rank 0 of 2")) fail_msg("%s", m[0].why.s);
    if (!strstr(m[1].why.s, "rank 1 of 2")) fail_msg("%s", m[1].why.s);
}

/* --- tests of the tests --- */

static void a_missing_bucket_dependency_is_seen(void **state)
{
    (void)state;
    need_fakes();
    test_comm_plants();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everyone_gets_the_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_order_of_threads_does_not_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_member_that_does_not_come_is_a_time_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(joining_can_be_canceled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_abort_that_does_not_end_holds_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_process_may_come_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_start_gives_nccls_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_members_on_one_gpu_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_address_is_given_to_nccl_unless_the_user_has, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_old_nccl_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_collective_that_does_not_come_forward_is_seen, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_fake_names_who_is_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(poll_finds_an_asynchronous_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_that_ask_for_different_things_are_named, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_thread_can_abort, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_that_fails_gives_nccls_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_gpu_ends_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_bucket_dependency_is_seen, set_up, tear_down),
    };
    int status;

    if (test_comm_child(argc, argv, &status)) return status;
    test_comm_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
