/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation: against the formula in double, variants bit for bit against C, kernel selection. */
#include "base/cpu.h"
#include "kernels/kernels.h"
#include "tests/testutil.h"

#include <math.h>
#include <string.h>

static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };

static void factors(float scale[3], float bias[3])
{
    for (int c = 0; c < 3; c++) {
        scale[c] = (float)(1 / (255 * std[c]));
        bias[c] = (float)(-mean[c] / std[c]);
    }
}

/* (v / 255 - mean) / std for every byte, in both layouts. */
static void values_match_the_formula(void **state)
{
    float scale[3], bias[3], planes[3 * 256], pixels[3 * 256];
    uint8_t in[3 * 256];

    (void)state;
    factors(scale, bias);
    for (int i = 0; i < 3 * 256; i++) in[i] = (uint8_t)(i / 3);
    dpl_normalize_nchw_c(planes, in, 256, scale, bias);
    dpl_normalize_nhwc_c(pixels, in, 256, scale, bias);
    for (int v = 0; v < 256; v++)
        for (int c = 0; c < 3; c++) {
            const double want = (v / 255.0 - mean[c]) / std[c];
            assert_true(fabs(planes[c * 256 + v] - want) < 1e-6);
            assert_true(fabs(pixels[3 * v + c] - want) < 1e-6);
        }
}

static void variants_match_c(void **state)
{
    static const size_t sizes[] = { 0,  1,  2,  3,  5,  7,  8,   9,   10,  15,
                                    16, 17, 23, 24, 25, 31, 224, 225, 1000 };
    float scale[3], bias[3];
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    if (k.normalize_nchw == dpl_normalize_nchw_c) skip();
    factors(scale, bias);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i], bytes = 3 * n * sizeof(float);
        const uint8_t *in = test_guarded_bytes(3 * n, i);
        float *want = test_canary(bytes), *got = test_canary(bytes);
        dpl_normalize_nchw_c(want, in, n, scale, bias);
        k.normalize_nchw(got, in, n, scale, bias);
        assert_memory_equal(got, want, bytes);
        assert_true(test_canary_ok(got, bytes));
        dpl_normalize_nhwc_c(want, in, n, scale, bias);
        k.normalize_nhwc(got, in, n, scale, bias);
        assert_memory_equal(got, want, bytes);
        assert_true(test_canary_ok(got, bytes));
        test_free_all();
    }
}

/* 255 (1 + 2^-23) - 255: a fused multiply-add would give 255 * 2^-23. */
static void product_is_rounded_before_the_sum(void **state)
{
    const float scale[3] = { 1 + 0x1p-23F, 1 + 0x1p-23F, 1 + 0x1p-23F };
    const float bias[3] = { -255, -255, -255 };
    float out[3 * 8];
    uint8_t in[3 * 8];
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    memset(in, 255, sizeof in);
    k.normalize_nchw(out, in, 8, scale, bias);
    for (int i = 0; i < 24; i++) assert_true(out[i] == 0x1p-15F);
    k.normalize_nhwc(out, in, 8, scale, bias);
    for (int i = 0; i < 24; i++) assert_true(out[i] == 0x1p-15F);
}

static void plain_processors_get_the_c_variants(void **state)
{
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, DPL_CPU_C);
    assert_ptr_equal(k.rows, dpl_resample_rows_c);
    assert_ptr_equal(k.rows_fast, dpl_resample_rows_fast_c);
    assert_ptr_equal(k.cols, dpl_resample_cols_c);
    assert_ptr_equal(k.cols_fast, dpl_resample_cols_fast_c);
    assert_ptr_equal(k.rotate, dpl_rotate_rgb_c);
    assert_ptr_equal(k.normalize_nchw, dpl_normalize_nchw_c);
    assert_ptr_equal(k.normalize_nhwc, dpl_normalize_nhwc_c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_match_the_formula),
        cmocka_unit_test(variants_match_c),
        cmocka_unit_test(product_is_rounded_before_the_sum),
        cmocka_unit_test(plain_processors_get_the_c_variants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
