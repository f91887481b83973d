/* SPDX-License-Identifier: Apache-2.0 */
/* The input kernel without scaling (test_gpu_kernels_crop.c has that) against kernels/convert.h, bit by
 * bit. */
#include "kernels/convert.h"
#include "tests/gpu_cases.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Height and width: less than a block, one block, blocks that end on 16 bytes, several with a tail. */
static const int sizes[][2] = { { 1, 1 }, { 3, 5 }, { 16, 16 }, { 24, 32 }, { 17, 31 } };
enum { SIZES = sizeof sizes / sizeof *sizes, N = 3 };

static const float mean[3] = { 0.485F, 0.456F, 0.406F }, std[3] = { 0.229F, 0.224F, 0.225F };

/* One form of output. */
typedef struct form {
    int nchw, channels;
    const char *name;
} form;
static const form forms[] = { { 0, 3, "NHWC" }, { 0, 8, "NHWC of 8" }, { 1, 3, "NCHW" } };

static dpt_gpu_input job_of(const form *f, dpt_gpu_type type, int n, int h, int w)
{
    dpt_gpu_input in = { .pixels = DPT_GPU_PIXELS_U8_NHWC,
                         .n = n,
                         .src_h = h,
                         .src_w = w,
                         .h = h,
                         .w = w,
                         .type = type,
                         .nchw = f->nchw,
                         .channels = f->channels };

    memcpy(in.mean, mean, sizeof mean);
    memcpy(in.std, std, sizeof std);
    return in;
}

static size_t numbers(const dpt_gpu_input *in)
{
    return (size_t)in->n * (size_t)in->h * (size_t)in->w * (size_t)in->channels;
}

/* Run on bytes; the output on the host. free() it. */
static void *run(dpt_gpu_input *in, const void *src, size_t bytes)
{
    in->src = gpu_put(src, bytes);
    in->dst = gpu_new(numbers(in) * gpu_size(in->type));
    assert_int_equal(gpu_kernels()->input(in, gpu_stream()), 0);
    return gpu_get(in->dst);
}

/* Where number c of pixel `at` of picture i lies. */
static size_t place(const dpt_gpu_input *in, int i, size_t at, int c)
{
    const size_t plane = (size_t)in->h * (size_t)in->w, channels = (size_t)in->channels;

    if (in->nchw) return ((size_t)i * 3 + (size_t)c) * plane + at;
    return ((size_t)i * plane + at) * channels + (size_t)c;
}

/* One picture by the C reference, in the form of the job, three channels. */
static void reference(void *out, const uint8_t *in, size_t pixels, dpt_gpu_type type, int nchw)
{
    float scale[3], bias[3];

    for (int c = 0; c < 3; c++) {
        scale[c] = (float)(1 / (255.0 * (double)std[c]));
        bias[c] = (float)(-(double)mean[c] / (double)std[c]);
    }
    switch (type) {
    case DPT_GPU_FP32:
        (nchw ? dpl_normalize_nchw_c : dpl_normalize_nhwc_c)(out, in, pixels, scale, bias);
        return;
    case DPT_GPU_BF16:
        (nchw ? dpl_bfloat_nchw_c : dpl_bfloat_nhwc_c)(out, in, pixels, scale, bias);
        return;
    case DPT_GPU_FP16: (nchw ? dpl_half_nchw_c : dpl_half_nhwc_c)(out, in, pixels, scale, bias);
    }
}

/* Expected numbers of all pictures, zeros in channels 3 to 7. free() it. */
static void *expected(const dpt_gpu_input *in, const uint8_t *bytes)
{
    const size_t plane = (size_t)in->h * (size_t)in->w, size = gpu_size(in->type);
    char *want = calloc(numbers(in), size), *one = malloc(3 * plane * size);

    assert_true(want && one);
    for (int i = 0; i < in->n; i++) {
        reference(one, bytes + (size_t)i * 3 * plane, plane, in->type, in->nchw);
        for (size_t at = 0; at < plane; at++) {
            for (size_t c = 0; c < 3; c++) {
                const size_t from = in->nchw ? c * plane + at : 3 * at + c;

                memcpy(want + place(in, i, at, (int)c) * size, one + from * size, size);
            }
        }
    }
    free(one);
    return want;
}

static void mirror(uint8_t *out, const uint8_t *in, int h, int w)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) memcpy(out + 3 * (y * w + x), in + 3 * (y * w + w - 1 - x), 3);
}

static void check_convert(const form *f, dpt_gpu_type type, int h, int w, int flipped)
{
    const size_t one = (size_t)h * (size_t)w * 3;
    const uint8_t flip[N] = { 0, 1, 1 };
    dpt_gpu_input in = job_of(f, type, N, h, w);
    uint8_t *bytes = test_guarded_bytes(N * one, (uint64_t)(h + w)), *turned = malloc(N * one);
    void *got, *want;

    assert_non_null(turned);
    memcpy(turned, bytes, N * one);
    for (int i = 1; flipped && i < N; i++)
        mirror(turned + (size_t)i * one, bytes + (size_t)i * one, h, w);
    if (flipped) in.flip = gpu_put(flip, sizeof flip);
    got = run(&in, bytes, N * one);
    want = expected(&in, turned);
    gpu_same_numbers(got, want, numbers(&in), type, f->name);
    free(got);
    free(want);
    free(turned);
    gpu_free_all(NULL);
    test_free_all();
}

static void bytes_are_converted_bit_by_bit(void **state)
{
    (void)state;
    gpu_kernels();
    for (size_t f = 0; f < 3; f++)
        for (int type = 0; type < GPU_TYPES; type++)
            for (size_t s = 0; s < SIZES; s++)
                for (int flipped = 0; flipped < 2; flipped++)
                    check_convert(&forms[f], (dpt_gpu_type)type, sizes[s][0], sizes[s][1], flipped);
}

static void check_floats(const form *f, dpt_gpu_type type, int h, int w)
{
    const size_t plane = (size_t)h * (size_t)w;
    const uint8_t flip[N] = { 1, 0, 1 };
    dpt_gpu_input in = job_of(f, type, N, h, w);
    float *src = gpu_normals(N * 3 * plane, 2, 5);
    void *want = calloc(N * plane * (size_t)f->channels, gpu_size(type)), *got;

    assert_non_null(want);
    in.pixels = DPT_GPU_PIXELS_F32_NCHW;
    in.flip = gpu_put(flip, sizeof flip);
    for (int i = 0; i < N; i++) {
        for (int c = 0; c < 3; c++) {
            for (size_t at = 0; at < plane; at++) {
                const size_t x = at % (size_t)w, row = at - x;
                const size_t from = row + (flip[i] ? (size_t)w - 1 - x : x);

                gpu_store(want, place(&in, i, at, c), type,
                          src[((size_t)i * 3 + (size_t)c) * plane + from]);
            }
        }
    }
    got = run(&in, src, N * 3 * plane * sizeof *src);
    gpu_same_numbers(got, want, numbers(&in), type, f->name);
    free(got);
    free(want);
    free(src);
    gpu_free_all(NULL);
}

static void finished_floats_change_layout_and_type_only(void **state)
{
    (void)state;
    gpu_kernels();
    for (size_t f = 0; f < 3; f++)
        for (int type = 0; type < GPU_TYPES; type++)
            for (size_t s = 0; s < SIZES; s++)
                check_floats(&forms[f], (dpt_gpu_type)type, sizes[s][0], sizes[s][1]);
}

static void colors_are_mixed_and_clamped(void **state)
{
    static const float matrix[2][12] = {
        { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 },
        { 1.5F, -0.25F, 0.125F, 10, 0.3F, 0.59F, 0.11F, -7.5F, 0, -2, 1, 300 },
    };
    enum { H = 19, W = 21, ONE = H * W * 3 };
    uint8_t *src = test_guarded_bytes(2 * ONE, 3);
    const form nhwc = { 0, 3, "NHWC" };
    dpt_gpu_input in = job_of(&nhwc, DPT_GPU_FP32, 2, H, W);
    int low = 0, high = 0;
    float *got;

    (void)state;
    gpu_kernels();
    for (int c = 0; c < 3; c++) in.mean[c] = 0, in.std[c] = 1.F / 255; /* levels come out */
    in.color = gpu_put(matrix, sizeof matrix);
    got = run(&in, src, 2 * ONE);
    for (int i = 0; i < 2 * ONE; i++) {
        const float *m = matrix[i / ONE] + 4 * (i % 3);
        const uint8_t *p = src + i / 3 * 3;
        const double raw = (double)m[0] * p[0] + (double)m[1] * p[1] + (double)m[2] * p[2];
        const double want = fmin(fmax(raw + (double)m[3], 0), 255);

        low += want == 0;
        high += want == 255;
        assert_true(fabs((double)got[i] - want) < 1e-4);
    }
    assert_true(low > 10 && high > 10);
    free(got);
    test_free_all();
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    uint8_t *src = gpu_new(64 * 3), *dst = gpu_new(64 * 8 * 4);
    const dpt_gpu_input good = { .src = src,
                                 .n = 1,
                                 .src_h = 8,
                                 .src_w = 8,
                                 .h = 8,
                                 .w = 8,
                                 .std = { 1, 1, 1 },
                                 .dst = dst,
                                 .channels = 8 };
    dpt_gpu_input bad[14];

    (void)state;
    for (int i = 0; i < 14; i++) bad[i] = good;
    bad[0].src = NULL;
    bad[1].dst = NULL;
    bad[2].n = -1;
    bad[3].h = 0;
    bad[4].w = -1;
    bad[5].src_h = 0;
    bad[6].channels = 4;
    bad[7].nchw = 1; /* with 8 channels */
    bad[8].type = (dpt_gpu_type)3;
    bad[9].std[0] = NAN;
    bad[10].std[2] = 0;
    bad[11].dst = dst + 4; /* 8 channels need 16 bytes */
    bad[12].pixels = DPT_GPU_PIXELS_F32_NCHW;
    bad[12].box = (const float *)dst;
    bad[13].h = 65536;
    bad[13].w = 65536;
    for (int i = 0; i < 14; i++)
        if (k->input(&bad[i], gpu_stream()) != GPU_BAD_ARGUMENT) fail_msg("case %d", i);
    assert_int_equal(k->input(NULL, gpu_stream()), GPU_BAD_ARGUMENT);
    bad[0] = good;
    bad[0].n = 0;
    assert_int_equal(k->input(&bad[0], gpu_stream()), 0);
    uint8_t *after = gpu_get(dst);
    for (int i = 0; i < 64 * 8 * 4; i++) assert_int_equal(after[i], 0xA5);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bytes_are_converted_bit_by_bit, gpu_free_all),
        cmocka_unit_test_teardown(finished_floats_change_layout_and_type_only, gpu_free_all),
        cmocka_unit_test_teardown(colors_are_mixed_and_clamped, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
