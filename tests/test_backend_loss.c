/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy, its gradient and the top-1 / top-5 counts; finding backends; the arena's plan. */
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include "base/rng.h"
#include "dpload.h"
#include "trainer/backend_arena.h"
#include "trainer/backend_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dpt_sums sums_of(const float *logits, const int32_t *labels, int n, int classes)
{
    dpt_step s = { .labels = labels, .n = n, .grad_scale = 1 };

    dpt_loss(logits, &s, classes, NULL);
    return s.sums;
}

static void equal_logits_cost_the_log_of_the_classes(void **state)
{
    const float x[2 * 8] = { 0 };
    const int32_t labels[2] = { 0, 7 };
    const dpt_sums s = sums_of(x, labels, 2, 8);

    (void)state;
    assert_true(fabs(s.loss - 2 * log(8)) < 1e-12);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.top1, 1); /* ties: label 0 ranks first, label 7 last */
    assert_int_equal(s.top5, 1);
}

static void ties_rank_by_index(void **state)
{
    const float x[7] = { 1, 5, 5, 5, 5, 5, 5 };
    const int64_t top1[7] = { 0, 1, 0, 0, 0, 0, 0 }, top5[7] = { 0, 1, 1, 1, 1, 1, 0 };

    (void)state;
    for (int32_t label = 0; label < 7; label++) {
        const dpt_sums s = sums_of(x, &label, 1, 7);

        assert_int_equal(s.top1, top1[label]);
        assert_int_equal(s.top5, top5[label]);
    }
}

static void fewer_than_five_classes_are_all_in_the_top_five(void **state)
{
    const float x[3] = { 3, 2, 1 };
    const int32_t label = 2;
    const dpt_sums s = sums_of(x, &label, 1, 3);

    (void)state;
    assert_int_equal(s.top1, 0);
    assert_int_equal(s.top5, 1);
}

static void huge_logits_neither_overflow_nor_vanish(void **state)
{
    const float x[3] = { 3e38f, 0, -3e38f };
    const int32_t right = 0, wrong = 1;

    (void)state;
    assert_true(sums_of(x, &right, 1, 3).loss == 0);
    assert_true(fabs(sums_of(x, &wrong, 1, 3).loss / 3e38 - 1) < 1e-6);
}

static void gradient_is_softmax_minus_one_hot(void **state)
{
    float x[2 * 3] = { 0, (float)0.6931471805599453, (float)1.0986122886681098, 5, 5, 5 };
    const int32_t labels[2] = { 1, 0 }; /* softmax of the first row: 1/6, 2/6, 3/6 */
    const double want[6] = { 1 / 6., 2 / 6. - 1, 3 / 6., 1 / 3. - 1, 1 / 3., 1 / 3. };
    dpt_step s = { .labels = labels, .n = 2, .grad_scale = 0.25 };

    (void)state;
    dpt_loss(x, &s, 3, x); /* in place */
    assert_true(fabs(s.sums.loss - log(3) - log(3)) < 1e-6);
    for (int i = 0; i < 6; i++) assert_true(fabs(x[i] - 0.25 * want[i]) < 1e-7);
}

/* Loss and gradient of soft labels as torch.nn.functional.cross_entropy gives them for probabilities. */
static void soft_labels_match_torch(void **state)
{
    FILE *f = test_data_open("tests/data/mix_loss.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        float x[7], grad[7], mix;
        double want[7], loss, v;
        int classes, hit, l1, l2;
        int32_t label, label2;
        dpt_step s = { .labels = &label, .labels2 = &label2, .mix = &mix, .n = 1 };

        assert_int_equal(sscanf(line, "%d %d %d %f %d %lf", &classes, &l1, &l2, &mix, &hit, &loss),
                         6);
        for (int j = 0; j < classes; j++) {
            assert_true(test_data_line(f, line));
            assert_int_equal(sscanf(line, "%lf %lf", &v, &want[j]), 2);
            x[j] = (float)v;
        }
        label = l1;
        label2 = l2;
        s.grad_scale = 0.5;
        dpt_loss(x, &s, classes, grad);
        assert_true(fabs(s.sums.loss - loss) < 1e-12 * (1 + loss));
        assert_int_equal(s.sums.top1, hit);
        for (int j = 0; j < classes; j++) assert_true(fabs(grad[j] - 0.5 * want[j]) < 1e-7);
    }
    fclose(f);
    assert_int_equal(cases, 40);
}

/* A label of weight 1 is the hard one, bit for bit, whatever the other class is. */
static void weight_one_is_the_hard_label(void **state)
{
    const float x[2 * 3] = { 0.3F, -1.7F, 2.9F, 1, INFINITY, 2 }, mix[2] = { 1, 1 };
    const int32_t labels[2] = { 2, 0 }, labels2[2] = { 0, 1 };
    float grad[6], grad_soft[6];
    dpt_step hard = { .labels = labels, .n = 2, .grad_scale = 0.1 }, soft = hard;

    (void)state;
    soft.labels2 = labels2;
    soft.mix = mix;
    dpt_loss(x, &hard, 3, grad);
    dpt_loss(x, &soft, 3, grad_soft);
    assert_memory_equal(grad, grad_soft, sizeof grad);
    assert_memory_equal(&hard.sums, &soft.sums, sizeof hard.sums);
}

static void bad_soft_labels_are_named(void **state)
{
    const int32_t good[2] = { 0, 9 }, bad[2] = { 0, -1 };
    const float weights[3][2] = { { 0, 1 }, { 0.5F, 1.5F }, { 0.5F, NAN } };
    dpt_step s = { .labels = good, .labels2 = good, .mix = weights[0], .n = 2 };
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_loss_check_step(&s, 2, 10, &why), DPL_OK);
    for (int k = 1; k < 3; k++) {
        s.mix = weights[k];
        assert_int_equal(dpt_loss_check_step(&s, 2, 10, &why), DPL_EINVAL);
        assert_non_null(strstr(why.s, "sample 1 of the batch has label weight"));
    }
    s.mix = weights[0];
    s.labels2 = bad;
    assert_int_equal(dpt_loss_check_step(&s, 2, 10, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "label -1"));
    s.labels2 = NULL; /* no soft labels: mix is not read */
    s.mix = NULL;
    assert_int_equal(dpt_loss_check_step(&s, 2, 10, &why), DPL_OK);
}

static void nan_comes_through_and_is_never_a_hit(void **state)
{
    const float label_is_nan[4] = { 1, NAN, 2, 3 }, other_is_nan[4] = { 1, NAN, 2, 3 };
    const int32_t one = 1, three = 3;
    float grad[4];
    dpt_step step = { .labels = &one, .n = 1, .grad_scale = 1 };
    dpt_sums s;

    (void)state;
    dpt_loss(label_is_nan, &step, 4, grad);
    s = step.sums;
    assert_true(isnan(s.loss));
    for (int j = 0; j < 4; j++) assert_true(isnan(grad[j]));
    assert_int_equal(s.top1 + s.top5, 0);
    s = sums_of(other_is_nan, &three, 1, 4);
    assert_true(isnan(s.loss));
    assert_int_equal(s.top1, 0);
    assert_int_equal(s.top5, 1); /* rank 1, behind the NaN */
}

static void bad_labels_and_counts_are_named(void **state)
{
    const int32_t good[3] = { 0, 9, 5 }, bad[3] = { 0, 10, 5 };
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_loss_check(good, 3, 3, 10, &why), DPL_OK);
    assert_int_equal(dpt_loss_check(good, 0, 3, 10, &why), DPL_OK);
    assert_int_equal(dpt_loss_check(bad, 3, 3, 10, &why), DPL_EINVAL);
    assert_string_equal(why.s,
                        "sample 1 of the batch has label 10; the network has classes 0 to 9");
    assert_int_equal(dpt_loss_check(good, 4, 3, 10, &why), DPL_EINVAL);
    assert_int_equal(dpt_loss_check(good, -1, 3, 10, &why), DPL_EINVAL);
}

static void one_value_that_is_not_finite_is_found(void **state)
{
    static const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    float v[700] = { 0, -0.f, 3e38f, -3e38f, 1e-45f };

    (void)state;
    assert_true(dpt_loss_all_finite(v, 0));
    assert_true(dpt_loss_all_finite(v, 700));
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < 700; i += 233) { /* 699 is the last one */
            const float was = v[i];

            v[i] = bad[k];
            assert_false(dpt_loss_all_finite(v, 700));
            assert_true(dpt_loss_all_finite(v, i));
            v[i] = was;
        }
    }
}

static void variance_becomes_unbiased(void **state)
{
    float var[2] = { 3, 6 }, single[1] = { 0 };

    (void)state;
    dpt_loss_unbias(var, (dpt_shape){ 2, 1, 2 }, 2); /* 4 values: times 4/3 */
    assert_true(fabs(var[0] - 4) < 1e-6 && fabs(var[1] - 8) < 1e-6);
    dpt_loss_unbias(single, (dpt_shape){ 1, 1, 1 }, 1);
    assert_true(single[0] == 0);
}

static void backends_are_found_by_name(void **state)
{
    dpl_text why = { "" };

    (void)state;
    assert_ptr_equal(dpt_backend_find("ref", &why), &dpt_backend_ref);
#ifdef DPT_HAVE_DNNL
    assert_ptr_equal(dpt_backend_find("auto", &why), &dpt_backend_dnnl);
    assert_ptr_equal(dpt_backend_find("dnnl", &why), &dpt_backend_dnnl);
#else
    assert_ptr_equal(dpt_backend_find("auto", &why), &dpt_backend_ref);
    assert_null(dpt_backend_find("dnnl", &why));
    assert_non_null(strstr(why.s, "not built in"));
#endif
    assert_null(dpt_backend_find("abacus", &why));
    assert_non_null(strstr(why.s, "\"abacus\": there are auto"));
}

static void a_chain_needs_two_buffers(void **state)
{
    enum { N = 50, SIZE = 3 * DPT_ARENA_ALIGN };
    dpt_arena_buf b[N];
    size_t total;

    (void)state;
    for (int i = 0; i < N; i++) b[i] = (dpt_arena_buf){ .bytes = SIZE, .first = i, .last = i + 1 };
    b[7].first = b[7].last = -1; /* never used: takes no room */
    assert_int_equal(dpt_arena_place(b, N, &total), DPL_OK);
    assert_int_equal(total, 2 * SIZE);
}

static void buffers_in_use_together_never_share_bytes(void **state)
{
    enum { N = 400 };
    dpt_arena_buf b[N];
    size_t total, sum = 0;
    dpl_rng r;

    (void)state;
    dpl_rng_init(&r, 1, 0, 0, DPL_RNG_ORDER);
    for (int i = 0; i < N; i++) {
        const int first = (int)dpl_rng_below(&r, 300);

        b[i] = (dpt_arena_buf){ .bytes = dpl_rng_below(&r, 100000), .first = first };
        b[i].last = first + (int)dpl_rng_below(&r, 40);
        sum += b[i].bytes;
    }
    assert_int_equal(dpt_arena_place(b, N, &total), DPL_OK);
    assert_true(total < sum / 3);
    for (int i = 0; i < N; i++) {
        assert_int_equal(b[i].offset % DPT_ARENA_ALIGN, 0);
        assert_true(b[i].offset + b[i].bytes <= total);
        for (int j = 0; j < i; j++) {
            const int together = b[i].first <= b[j].last && b[j].first <= b[i].last;
            const int apart =
                b[i].offset + b[i].bytes <= b[j].offset || b[j].offset + b[j].bytes <= b[i].offset;
            assert_true(!together || apart || !b[i].bytes || !b[j].bytes);
        }
    }
}

static void sizes_that_overflow_are_refused(void **state)
{
    dpt_arena_buf b[2] = { { .bytes = SIZE_MAX / 2 }, { .bytes = SIZE_MAX / 2 } };
    size_t total;

    (void)state;
    assert_int_equal(dpt_arena_place(b, 2, &total), DPL_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_cost_the_log_of_the_classes),
        cmocka_unit_test(ties_rank_by_index),
        cmocka_unit_test(fewer_than_five_classes_are_all_in_the_top_five),
        cmocka_unit_test(huge_logits_neither_overflow_nor_vanish),
        cmocka_unit_test(gradient_is_softmax_minus_one_hot),
        cmocka_unit_test(soft_labels_match_torch),
        cmocka_unit_test(weight_one_is_the_hard_label),
        cmocka_unit_test(bad_soft_labels_are_named),
        cmocka_unit_test(nan_comes_through_and_is_never_a_hit),
        cmocka_unit_test(bad_labels_and_counts_are_named),
        cmocka_unit_test(one_value_that_is_not_finite_is_found),
        cmocka_unit_test(variance_becomes_unbiased),
        cmocka_unit_test(backends_are_found_by_name),
        cmocka_unit_test(a_chain_needs_two_buffers),
        cmocka_unit_test(buffers_in_use_together_never_share_bytes),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
