/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on devices with memory of their own: what arrives, and that a slot is rewritten only after
 * the work that uses it. The modelled device has CUDA's ordering edges, so that ThreadSanitizer sees a
 * missing one. */
#include "base/clock.h"
#include "device/device.h"
#include "tests/fake/fake_cuda.h"
#include "tests/loaderutil.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 40, SIDE = 16, BYTES = SIDE * SIDE * 3, BATCH = 8 };

/* Each test runs for every kind of device with memory of its own. */
typedef struct test_kind {
    const char *one, *two;
    int is_cuda;
} test_kind;

static const fake_cuda *fake; /* NULL: this build has no CUDA */

/* The kind a test is to run for; a kind that is not built skips it. */
static const test_kind *kind_of(void **state)
{
    const test_kind *k = *state;

    if (k->is_cuda && !fake) skip();
    return k;
}

typedef struct rig {
    test_memory m;
    dpl_options opt;
    dpl_device *device[2];
    dpl_stream *stream[2]; /* the consumer's own, on handles of its own */
    void *native[2];       /* what the loader takes */
    dpl_loader *l;
} rig;

static void rig_open(rig *r, const char *devices, int parts)
{
    dpl_text why;
    char **spec;

    memset(r, 0, sizeof *r);
    test_memory_pictures(&r->m, N);
    r->opt = test_loader_options(&r->m);
    r->opt.epochs = 3;
    r->opt.prefetch = 1;
    r->opt.workers = 3;
    r->opt.devices = devices;
    assert_int_equal(dpl_device_list_parse(&spec, devices, &why), parts);
    for (int p = 0; p < parts; p++) {
        if (dpl_device_open(&r->device[p], spec[p], &why)) fail_msg("%s", why.s);
        assert_int_equal(dpl_stream_create(r->device[p], &r->stream[p], "step", &why), DPL_OK);
        r->native[p] = dpl_stream_native(r->stream[p]);
    }
    free(spec);
    if (dpl_open(&r->l, &r->opt)) fail_msg("%s", dpl_error_text(NULL));
}

static void rig_close(rig *r)
{
    for (int p = 0; p < 2; p++)
        if (r->stream[p]) assert_int_equal(dpl_stream_sync(r->stream[p]), DPL_OK);
    dpl_close(&r->l);
    for (int p = 0; p < 2; p++) {
        if (r->stream[p]) dpl_stream_destroy(&r->stream[p]);
        dpl_device_close(&r->device[p]);
    }
    test_memory_free(&r->m);
}

/* What the host path delivers, for all three epochs. */
static void expected(const rig *r, test_entry *want)
{
    dpl_options opt = r->opt;

    opt.devices = NULL;
    for (uint64_t e = 0; e < 3; e++) assert_int_equal(test_trace(&opt, e, want + e * N, N), N);
}

/* A "step" of the consumer: queued on its stream, runs late, reads the batch where it lies. */
typedef struct step {
    const uint8_t *pixels;
    const uint64_t *ids;
    const int32_t *labels;
    int n;
    test_entry *out;
} step;

static void run_step(void *arg)
{
    const struct timespec late = { 0, 5000000 };
    const step *s = arg;

    nanosleep(&late, NULL);
    for (int k = 0; k < s->n; k++)
        s->out[k] = (test_entry){ s->ids[k], test_hash(s->pixels + (size_t)k * BYTES, BYTES),
                                  s->labels[k] };
}

/* The batch is released at once, long before the queued step has read it. */
static void run_released_early(const char *devices, int parts)
{
    test_entry *want = calloc(3 * N, sizeof *want), *got = calloc(3 * N, sizeof *got);
    step *steps = calloc(64, sizeof *steps);
    size_t at = 0, n = 0;
    dpl_batch b, copy;
    rig r;
    int err;

    rig_open(&r, devices, parts);
    expected(&r, want);
    for (int eofs = 0; eofs < 3;) {
        if ((err = dpl_next_on(r.l, &b, r.native, 20000)) == DPL_EOF) {
            eofs++;
            continue;
        }
        assert_int_equal(err, DPL_OK);
        assert_int_equal(b.parts, parts);
        for (int p = 0; p < parts; p++) {
            const dpl_part *part = &b.part[p];

            steps[n] = (step){ part->pixels, part->ids, part->labels, part->n, got + at };
            at += (size_t)part->n;
            assert_int_equal(dpl_stream_launch(r.stream[p], run_step, &steps[n++], 1000000),
                             DPL_OK);
        }
        copy = b;
        dpl_release(r.l, &b, r.native);
        dpl_release(r.l, &copy, r.native); /* released already: must not touch the slot */
    }
    rig_close(&r);
    assert_int_equal(at, 3 * N);
    assert_memory_equal(got, want, 3 * N * sizeof *want);
    free(want);
    free(got);
    free(steps);
}

static void slot_waits_for_the_work_queued_before_release(void **state)
{
    run_released_early(kind_of(state)->one, 1);
}

static void two_devices_each_get_their_part(void **state)
{
    run_released_early(kind_of(state)->two, 2);
}

/* Without streams dpl_next() waits for the copy, and release takes effect at once. */
static void without_streams_the_host_waits(void **state)
{
    test_entry want[3 * N];
    uint8_t pixels[BATCH * BYTES];
    uint64_t at = 0;
    dpl_batch b;
    rig r;

    rig_open(&r, kind_of(state)->one, 1);
    expected(&r, want);
    while (!dpl_next(r.l, &b, 20000)) {
        const dpl_part *part = &b.part[0];

        assert_int_equal(
            dpl_copy_to_host(r.stream[0], pixels, part->pixels, (size_t)part->n * BYTES), DPL_OK);
        assert_int_equal(dpl_stream_sync(r.stream[0]), DPL_OK);
        for (int k = 0; k < part->n; k++, at++) {
            assert_int_equal(part->ids[k], want[at].id);
            assert_int_equal(test_hash(pixels + (size_t)k * BYTES, BYTES), want[at].hash);
        }
        dpl_release(r.l, &b, NULL);
    }
    assert_int_equal(at, N);
    rig_close(&r);
}

/* Batches that were copied but never given out are forgotten in good order. */
static void moving_drops_batches_in_flight(void **state)
{
    dpl_batch b;
    rig r;

    rig_open(&r, kind_of(state)->one, 1);
    for (int k = 0; k < 20; k++) {
        assert_int_equal(dpl_set_epoch(r.l, (uint64_t)(k % 3)), DPL_OK);
        assert_int_equal(dpl_next_on(r.l, &b, r.native, 20000), DPL_OK);
        assert_int_equal(b.epoch, k % 3);
        dpl_release(r.l, &b, r.native);
    }
    rig_close(&r);
}

static void nap(void *arg)
{
    const struct timespec ts = { 0, 200000000 };

    (void)arg;
    nanosleep(&ts, NULL);
}

/* The caller's stream is of a device handle of its own: its event must be taken all the same. */
static void release_does_not_wait_for_the_step(void **state)
{
    dpl_batch b;
    int64_t start;
    rig r;

    rig_open(&r, kind_of(state)->one, 1);
    assert_int_equal(dpl_next_on(r.l, &b, r.native, 20000), DPL_OK);
    start = dpl_now_ns();
    assert_int_equal(dpl_stream_launch(r.stream[0], nap, NULL, 0), DPL_OK);
    dpl_release(r.l, &b, r.native);
    assert_true(dpl_now_ns() - start < 150000000);
    rig_close(&r);
}

static void slot_bytes_count_both_sides(void **state)
{
    dpl_info info;
    dpl_stats st = { .size = sizeof st };
    dpl_batch b;
    rig r;

    rig_open(&r, kind_of(state)->one, 1);
    dpl_info_get(r.l, &info);
    assert_int_equal(info.slot_bytes, 2 * (2 * BATCH * BYTES + 4 * 64));
    assert_int_equal(dpl_next(r.l, &b, 20000), DPL_OK);
    dpl_stats_get(r.l, &st);
    assert_true(st.upload_s > 0);
    rig_close(&r);
}

/* The GPU fails while a batch is copied to it: the loader ends with its words, and closes. */
static void device_failures_are_told(void **state)
{
    dpl_batch b;
    rig r;
    int err = DPL_OK;

    rig_open(&r, kind_of(state)->one, 1);
    fake->inject(FAKE_COPY, 4, 700, 1); /* illegal address */
    while (!err || err == DPL_EOF) {
        if (!(err = dpl_next(r.l, &b, 20000))) dpl_release(r.l, &b, NULL);
    }
    assert_int_equal(err, DPL_EDEVICE);
    if (!strstr(dpl_error_text(r.l), "an illegal memory access was encountered"))
        fail_msg("%s", dpl_error_text(r.l));
    while ((err = dpl_next(r.l, &b, 20000)) == DPL_EOF) {
    } /* it may have been the last of its epoch */
    assert_int_equal(err, DPL_EDEVICE);
    dpl_close(&r.l);
    fake->reset();
    rig_close(&r);
}

static void memory_that_runs_out_is_told(void **state)
{
    rig r;

    rig_open(&r, kind_of(state)->one, 1);
    dpl_close(&r.l);
    for (int call = FAKE_HOST_ALLOC; call <= FAKE_EVENT; call++) {
        for (int k = 1; k <= 2; k++) {
            const int last = call == FAKE_STREAM && k == 2; /* it makes one stream only */

            fake->inject((fake_cuda_call)call, k, 2, 0);
            assert_int_equal(dpl_open(&r.l, &r.opt), last                 ? DPL_OK
                                                     : call < FAKE_STREAM ? DPL_ENOMEM
                                                                          : DPL_EDEVICE);
            if (!last) assert_null(r.l);
            if (!last && !strstr(dpl_error_text(NULL), call < FAKE_STREAM ? "memory" : "cuda:1"))
                fail_msg("%s", dpl_error_text(NULL));
            dpl_close(&r.l);
            fake->reset();
        }
    }
    rig_close(&r);
}

/* Last: of all the tests above. */
static void everything_is_given_back(void **state)
{
    kind_of(state);
    assert_int_equal(fake->alive(), 0);
}

#define FOR_ALL_KINDS(test)                                                                        \
    cmocka_unit_test_prestate(test, &sim),                                                         \
    {                                                                                              \
#        test " (cuda)", test, NULL, NULL, &cuda                                                   \
    }

int main(void)
{
    test_kind sim = { "sim:1ms", "sim:1ms,sim:2ms", 0 }, cuda = { "cuda:1", "cuda:1,cuda:0", 1 };
    const struct CMUnitTest tests[] = {
        FOR_ALL_KINDS(slot_waits_for_the_work_queued_before_release),
        FOR_ALL_KINDS(two_devices_each_get_their_part),
        FOR_ALL_KINDS(without_streams_the_host_waits),
        FOR_ALL_KINDS(moving_drops_batches_in_flight),
        FOR_ALL_KINDS(release_does_not_wait_for_the_step),
        FOR_ALL_KINDS(slot_bytes_count_both_sides),
        cmocka_unit_test_prestate(device_failures_are_told, &cuda),
        cmocka_unit_test_prestate(memory_that_runs_out_is_told, &cuda),
        cmocka_unit_test_prestate(everything_is_given_back, &cuda),
    };

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    fake = test_fake_cuda();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
