/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and cutmix in delivered batches: every sample is mixed with its neighbour in the whole batch,
 * whatever the workers, readers, ranks and devices; bad neighbours; resume. What is expected is made
 * from the unmixed samples one by one (pictures and plans have their own test, test_augment_mix.c). */
#include "base/cpu.h"
#include "loader/batch_mix.h"
#include "tests/loaderutil.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    N = 33,
    BATCH = 8,
    EPOCH = 2,
    PIXELS_MAX = 16 * 16 * 3 * 4
}; /* the last batch has 1 sample */

typedef struct sample {
    uint64_t id;
    int32_t label, label2;
    float mix;
    uint8_t pixels[PIXELS_MAX];
} sample;

/* A source some of whose samples cannot be read. */
typedef struct holes {
    test_memory m;
    dpl_source source;
    const uint64_t *bad;
    int bads;
} holes;

static int is_bad(const holes *h, uint64_t id)
{
    for (int k = 0; k < h->bads; k++)
        if (h->bad[k] == id) return 1;
    return 0;
}

static uint64_t holes_count(void *user)
{
    const holes *h = user;

    return h->m.source.count((void *)(uintptr_t)&h->m);
}

static int64_t holes_read(void *user, uint64_t i, void *buf, size_t cap)
{
    holes *h = user;

    return is_bad(h, i) ? -1 : h->m.source.read(&h->m, i, buf, cap);
}

static int32_t holes_label(void *user, uint64_t i)
{
    holes *h = user;

    return h->m.source.label(&h->m, i);
}

static void holes_init(holes *h, const uint64_t *bad, int bads)
{
    memset(h, 0, sizeof *h);
    test_memory_pictures(&h->m, N);
    h->source = (dpl_source){ h, holes_count, holes_read, holes_label, NULL };
    h->bad = bad;
    h->bads = bads;
}

static dpl_options options(const holes *h)
{
    dpl_options opt = test_loader_options(&h->m);

    opt.source = &h->source;
    opt.batch = BATCH;
    opt.max_bad = 1;
    opt.mixup = 0.8;
    opt.cutmix = 1;
    opt.seed = 3;
    return opt;
}

/* --- what comes out --- */

static void take_batch(const dpl_batch *b, sample *out)
{
    const size_t bytes = test_picture_bytes(b);

    for (int p = 0; p < b->parts; p++) {
        const dpl_part *part = &b->part[p];

        for (int k = 0; k < part->n; k++, out++) {
            out->id = part->ids[k];
            out->label = part->labels[k];
            out->label2 = part->labels2[k];
            out->mix = part->mix[k];
            memcpy(out->pixels, (const uint8_t *)part->pixels + (size_t)k * bytes, bytes);
        }
    }
}

/* One epoch of every rank, batch by batch in the order of the whole epoch. *refused: over all ranks.
 * @return samples */
static int deliver(const dpl_options *opt, sample *out, uint64_t *refused)
{
    dpl_loader *l[8];
    dpl_batch b;
    int n = 0, err = DPL_OK;

    *refused = 0;
    for (int r = 0; r < opt->world; r++) {
        dpl_options mine = *opt;

        mine.rank = r;
        if (dpl_open(&l[r], &mine)) fail_msg("open: %s", dpl_error_text(NULL));
        assert_int_equal(dpl_set_epoch(l[r], EPOCH), DPL_OK);
    }
    while (!err)
        for (int r = 0; r < opt->world; r++) {
            if ((err = dpl_next(l[r], &b, -1))) continue;
            assert_true(n + b.n <= N);
            take_batch(&b, out + n);
            n += b.n;
            dpl_release(l[r], &b, NULL);
        }
    assert_int_equal(err, DPL_EOF);
    for (int r = 0; r < opt->world; r++) {
        dpl_stats st = { .size = sizeof st };

        dpl_stats_get(l[r], &st);
        *refused += st.bad;
        dpl_close(&l[r]);
    }
    return n;
}

/* The same from unmixed samples: plain[N], every one of them good. @return samples */
static int expect(const dpl_options *opt, const holes *h, const sample *plain, sample *out)
{
    dpl_kernels k;
    int n = 0;

    dpl_kernels_select(&k, dpl_cpu_flags());
    for (int at = 0; at < N; at++) {
        const int begin = at / BATCH * BATCH, size = N - begin < BATCH ? N - begin : BATCH;
        const sample *next = &plain[begin + (at - begin + 1) % size];
        dpl_mix_plan m;

        if (is_bad(h, plain[at].id)) continue;
        out[n] = plain[at];
        dpl_mix_draw(&m, opt, EPOCH, (uint64_t)(at / BATCH));
        if (size > 1 && !is_bad(h, next->id) && m.kind != DPL_MIX_NONE) {
            dpl_mix_pictures(&m, opt, &k, out[n].pixels, next->pixels);
            out[n].label2 = next->label;
            out[n].mix = m.share;
        }
        n++;
    }
    return n;
}

static sample *samples(void)
{
    sample *s = calloc(N, sizeof *s);

    assert_non_null(s);
    return s;
}

/* All samples of the epoch, unmixed. */
static sample *plain_samples(const dpl_options *opt, const holes *h)
{
    sample *s = samples();
    dpl_options plain = *opt;
    uint64_t refused;

    plain.source = &h->m.source;
    plain.mixup = plain.cutmix = 0;
    assert_int_equal(deliver(&plain, s, &refused), N);
    for (int k = 0; k < N; k++) {
        assert_int_equal(s[k].label2, s[k].label);
        assert_true(s[k].mix == 1);
    }
    return s;
}

static void check(const dpl_options *opt, const sample *want, int n, int bads)
{
    sample *got = samples();
    uint64_t refused;

    assert_int_equal(deliver(opt, got, &refused), n);
    for (int k = 0; k < n; k++) {
        if (!memcmp(&got[k], &want[k], sizeof *got)) continue;
        fail_msg("sample %d of %d: id %d (%d), labels %d %d (%d %d), mix %g (%g); world %d", k, n,
                 (int)got[k].id, (int)want[k].id, got[k].label, got[k].label2, want[k].label,
                 want[k].label2, (double)got[k].mix, (double)want[k].mix, opt->world);
    }
    assert_int_equal(refused, bads); /* a bad sample is named by the rank that has it, no other */
    free(got);
}

/* --- tests --- */

/* Workers, prefetch, readers, ranks and parts do not change a byte. */
static void check_splits(dpl_options *opt, const holes *h)
{
    static const int weights[] = { 3, 1 };
    sample *plain = plain_samples(opt, h), *want = samples();
    const int n = expect(opt, h, plain, want);

    for (int w = 0; w < 4; w++) {
        opt->workers = w + 1;
        opt->prefetch = w % 2 ? 4 : 1;
        opt->readers = w == 2 ? 3 : 0;
        for (opt->world = 1; opt->world <= 4; opt->world++) {
            opt->devices = w % 2 ? "cpu,cpu" : NULL;
            check(opt, want, n, h->bads);
        }
        opt->world = 2;
        opt->devices = "cpu,cpu";
        opt->split = weights;
        opt->n_split = 2;
        check(opt, want, n, h->bads);
        opt->split = NULL;
        opt->n_split = 0;
        opt->devices = "sim:0ms,sim:0ms"; /* host-readable after dpl_next() has waited */
        check(opt, want, n, h->bads);
        opt->devices = NULL;
        opt->world = 1;
    }
    free(plain);
    free(want);
}

static void every_sample_is_mixed_with_the_next(void **state)
{
    static const double alphas[][2] = { { 0.8, 1 }, { 1, 0 }, { 0, 1 } };
    static const dpl_dtype dtypes[5] = { DPL_UINT8, DPL_FLOAT32, DPL_FLOAT32, DPL_BFLOAT16,
                                         DPL_FLOAT16 };
    holes h;

    (void)state;
    holes_init(&h, NULL, 0);
    for (int form = 0; form < 5; form++)
        for (int a = 0; a < 3; a++) {
            dpl_options opt = options(&h);

            if (form && a) continue;
            opt.dtype = dtypes[form];
            opt.layout = form % 2 ? DPL_NCHW : DPL_NHWC;
            opt.mixup = alphas[a][0];
            opt.cutmix = alphas[a][1];
            check_splits(&opt, &h);
        }
    test_memory_free(&h.m);
}

/* The comparison can fail: both kinds and other pictures come out. */
static void batches_differ_in_what_they_get(void **state)
{
    holes h;
    dpl_options opt;
    sample *plain, *mixed = samples();
    uint64_t refused;
    int changed = 0, soft = 0;

    (void)state;
    holes_init(&h, NULL, 0);
    opt = options(&h);
    plain = plain_samples(&opt, &h);
    assert_int_equal(deliver(&opt, mixed, &refused), N);
    for (int k = 0; k < N; k++) {
        assert_int_equal(mixed[k].id, plain[k].id);
        assert_int_equal(mixed[k].label, plain[k].label);
        assert_true(mixed[k].mix == mixed[k / BATCH * BATCH].mix);
        changed += memcmp(mixed[k].pixels, plain[k].pixels, PIXELS_MAX) != 0;
        soft += mixed[k].mix < 1;
    }
    assert_true(mixed[0].mix != mixed[BATCH].mix);
    assert_true(soft >= 2 * BATCH);
    assert_true(changed >= 2 * BATCH);
    assert_true(mixed[N - 1].mix == 1); /* alone in its batch */
    free(plain);
    free(mixed);
    test_memory_free(&h.m);
}

/* Bad first, last, neighbouring and many samples, on both sides of every border between ranks. */
static void a_bad_neighbour_leaves_a_sample_as_it_is(void **state)
{
    holes h;
    dpl_options opt;
    sample *plain;
    uint64_t bad[N];

    (void)state;
    holes_init(&h, bad, 0);
    opt = options(&h);
    plain = plain_samples(&opt, &h);
    for (int round = 0; round < BATCH + 2; round++) {
        h.bads = 0;
        for (int k = 0; k < N; k++) {
            const int at = k % BATCH;

            if (round < BATCH ? at == round : round == BATCH ? at % 3 < 2 : at > 0)
                bad[h.bads++] = plain[k].id;
        }
        opt.dtype = DPL_UINT8;
        check_splits(&opt, &h);
    }
    free(plain);
    test_memory_free(&h.m);
}

static void resume_goes_on_with_the_same_bytes(void **state)
{
    const uint64_t bad = 5;
    holes h;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    sample *plain, *want = samples(), *got = samples();
    int n;

    (void)state;
    holes_init(&h, &bad, 1);
    opt = options(&h);
    plain = plain_samples(&opt, &h);
    n = expect(&opt, &h, plain, want);
    for (int skipped = 0; skipped < 5; skipped++) {
        dpl_state st = { EPOCH, (uint64_t)(skipped * BATCH), N, opt.seed };
        int at = 0, begin = 0;

        for (int k = 0; k < skipped * BATCH; k++) begin += !is_bad(&h, plain[k].id);
        opt.workers = skipped + 1;
        opt.readers = skipped % 2 ? 2 : 0;
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        assert_int_equal(dpl_next(l, &b, -1), DPL_OK); /* somewhere else before */
        dpl_release(l, &b, NULL);
        assert_int_equal(dpl_state_set(l, &st), DPL_OK);
        while (!dpl_next(l, &b, -1)) {
            take_batch(&b, got + at);
            at += b.n;
            dpl_release(l, &b, NULL);
        }
        assert_int_equal(begin + at, n);
        assert_memory_equal(got, want + begin, (size_t)at * sizeof *got);
        dpl_close(&l);
    }
    free(plain);
    free(want);
    free(got);
    test_memory_free(&h.m);
}

static void evaluation_is_never_mixed(void **state)
{
    holes h;
    dpl_options opt;
    sample *plain, *got = samples();
    uint64_t refused;

    (void)state;
    holes_init(&h, NULL, 0);
    opt = options(&h);
    opt.recipe = DPL_EVAL;
    plain = plain_samples(&opt, &h);
    assert_int_equal(deliver(&opt, got, &refused), N);
    assert_memory_equal(got, plain, N * sizeof *got);
    free(plain);
    free(got);
    test_memory_free(&h.m);
}

static void bad_alphas_are_refused(void **state)
{
    static const double bad[] = { -0.1, 1000.5, NAN, INFINITY };
    holes h;

    (void)state;
    holes_init(&h, NULL, 0);
    for (int k = 0; k < 8; k++) {
        dpl_options opt = options(&h);
        dpl_loader *l;

        *(k < 4 ? &opt.mixup : &opt.cutmix) = bad[k % 4];
        assert_int_equal(dpl_open(&l, &opt), DPL_EINVAL);
        assert_non_null(strstr(dpl_error_text(NULL), k < 4 ? "mixup " : "cutmix "));
        assert_non_null(strstr(dpl_error_text(NULL), "expected 0..1000"));
    }
    test_memory_free(&h.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_mixed_with_the_next),
        cmocka_unit_test(batches_differ_in_what_they_get),
        cmocka_unit_test(a_bad_neighbour_leaves_a_sample_as_it_is),
        cmocka_unit_test(resume_goes_on_with_the_same_bytes),
        cmocka_unit_test(evaluation_is_never_mixed),
        cmocka_unit_test(bad_alphas_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
