/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows against sums in double, the same bits twice; statistics of a batch against their
 * definition. */
#include "tests/gpu_cases.h"
#include "tests/testutil.h"
#include "trainer/cuda/gpu_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    size_t rows;
    int stride, columns;
} shape;

/* No row, fewer rows than parts, columns around a block's, padding. */
static const shape shapes[] = { { 0, 8, 3 },   { 1, 8, 8 },      { 3, 40, 33 },  { 127, 32, 32 },
                                { 129, 8, 7 }, { 1000, 16, 10 }, { 4099, 8, 1 }, { 300, 72, 65 } };

static float *sums_of(const void *x, dpt_gpu_type type, const shape *s, size_t off)
{
    const size_t n = (size_t)s->columns;
    dpt_gpu_columns c = {
        .type = type, .rows = s->rows, .stride = s->stride, .columns = s->columns
    };

    c.x = gpu_put(x, s->rows * (size_t)s->stride * gpu_size(type));
    c.sums = gpu_put_off(NULL, n * sizeof(float), off * sizeof(float));
    c.parts = gpu_new(n * DPT_GPU_COLUMN_PARTS * sizeof(float));
    assert_int_equal(gpu_kernels()->columns(&c, gpu_stream()), 0);
    return gpu_get(c.sums);
}

static void columns_are_summed(void **state)
{
    (void)state;
    gpu_kernels();
    for (int t = 0; t < GPU_TYPES; t++) {
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            const shape *s = &shapes[k];
            const size_t n = s->rows * (size_t)s->stride;
            float *v = gpu_normals(n + 1, 1, k + 1), *got, *again;
            unsigned char *x = malloc((n + 1) * sizeof(float));

            assert_non_null(x);
            for (size_t i = 0; i < n; i++) gpu_store(x, i, (dpt_gpu_type)t, v[i]);
            got = sums_of(x, (dpt_gpu_type)t, s, k % 4);
            again = sums_of(x, (dpt_gpu_type)t, s, 0);
            assert_memory_equal(got, again, (size_t)s->columns * sizeof *got);
            for (int c = 0; c < s->columns; c++) {
                double want = 0, size = 1;

                for (size_t r = 0; r < s->rows; r++) {
                    const double a =
                        (double)gpu_float(x, r * (size_t)s->stride + (size_t)c, (dpt_gpu_type)t);

                    want += a;
                    size += fabs(a);
                }
                assert_true(fabs((double)got[c] - want) <= 1e-6 * size);
            }
            free(got);
            free(again);
            free(v);
            free(x);
            gpu_free_all(NULL);
        }
    }
}

static void statistics_are_those_of_the_batch(void **state)
{
    enum { CHANNELS = 300, VALUES = 37 };
    float mean[CHANNELS], inverse[CHANNELS], *got_mean, *got_var;
    double want[CHANNELS];
    float *x = gpu_normals(CHANNELS * VALUES, 3, 1);
    dpt_gpu_batch_stats b = { .channels = CHANNELS, .count = VALUES, .epsilon = 1e-5 };

    (void)state;
    gpu_kernels();
    for (int c = 0; c < CHANNELS; c++) {
        double m = 0, v = 0;

        for (int i = 0; i < VALUES; i++) m += (double)x[c * VALUES + i] / VALUES;
        for (int i = 0; i < VALUES; i++) v += pow((double)x[c * VALUES + i] - m, 2);
        mean[c] = (float)m;
        inverse[c] = (float)(1 / sqrt(v / VALUES + 1e-5));
        want[c] = v / (VALUES - 1);
    }
    b.mean = gpu_put(mean, sizeof mean);
    b.inverse = gpu_put(inverse, sizeof inverse);
    b.out_mean = gpu_put_off(NULL, sizeof mean, 4);
    b.out_var = gpu_put_off(NULL, sizeof mean, 12);
    assert_int_equal(gpu_kernels()->batch_stats(&b, gpu_stream()), 0);
    got_mean = gpu_get(b.out_mean);
    got_var = gpu_get(b.out_var);
    assert_memory_equal(got_mean, mean, sizeof mean);
    for (int c = 0; c < CHANNELS; c++) {
        assert_true(fabs((double)got_var[c] - want[c]) <= 1e-6 * want[c]);
    }
    free(got_mean);
    free(got_var);
    free(x);
}

static void variance_at_its_limits(void **state)
{
    (void)state;
    assert_true(dpt_batch_variance(316.2278F, 1, 1e-5) == 0);       /* one value */
    assert_true(dpt_batch_variance(316.2278F, 100, 1e-5) < 1e-11F); /* values that are all alike */
    assert_true(dpt_batch_variance(316.3F, 100, 1e-5) == 0);        /* rounding never goes below */
    assert_true(isnan(dpt_batch_variance(NAN, 100, 1e-5)));
    assert_true(fabs((double)dpt_batch_variance(1, 2, 1e-5) - 2 * (1 - 1e-5)) < 1e-6);
}

static void arguments_that_cannot_be_are_refused(void **state)
{
    dpt_gpu_columns c = { .rows = 1, .stride = 8, .columns = 8 };
    dpt_gpu_batch_stats b = { .channels = 1, .count = 1, .epsilon = 1e-5 };

    (void)state;
    gpu_kernels();
    assert_int_equal(gpu_kernels()->columns(&c, gpu_stream()), GPU_BAD_ARGUMENT);
    c.x = c.sums = c.parts = gpu_new(64);
    c.columns = 9;
    assert_int_equal(gpu_kernels()->columns(&c, gpu_stream()), GPU_BAD_ARGUMENT);
    assert_int_equal(gpu_kernels()->batch_stats(&b, gpu_stream()), GPU_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(columns_are_summed, gpu_free_all),
        cmocka_unit_test_teardown(statistics_are_those_of_the_batch, gpu_free_all),
        cmocka_unit_test(variance_at_its_limits),
        cmocka_unit_test_teardown(arguments_that_cannot_be_are_refused, gpu_free_all),
    };

    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
