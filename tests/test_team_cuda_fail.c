/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of GPUs that fail: at each call that can, with each kind of failure. Nothing hangs, nothing is
 * left allocated, and the text says which GPU and what. */
#include "base/clock.h"
#include "dpload.h"
#include "tests/device_cases.h"
#include "tests/gpu_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, LAUNCH_FAILURE = 719, REMOTE_ERROR = 6 };
enum { PATIENCE_MS = 10000 };

static const test_gpu_case two = {
    .arch = "slimnet", .size = 8, .gpus = 2, .n = { 2, 1 }, .timeout_ms = PATIENCE_MS
};

/* --- a whole life, without copies of its own --- */

static int steps(test_gpus *g, dpl_text *why)
{
    dpt_team_part part[TEST_GPUS];
    dpt_team_result r;
    int err = DPL_OK;

    for (int k = 0; k < 3 && !err; k++) {
        const dpt_team_step s = { .part = test_gpus_parts(g, k, part),
                                  .update = test_gpus_sgd(k),
                                  .planned = test_gpus_planned(&g->c) };

        if (k == 2) err = dpt_team_collect(g->team, &r, why);
        if (!err) err = dpt_team_submit(g->team, &s, why);
    }
    for (int k = 0; k < 2 && !err; k++) err = dpt_team_collect(g->team, &r, why);
    return err;
}

static int life(test_gpus *g, dpl_text *why)
{
    dpt_team_part part[TEST_GPUS];
    dpt_sums sums;
    int err;

    why->s[0] = 0;
    if ((err = test_gpus_start(g, why))) return err;
    if (!(err = steps(g, why)) &&
        !(err = dpt_team_evaluate(g->team, test_gpus_parts(g, 0, part), &sums, why)))
        err = dpt_team_fetch(g->team, why);
    dpt_team_destroy(&g->team);
    return err;
}

/* Slots are filled once; what fails later is the team's. */
static void open_filled(test_gpus *g, const test_gpu_case *c)
{
    dpt_team_part part[TEST_GPUS];

    test_gpus_open(g, c);
    for (int k = 0; k < TEST_SLOTS; k++) test_gpus_feed(g, k, part);
    for (int p = 0; p < c->gpus; p++) assert_int_equal(dpl_stream_sync(g->copy[p]), DPL_OK);
}

static void names_a_gpu(const dpl_text *why, const char *what)
{
    if (strncmp(why->s, "GPU 0 (cuda:0): ", 16) && strncmp(why->s, "GPU 1 (cuda:1): ", 16))
        fail_msg("%s: \"%s\"", what, why->s);
}

/* --- each call --- */

typedef struct failure {
    const char *name;
    fake_cuda_call call;
    int e, sticky, err;
    const char *words; /* of the text, when it is sure whose comes first */
} failure;

/* @return 1, or 0 when the life has fewer than k such calls */
static int fails_well(test_gpus *g, const failure *f, int k)
{
    const fake_cuda *fake = test_fake_cuda();
    const fake_nccl *nccl = test_fake_nccl();
    const int before = fake->alive(), first = fake->count(f->call);
    const int64_t start = dpl_now_ns();
    const char *what = test_format("%s %d", f->name, k);
    dpl_text why;
    int err, reached;

    fake->inject(f->call, k, f->e, f->sticky);
    err = life(g, &why);
    reached = fake->count(f->call) - first >= k;
    fake->reset();
    nccl->reset();
    if (fake->alive() != before || nccl->alive())
        fail_msg("%s: %d objects left, %d communicators", what, fake->alive() - before,
                 nccl->alive());
    if (dpl_now_ns() - start > PATIENCE_MS * 1000000LL) fail_msg("%s: it hung", what);
    if (!reached) {
        if (err) fail_msg("%s: %s", what, why.s);
        return 0;
    }
    if (err == DPL_ENOMEM && !strstr(why.s, " free now")) fail_msg("%s: \"%s\"", what, why.s);
    if (err != f->err && !(f->err == DPL_ENOMEM && strstr(why.s, "a first sum: out of memory")))
        fail_msg("%s: %d, \"%s\"", what, err, why.s);
    names_a_gpu(&why, what);
    if (f->words && !strstr(why.s, f->words)) fail_msg("%s: \"%s\"", what, why.s);
    return 1;
}

static void each_call_may_fail(void **state)
{
    static const failure list[] = {
        { "device memory", FAKE_ALLOC, OUT_OF_MEMORY, 0, DPL_ENOMEM, "out of " },
        { "host memory", FAKE_HOST_ALLOC, OUT_OF_MEMORY, 0, DPL_EDEVICE, "CUDA error 2" },
        { "stream", FAKE_STREAM, LAUNCH_FAILURE, 0, DPL_EDEVICE, "CUDA error 719" },
        { "event", FAKE_EVENT, LAUNCH_FAILURE, 0, DPL_EDEVICE, "CUDA error 719" },
        { "copy", FAKE_COPY, ILLEGAL_ADDRESS, 0, DPL_EDEVICE, "CUDA error 700" },
        { "copy under way", FAKE_COPY, ILLEGAL_ADDRESS, 1, DPL_EDEVICE, NULL },
        { "memset", FAKE_SET, ILLEGAL_ADDRESS, 0, DPL_EDEVICE, "CUDA error 700" },
        { "memset under way", FAKE_SET, ILLEGAL_ADDRESS, 1, DPL_EDEVICE, NULL },
        { "kernel", FAKE_LAUNCH, LAUNCH_FAILURE, 0, DPL_EDEVICE, "CUDA error 719" },
        { "kernel under way", FAKE_LAUNCH, LAUNCH_FAILURE, 1, DPL_EDEVICE, NULL },
    };
    const int stride = test_device_has_tsan() ? 5 : 1;
    test_gpus g;

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(2)) skip();
    open_filled(&g, &two);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int k = 1;

        while (fails_well(&g, &list[i], k)) k += stride;
        assert_true(k > 2 * stride || k > 2); /* each GPU makes such calls */
    }
    test_gpus_close(&g);
}

static void each_call_of_nccl_may_fail(void **state)
{
    const fake_cuda *fake = test_fake_cuda();
    const fake_nccl *nccl = test_fake_nccl();
    const int stride = test_device_has_tsan() ? 3 : 1;
    test_gpus g;
    dpl_text why;

    (void)state;
    if (!fake || !test_gpus_there(2)) skip();
    open_filled(&g, &two);
    for (int call = 0; call < FAKE_NCCL_CALLS; call++) {
        for (int k = 1;; k += stride) {
            const int before = fake->alive(), first = nccl->count((fake_nccl_call)call);
            int err, reached;

            nccl->inject((fake_nccl_call)call, k, REMOTE_ERROR);
            err = life(&g, &why);
            reached = nccl->count((fake_nccl_call)call) - first >= k;
            nccl->reset();
            fake->reset();
            assert_int_equal(fake->alive(), before);
            assert_int_equal(nccl->alive(), 0);
            assert_int_equal(err, reached ? DPL_EDEVICE : DPL_OK);
            if (!reached) break;
            if (call != FAKE_NCCL_ID) names_a_gpu(&why, "NCCL");
        }
    }
    test_gpus_close(&g);
}

/* --- a GPU that is lost, a peer that fails, a stream that is stuck --- */

static int submit_one(test_gpus *g, int k, dpl_text *why)
{
    dpt_team_part part[TEST_GPUS];
    const dpt_team_step s = { .part = test_gpus_parts(g, k, part),
                              .update = test_gpus_sgd(k),
                              .planned = test_gpus_planned(&g->c) };

    return dpt_team_submit(g->team, &s, why);
}

static void a_lost_gpu_ends_the_step_of_all(void **state)
{
    const fake_cuda *fake = test_fake_cuda();
    dpt_team_result r;
    test_gpus g;
    dpl_text why = { "" }, again = { "" };

    (void)state;
    if (!fake || !test_gpus_there(2)) skip();
    open_filled(&g, &two);
    assert_int_equal(test_gpus_start(&g, &why), DPL_OK);
    fake->hold(1);
    assert_int_equal(submit_one(&g, 0, &why), DPL_OK);
    fake->lose(1, ILLEGAL_ADDRESS);
    fake->hold(0);
    assert_int_equal(dpt_team_collect(g.team, &r, &why), DPL_EDEVICE);
    names_a_gpu(&why, "lost");
    assert_int_equal(submit_one(&g, 1, &again), DPL_EDEVICE); /* the first failure stays */
    assert_string_equal(why.s, again.s);
    assert_int_equal(dpt_team_fetch(g.team, &again), DPL_EDEVICE);
    assert_string_equal(why.s, again.s);
    dpt_team_destroy(&g.team);
    fake->reset();
    test_fake_nccl()->reset();
    test_gpus_close(&g);
}

static void a_failed_peer_ends_the_step_of_all(void **state)
{
    const fake_nccl *nccl = test_fake_nccl();
    dpt_team_result r;
    test_gpus g;
    dpl_text why = { "" };

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(2)) skip();
    open_filled(&g, &two);
    assert_int_equal(test_gpus_start(&g, &why), DPL_OK);
    test_fake_cuda()->hold(1);
    assert_int_equal(submit_one(&g, 0, &why), DPL_OK);
    nccl->fail_rank(1, REMOTE_ERROR);
    assert_int_equal(dpt_team_collect(g.team, &r, &why), DPL_EDEVICE);
    names_a_gpu(&why, "peer");
    assert_non_null(strstr(why.s, "rank "));
    test_fake_cuda()->hold(0);
    dpt_team_destroy(&g.team);
    test_fake_cuda()->reset();
    nccl->reset();
    test_gpus_close(&g);
}

/* Each GPU's end of what it waits for may take long: they take it together. */
static void gpus_that_end_slowly_do_so_at_once(void **state)
{
    enum { EACH_MS = 1500 };
    dpt_team_result r;
    test_gpus g;
    dpl_text why = { "" };
    int64_t start;

    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(2)) skip();
    open_filled(&g, &two);
    assert_int_equal(test_gpus_start(&g, &why), DPL_OK);
    test_fake_cuda()->hold(1);
    assert_int_equal(submit_one(&g, 0, &why), DPL_OK);
    test_fake_nccl()->abort_takes(EACH_MS);
    start = dpl_now_ns();
    test_fake_nccl()->fail_rank(1, REMOTE_ERROR);
    assert_int_equal(dpt_team_collect(g.team, &r, &why), DPL_EDEVICE);
    assert_true(dpl_now_ns() - start < EACH_MS * 9 / 5 * INT64_C(1000000));
    test_fake_cuda()->hold(0);
    dpt_team_destroy(&g.team);
    assert_int_equal(test_fake_nccl()->alive(), 0);
    test_fake_cuda()->reset();
    test_fake_nccl()->reset();
    test_gpus_close(&g);
}

/* In a process of its own: what is stuck cannot be given back. */
static int stuck_stream(void)
{
    test_gpu_case c = { .arch = "slimnet", .size = 8, .gpus = 1, .n = { 2 }, .timeout_ms = 300 };
    const int64_t start = dpl_now_ns();
    dpt_team_result r;
    test_gpus g;
    dpl_text why = { "" };

    open_filled(&g, &c);
    if (test_gpus_start(&g, &why)) return 2;
    test_fake_cuda()->stick(dpt_team_streams(g.team)[0], 1);
    if (submit_one(&g, 0, &why)) return 3;
    if (dpt_team_collect(g.team, &r, &why) != DPL_EDEVICE) return 4;
    if (strcmp(why.s, "GPU 0 (cuda:0): a training step is not over after 0.3 s: the GPU hangs; "
                      "look at nvidia-smi and the system's log"))
        return 5;
    dpt_team_destroy(&g.team);
    return dpl_now_ns() - start > PATIENCE_MS * 1000000LL ? 6 : 0;
}

static void a_stuck_stream_is_given_up(void **state)
{
    (void)state;
    if (!test_fake_cuda()) skip();
    assert_int_equal(test_gpus_child("stuck", ""), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_may_fail),
        cmocka_unit_test(each_call_of_nccl_may_fail),
        cmocka_unit_test(a_lost_gpu_ends_the_step_of_all),
        cmocka_unit_test(a_failed_peer_ends_the_step_of_all),
        cmocka_unit_test(gpus_that_end_slowly_do_so_at_once),
        cmocka_unit_test(a_stuck_stream_is_given_up),
    };

    if (argc == 3 && !strcmp(argv[1], "planted")) _exit(stuck_stream());
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
