/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy on the GPU against dpt_loss(), and against torch's soft labels. */
#include "base/rng.h"
#include "tests/augment_picture.h"
#include "tests/gpu_cases.h"
#include "tests/testutil.h"
#include "trainer/backend_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Classes: fewer and more than the threads of a block. */
static const int classes_of[] = { 1, 7, 256, 300 };
enum { SIZES = sizeof classes_of / sizeof *classes_of, N = 4 };
static const double GRAD_SCALE = 1 / 4.;

/* One batch: what goes in, and what the C reference makes of it. */
typedef struct batch {
    dpt_gpu_xent x;
    size_t numbers;
    void *logits; /* [N][stride] of type, padding holds NaN */
    int32_t labels[N], labels2[N];
    float mix[N];
    dpt_step want;
    float *want_grad; /* [N][classes] */
} batch;

static void draw_labels(batch *b, int classes)
{
    dpl_rng r;

    dpl_rng_init(&r, (uint64_t)classes, 0, 0, DPL_RNG_INIT);
    for (int i = 0; i < N; i++) {
        b->labels[i] = (int32_t)dpl_rng_below(&r, (uint32_t)classes);
        b->labels2[i] = i == 2 ? b->labels[i] : (int32_t)dpl_rng_below(&r, (uint32_t)classes);
        b->mix[i] = i == 1 ? 1 : (float)dpl_rng_unit(&r);
    }
}

/* Logits of values[N][classes]; soft: with labels2. */
static void batch_make(batch *b, dpt_gpu_type type, int classes, int pad, int soft,
                       const float *values)
{
    const int stride = classes + pad;
    float *rounded = malloc((size_t)(N * classes) * sizeof *rounded);

    memset(b, 0, sizeof *b);
    b->numbers = (size_t)(N * stride);
    b->logits = malloc(b->numbers * gpu_size(type));
    b->want_grad = malloc((size_t)(N * classes) * sizeof *b->want_grad);
    assert_true(rounded && b->logits && b->want_grad);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < stride; j++) {
            const size_t at = (size_t)(i * stride + j);

            gpu_store(b->logits, at, type, j < classes ? values[i * classes + j] : NAN);
            if (j < classes) rounded[i * classes + j] = gpu_float(b->logits, at, type);
        }
    }
    draw_labels(b, classes);
    b->x = (dpt_gpu_xent){
        .type = type, .n = N, .classes = classes, .stride = stride, .grad_scale = GRAD_SCALE
    };
    b->want = (dpt_step){ .labels = b->labels, .n = N, .grad_scale = GRAD_SCALE };
    if (soft) b->want.labels2 = b->labels2, b->want.mix = b->mix;
    dpt_loss(rounded, &b->want, classes, b->want_grad);
    free(rounded);
}

static void batch_free(batch *b)
{
    free(b->logits);
    free(b->want_grad);
    gpu_free_all(NULL);
}

/* Queue it; grad: 0 = none, 1 = of its own, 2 = over the logits. @return the sums: free() them */
static double *run(batch *b, int grad)
{
    const size_t bytes = b->numbers * gpu_size(b->x.type);
    void *logits = gpu_put(b->logits, bytes);

    b->x.logits = logits;
    b->x.labels = gpu_put(b->labels, sizeof b->labels);
    if (b->want.labels2) {
        b->x.labels2 = gpu_put(b->labels2, sizeof b->labels2);
        b->x.mix = gpu_put(b->mix, sizeof b->mix);
    }
    b->x.grad = grad == 2 ? logits : grad ? gpu_new(bytes) : NULL;
    b->x.rows = gpu_new(3 * N * sizeof(double));
    b->x.sums = gpu_new(DPT_GPU_SUMS * sizeof(double));
    assert_int_equal(gpu_kernels()->xent(&b->x, gpu_stream()), 0);
    return gpu_get(b->x.sums);
}

/* Distance in units of the last place of the type; floats are compared as they are. */
static int near(float got, float want, dpt_gpu_type type)
{
    const int digits = type == DPT_GPU_FP32 ? 23 : type == DPT_GPU_BF16 ? 7 : 10;
    const double unit = ldexp(fabs((double)want), -digits);
    const double smallest = type == DPT_GPU_FP16 ? 0x1p-24 : 0x1p-149;

    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    return fabs((double)got - (double)want) <= fmax(unit, smallest);
}

/* factor: of the gradient, beside grad_scale. */
static void check(const batch *b, const double *sums, double factor, const char *what)
{
    const int classes = b->x.classes, stride = b->x.stride;
    void *grad = b->x.grad ? gpu_get(b->x.grad) : NULL;

    if (isnan(b->want.sums.loss))
        assert_true(isnan(sums[DPT_GPU_LOSS]));
    else if (!(fabs(sums[DPT_GPU_LOSS] - b->want.sums.loss) <= 1e-12 * fabs(b->want.sums.loss)))
        fail_msg("%s: loss %.17g, expected %.17g", what, sums[DPT_GPU_LOSS], b->want.sums.loss);
    assert_true(sums[DPT_GPU_TOP1] == (double)b->want.sums.top1);
    assert_true(sums[DPT_GPU_TOP5] == (double)b->want.sums.top5);
    assert_true(sums[DPT_GPU_N] == N);
    for (int i = 0; grad && i < N * stride; i++) {
        const int j = i % stride;
        const float got = gpu_float(grad, (size_t)i, b->x.type);
        const float want =
            j < classes ? (float)((double)b->want_grad[i / stride * classes + j] * factor) : 0;

        if (!near(got, want, b->x.type))
            fail_msg("%s, %s: gradient %d of sample %d is %.9g, expected %.9g", what,
                     gpu_type_name(b->x.type), j, i / stride, (double)got, (double)want);
    }
    free(grad);
}

static void check_case(dpt_gpu_type type, int classes, int pad, int soft, int grad)
{
    float *values = gpu_normals((size_t)(N * classes), 4, (uint64_t)classes);
    double *sums;
    batch b;

    batch_make(&b, type, classes, pad, soft, values);
    sums = run(&b, grad);
    check(&b, sums, 1,
          test_format("%d classes, %d more columns, %s labels", classes, pad,
                      soft ? "soft" : "hard"));
    free(sums);
    free(values);
    batch_free(&b);
}

static void loss_counts_and_gradient_are_the_cpus(void **state)
{
    (void)state;
    gpu_kernels();
    for (int type = 0; type < GPU_TYPES; type++)
        for (int s = 0; s < SIZES; s++)
            for (int grad = 0; grad < 3; grad++)
                check_case((dpt_gpu_type)type, classes_of[s], grad == 1 ? 5 : 0, grad != (s & 1),
                           grad);
}

/* Ties, huge values, no numbers, infinities: what counts and what comes through is dpt_loss()'s. */
static void odd_logits_are_treated_as_on_the_cpu(void **state)
{
    static const float odd[] = { 0, 1, 1, -1, 3e38F, -3e38F, NAN, INFINITY, -INFINITY };
    float values[N * 7];
    dpl_rng r;

    (void)state;
    gpu_kernels();
    dpl_rng_init(&r, 1, 0, 0, DPL_RNG_INIT);
    for (int round = 0; round < 15; round++) {
        const uint32_t kinds = round % 3 == 0 ? 3 : round % 3 == 1 ? 6 : sizeof odd / sizeof *odd;
        double *sums;
        batch b;

        for (int i = 0; i < N * 7; i++) values[i] = odd[dpl_rng_below(&r, kinds)];
        for (int i = 0; round == 5 && i < 3; i++) values[i] = NAN; /* the label's, too */
        batch_make(&b, DPT_GPU_FP32, round % 2 ? 3 : 7, 0, round & 2, values);
        sums = run(&b, 1);
        check(&b, sums, 1, "odd logits");
        free(sums);
        batch_free(&b);
    }
}

static void the_loss_scale_multiplies_gradients_only(void **state)
{
    const float scale = 1024;
    float *values;
    double *sums;
    batch b;

    (void)state;
    gpu_kernels();
    values = gpu_normals(N * 10, 4, 3);
    batch_make(&b, DPT_GPU_FP16, 10, 6, 1, values);
    b.x.scale = gpu_put(&scale, sizeof scale);
    sums = run(&b, 1);
    check(&b, sums, 1024, "scaled");
    free(sums);
    free(values);
    batch_free(&b);
}

/* torch.nn.functional.cross_entropy for probabilities (tests/scripts/make_mix.py). */
static void soft_labels_match_torch(void **state)
{
    FILE *f;
    char line[256];
    int cases = 0;

    (void)state;
    gpu_kernels();
    f = test_data_open("tests/data/mix_loss.txt");
    for (; test_data_line(f, line); cases++) {
        float values[N * 7] = { 0 }, mix;
        double want[7], loss, v, *rows;
        int classes, hit, l1, l2;
        batch b;

        assert_int_equal(sscanf(line, "%d %d %d %f %d %lf", &classes, &l1, &l2, &mix, &hit, &loss),
                         6);
        for (int j = 0; j < classes; j++) {
            assert_true(test_data_line(f, line));
            assert_int_equal(sscanf(line, "%lf %lf", &v, &want[j]), 2);
            values[j] = (float)v;
        }
        batch_make(&b, DPT_GPU_FP32, classes, 0, 1, values);
        b.labels[0] = l1;
        b.labels2[0] = l2;
        b.mix[0] = mix;
        b.x.n = 1;
        free(run(&b, 1));
        rows = gpu_get(b.x.rows);
        float *grad = gpu_get(b.x.grad);
        assert_true(fabs(rows[0] - loss) < 1e-12 * (1 + loss));
        assert_true(rows[1] == hit);
        for (int j = 0; j < classes; j++) assert_true(fabs(grad[j] - GRAD_SCALE * want[j]) < 1e-7);
        free(rows);
        free(grad);
        batch_free(&b);
    }
    fclose(f);
    assert_int_equal(cases, 40);
}

/* More samples than a block has threads: the sums go round. */
static void many_samples_are_summed(void **state)
{
    enum { MANY = 261, CLASSES = 2 };
    static float logits[MANY * CLASSES];
    static int32_t labels[MANY];
    double *sums;
    dpt_gpu_xent x;

    (void)state;
    gpu_kernels();
    for (int i = 0; i < MANY; i++) {
        logits[2 * i + 1] = (float)log(3); /* probabilities 1/4 and 3/4 */
        labels[i] = i % 3 == 0;
    }
    x = (dpt_gpu_xent){ .logits = gpu_put(logits, sizeof logits),
                        .n = MANY,
                        .classes = CLASSES,
                        .stride = CLASSES,
                        .labels = gpu_put(labels, sizeof labels),
                        .rows = gpu_new(3 * MANY * sizeof(double)),
                        .sums = gpu_new(DPT_GPU_SUMS * sizeof(double)) };
    assert_int_equal(gpu_kernels()->xent(&x, gpu_stream()), 0);
    sums = gpu_get(x.sums);
    assert_true(fabs(sums[DPT_GPU_LOSS] - (87 * log(4 / 3.) + 174 * log(4))) < 1e-4);
    assert_true(sums[DPT_GPU_TOP1] == 87 && sums[DPT_GPU_TOP5] == MANY);
    assert_true(sums[DPT_GPU_N] == MANY);
    free(sums);
}

/* In whatever order blocks and threads run: the fake takes that from FAKE_CUDA_ORDER. */
static void every_run_has_the_same_bits(void **state)
{
    enum { MANY = 40, CLASSES = 300 };
    const int32_t labels[MANY] = { 0 };
    float *values;
    double *first, *again;
    dpt_gpu_xent x;

    (void)state;
    gpu_kernels();
    values = gpu_normals(MANY * CLASSES, 4, 12); /* for 12, a sum backwards differs */
    x = (dpt_gpu_xent){ .logits = gpu_put(values, MANY * CLASSES * sizeof *values),
                        .n = MANY,
                        .classes = CLASSES,
                        .stride = CLASSES,
                        .labels = gpu_put(labels, sizeof labels),
                        .rows = gpu_new(3 * MANY * sizeof(double)),
                        .sums = gpu_new(DPT_GPU_SUMS * sizeof(double)) };
    assert_int_equal(gpu_kernels()->xent(&x, gpu_stream()), 0);
    first = gpu_get(x.sums);
    for (int order = 1; order < 4; order++) {
        setenv("FAKE_CUDA_ORDER", test_format("%d", order), 1);
        assert_int_equal(gpu_kernels()->xent(&x, gpu_stream()), 0);
        again = gpu_get(x.sums);
        unsetenv("FAKE_CUDA_ORDER");
        assert_memory_equal(again, first, DPT_GPU_SUMS * sizeof *first);
        free(again);
    }
    free(first);
    free(values);
}

/* The host checks labels; one that slips through must not read elsewhere, and must show. */
static void labels_out_of_range_give_nan(void **state)
{
    const int32_t wrong[] = { -1, 10, INT32_MAX, INT32_MIN };
    float *values;

    (void)state;
    gpu_kernels();
    values = gpu_normals(N * 10, 1, 1);
    for (int k = 0; k < 4; k++) {
        for (int second = 0; second < 2; second++) {
            double *sums, *rows;
            float *grad;
            batch b;

            batch_make(&b, DPT_GPU_FP32, 10, 0, 1, values);
            (second ? b.labels2 : b.labels)[3] = wrong[k];
            sums = run(&b, 1);
            rows = gpu_get(b.x.rows);
            grad = gpu_get(b.x.grad);
            assert_true(isnan(sums[DPT_GPU_LOSS]) && isnan(rows[9]) && !isnan(rows[6]));
            assert_true(rows[10] == 0 && rows[11] == 0);
            for (int j = 0; j < 10; j++) assert_true(isnan(grad[30 + j]) && !isnan(grad[20 + j]));
            free(sums);
            free(rows);
            free(grad);
            batch_free(&b);
        }
    }
    free(values);
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    double *sums = gpu_new(DPT_GPU_SUMS * sizeof(double)), *after;
    const dpt_gpu_xent good = { .logits = gpu_new(64),
                                .n = 1,
                                .classes = 3,
                                .stride = 4,
                                .labels = gpu_new(64),
                                .rows = gpu_new(64),
                                .sums = sums };
    dpt_gpu_xent bad[9];

    (void)state;
    for (int i = 0; i < 9; i++) bad[i] = good;
    bad[0].logits = NULL;
    bad[1].labels = NULL;
    bad[2].rows = NULL;
    bad[3].sums = NULL;
    bad[4].n = -1;
    bad[5].classes = 0;
    bad[6].stride = 2;
    bad[7].labels2 = good.labels; /* without mix */
    bad[8].type = (dpt_gpu_type)3;
    for (int i = 0; i < 9; i++)
        if (k->xent(&bad[i], gpu_stream()) != GPU_BAD_ARGUMENT) fail_msg("case %d", i);
    assert_int_equal(k->xent(NULL, gpu_stream()), GPU_BAD_ARGUMENT);
    bad[0] = good;
    bad[0].n = 0;
    assert_int_equal(k->xent(&bad[0], gpu_stream()), 0);
    after = gpu_get(sums);
    for (size_t i = 0; i < sizeof(double) * DPT_GPU_SUMS; i++)
        assert_int_equal(((uint8_t *)after)[i], 0xA5);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(loss_counts_and_gradient_are_the_cpus, gpu_free_all),
        cmocka_unit_test_teardown(odd_logits_are_treated_as_on_the_cpu, gpu_free_all),
        cmocka_unit_test_teardown(the_loss_scale_multiplies_gradients_only, gpu_free_all),
        cmocka_unit_test_teardown(soft_labels_match_torch, gpu_free_all),
        cmocka_unit_test_teardown(many_samples_are_summed, gpu_free_all),
        cmocka_unit_test_teardown(every_run_has_the_same_bits, gpu_free_all),
        cmocka_unit_test_teardown(labels_out_of_range_give_nan, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
