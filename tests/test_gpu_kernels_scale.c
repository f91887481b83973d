/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over flat arrays: finite check, loss scale, averages, running statistics, factors. */
#include "tests/gpu_cases.h"
#include "tests/testutil.h"
#include "trainer/parallel_reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Around one group of 16 bytes, and more than one block. */
static const size_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 1023, 1024, 1025, 2500 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static int32_t flag_of(const float *v, size_t n, size_t off, int32_t before)
{
    int32_t *flag = gpu_put(&before, sizeof before), *after, is;
    float *device = gpu_put_off(v, n * sizeof *v, off * sizeof *v);

    assert_int_equal(gpu_kernels()->check_finite(device, n, flag, gpu_stream()), 0);
    after = gpu_get(flag);
    is = *after;
    free(after);
    gpu_free_all(NULL);
    return is;
}

static void one_value_that_is_not_finite_is_found(void **state)
{
    static const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };

    (void)state;
    gpu_kernels();
    for (size_t s = 0; s < SIZES; s++) {
        for (size_t off = 0; off < 4; off++) {
            const size_t n = sizes[s], places[] = { 0, n / 2, n - 1 };
            float *v = gpu_normals(n, 4e37F, n);

            v[n / 3] = 3.4e38F;
            v[n / 4] = -1e-45F;
            assert_int_equal(flag_of(v, n, off, 0), 0);
            assert_int_equal(flag_of(v, n, off, 1), 1); /* an earlier finding stays */
            for (size_t k = 0; k < 3; k++) {
                const float was = v[places[k]];

                v[places[k]] = bad[(k + off) % 4];
                assert_int_equal(flag_of(v, n, off, 0), 1);
                v[places[k]] = was;
            }
            free(v);
        }
    }
}

/* One step of the loss scale; good goes in and out. */
static float scale_after(float scale, int32_t *good, int32_t bad, int interval)
{
    float *device = gpu_put(&scale, sizeof scale), *after;
    int32_t *count = gpu_put(good, sizeof *good), *counted;
    int32_t *flag = gpu_put(&bad, sizeof bad);

    assert_int_equal(
        gpu_kernels()->scale_update(device, count, flag, 2, 0.5, interval, gpu_stream()), 0);
    after = gpu_get(device);
    counted = gpu_get(count);
    scale = *after;
    *good = *counted;
    free(after);
    free(counted);
    gpu_free_all(NULL);
    return scale;
}

/* torch.cuda.amp.GradScaler's rules. */
static void loss_scale_grows_and_backs_off(void **state)
{
    int32_t good = 0;

    (void)state;
    gpu_kernels();
    assert_true(scale_after(1024, &good, 0, 3) == 1024 && good == 1);
    assert_true(scale_after(1024, &good, 0, 3) == 1024 && good == 2);
    assert_true(scale_after(1024, &good, 0, 3) == 2048 && good == 0);
    good = 2;
    assert_true(scale_after(1024, &good, 1, 3) == 512 && good == 0);
    assert_true(scale_after(512, &good, 0, 1) == 1024 && good == 0);
    good = 2;
    assert_true(scale_after(0x1p127F, &good, 0, 3) == 0x1p127F && good == 0); /* not infinite */
}

/* Two arrays, each on its own offset. */
static void check_ema(size_t n, size_t off, size_t off2, double decay)
{
    float *average = gpu_normals(n, 1, 1), *v = gpu_normals(n, 1, 2), *got;
    float *device = gpu_put_off(average, n * sizeof *v, off * sizeof *v);

    assert_int_equal(gpu_kernels()->ema(device, gpu_put_off(v, n * sizeof *v, off2 * sizeof *v), n,
                                        decay, gpu_stream()),
                     0);
    got = gpu_get(device);
    for (size_t i = 0; i < n; i++) {
        const float kept = (float)decay * average[i], taken = (float)(1 - decay) * v[i];

        average[i] = kept + taken;
    }
    gpu_same_numbers(got, average, n, DPT_GPU_FP32, "average");
    free(got);
    free(average);
    free(v);
    gpu_free_all(NULL);
}

static void averages_move(void **state)
{
    (void)state;
    gpu_kernels();
    for (size_t s = 0; s < SIZES; s++)
        for (size_t k = 0; k < 16; k++)
            check_ema(sizes[s], k % 4, k / 4, k == 0 ? 0 : k == 1 ? 1 : 0.999);
}

/* dpt_reduce_slice() over a graph that has nothing but buffers. */
static void running_on_the_host(float *running, float *stats, size_t n, double share)
{
    dpt_graph graph = { .buffer_floats = n };
    dpt_reduce_part part = { .batch_stats = stats, .share = share };
    const dpt_reduce reduce = { .graph = &graph, .part = &part, .parts = 1, .buffers = running };

    dpt_reduce_slice(&reduce, 0, 1);
}

static void running_statistics_are_those_of_the_cpu(void **state)
{
    const double sums[DPT_GPU_SUMS] = { 0, 0, 0, 7 }, none[DPT_GPU_SUMS] = { 0 };
    const int32_t yes = 1, no = 0;
    const size_t n = 700;

    (void)state;
    gpu_kernels();
    for (int k = 0; k < 5; k++) {
        float *running = gpu_normals(n, 1, 1), *stats = gpu_normals(n, 1, 2), *got;
        dpt_gpu_running r = { .n = n, .keep = 0.9, .planned = 8 };

        r.running = gpu_put(running, n * sizeof *running);
        r.stats = gpu_put(stats, n * sizeof *stats);
        if (k > 0) r.sums = gpu_put(k == 2 ? none : sums, sizeof sums);
        if (k > 2) r.skip = gpu_put(k == 3 ? &yes : &no, sizeof yes);
        assert_int_equal(gpu_kernels()->running(&r, gpu_stream()), 0);
        got = gpu_get(r.running);
        if (k != 2 && k != 3) running_on_the_host(running, stats, n, k ? 8 / 7. : 1);
        gpu_same_numbers(got, running, n, DPT_GPU_FP32, test_format("case %d", k));
        free(got);
        free(running);
        free(stats);
        gpu_free_all(NULL);
    }
}

static void arrays_are_multiplied(void **state)
{
    (void)state;
    gpu_kernels();
    for (size_t s = 0; s < SIZES; s++) {
        for (size_t off = 0; off < 4; off++) {
            const size_t n = sizes[s];
            float *v = gpu_normals(n, 1, n), *device, *got;

            device = gpu_put_off(v, n * sizeof *v, off * sizeof *v);
            assert_int_equal(gpu_kernels()->scale(device, n, 1 / 3., gpu_stream()), 0);
            got = gpu_get(device);
            for (size_t i = 0; i < n; i++) v[i] *= (float)(1 / 3.);
            gpu_same_numbers(got, v, n, DPT_GPU_FP32, "product");
            free(got);
            free(v);
            gpu_free_all(NULL);
        }
    }
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    float *v = gpu_new(64), *after;
    int32_t *flag = gpu_new(sizeof *flag);
    const dpt_gpu_running good = { .running = v, .stats = v, .n = 1, .keep = 0.9 };
    dpt_gpu_running bad[4] = { good, good, good, good };
    void *s = gpu_stream();

    (void)state;
    bad[0].running = NULL;
    bad[1].stats = NULL;
    bad[2].keep = 1.5;
    bad[3].sums = (const double *)v; /* planned is 0 */
    for (int i = 0; i < 4; i++) assert_int_equal(k->running(&bad[i], s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->running(NULL, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->check_finite(NULL, 1, flag, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->check_finite(v, 1, NULL, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->scale_update(NULL, flag, flag, 2, 0.5, 1, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->scale_update(v, flag, flag, 2, 0.5, 0, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->scale_update(v, flag, flag, 0.5, 0.5, 1, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->scale_update(v, flag, flag, 2, 0, 1, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->ema(NULL, v, 1, 0.5, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->ema(v, NULL, 1, 0.5, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->ema(v, v, 1, -0.5, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->scale(NULL, 1, 2, s), GPU_BAD_ARGUMENT);
    bad[0] = good;
    bad[0].n = 0;
    assert_int_equal(k->running(&bad[0], s), 0);
    assert_int_equal(k->check_finite(v, 0, flag, s), 0);
    assert_int_equal(k->ema(v, v, 0, 0.5, s), 0);
    assert_int_equal(k->scale(v, 0, 2, s), 0);
    after = gpu_get(v);
    for (size_t i = 0; i < 64; i++) assert_int_equal(((uint8_t *)after)[i], 0xA5);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_value_that_is_not_finite_is_found, gpu_free_all),
        cmocka_unit_test_teardown(loss_scale_grows_and_backs_off, gpu_free_all),
        cmocka_unit_test_teardown(averages_move, gpu_free_all),
        cmocka_unit_test_teardown(running_statistics_are_those_of_the_cpu, gpu_free_all),
        cmocka_unit_test_teardown(arrays_are_multiplied, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
