/* SPDX-License-Identifier: Apache-2.0 */
/* How GPUs that are summed over find each other, and what keeps them from it. Over the fakes only. */
#include "base/clock.h"
#include "dpload.h"
#include "tests/comm_cases.h"
#include "tests/device_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = TEST_COMM_FLOATS };

static void a_member_that_does_not_come_is_a_time_out(void **state)
{
    test_member m[4] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    for (int r = 0; r < 4; r++) m[r].opt.timeout_ms = 300;
    m[2].absent = 1;
    test_comm_run(m, 4, NULL, test_comm_nothing);
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        test_comm_expect(&m[r], DPL_ETIMEOUT, "joining: the other ranks did not come within 0.3 s");
        test_comm_expect(&m[r], DPL_ETIMEOUT, test_format("rank %d of 4 (GPU %d)", r, r));
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
        test_comm_run(m, 2, &word, test_comm_nothing);
        test_comm_expect(&m[0], DPL_ECANCELED,
                         turn ? "another GPU of this process failed" : "canceled in joining");
        test_comm_expect(&m[1], DPL_ECANCELED, "rank 1 of 2");
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

static int one_sum(test_member *m)
{
    return test_comm_sum(m, N);
}

/* NCCL itself gives up sooner than the time limit says. */
static void the_first_process_may_come_last(void **state)
{
    test_member m[2] = { { .turn = 0 } };
    (void)state;

    need_fakes();
    test_comm.nccl->nobody_listens(5);
    test_comm_run(m, 2, NULL, one_sum);
    for (int r = 0; r < 2; r++)
        if (m[r].err) fail_msg("%d: %s", r, m[r].why.s);
    test_comm.nccl->nobody_listens(1000000);
    m[1].absent = 1;
    m[0].opt.timeout_ms = 300;
    test_comm_run(m, 2, NULL, test_comm_nothing);
    test_comm_expect(
        &m[0], DPL_ETIMEOUT,
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
    test_comm_run(m, 2, NULL, test_comm_nothing);
    test_comm_expect(&m[0], DPL_EDEVICE, "rank 0 of 2 (GPU 0): joining: unhandled system error");
    test_comm.cuda->inject(FAKE_EVENT, 2, 2, 0);
    m[0].err = 0;
    test_comm_run(m, 2, NULL, test_comm_nothing);
    test_comm_expect(&m[0], DPL_EDEVICE, "cudaEventCreateWithFlags: out of memory (CUDA error 2)");
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
    test_comm_run(m, 2, NULL, test_comm_nothing);
    assert_true((m[0].err == DPL_EDEVICE) != (m[1].err == DPL_EDEVICE)); /* who came second */
    test_comm_expect(&m[m[1].err == DPL_EDEVICE], DPL_EDEVICE,
                     "invalid usage (Duplicate GPU detected");
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_member_that_does_not_come_is_a_time_out, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(joining_can_be_canceled, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(an_abort_that_does_not_end_holds_nobody, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(the_first_process_may_come_last, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(a_failed_start_gives_nccls_words, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(two_members_on_one_gpu_are_refused, test_comm_set_up,
                                        test_comm_tear_down),
        cmocka_unit_test_setup_teardown(the_address_is_given_to_nccl_unless_the_user_has,
                                        test_comm_set_up, test_comm_tear_down),
        cmocka_unit_test_setup_teardown(an_old_nccl_is_refused, test_comm_set_up,
                                        test_comm_tear_down),
    };
    int status;

    if (test_comm_child(argc, argv, &status)) return status;
    test_comm_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
