/* SPDX-License-Identifier: Apache-2.0 */
/* Device specs and lists, and the host as a device. */
#include "device/device.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

static void open_takes_what_it_documents(void **state)
{
    static const struct {
        const char *spec;
        dpl_device_kind kind;
        int has_memory;
        long long step_ns;
    } good[] = {
        { "cpu", DPL_DEVICE_CPU, 0, 0 },
        { "sim:38ms", DPL_DEVICE_SIM, 1, 38000000 },
        { "sim:200us,bus=16G", DPL_DEVICE_SIM, 1, 200000 },
        { "sim:0ms", DPL_DEVICE_SIM, 1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        dpl_device *d;
        dpl_text why = { "" };

        if (dpl_device_open(&d, good[i].spec, &why)) fail_msg("%s: %s", good[i].spec, why.s);
        assert_int_equal(dpl_device_get_kind(d), good[i].kind);
        assert_int_equal(dpl_device_has_memory(d), good[i].has_memory);
        assert_true(dpl_device_step_ns(d) == good[i].step_ns);
        assert_string_equal(dpl_device_name(d), good[i].spec);
        dpl_device_close(&d);
        assert_null(d);
    }
}

static void open_refuses_with_a_reason(void **state)
{
    static const struct {
        const char *spec;
        int err;
        const char *text; /* a part of it */
    } bad[] = {
        { "", DPL_EINVAL, "unknown" },
        { "gpu", DPL_EINVAL, "\"gpu\": unknown" },
        { "cp", DPL_EINVAL, "unknown" },
        { "cpux", DPL_EINVAL, "unknown" },
        { "cpu:2", DPL_EINVAL, "takes no \":2\"" },
        { "sim", DPL_EINVAL, "time of a step is missing" },
        { "sim:", DPL_EINVAL, "no step time" },
        { "sim:fast", DPL_EINVAL, "\"fast\" is no step time" },
        { "sim:2h", DPL_EINVAL, "no step time" },
        { "sim:38ms,bus=0", DPL_EINVAL, "bus=0" },
        { "sim:38ms,bus=x", DPL_EINVAL, "bus=x" },
        { "sim:38ms,lanes=4", DPL_EINVAL, "lanes=4" },
        { "cudax", DPL_EINVAL, "unknown" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dpl_device *d = (dpl_device *)&d;
        dpl_text why = { "" };

        assert_int_equal(dpl_device_open(&d, bad[i].spec, &why), bad[i].err);
        assert_null(d);
        if (!strstr(why.s, bad[i].text)) fail_msg("\"%s\" gave: %s", bad[i].spec, why.s);
        dpl_device_close(&d);
    }
}

static void lists_split_into_specs(void **state)
{
    static const struct {
        const char *list;
        int n;
        const char *spec[4];
    } good[] = {
        { "cpu", 1, { "cpu" } },
        { "cpu,cpu", 2, { "cpu", "cpu" } },
        { "cpu:3", 3, { "cpu", "cpu", "cpu" } },
        { "cpu:2,sim:38ms", 3, { "cpu", "cpu", "sim:38ms" } },
        { "sim:38ms,bus=16G,cpu", 2, { "sim:38ms,bus=16G", "cpu" } },
        { "sim:1ms,bus=1G,sim:2ms,bus=2G", 2, { "sim:1ms,bus=1G", "sim:2ms,bus=2G" } },
        { "cuda:0,cuda:1", 2, { "cuda:0", "cuda:1" } },
        { "cpu,x=1", 2, { "cpu", "x=1" } }, /* only sim specs go on; opening it will say so */
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char **specs;
        dpl_text why = { "" };

        assert_int_equal(dpl_device_list_parse(&specs, good[i].list, &why), good[i].n);
        for (int k = 0; k < good[i].n; k++) assert_string_equal(specs[k], good[i].spec[k]);
        free(specs);
    }
}

static void lists_end_at_256(void **state)
{
    char list[4 * 257];
    char **specs;
    dpl_text why;
    (void)state;

    assert_int_equal(dpl_device_list_parse(&specs, "cpu:256", &why), 256);
    assert_string_equal(specs[255], "cpu");
    free(specs);
    assert_int_equal(dpl_device_list_parse(&specs, "cpu:256,cpu", &why), DPL_EINVAL);
    assert_int_equal(dpl_device_list_parse(&specs, "cpu:200,cpu:57", &why), DPL_EINVAL);
    for (int i = 0; i < 257; i++) memcpy(list + 4 * i, i < 256 ? "cpu," : "cpu", 4);
    assert_int_equal(dpl_device_list_parse(&specs, list, &why), DPL_EINVAL);
    assert_non_null(strstr(why.s, "more than 256"));
    list[4 * 256 - 1] = '\0';
    assert_int_equal(dpl_device_list_parse(&specs, list, &why), 256);
    free(specs);
}

static void lists_refuse_with_a_reason(void **state)
{
    static const char *const bad[] = { "",      ",",       "cpu,",   ",cpu",           "cpu,,cpu",
                                       "cpu:0", "cpu:257", "cpu:-1", "cpu:4294967297", "cpu:2x" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char **specs = (char **)&specs;
        dpl_text why = { "" };

        assert_int_equal(dpl_device_list_parse(&specs, bad[i], &why), DPL_EINVAL);
        assert_null(specs);
        assert_true(strlen(why.s) > 20);
    }
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void cpu_runs_at_once(void **state)
{
    dpl_device *d;
    dpl_stream *s;
    dpl_event *e;
    dpl_text why;
    int runs = 0;
    char *a, *b, *c;
    (void)state;

    assert_int_equal(dpl_device_open(&d, "cpu", &why), DPL_OK);
    a = dpl_device_host_alloc(d, 1000);
    b = dpl_device_alloc(d, 1000);
    c = dpl_device_host_alloc(d, 1000);
    assert_true(a && b && c);
    assert_true((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
    assert_int_equal(dpl_stream_create(d, &s, "copy", &why), DPL_OK);
    assert_int_equal(dpl_event_create(d, &e, &why), DPL_OK);
    assert_int_equal(dpl_event_query(e), 1);
    memset(a, 7, 1000);
    assert_int_equal(dpl_copy_to_device(s, b, a, 1000), DPL_OK);
    assert_memory_equal(a, b, 1000);
    assert_int_equal(dpl_copy_to_device(s, b, b, 1000), DPL_OK); /* host memory is device memory */
    assert_int_equal(dpl_copy_to_host(s, c, b, 1000), DPL_OK);
    assert_memory_equal(a, c, 1000);
    assert_int_equal(dpl_stream_launch(s, add_one, &runs, 3600000000000), DPL_OK);
    assert_int_equal(runs, 1);
    assert_int_equal(dpl_event_record(e, s), DPL_OK);
    assert_int_equal(dpl_stream_wait(s, e), DPL_OK);
    assert_int_equal(dpl_event_query(e), 1);
    assert_int_equal(dpl_event_sync(e), DPL_OK);
    assert_int_equal(dpl_stream_sync(s), DPL_OK);
    dpl_event_destroy(&e);
    dpl_stream_destroy(&s);
    assert_true(!e && !s);
    dpl_event_destroy(&e);
    dpl_stream_destroy(&s);
    dpl_device_host_free(d, a);
    dpl_device_free(d, b);
    dpl_device_host_free(d, c);
    dpl_device_free(d, NULL);
    dpl_device_close(&d);
}

static void events_stay_with_their_device(void **state)
{
    dpl_device *d[2];
    dpl_stream *s[2];
    dpl_event *e[2];
    dpl_text why;
    (void)state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(dpl_device_open(&d[i], i ? "sim:0ms" : "cpu", &why), DPL_OK);
        assert_int_equal(dpl_stream_create(d[i], &s[i], "copy", &why), DPL_OK);
        assert_int_equal(dpl_event_create(d[i], &e[i], &why), DPL_OK);
    }
    assert_int_equal(dpl_event_record(e[0], s[1]), DPL_EINVAL);
    assert_int_equal(dpl_event_record(e[1], s[0]), DPL_EINVAL);
    assert_int_equal(dpl_stream_wait(s[0], e[1]), DPL_EINVAL);
    assert_int_equal(dpl_stream_wait(s[1], e[0]), DPL_EINVAL);
    for (int i = 0; i < 2; i++) {
        dpl_event_destroy(&e[i]);
        dpl_stream_destroy(&s[i]);
        dpl_device_close(&d[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_takes_what_it_documents),
        cmocka_unit_test(open_refuses_with_a_reason),
        cmocka_unit_test(lists_split_into_specs),
        cmocka_unit_test(lists_end_at_256),
        cmocka_unit_test(lists_refuse_with_a_reason),
        cmocka_unit_test(cpu_runs_at_once),
        cmocka_unit_test(events_stay_with_their_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
