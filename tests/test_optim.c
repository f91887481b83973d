/* SPDX-License-Identifier: Apache-2.0 */
/* The update rule against PyTorch's SGD, the schedule against torch.optim.lr_scheduler. */
#include "trainer/optim.h"

#include "tests/data/optim_schedule.h"
#include "tests/data/optim_sgd.h"
#include "tests/testutil.h"

#include <math.h>
#include <string.h>

static void run_case(int k, int steps, float *p, float *v)
{
    dpt_update s = sgd_case[k];

    memcpy(p, sgd_start, sizeof sgd_start);
    for (int i = 0; i < SGD_N; i++) v[i] = NAN; /* the first step must not read it */
    for (int i = 0; i < steps; i++) {
        s.first = i == 0;
        dpt_sgd_update(&s, p, v, sgd_grads + (size_t)i * SGD_N, SGD_N);
    }
}

static void sgd_equals_torch_bit_for_bit(void **state)
{
    float p[SGD_N], v[SGD_N];

    (void)state;
    for (int k = 0; k < SGD_CASES; k++) {
        run_case(k, 1, p, v);
        assert_memory_equal(p, sgd_first[k], sizeof p);
        run_case(k, SGD_STEPS, p, v);
        assert_memory_equal(p, sgd_last[k], sizeof p);
        if (sgd_case[k].momentum != 0) assert_memory_equal(v, sgd_velocity[k], sizeof v);
    }
}

/* PyTorch's AVX2 kernels round a product and a sum once, ours (and its portable ones) twice: each
 * of the up to 4 roundings of a step may differ by half a unit of a term of size 8 at most. */
static void sgd_is_close_to_torch_with_fused_kernels(void **state)
{
    float p[SGD_N], v[SGD_N];

    (void)state;
    for (int k = 0; k < SGD_CASES; k++) {
        run_case(k, SGD_STEPS, p, v);
        for (int i = 0; i < SGD_N; i++) {
            assert_true(fabsf(p[i] - sgd_fused_last[k][i]) <= SGD_STEPS * 4 * 0x1p-22f);
        }
    }
}

static void sgd_without_momentum_needs_no_velocity(void **state)
{
    const dpt_update s = { .lr = 0.5 };
    float p[2] = { 1, 2 };
    const float g[2] = { 2, -4 };

    (void)state;
    dpt_sgd_update(&s, p, NULL, g, 2);
    assert_true(p[0] == 0 && p[1] == 4);
    dpt_sgd_update(&s, p, NULL, g, 0);
    assert_true(p[0] == 0 && p[1] == 4);
}

/* Where torch multiplies step by step (StepLR) the bits are the same; its cosine is a recurrence that
 * drifts by rounding, ours the closed form. */
static void expect_rates(const dpt_schedule *s, const double *want, int epochs, double tolerance)
{
    for (int e = 0; e < epochs; e++) {
        const double got = dpt_schedule_lr(s, e, 0);
        if (!(fabs(got - want[e]) <= tolerance * want[e] + tolerance * 1e-3)) {
            fail_msg("epoch %d: %.17g, expected %.17g", e, got, want[e]);
        }
    }
}

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void schedules_equal_torch(void **state)
{
    const dpt_schedule step = {
        .kind = DPT_SCHED_STEP, .lr = 0.1, .epochs = 95, .step_size = 30, .gamma = 0.1
    };
    const dpt_schedule step7 = {
        .kind = DPT_SCHED_STEP, .lr = 0.1, .epochs = 20, .step_size = 7, .gamma = 0.5
    };
    const dpt_schedule cosine = {
        .kind = DPT_SCHED_COSINE, .lr = 0.1, .epochs = 90, .min_lr = 0.001
    };
    const dpt_schedule warm_cosine = {
        .kind = DPT_SCHED_COSINE, .lr = 0.1, .epochs = 60, .warmup = 5, .warmup_start = 0.01
    };
    const dpt_schedule warm_const = {
        .kind = DPT_SCHED_CONST, .lr = 0.1, .epochs = 8, .warmup = 5, .warmup_start = 0.01
    };

    (void)state;
    expect_rates(&step, sched_step, COUNT(sched_step), 0);
    expect_rates(&step7, sched_step7, COUNT(sched_step7), 0);
    expect_rates(&cosine, sched_cosine, COUNT(sched_cosine), 1e-12);
    expect_rates(&warm_cosine, sched_warm_cosine, COUNT(sched_warm_cosine), 1e-12);
    expect_rates(&warm_const, sched_warm_const, COUNT(sched_warm_const), 1e-12);
}

static void schedules_move_within_an_epoch(void **state)
{
    dpt_schedule s = { .kind = DPT_SCHED_COSINE, .lr = 2, .epochs = 10, .min_lr = 1 };

    (void)state;
    assert_true(fabs(dpt_schedule_lr(&s, 4, 1) - 1.5) < 1e-12);
    assert_true(fabs(dpt_schedule_lr(&s, 2, 0.5) - (1.5 + 0.5 * sqrt(0.5))) < 1e-12);
    assert_true(dpt_schedule_lr(&s, 10, 0) == 1);
    assert_true(dpt_schedule_lr(&s, 12, 0.5) == 1);
    s.warmup = 2;
    s.warmup_start = 0.5;
    assert_true(dpt_schedule_lr(&s, 0, 0) == 1);
    assert_true(fabs(dpt_schedule_lr(&s, 0, 0.5) - 2 * 0.625) < 1e-12);
    assert_true(dpt_schedule_lr(&s, 2, 0) == 2);
    s.kind = DPT_SCHED_STEP; /* steps at whole epochs only */
    s.warmup = 0;
    s.step_size = 3;
    s.gamma = 0.5;
    assert_true(dpt_schedule_lr(&s, 2, 0.99) == 2);
    assert_true(dpt_schedule_lr(&s, 3, 0) == 1);
    s.gamma = 1;
    assert_true(dpt_schedule_lr(&s, INT64_MAX, 0) == 2); /* and at once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_equals_torch_bit_for_bit),
        cmocka_unit_test(sgd_is_close_to_torch_with_fused_kernels),
        cmocka_unit_test(sgd_without_momentum_needs_no_velocity),
        cmocka_unit_test(schedules_equal_torch),
        cmocka_unit_test(schedules_move_within_an_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
