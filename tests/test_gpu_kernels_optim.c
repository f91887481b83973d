/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer kernels: SGD against dpt_sgd_update() bit by bit, AdamW against PyTorch, LARS against its
 * formula. */
#include "tests/data/optim_adamw.h"
#include "tests/gpu_cases.h"
#include "tests/testutil.h"
#include "trainer/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Segments that begin and end off 16 bytes, hold one number, and leave gaps; more than one block. */
static const dpt_gpu_segment segments[] = {
    { 0, 5, 1 }, { 5, 1, 0 }, { 6, 2, 1 }, { 8, 1300, 0 }, { 1311, 4, 1 }, { 1316, 8301, 1 },
};
enum { SEGMENTS = sizeof segments / sizeof *segments, FLOATS = 9621 };

/* A step's arrays: on the host as they were before, and on the device. */
typedef struct arrays {
    float *p, *g, *m, *v;
    dpt_gpu_update u;
} arrays;

static void arrays_make(arrays *a, dpt_rule rule)
{
    const size_t bytes = FLOATS * sizeof(float);

    memset(a, 0, sizeof *a);
    a->p = gpu_normals(FLOATS, 1, 1);
    a->g = gpu_normals(FLOATS, 2, 2);
    a->m = gpu_normals(FLOATS, 1, 3);
    a->v = gpu_normals(FLOATS, 1, 4);
    for (int i = 0; i < FLOATS; i++) a->v[i] = fabsf(a->v[i]);
    a->u = (dpt_gpu_update){ .rule = rule,
                             .segments = SEGMENTS,
                             .floats = FLOATS,
                             .lr = 0.1,
                             .weight_decay = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .eps = 1e-6,
                             .trust = 0.02,
                             .step = 3 };
    a->u.table = gpu_put(segments, sizeof segments);
    a->u.params = gpu_put(a->p, bytes);
    a->u.grads = gpu_put(a->g, bytes);
    a->u.momentum = gpu_put(a->m, bytes);
    a->u.second = gpu_put(a->v, bytes);
    if (rule == DPT_RULE_LARS)
        a->u.norms = gpu_new(SEGMENTS * (2 * DPT_GPU_NORM_PARTS + 1) * sizeof(double));
}

static void arrays_free(arrays *a)
{
    free(a->p);
    free(a->g);
    free(a->m);
    free(a->v);
    gpu_free_all(NULL);
}

static void update(const arrays *a)
{
    assert_int_equal(gpu_kernels()->update(&a->u, gpu_stream()), 0);
}

/* The arrays on the device are what a's are on the host. */
static void same(const arrays *a, const char *what)
{
    float *got = gpu_get(a->u.params);

    gpu_same_numbers(got, a->p, FLOATS, DPT_GPU_FP32, test_format("%s: parameters", what));
    free(got);
    if (a->u.momentum) {
        got = gpu_get(a->u.momentum);
        gpu_same_numbers(got, a->m, FLOATS, DPT_GPU_FP32, test_format("%s: momentum", what));
        free(got);
    }
    if (a->u.rule != DPT_RULE_ADAMW) return;
    got = gpu_get(a->u.second);
    gpu_same_numbers(got, a->v, FLOATS, DPT_GPU_FP32, test_format("%s: second", what));
    free(got);
}

/* What SGD makes of the host's arrays. */
static void sgd_on_the_host(arrays *a, float factor)
{
    for (int s = 0; s < SEGMENTS; s++) {
        const dpt_gpu_segment *t = &segments[s];
        const dpt_update sgd = { .lr = a->u.lr,
                                 .momentum = a->u.beta1,
                                 .weight_decay = t->decay ? a->u.weight_decay : 0,
                                 .nesterov = a->u.nesterov,
                                 .first = a->u.first };

        for (size_t i = t->at; i < t->at + t->count; i++) a->g[i] *= factor;
        dpt_sgd_update(&sgd, a->p + t->at, a->m + t->at, a->g + t->at, t->count);
    }
}

static void sgd_has_the_bits_of_the_cpu(void **state)
{
    (void)state;
    gpu_kernels();
    for (int k = 0; k < 16; k++) {
        arrays a;

        arrays_make(&a, DPT_RULE_SGD);
        a.u.nesterov = k & 1;
        a.u.first = k >> 1 & 1;
        if (k & 4) a.u.beta1 = 0;
        if (k & 8) a.u.weight_decay = 0;
        if (a.u.beta1 == 0) a.u.momentum = NULL;
        sgd_on_the_host(&a, 1);
        update(&a);
        same(&a, test_format("case %d", k));
        arrays_free(&a);
    }
}

/* Arrays off 16 bytes are updated number by number. */
static void sgd_takes_arrays_from_anywhere(void **state)
{
    (void)state;
    gpu_kernels();
    for (int k = 0; k < 3; k++) {
        const size_t bytes = FLOATS * sizeof(float);
        arrays a;

        arrays_make(&a, DPT_RULE_SGD);
        if (k == 0) a.u.params = gpu_put_off(a.p, bytes, 4);
        if (k == 1) a.u.grads = gpu_put_off(a.g, bytes, 8);
        if (k == 2) a.u.momentum = gpu_put_off(a.m, bytes, 12);
        sgd_on_the_host(&a, 1);
        update(&a);
        same(&a, "off 16 bytes");
        arrays_free(&a);
    }
}

static void gradients_are_scaled_to_the_samples_there_were(void **state)
{
    const double sums[DPT_GPU_SUMS] = { 1, 2, 3, 48 };
    const float scale = 512;

    (void)state;
    gpu_kernels();
    for (int k = 1; k < 4; k++) {
        arrays a;

        arrays_make(&a, DPT_RULE_SGD);
        a.u.planned = 64;
        if (k & 1) a.u.sums = gpu_put(sums, sizeof sums);
        if (k & 2) a.u.scale = gpu_put(&scale, sizeof scale);
        sgd_on_the_host(&a, (float)((k & 1 ? 64 / 48. : 1) / (k & 2 ? 512 : 1)));
        update(&a);
        same(&a, "scaled");
        arrays_free(&a);
    }
}

/* A skipped step, and one without samples, leave everything as it is, whatever the rule. */
static void steps_can_be_left_out(void **state)
{
    const double none[DPT_GPU_SUMS] = { 0 }, some[DPT_GPU_SUMS] = { 0, 0, 0, 5 };
    const int32_t yes = 1, no = 0;

    (void)state;
    gpu_kernels();
    for (int rule = DPT_RULE_SGD; rule <= DPT_RULE_LARS; rule++) {
        for (int k = 0; k < 3; k++) {
            arrays a;
            float *p;

            arrays_make(&a, (dpt_rule)rule);
            a.u.planned = 5;
            a.u.sums = gpu_put(k == 1 ? none : some, sizeof none);
            a.u.skip = gpu_put(k == 0 ? &yes : &no, sizeof yes);
            update(&a);
            if (k < 2) same(&a, k ? "no samples" : "skipped");
            p = gpu_get(a.u.params);
            assert_int_equal(memcmp(p, a.p, FLOATS * sizeof *p) != 0, k == 2);
            free(p);
            arrays_free(&a);
        }
    }
}

/* All of torch's numbers as one segment between two others, step by step. */
static void adamw_has_the_bits_of_torch(void **state)
{
    const dpt_gpu_segment table[] = { { 3, ADAMW_N, 1 } };
    const size_t bytes = (ADAMW_N + 3) * sizeof(float);

    (void)state;
    gpu_kernels();
    for (int k = 0; k < ADAMW_CASES; k++) {
        const double *c = adamw_case[k];
        float p[ADAMW_N + 3] = { 1, 2, 3 }, g[ADAMW_N + 3] = { 1, 1, 1 };
        const float zero[ADAMW_N + 3] = { 0 };
        dpt_gpu_update u = { .rule = DPT_RULE_ADAMW,
                             .segments = 1,
                             .floats = ADAMW_N + 3,
                             .lr = c[0],
                             .beta1 = c[1],
                             .beta2 = c[2],
                             .eps = c[3],
                             .weight_decay = c[4] };
        float *got;

        memcpy(p + 3, adamw_start[0], sizeof adamw_start[0]);
        u.table = gpu_put(table, sizeof table);
        u.params = gpu_put(p, bytes);
        u.momentum = gpu_put(zero, bytes);
        u.second = gpu_put(zero, bytes);
        for (u.step = 1; u.step <= ADAMW_STEPS; u.step++) {
            memcpy(g + 3, adamw_grads[u.step - 1], sizeof adamw_grads[0]);
            u.grads = gpu_put(g, bytes);
            assert_int_equal(gpu_kernels()->update(&u, gpu_stream()), 0);
        }
        got = gpu_get(u.params);
        gpu_same_numbers(got + 3, adamw_last[k], ADAMW_N, DPT_GPU_FP32, "parameters");
        assert_true(got[0] == 1 && got[1] == 2 && got[2] == 3);
        free(got);
        got = gpu_get(u.momentum);
        gpu_same_numbers(got + 3, adamw_first_moment[k], ADAMW_N, DPT_GPU_FP32, "first moment");
        free(got);
        got = gpu_get(u.second);
        gpu_same_numbers(got + 3, adamw_second_moment[k], ADAMW_N, DPT_GPU_FP32, "second moment");
        free(got);
        gpu_free_all(NULL);
    }
}

/* A count that stayed behind, since the step before was left out, gives the step before. */
static void adamw_takes_the_number_that_was_counted(void **state)
{
    const double none[DPT_GPU_SUMS] = { 0 }, some[DPT_GPU_SUMS] = { 0, 0, 0, 5 };
    const int32_t yes = 1, no = 0;
    const int64_t two = 2;

    (void)state;
    gpu_kernels();
    for (int k = 0; k < 3; k++) {
        const int counted = k == 2;
        int64_t *done;
        arrays a;

        arrays_make(&a, DPT_RULE_ADAMW);
        a.u.done = done = gpu_put(&two, sizeof two);
        assert_int_equal(
            gpu_kernels()->count_update(done, gpu_put(k == 1 ? none : some, sizeof none),
                                        gpu_put(k ? &no : &yes, sizeof no), gpu_stream()),
            0);
        for (int s = 0; s < SEGMENTS; s++) {
            const dpt_gpu_segment *t = &segments[s];
            const dpt_update u = { .lr = a.u.lr,
                                   .weight_decay = t->decay ? a.u.weight_decay : 0,
                                   .beta1 = a.u.beta1,
                                   .beta2 = a.u.beta2,
                                   .eps = a.u.eps };

            dpt_adamw_update(&u, counted ? 3 : 2, a.p + t->at, a.m + t->at, a.v + t->at,
                             a.g + t->at, t->count);
        }
        update(&a);
        same(&a, counted ? "counted" : "left out");
        done = gpu_get(done);
        assert_int_equal(*done, counted ? 3 : 2);
        free(done);
        arrays_free(&a);
    }
    assert_int_equal(gpu_kernels()->count_update(NULL, NULL, NULL, gpu_stream()), GPU_BAD_ARGUMENT);
}

/* Segments without decay: as if weight decay were zero; numbers outside of segments stay. */
static void adamw_decays_where_it_is_told_to(void **state)
{
    float *with, *without;
    arrays a;

    (void)state;
    gpu_kernels();
    arrays_make(&a, DPT_RULE_ADAMW);
    update(&a);
    with = gpu_get(a.u.params);
    arrays_free(&a);
    arrays_make(&a, DPT_RULE_ADAMW);
    a.u.weight_decay = 0;
    update(&a);
    without = gpu_get(a.u.params);
    for (int s = 0, i = 0; s < SEGMENTS; s++) {
        for (; i < (int)segments[s].at; i++) assert_true(with[i] == a.p[i]);
        for (; i < (int)(segments[s].at + segments[s].count); i++) {
            assert_true(without[i] != a.p[i]);
            if (fabsf(a.p[i]) > 1e-3F) /* else decay may be lost in rounding */
                assert_int_equal(with[i] != without[i], segments[s].decay);
        }
    }
    free(with);
    free(without);
    arrays_free(&a);
}

/* What LARS makes of the host's arrays, in double: segments without decay are SGD's. */
static void lars_on_the_host(const arrays *a, double factor, double *p, double *m)
{
    for (int i = 0; i < FLOATS; i++) p[i] = (double)a->p[i], m[i] = (double)a->m[i];
    for (int s = 0; s < SEGMENTS; s++) {
        const dpt_gpu_segment *t = &segments[s];
        const double decay = t->decay ? a->u.weight_decay : 0;
        double w = 0, g = 0, ratio = 1;

        for (size_t i = t->at; i < t->at + t->count; i++) {
            w += (double)a->p[i] * (double)a->p[i];
            g += factor * (double)a->g[i] * factor * (double)a->g[i];
        }
        if (t->decay) ratio = a->u.trust * sqrt(w) / (sqrt(g) + decay * sqrt(w) + a->u.eps);
        for (size_t i = t->at; i < t->at + t->count; i++) {
            const double d = ratio * (factor * (double)a->g[i] + decay * p[i]);

            m[i] = a->u.beta1 * m[i] + d;
            p[i] -= a->u.lr * (a->u.nesterov ? d + a->u.beta1 * m[i] : m[i]);
        }
    }
}

static void lars_follows_its_formula(void **state)
{
    static double p[FLOATS], m[FLOATS];
    const double sums[DPT_GPU_SUMS] = { 0, 0, 0, 3 };

    (void)state;
    gpu_kernels();
    for (int k = 0; k < 4; k++) {
        float *got_p, *got_m;
        arrays a;

        arrays_make(&a, DPT_RULE_LARS);
        a.u.nesterov = k & 1;
        a.u.planned = 4;
        if (k & 2) a.u.sums = gpu_put(sums, sizeof sums);
        lars_on_the_host(&a, k & 2 ? 4 / 3. : 1, p, m);
        update(&a);
        got_p = gpu_get(a.u.params);
        got_m = gpu_get(a.u.momentum);
        for (int i = 0; i < FLOATS; i++) {
            /* five roundings of numbers below 8 */
            assert_true(fabs((double)got_p[i] - p[i]) < 5 * 0x1p-22);
            assert_true(fabs((double)got_m[i] - m[i]) < 5 * 0x1p-22);
        }
        free(got_p);
        free(got_m);
        arrays_free(&a);
    }
}

/* Where weights or gradients are all zero there is no ratio: plain SGD without decay, as in apex. */
static void lars_without_a_norm_is_sgd(void **state)
{
    float *got;
    arrays a;

    (void)state;
    gpu_kernels();
    for (int weights = 0; weights < 2; weights++) {
        arrays_make(&a, DPT_RULE_LARS);
        memset(weights ? a.p : a.g, 0, FLOATS * sizeof(float));
        if (weights)
            a.u.params = gpu_put(a.p, FLOATS * sizeof(float));
        else
            a.u.grads = gpu_put(a.g, FLOATS * sizeof(float));
        update(&a);
        a.u.weight_decay = 0;
        sgd_on_the_host(&a, 1);
        got = gpu_get(a.u.params);
        gpu_same_numbers(got, a.p, FLOATS, DPT_GPU_FP32, "parameters");
        free(got);
        arrays_free(&a);
    }
}

/* The same bits again, and for a segment alone as beside others. */
static void lars_sums_in_one_order(void **state)
{
    const dpt_gpu_segment *last = &segments[SEGMENTS - 1];
    float *all, *alone;
    arrays a;

    (void)state;
    gpu_kernels();
    arrays_make(&a, DPT_RULE_LARS);
    update(&a);
    all = gpu_get(a.u.params);
    arrays_free(&a);
    arrays_make(&a, DPT_RULE_LARS);
    a.u.table = gpu_put(last, sizeof *last);
    a.u.segments = 1;
    update(&a);
    alone = gpu_get(a.u.params);
    gpu_same_numbers(alone + last->at, all + last->at, last->count, DPT_GPU_FP32, "alone");
    gpu_same_numbers(alone, a.p, last->at, DPT_GPU_FP32, "outside");
    free(all);
    free(alone);
    arrays_free(&a);
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    arrays a;

    (void)state;
    for (int i = 0; i < 12; i++) {
        arrays_make(&a, i < 6 ? DPT_RULE_SGD : i < 9 ? DPT_RULE_ADAMW : DPT_RULE_LARS);
        switch (i) {
        case 0: a.u.params = NULL; break;
        case 1: a.u.grads = NULL; break;
        case 2: a.u.table = NULL; break;
        case 3: a.u.momentum = NULL; break;
        case 4: a.u.segments = -1; break;
        case 5: a.u.sums = (const double *)a.u.table; break; /* planned is 0 */
        case 6: a.u.second = NULL; break;
        case 7: a.u.step = 0; break;
        case 8: a.u.momentum = NULL; break;
        case 9: a.u.norms = NULL; break;
        case 10: a.u.momentum = NULL; break;
        case 11: a.u.rule = (dpt_rule)3; break;
        }
        if (k->update(&a.u, gpu_stream()) != GPU_BAD_ARGUMENT) fail_msg("case %d", i);
        arrays_free(&a);
    }
    assert_int_equal(k->update(NULL, gpu_stream()), GPU_BAD_ARGUMENT);
    arrays_make(&a, DPT_RULE_LARS);
    a.u.floats = 0;
    update(&a);
    a.u.floats = FLOATS;
    a.u.segments = 0;
    update(&a);
    same(&a, "nothing to do");
    arrays_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sgd_has_the_bits_of_the_cpu, gpu_free_all),
        cmocka_unit_test_teardown(sgd_takes_arrays_from_anywhere, gpu_free_all),
        cmocka_unit_test_teardown(gradients_are_scaled_to_the_samples_there_were, gpu_free_all),
        cmocka_unit_test_teardown(steps_can_be_left_out, gpu_free_all),
        cmocka_unit_test_teardown(adamw_has_the_bits_of_torch, gpu_free_all),
        cmocka_unit_test_teardown(adamw_takes_the_number_that_was_counted, gpu_free_all),
        cmocka_unit_test_teardown(adamw_decays_where_it_is_told_to, gpu_free_all),
        cmocka_unit_test_teardown(lars_follows_its_formula, gpu_free_all),
        cmocka_unit_test_teardown(lars_without_a_norm_is_sgd, gpu_free_all),
        cmocka_unit_test_teardown(lars_sums_in_one_order, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
