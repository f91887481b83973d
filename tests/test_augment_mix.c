/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and cutmix: pictures and boxes against torch with lambda and place injected, variants against
 * C, and what is drawn for a batch: Beta's distribution, and a pure function of its key. */
#include "base/cpu.h"
#include "loader/batch_mix.h"
#include "tests/augment_picture.h"
#include "tests/testutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- pictures --- */

typedef struct batch {
    int n, w, h, seed;
    dpl_dtype dtype;
    dpl_layout layout;
} batch;

static size_t picture_bytes(const batch *b)
{
    static const size_t bytes[] = { 1, 4, 2, 2 };

    return (size_t)b->w * (size_t)b->h * 3 * bytes[b->dtype];
}

static void put(const batch *b, void *out, size_t at, float v)
{
    if (b->dtype == DPL_FLOAT32)
        ((float *)out)[at] = v;
    else
        ((uint16_t *)out)[at] = b->dtype == DPL_BFLOAT16 ? dpl_to_bfloat(v) : dpl_to_half(v);
}

/* Picture k as uint8, or as (level - 128) / 64: exact in every type. Ends at an unreadable page. */
static uint8_t *draw(const batch *b, int k)
{
    const size_t pixels = (size_t)b->w * (size_t)b->h;
    uint8_t *levels = test_guarded_bytes(3 * pixels, 0);
    uint8_t *out;

    test_formula_picture(levels, b->w, b->h, b->seed + k);
    if (b->dtype == DPL_UINT8) return levels;
    out = test_guarded_bytes(picture_bytes(b), 0);
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < 3; c++)
            put(b, out, b->layout == DPL_NCHW ? c * pixels + i : 3 * i + c,
                (float)(levels[3 * i + c] - 128) / 64);
    return out;
}

static unsigned mixed_crc(const batch *b, const dpl_mix_plan *m, unsigned cpu)
{
    const size_t bytes = picture_bytes(b);
    uint8_t *all = malloc((size_t)b->n * bytes);
    dpl_options opt;
    dpl_kernels k;
    unsigned crc;

    assert_non_null(all);
    dpl_kernels_select(&k, cpu);
    dpl_options_init(&opt, sizeof opt);
    opt.width = b->w;
    opt.height = b->h;
    opt.dtype = b->dtype;
    opt.layout = b->layout;
    for (int i = 0; i < b->n; i++) {
        uint8_t *one = draw(b, i);

        dpl_mix_pictures(m, &opt, &k, one, draw(b, (i + 1) % b->n));
        memcpy(all + (size_t)i * bytes, one, bytes);
    }
    crc = test_crc(all, (size_t)b->n * bytes);
    free(all);
    test_free_all();
    return crc;
}

static void pictures_match_torch(void **state)
{
    FILE *f = test_data_open("tests/data/mix_pictures.txt");
    char line[256];
    int cases = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        static const dpl_dtype dtypes[5] = { DPL_UINT8, DPL_FLOAT32, DPL_FLOAT32, DPL_BFLOAT16,
                                             DPL_FLOAT16 };
        static const dpl_layout layouts[5] = { DPL_NHWC, DPL_NCHW, DPL_NHWC, DPL_NCHW, DPL_NHWC };
        int kind, x, y;
        double lambda;
        unsigned crc[5];
        batch b;
        dpl_mix_plan m;

        assert_int_equal(sscanf(line, "%d %d %d %d %d %lf %d %d %x %x %x %x %x", &kind, &b.n, &b.w,
                                &b.h, &b.seed, &lambda, &x, &y, &crc[0], &crc[1], &crc[2], &crc[3],
                                &crc[4]),
                         13);
        m = kind == 1 ? dpl_mix_blend(lambda) : dpl_mix_box(lambda, x, y, b.w, b.h);
        for (int i = 0; i < 10; i++) {
            b.dtype = dtypes[i % 5];
            b.layout = layouts[i % 5];
            if (mixed_crc(&b, &m, i < 5 ? DPL_CPU_C : test_cpu()) != crc[i % 5])
                fail_msg("form %d differs: %s", i, line);
        }
    }
    fclose(f);
    assert_int_equal(cases, 60);
}

static void boxes_match_torch(void **state)
{
    FILE *f = test_data_open("tests/data/mix_box.txt");
    char line[256];
    int cases = 0, pasted = 0;

    (void)state;
    for (; test_data_line(f, line); cases++) {
        int w, h, x, y, x1, y1, x2, y2;
        double lambda, share;
        dpl_mix_plan m;

        assert_int_equal(sscanf(line, "%d %d %lf %d %d %d %d %d %d %lf", &w, &h, &lambda, &x, &y,
                                &x1, &y1, &x2, &y2, &share),
                         10);
        m = dpl_mix_box(lambda, x, y, w, h);
        if (m.box.x != x1 || m.box.y != y1 || m.box.w != x2 - x1 || m.box.h != y2 - y1 ||
            m.share != (float)share)
            fail_msg("%d %d %d %d %.9g: %s", m.box.x, m.box.y, m.box.w, m.box.h, m.share, line);
        assert_int_equal(m.kind, m.share < 1 ? DPL_MIX_PASTE : DPL_MIX_NONE);
        pasted += m.kind == DPL_MIX_PASTE;
    }
    fclose(f);
    assert_int_equal(cases, 200);
    assert_true(pasted > 100);
}

/* Every pair of levels at every kind of weight, against the definition in double. */
static void levels_are_rounded_exactly(void **state)
{
    static const int weights[] = { 0, 1, 2, 127, 128, 16383, 16384, 16385, 32640, 32767, 32768 };
    uint8_t a[65536], b[65536];
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        const double w = weights[i] / 32768.0;

        for (int v = 0; v < 65536; v++) {
            a[v] = (uint8_t)v;
            b[v] = (uint8_t)(v >> 8);
        }
        k.blend_u8(a, b, sizeof a, weights[i]);
        for (int v = 0; v < 65536; v++)
            assert_int_equal(a[v], (int)floor(w * (v & 255) + (1 - w) * (v >> 8) + 0.5));
    }
}

static void variants_match_c(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000 };
    static const int weights[] = { 0, 1, 12345, 32767, 32768 };
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    if (k.blend_u8 == dpl_blend_u8_c) skip();
    for (size_t i = 0; i < 15 * 5; i++) {
        const size_t n = sizes[i % 15], bytes = n * sizeof(float);
        const int weight = weights[i / 15];
        const uint8_t *a = test_guarded_bytes(n, i), *b = test_guarded_bytes(n, i + 1000);
        float *want = test_canary(bytes), *got = test_canary(bytes);
        const float *other;
        float *values = (float *)(void *)test_guarded_bytes(bytes, 0);

        memcpy(want, a, n);
        memcpy(got, a, n);
        dpl_blend_u8_c((uint8_t *)want, b, n, weight);
        k.blend_u8((uint8_t *)got, b, n, weight);
        assert_memory_equal(got, want, n);
        for (size_t j = 0; j < n; j++) {
            want[j] = got[j] = (float)a[j] / 51 - 2.1F;
            values[j] = (float)b[j] / 49 - 1.9F;
        }
        other = values;
        dpl_blend_f32_c(want, other, n, weight);
        k.blend_f32(got, other, n, weight);
        assert_memory_equal(got, want, bytes);
        assert_true(test_canary_ok(got, bytes));
        test_free_all();
    }
}

/* Every pattern of 16 bits that is a number or infinite, each with another one. */
static void variants_match_c_in_16_bits(void **state)
{
    static uint16_t want[65536], got[65536], other[65536];
    static const int weights[] = { 0, 1, 9999, 16384, 32767, 32768 };
    dpl_kernels k;

    (void)state;
    dpl_kernels_select(&k, test_cpu());
    if (k.blend_half == dpl_blend_half_c) skip();
    for (size_t i = 0; i < 2 * 6; i++) {
        const int half = i % 2 == 0, infinite = half ? 0x7c00 : 0x7f80, weight = weights[i / 2];
        size_t n = 0;

        for (int v = 0; v < 65536; v++) {
            const int o = (int)((unsigned)v * 40503 & 0xffff);

            if ((v & 0x7fff) > infinite || (o & 0x7fff) > infinite) continue;
            want[n] = got[n] = (uint16_t)v;
            other[n++] = (uint16_t)o;
        }
        assert_true(n > 50000);
        (half ? dpl_blend_half_c : dpl_blend_bfloat_c)(want, other, n, weight);
        (half ? k.blend_half : k.blend_bfloat)(got, other, n, weight);
        assert_memory_equal(got, want, n * sizeof *got);
    }
}

/* --- drawing --- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Distribution functions of Beta(alpha, alpha) that have a closed form. */
static double uniform_cdf(double x)
{
    return x;
}

static double arcsine_cdf(double x)
{
    return 2 / M_PI * asin(sqrt(x));
}

static double two_cdf(double x)
{
    return x * x * (3 - 2 * x);
}

static double three_cdf(double x)
{
    return x * x * x * (10 - 15 * x + 6 * x * x);
}

static void beta_has_its_distribution(void **state)
{
    static const struct {
        double alpha;
        double (*cdf)(double);
    } c[] = { { 1, uniform_cdf }, { 0.5, arcsine_cdf }, { 2, two_cdf }, { 3, three_cdf } };
    enum { N = 20000 };
    double *v = malloc(N * sizeof *v);

    (void)state;
    assert_non_null(v);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        double most = 0;

        for (int k = 0; k < N; k++) {
            dpl_rng rng;

            dpl_rng_init(&rng, 7, i, (uint64_t)k, DPL_RNG_MIX);
            v[k] = dpl_mix_beta(&rng, c[i].alpha);
        }
        qsort(v, N, sizeof *v, by_value);
        for (int k = 0; k < N; k++) most = fmax(most, fabs(c[i].cdf(v[k]) - (k + 0.5) / N));
        assert_true(most < 1.63 / sqrt(N)); /* Kolmogorov's bound at 1 % */
    }
    free(v);
}

static void moments_hold_for_any_alpha(void **state)
{
    static const double alphas[] = { 1e-3, 0.1, 0.2, 0.4, 0.8, 1, 1.5, 8, 100, 1000 };
    enum { N = 20000 };

    (void)state;
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        const double a = alphas[i], var = 1 / (4 * (2 * a + 1));
        /* fourth central moment of Beta(a, a): 3 / (16 (2a + 1) (2a + 3)) */
        const double fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
        double sum = 0, squares = 0;

        for (int k = 0; k < N; k++) {
            dpl_rng rng;
            double v;

            dpl_rng_init(&rng, 8, i, (uint64_t)k, DPL_RNG_MIX);
            v = dpl_mix_beta(&rng, a);
            assert_true(v >= 0 && v <= 1);
            sum += v - 0.5;
            squares += (v - 0.5) * (v - 0.5);
        }
        assert_true(fabs(sum / N) < 4 * sqrt(var / N));
        assert_true(fabs(squares / N - var) < 4 * sqrt((fourth - var * var) / N) + 1e-12);
    }
}

static dpl_options mixing(double mixup, double cutmix)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.width = 40;
    opt.height = 30;
    opt.mixup = mixup;
    opt.cutmix = cutmix;
    return opt;
}

static int same(const dpl_mix_plan *a, const dpl_mix_plan *b)
{
    return a->kind == b->kind && a->weight == b->weight && a->share == b->share &&
           !memcmp(&a->box, &b->box, sizeof a->box);
}

static void draw_is_a_function_of_seed_epoch_and_batch(void **state)
{
    dpl_options opt = mixing(0.8, 1);
    dpl_mix_plan a, b;

    (void)state;
    dpl_mix_draw(&a, &opt, 3, 5);
    dpl_mix_draw(&b, &opt, 3, 5);
    assert_true(same(&a, &b));
    dpl_mix_draw(&b, &opt, 4, 5);
    assert_false(same(&a, &b));
    dpl_mix_draw(&b, &opt, 3, 6);
    assert_false(same(&a, &b));
    opt.seed = 1;
    dpl_mix_draw(&b, &opt, 3, 5);
    assert_false(same(&a, &b));
}

static void both_share_the_batches_evenly(void **state)
{
    enum { N = 4000 };
    const dpl_options opt = mixing(1, 1);
    int pasted = 0;

    (void)state;
    for (int k = 0; k < N; k++) {
        dpl_mix_plan m;

        dpl_mix_draw(&m, &opt, 0, (uint64_t)k);
        pasted += m.kind == DPL_MIX_PASTE || (m.kind == DPL_MIX_NONE && !m.weight);
        assert_true(m.share >= 0 && m.share <= 1);
        assert_true(m.box.x >= 0 && m.box.x + m.box.w <= 40);
        assert_true(m.box.y >= 0 && m.box.y + m.box.h <= 30);
    }
    assert_true(fabs(pasted - N / 2.0) < 4 * sqrt(N) / 2);
}

static void one_alone_is_always_that_one(void **state)
{
    const dpl_options up = mixing(0.2, 0), cut = mixing(0, 1);

    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        dpl_mix_plan m;

        dpl_mix_draw(&m, &up, 0, k);
        assert_int_not_equal(m.kind, DPL_MIX_PASTE);
        dpl_mix_draw(&m, &cut, 0, k);
        assert_int_not_equal(m.kind, DPL_MIX_BLEND);
    }
}

static void evaluation_and_zero_never_mix(void **state)
{
    dpl_options opt = mixing(1, 1);
    dpl_mix_plan m;

    (void)state;
    opt.recipe = DPL_EVAL;
    assert_false(dpl_mix_is_on(&opt));
    dpl_mix_draw(&m, &opt, 0, 0);
    assert_int_equal(m.kind, DPL_MIX_NONE);
    assert_true(m.share == 1);
    opt = mixing(0, 0);
    assert_false(dpl_mix_is_on(&opt));
    dpl_mix_draw(&m, &opt, 0, 0);
    assert_int_equal(m.kind, DPL_MIX_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_match_torch),
        cmocka_unit_test(boxes_match_torch),
        cmocka_unit_test(levels_are_rounded_exactly),
        cmocka_unit_test(variants_match_c),
        cmocka_unit_test(variants_match_c_in_16_bits),
        cmocka_unit_test(beta_has_its_distribution),
        cmocka_unit_test(moments_hold_for_any_alpha),
        cmocka_unit_test(draw_is_a_function_of_seed_epoch_and_batch),
        cmocka_unit_test(both_share_the_batches_evenly),
        cmocka_unit_test(one_alone_is_always_that_one),
        cmocka_unit_test(evaluation_and_zero_never_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
