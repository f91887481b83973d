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
        test_comm_expect(
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
    test_comm_expect(&m[1], DPL_EDEVICE,
                     "rank 1 of 4 (GPU 1): a collective: remote process exited");
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
    test_comm_expect(
        &m[1], DPL_EDEVICE,
        "rank 1 of 2 (GPU 1): a collective: remote process exited or there was a network error");
    test_comm.nccl->fail_rank(0, 1);
    test_comm_join(&m[0]);
    test_comm_expect(&m[0], DPL_EDEVICE, "rank 0 of 2 (GPU 0): a collective: unhandled cuda error");
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
    test_comm_expect(&m[0], DPL_EDEVICE, "invalid usage");
    test_comm_expect(&m[1], DPL_EDEVICE, "invalid usage");
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
    test_comm_run(m, 2, NULL, test_comm_nothing);
    if (m[0].err == DPL_EDEVICE && strstr(m[0].why.s, "internal error")) return;
    test_comm_expect(&m[1], DPL_EDEVICE, "(GPU 1): sum of 1 doubles: internal error");
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
        cmocka_unit_test_setup_teardown(everyone_gets_the_sum, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(the_order_of_threads_does_not_matter, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(a_collective_that_does_not_come_forward_is_seen,
                                        test_comm_set_up, test_comm_tear_down),
        cmocka_unit_test_setup_teardown(the_fake_names_who_is_missing, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(poll_finds_an_asynchronous_error, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(ranks_that_ask_for_different_things_are_named,
                                        test_comm_set_up, test_comm_tear_down),
        cmocka_unit_test_setup_teardown(another_thread_can_abort, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(a_call_that_fails_gives_nccls_words, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(a_lost_gpu_ends_all, test_comm_set_up, test_comm_tear_down),
        cmocka_unit_test_setup_teardown(a_missing_bucket_dependency_is_seen, test_comm_set_up,
                                        test_comm_tear_down),
    };
    int status;

    if (test_comm_child(argc, argv, &status)) return status;
    test_comm_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
