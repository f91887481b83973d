/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation: against the formula in double, variants bit for bit against C, kernel selection. */
#include "base/cpu.h"
#include "kernels/kernels.h"
#include "tests/augment_picture.h"
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

/* Ties, subnormals, infinities: as PyTorch rounds them. */
static void sixteen_bits_match_pytorch(void **state)
{
    FILE *f = test_data_open("tests/data/convert16.txt");
    unsigned bits, bfloat, half;
    int n = 0;

    (void)state;
    for (; fscanf(f, "%x %x %x", &bits, &bfloat, &half) == 3; n++) {
        const uint32_t b = bits;
        float v;

        memcpy(&v, &b, sizeof v);
        if (dpl_to_bfloat(v) != bfloat || dpl_to_half(v) != half)
            fail_msg("%08x: got %04x %04x, want %04x %04x", bits, dpl_to_bfloat(v), dpl_to_half(v),
                     bfloat, half);
    }
    fclose(f);
    assert_true(n > 400);
    assert_true((dpl_to_bfloat(NAN) & 0x7fff) > 0x7f80);
    assert_true((dpl_to_half(NAN) & 0x7fff) > 0x7c00);
}

/* One kernel of each type, as bytes. */
typedef struct variant {
    dpl_normalize_fn *c, *fast;
    dpl_normalize16_fn *c16, *fast16;
} variant;

static void compare(const variant *v, size_t n, const float *scale, const float *bias)
{
    const size_t bytes = 3 * n * (v->c ? sizeof(float) : sizeof(uint16_t));
    const uint8_t *in = test_guarded_bytes(3 * n, n);
    void *want = test_canary(bytes), *got = test_canary(bytes);

    if (v->c) {
        v->c(want, in, n, scale, bias);
        v->fast(got, in, n, scale, bias);
    } else {
        v->c16(want, in, n, scale, bias);
        v->fast16(got, in, n, scale, bias);
    }
    assert_memory_equal(got, want, bytes);
    assert_true(test_canary_ok(got, bytes));
    test_free_all();
}

/* Usual factors, and such as give subnormal, infinite and no numbers (of which the last, all bits set,
 * would round up to another). */
static void variants_match_c(void **state)
{
    static const size_t sizes[] = { 0,  1,  2,  3,  5,  7,  8,   9,   10,  15,
                                    16, 17, 23, 24, 25, 31, 224, 225, 1000 };
    float scale[4][3] = {
        { 0 }, { 1e-7F, 3e-8F, 1e-40F }, { 1e36F, 300, 257 }, { INFINITY, 1, 2 }
    };
    float bias[4][3] = {
        { 0 }, { 1e-8F, -4e-6F, 0 }, { 0, -0.0F, 1e30F }, { 0, -INFINITY, nanf("0x3fffff") }
    };
    dpl_kernels k, c;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    dpl_kernels_select(&c, DPL_CPU_C);
    if (k.normalize_nchw == dpl_normalize_nchw_c) skip();
    factors(scale[0], bias[0]);
    const variant all[] = { { c.normalize_nchw, k.normalize_nchw, NULL, NULL },
                            { c.normalize_nhwc, k.normalize_nhwc, NULL, NULL },
                            { NULL, NULL, c.bfloat_nchw, k.bfloat_nchw },
                            { NULL, NULL, c.bfloat_nhwc, k.bfloat_nhwc },
                            { NULL, NULL, c.half_nchw, k.half_nchw },
                            { NULL, NULL, c.half_nhwc, k.half_nhwc } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t v = 0; v < sizeof all / sizeof *all; v++)
            for (int f = 0; f < 4; f++) compare(&all[v], sizes[i], scale[f], bias[f]);
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
    assert_ptr_equal(k.bfloat_nchw, dpl_bfloat_nchw_c);
    assert_ptr_equal(k.half_nhwc, dpl_half_nhwc_c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_match_the_formula),
        cmocka_unit_test(sixteen_bits_match_pytorch),
        cmocka_unit_test(variants_match_c),
        cmocka_unit_test(product_is_rounded_before_the_sum),
        cmocka_unit_test(plain_processors_get_the_c_variants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
