/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kind of device, as it is built into libdpload_cuda.so, over a fake CUDA runtime. */
#include "dpload.h"
#include "tests/device_cases.h"
#include "tests/fake/fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cudaError_t by number, so that this file needs no CUDA header. */
enum { OUT_OF_MEMORY = 2, BUSY = 46, ILLEGAL_ADDRESS = 700, LAUNCH_FAILURE = 719 };
enum { BIG = TEST_DEVICE_BYTES };

static const fake_cuda *fake;

static int set_up(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    unsetenv("FAKE_CUDA_DRIVER");
    if (!fake) return 0;
    unsetenv("CUDA_VISIBLE_DEVICES"); /* on a card the user's choice holds */
    fake->reset();
    return 0;
}

static void need_fake(void)
{
    if (!fake) skip();
}

/* Opening spec must fail with err and say text. */
static void refused(const char *spec, int err, const char *text)
{
    dpl_device *d = (dpl_device *)&d;
    dpl_text why = { "" };

    assert_int_equal(dpl_device_open(&d, spec, &why), err);
    assert_null(d);
    if (!strstr(why.s, text)) fail_msg("%s gave: %s", spec, why.s);
    if (strncmp(why.s, "device \"cuda", 12) != 0) fail_msg("no spec in: %s", why.s);
}

static void open_takes_visible_gpus(void **state)
{
    (void)state;
    need_fake();
    for (int i = 0; i < 4; i++) {
        const char *spec = test_format("cuda:%d", i);
        dpl_device *d;
        dpl_text why;

        if (dpl_device_open(&d, spec, &why)) fail_msg("%s", why.s);
        assert_int_equal(dpl_device_get_kind(d), DPL_DEVICE_CUDA);
        assert_int_equal(dpl_device_has_memory(d), 1);
        assert_int_equal(dpl_device_step_ns(d), 0);
        assert_string_equal(dpl_device_name(d), spec);
        assert_string_equal(dpl_device_failure(d), "");
        dpl_device_close(&d);
    }
}

static void open_refuses_with_a_reason(void **state)
{
    (void)state;
    need_fake();
    refused("cuda", DPL_EINVAL, "number of the GPU is missing");
    refused("cuda:", DPL_EINVAL, "number of the GPU is missing");
    refused("cuda:x", DPL_EINVAL, "\"x\" is no number");
    refused("cuda:-1", DPL_EINVAL, "\"-1\" is no number");
    refused("cuda:99999999999999999999", DPL_EINVAL, "is no number");
    refused("cuda:5", DPL_EDEVICE, "no such GPU (visible: 0-3)");
    setenv("FAKE_CUDA_DEVICES", "1", 1);
    refused("cuda:1", DPL_EDEVICE, "no such GPU (visible: 0)");
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    refused("cuda:0", DPL_EDEVICE, "no NVIDIA GPU is visible (CUDA error 100");
    setenv("FAKE_CUDA_DRIVER", "none", 1);
    refused("cuda:0", DPL_EDEVICE, "no usable NVIDIA driver (CUDA error 35");
    setenv("FAKE_CUDA_DRIVER", "stub", 1);
    refused("cuda:0", DPL_EDEVICE, "no usable NVIDIA driver (CUDA error 34");
}

/* A program around us looks at its own last error. */
static void nothing_is_left_in_last_error(void **state)
{
    test_device r;
    (void)state;

    need_fake();
    refused("cuda:5", DPL_EDEVICE, "no such GPU");
    assert_int_equal(fake->last(), 0);
    test_device_open(&r, "cuda:3");
    dpl_stream_launch(r.a, test_device_nap, &(int){ 20 }, 0);
    dpl_event_record(r.e, r.a);
    while (!dpl_event_query(r.e)) {}
    assert_int_equal(fake->last(), 0);
    fake->inject(FAKE_ALLOC, 1, OUT_OF_MEMORY, 0);
    assert_null(dpl_device_alloc(r.d, 100));
    assert_int_equal(fake->last(), 0);
    test_device_close(&r);
}

static void memory_runs_out_without_a_failure(void **state)
{
    test_device r;
    void *p;
    (void)state;

    need_fake();
    test_device_open(&r, "cuda:0");
    fake->inject(FAKE_ALLOC, 2, OUT_OF_MEMORY, 0);
    assert_non_null(p = dpl_device_alloc(r.d, 100));
    assert_null(dpl_device_alloc(r.d, 100));
    dpl_device_free(r.d, p);
    fake->inject(FAKE_HOST_ALLOC, 1, OUT_OF_MEMORY, 0);
    assert_null(dpl_device_host_alloc(r.d, 100));
    assert_non_null(p = dpl_device_host_alloc(r.d, 100));
    dpl_device_host_free(r.d, p);
    assert_string_equal(dpl_device_failure(r.d), "");
    test_device_close(&r);
}

static void a_failed_call_says_why(void **state)
{
    dpl_stream *s = (dpl_stream *)&s;
    dpl_event *e = (dpl_event *)&e;
    dpl_text why;
    test_device r;
    (void)state;

    need_fake();
    test_device_open(&r, "cuda:0");
    fake->inject(FAKE_STREAM, 1, OUT_OF_MEMORY, 0);
    assert_int_equal(dpl_stream_create(r.d, &s, "copies", &why), DPL_EDEVICE);
    assert_null(s);
    assert_non_null(
        strstr(why.s, "cuda:0: no stream copies: cudaStreamCreateWithFlags: out of memory"));
    fake->inject(FAKE_EVENT, 1, OUT_OF_MEMORY, 0);
    assert_int_equal(dpl_event_create(r.d, &e, &why), DPL_EDEVICE);
    assert_null(e);
    fake->inject(FAKE_COPY, 1, ILLEGAL_ADDRESS, 0);
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_EDEVICE);
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_OK);
    fake->inject(FAKE_LAUNCH, 1, LAUNCH_FAILURE, 0);
    assert_int_equal(dpl_stream_launch(r.a, test_device_nap, &(int){ 1 }, 0), DPL_EDEVICE);
    assert_non_null(strstr(dpl_device_failure(r.d), "out of memory")); /* the first one stays */
    test_device_close(&r);
}

/* The GPU fails while work runs: the first wait says so, nothing hangs, everything can be freed. */
static void a_sticky_error_comes_out_at_the_wait(void **state)
{
    static const fake_cuda_call kinds[] = { FAKE_COPY, FAKE_LAUNCH };
    (void)state;

    need_fake();
    for (int k = 0; k < 2; k++) {
        test_device r;

        test_device_open(&r, "cuda:1");
        fake->inject(kinds[k], 1, ILLEGAL_ADDRESS, 1);
        if (k) {
            assert_int_equal(dpl_stream_launch(r.a, test_device_nap, &(int){ 1 }, 0), DPL_OK);
        } else {
            assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_OK);
        }
        dpl_event_record(r.e, r.a); /* fails already when the work was quick */
        assert_int_equal(dpl_stream_sync(r.a), DPL_EDEVICE);
        assert_non_null(
            strstr(dpl_device_failure(r.d), "an illegal memory access was encountered"));
        assert_int_equal(dpl_event_sync(r.e), DPL_EDEVICE);
        assert_int_equal(dpl_event_query(r.e), 1);
        assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_EDEVICE);
        refused("cuda:1", DPL_EDEVICE, "the GPU does not start: an illegal memory access");
        test_device_close(&r);
        fake->reset();
    }
}

/* Only its own GPU: another one works on. */
static void other_gpus_work_on(void **state)
{
    test_device r, other;
    (void)state;

    need_fake();
    test_device_open(&r, "cuda:1");
    test_device_open(&other, "cuda:2");
    fake->inject(FAKE_COPY, 1, ILLEGAL_ADDRESS, 1);
    dpl_copy_to_device(r.a, r.dev, r.host, BIG);
    assert_int_equal(dpl_stream_sync(r.a), DPL_EDEVICE);
    assert_int_equal(dpl_copy_to_device(other.a, other.dev, other.host, BIG), DPL_OK);
    assert_int_equal(dpl_stream_sync(other.a), DPL_OK);
    assert_string_equal(dpl_device_failure(other.d), "");
    test_device_close(&r);
    test_device_close(&other);
}

/* What rig memory is: fresh device memory is no zeros, pageable sources are free after the call. */
static void the_fake_keeps_cuda_rules(void **state)
{
    uint8_t *pageable = calloc(BIG, 1), *fresh;
    test_device r;
    (void)state;

    need_fake();
    test_device_open(&r, "cuda:0");
    assert_non_null(fresh = dpl_device_alloc(r.d, BIG));
    assert_int_equal(dpl_copy_to_host(r.a, r.back, fresh, BIG), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.a), DPL_OK);
    assert_int_equal(r.back[0], 0xA5);
    memset(pageable, 1, BIG);
    fake->hold(1); /* nothing is copied yet */
    assert_int_equal(dpl_copy_to_device(r.a, fresh, pageable, BIG), DPL_OK);
    assert_int_equal(dpl_copy_to_device(r.b, r.dev, r.host, BIG), DPL_OK);
    memset(pageable, 2, BIG);
    if (!test_device_has_tsan()) r.host[7] ^= 0xFF; /* a race: pinned memory is read by the copy */
    fake->hold(0);
    assert_int_equal(dpl_copy_to_host(r.a, pageable, fresh, BIG), DPL_OK);
    assert_int_equal(pageable[BIG - 1], 1); /* to pageable memory: done at return */
    assert_int_equal(dpl_copy_to_host(r.b, r.back, r.dev, BIG), DPL_OK);
    assert_int_equal(dpl_stream_sync(r.b), DPL_OK);
    assert_int_equal(r.back[7], r.host[7]);
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG + 1),
                     DPL_EDEVICE); /* past the end */
    assert_int_equal(dpl_copy_to_device(r.a, r.back, r.host, BIG),
                     DPL_EDEVICE); /* no device memory */
    dpl_device_free(r.d, fresh);
    test_device_close(&r);
    free(pageable);
}

static void streams_of_others_are_taken(void **state)
{
    test_device r, other;
    void *native;
    (void)state;

    need_fake();
    test_device_open(&r, "cuda:2");
    test_device_open(&other, "cuda:2"); /* the trainer's handles of the same GPU */
    native = dpl_stream_native(other.a);
    assert_true(native && native != (void *)other.a);
    assert_int_equal(dpl_copy_to_device(r.a, r.dev, r.host, BIG), DPL_OK);
    assert_int_equal(dpl_event_record(r.e, r.a), DPL_OK);
    assert_int_equal(dpl_native_wait(native, r.e), DPL_OK);
    assert_int_equal(dpl_copy_to_host(other.a, other.back, r.dev, BIG), DPL_OK);
    assert_int_equal(dpl_native_record(r.f, native), DPL_OK);
    assert_int_equal(dpl_event_sync(r.f), DPL_OK);
    assert_memory_equal(other.back, r.host, BIG);
    assert_int_equal(dpl_native_sync(r.d, native), DPL_OK);
    test_device_close(&other);
    test_device_open(&other, "cuda:3"); /* an event marks points of its own GPU only */
    assert_int_equal(dpl_native_record(r.f, dpl_stream_native(other.a)), DPL_EDEVICE);
    test_device_close(&other);
    test_device_close(&r);
}

static void *whole_life(void *arg)
{
    test_device r, other;
    (void)arg;

    test_device_open(&r, "cuda:2");
    test_device_open(&other, "cuda:2");
    dpl_copy_to_device(r.a, r.dev, r.host, BIG);
    dpl_event_record(r.e, r.a);
    dpl_native_wait(dpl_stream_native(other.a), r.e);
    dpl_native_record(r.f, dpl_stream_native(other.a));
    while (!dpl_event_query(r.f)) {}
    dpl_event_sync(r.e);
    dpl_stream_launch(r.a, test_device_nap, &(int){ 1 }, 0);
    dpl_native_sync(r.d, dpl_stream_native(r.a));
    test_device_close(&other);
    test_device_close(&r);
    return NULL;
}

/* Each would cost some 500 MiB of GPU 0 in every process. */
static void no_call_starts_another_gpu(void **state)
{
    pthread_t thread; /* one that has chosen no GPU */
    (void)state;

    need_fake();
    assert_int_equal(pthread_create(&thread, NULL, whole_life, NULL), 0);
    pthread_join(thread, NULL);
    for (int gpu = 0; gpu < 4; gpu++) assert_int_equal(fake->started(gpu), gpu == 2);
}

static void a_missing_wait_is_seen(void **state)
{
    (void)state;
    need_fake();
    test_device_plants("cuda:0");
}

/* Last: whatever the tests above made is gone. */
static void everything_was_given_back(void **state)
{
    (void)state;
    need_fake();
    assert_int_equal(fake->alive(), 0);
}

/* The plug-in is looked for beside the program: a copy of this program elsewhere finds none. */
static void without_the_plug_in_it_says_where_it_looked(void **state)
{
    const char *folder = test_tempdir(), *copy = test_format("%s/alone", folder);
    const char *out = test_format("%s/out", folder);
    char *text;
    size_t len;
    (void)state;

    assert_int_equal(
        system(test_format("cp /proc/%d/exe %s && %s alone >%s", (int)getpid(), copy, copy, out)),
        0);
    text = (char *)test_read_file(out, &len);
    assert_true(len > 0);
    text[len - 1] = '\0';
    if (!strstr(text, "-9 device \"cuda:0\": no CUDA support here: libdpload_cuda.so is not in ") ||
        !strstr(text, folder) || !strstr(text, "make CUDA=1"))
        fail_msg("it said: %s", text);
    free(text);
}

static int run_alone(void)
{
    dpl_text why = { "" };
    dpl_device *d;
    const int err = dpl_device_open(&d, "cuda:0", &why);

    dpl_device_close(&d);
    printf("%d %s\n", err, why.s);
    return 0;
}

/* Over the fake, or on a card with the real plug-in beside this program. */
static int opens(const char *spec)
{
    dpl_text why;
    dpl_device *d;

    if (dpl_device_open(&d, spec, &why)) return 0;
    dpl_device_close(&d);
    return 1;
}

int main(int argc, char **argv)
{
    test_device_specs specs = { "cuda:0", "cuda:1" };
    const struct CMUnitTest shared[] = { TEST_DEVICE_CASES(&specs) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(open_takes_visible_gpus, set_up),
        cmocka_unit_test_setup(open_refuses_with_a_reason, set_up),
        cmocka_unit_test_setup(nothing_is_left_in_last_error, set_up),
        cmocka_unit_test_setup(memory_runs_out_without_a_failure, set_up),
        cmocka_unit_test_setup(a_failed_call_says_why, set_up),
        cmocka_unit_test_setup(a_sticky_error_comes_out_at_the_wait, set_up),
        cmocka_unit_test_setup(other_gpus_work_on, set_up),
        cmocka_unit_test_setup(the_fake_keeps_cuda_rules, set_up),
        cmocka_unit_test_setup(streams_of_others_are_taken, set_up),
        cmocka_unit_test_setup(no_call_starts_another_gpu, set_up),
        cmocka_unit_test_setup(a_missing_wait_is_seen, set_up),
        cmocka_unit_test_setup(everything_was_given_back, set_up),
        cmocka_unit_test_setup(without_the_plug_in_it_says_where_it_looked, set_up),
    };
    int status;

    set_up(NULL);
    if (argc == 2 && !strcmp(argv[1], "alone")) return run_alone();
    if (test_device_plant_main(argc, argv, &status)) return status;
    fake = test_fake_cuda();
    set_up(NULL);
    if (!opens(specs.two)) specs.two = specs.one;
    if (opens(specs.one) && (status = cmocka_run_group_tests(shared, NULL, NULL))) return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
