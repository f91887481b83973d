/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and CutMix on the GPU against kernels/mix.h, bit by bit. */
#include "kernels/mix.h"
#include "tests/gpu_cases.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

/* Height, width and channels: rows of whole 16 bytes, and others; more than one block. */
static const int sizes[][3] = {
    { 1, 1, 1 }, { 5, 8, 8 }, { 7, 11, 3 }, { 9, 16, 3 }, { 19, 23, 8 }
};
enum { SIZES = sizeof sizes / sizeof *sizes, N = 4 };

static const int32_t partner[N] = { 1, 2, 3, 0 };

/* One batch, source and job. */
typedef struct batch {
    dpt_gpu_mix mix;
    size_t numbers, bytes; /* of one picture */
    char *src;             /* on the host */
} batch;

static void batch_make(batch *b, dpt_gpu_type type, int nchw, const int size[3])
{
    b->mix = (dpt_gpu_mix){
        .type = type, .n = N, .h = size[0], .w = size[1], .channels = size[2], .nchw = nchw
    };
    b->numbers = (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
    b->bytes = b->numbers * gpu_size(type);
    assert_non_null(b->src = malloc(N * b->bytes));
    float *v = gpu_normals(N * b->numbers, 3, b->numbers);
    for (size_t i = 0; i < N * b->numbers; i++) gpu_store(b->src, i, type, v[i]);
    free(v);
    b->mix.src = gpu_put(b->src, N * b->bytes);
    b->mix.dst = gpu_new(N * b->bytes);
    b->mix.partner = gpu_put(partner, sizeof partner);
}

static void blend(void *a, const void *b, size_t n, dpt_gpu_type type, int weight)
{
    switch (type) {
    case DPT_GPU_FP32: dpl_blend_f32_c(a, b, n, weight); return;
    case DPT_GPU_BF16: dpl_blend_bfloat_c(a, b, n, weight); return;
    case DPT_GPU_FP16: dpl_blend_half_c(a, b, n, weight); return;
    }
}

static void paste(const batch *b, void *a, const void *from, const int32_t box[4])
{
    const size_t pixel = (b->mix.nchw ? 1 : (size_t)b->mix.channels) * gpu_size(b->mix.type);
    const dpl_mix_shape shape = { pixel, b->mix.nchw ? b->mix.channels : 1, b->mix.w, b->mix.h };
    const dpl_rect r = { .x = box[0], .y = box[1], .w = box[2], .h = box[3] };

    dpl_paste(a, from, &shape, &r);
}

/* Run, and compare with what weights and boxes give by the C reference. */
static void check(batch *b, const int *weight, const int32_t (*box)[4], const char *what)
{
    char *want = malloc(N * b->bytes), *got;
    float share[N];

    assert_non_null(want);
    memcpy(want, b->src, N * b->bytes);
    for (int i = 0; i < N; i++) {
        char *a = want + (size_t)i * b->bytes;
        const char *other = b->src + (size_t)partner[i] * b->bytes;

        if (weight) blend(a, other, b->numbers, b->mix.type, weight[i]);
        if (weight) share[i] = (float)weight[i] / DPL_MIX_ONE;
        if (box) paste(b, a, other, box[i]);
    }
    if (weight) b->mix.weight = gpu_put(share, sizeof share);
    if (box) b->mix.box = gpu_put(box, N * sizeof *box);
    assert_int_equal(gpu_kernels()->mix(&b->mix, gpu_stream()), 0);
    got = gpu_get(b->mix.dst);
    gpu_same_numbers(got, want, N * b->numbers, b->mix.type, what);
    free(got);
    free(want);
    free(b->src);
    gpu_free_all(NULL);
}

/* For every type, layout and size. */
static void each(void (*run)(batch *b, const char *what))
{
    gpu_kernels();
    for (int type = 0; type < GPU_TYPES; type++) {
        for (int nchw = 0; nchw < 2; nchw++) {
            for (size_t s = 0; s < SIZES; s++) {
                batch b;

                batch_make(&b, (dpt_gpu_type)type, nchw, sizes[s]);
                run(&b, test_format("%s %d x %d x %d", nchw ? "NCHW" : "NHWC", sizes[s][0],
                                    sizes[s][1], sizes[s][2]));
            }
        }
    }
}

static void run_blend(batch *b, const char *what)
{
    const int weight[N] = { DPL_MIX_ONE, 0, 12345, DPL_MIX_ONE / 2 };

    check(b, weight, NULL, what);
}

static void mixup_blends_as_on_the_cpu(void **state)
{
    (void)state;
    each(run_blend);
}

/* A corner, all of it, nothing, one pixel in the last column and row. */
static void boxes_of(const batch *b, int32_t box[N][4])
{
    const int h = b->mix.h, w = b->mix.w;
    const int32_t all[N][4] = { { 0, 0, (w + 1) / 2, (h + 1) / 2 },
                                { 0, 0, w, h },
                                { w / 2, h / 2, 0, 0 },
                                { w - 1, h - 1, 1, 1 } };

    memcpy(box, all, sizeof all);
}

static void run_paste(batch *b, const char *what)
{
    int32_t box[N][4];

    boxes_of(b, box);
    check(b, NULL, (const int32_t(*)[4])box, what);
}

static void cutmix_pastes_as_on_the_cpu(void **state)
{
    (void)state;
    each(run_paste);
}

static void run_both(batch *b, const char *what)
{
    const int weight[N] = { 20000, 30000, DPL_MIX_ONE, 1 };
    int32_t box[N][4];

    boxes_of(b, box);
    check(b, weight, (const int32_t(*)[4])box, what);
}

static void a_box_lies_over_the_blend(void **state)
{
    (void)state;
    each(run_both);
}

static void run_nothing(batch *b, const char *what)
{
    check(b, NULL, NULL, what);
}

static void without_both_it_is_a_copy(void **state)
{
    (void)state;
    each(run_nothing);
}

/* A batch that does not begin on 16 bytes is mixed number by number. */
static void batches_may_begin_anywhere(void **state)
{
    const int size[3] = { 4, 8, 8 }, weight[N] = { 1, 2, 3, 4 };
    batch b;

    (void)state;
    gpu_kernels();
    batch_make(&b, DPT_GPU_BF16, 0, size);
    b.mix.src = gpu_put_off(b.src, N * b.bytes, 2);
    check(&b, weight, NULL, "source off 16 bytes");
    batch_make(&b, DPT_GPU_FP32, 0, size);
    b.mix.dst = gpu_put_off(NULL, N * b.bytes, 4);
    check(&b, weight, NULL, "output off 16 bytes");
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    char *src = gpu_new(64), *dst = gpu_new(64);
    const dpt_gpu_mix good = { .src = src,
                               .dst = dst,
                               .n = 1,
                               .h = 2,
                               .w = 2,
                               .channels = 3,
                               .partner = gpu_put(partner, sizeof partner) };
    dpt_gpu_mix bad[10];
    uint8_t *after;

    (void)state;
    for (int i = 0; i < 10; i++) bad[i] = good;
    bad[0].src = NULL;
    bad[1].dst = NULL;
    bad[2].dst = src;
    bad[3].partner = NULL;
    bad[4].n = -1;
    bad[5].h = 0;
    bad[6].w = 0;
    bad[7].channels = 0;
    bad[8].type = (dpt_gpu_type)3;
    bad[9].h = bad[9].w = 65536;
    for (int i = 0; i < 10; i++)
        if (k->mix(&bad[i], gpu_stream()) != GPU_BAD_ARGUMENT) fail_msg("case %d", i);
    assert_int_equal(k->mix(NULL, gpu_stream()), GPU_BAD_ARGUMENT);
    bad[0] = good;
    bad[0].n = 0;
    assert_int_equal(k->mix(&bad[0], gpu_stream()), 0);
    after = gpu_get(dst);
    for (int i = 0; i < 64; i++) assert_int_equal(after[i], 0xA5);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(mixup_blends_as_on_the_cpu, gpu_free_all),
        cmocka_unit_test_teardown(cutmix_pastes_as_on_the_cpu, gpu_free_all),
        cmocka_unit_test_teardown(a_box_lies_over_the_blend, gpu_free_all),
        cmocka_unit_test_teardown(without_both_it_is_a_copy, gpu_free_all),
        cmocka_unit_test_teardown(batches_may_begin_anywhere, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
