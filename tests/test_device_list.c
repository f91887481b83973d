/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of devices that name GPUs, and what is known of a GPU: over a fake CUDA runtime, whose GPUs are
 * those that CUDA_VISIBLE_DEVICES leaves. */
#include "device/device.h"
#include "dpload.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

static const fake_cuda *fake;

static int set_up(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    unsetenv("FAKE_CUDA_DRIVER");
    unsetenv("FAKE_CUDA_NAMES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    return 0;
}

static void need_fake(void)
{
    if (!fake) skip();
}

static char *joined(char **spec, int n)
{
    char *s = calloc(1, 4096);

    for (int i = 0; i < n; i++) {
        if (i) strcat(s, " ");
        strcat(s, spec[i]);
    }
    return s;
}

/* The list must come to these specs; "" = refused with text. */
static void check(const char *list, const char *specs, int err, const char *text)
{
    char **spec = (char **)&spec, *found;
    dpl_text why = { "left over" };
    const int n = dpl_device_list_parse(&spec, list, &why);

    if (err) {
        if (n != err || spec || !strstr(why.s, text))
            fail_msg("\"%s\" gave %d (wanted %d), \"%s\"", list, n, err, why.s);
        return;
    }
    if (n < 1) fail_msg("\"%s\": %s", list, why.s);
    found = joined(spec, n);
    if (strcmp(found, specs) != 0) fail_msg("\"%s\" gave %s, not %s", list, found, specs);
    assert_string_equal(why.s, text ? text : "");
    free(found);
    free(spec);
}

/* What needs no look at the GPUs is taken wherever it is parsed. */
static void numbers_and_ranges(void **state)
{
    static const char *const bad[] = { "cuda:", "cuda:x",  "0x",      "1-",  "cuda:-1",  "2-1",
                                       "1-2-3", "cuda: 1", "0 1",     "1.5", "0,cuda:a", "123456",
                                       "0-",    "cuda:1-", "cuda:0x", "-1-2" };
    (void)state;
    check("0", "cuda:0", 0, NULL);
    check("cuda:0", "cuda:0", 0, NULL);
    check("0,1", "cuda:0 cuda:1", 0, NULL);
    check("cuda:1,0", "cuda:1 cuda:0", 0, NULL);
    check("cuda:1,cuda:0", "cuda:1 cuda:0", 0, NULL);
    check("0-3", "cuda:0 cuda:1 cuda:2 cuda:3", 0, NULL);
    check("cuda:0-1,3", "cuda:0 cuda:1 cuda:3", 0, NULL);
    check("5,2-3", "cuda:5 cuda:2 cuda:3", 0, NULL);
    check("7-7", "cuda:7", 0, NULL);
    check(" 0 , 1\t,2 ", "cuda:0 cuda:1 cuda:2", 0, NULL);
    check("cpu , cpu:2", "cpu cpu cpu", 0, NULL);
    check("sim:38ms, bus=16G , cpu", "sim:38ms,bus=16G cpu", 0, NULL);
    check("cpu,0", "cpu cuda:0", 0, NULL); /* the loader can; dptrain says no */
    check("0,0", NULL, DPL_EINVAL, "names cuda:0 twice");
    check("cuda:2,0-3", NULL, DPL_EINVAL, "names cuda:2 twice");
    check("0-256", NULL, DPL_EINVAL, "more than 256");
    check("auto,cpu", NULL, DPL_EINVAL, "auto stands alone");
    check("0, ,1", NULL, DPL_EINVAL, "between two commas");
    check("  ", NULL, DPL_EINVAL, "a name is missing");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char **spec = (char **)&spec;
        dpl_text why = { "" };
        const int n = dpl_device_list_parse(&spec, bad[i], &why);

        if (*bad[i] == '-') { /* no GPU: a word that opening will not know */
            assert_int_equal(n, 1);
            free(spec);
        } else if (n != DPL_EINVAL || !strstr(why.s, "GPU-8f3a")) {
            fail_msg("\"%s\" gave %d: %s", bad[i], n, why.s);
        }
    }
}

static void all_visible_gpus(void **state)
{
    (void)state;
    need_fake();
    check("cuda", "cuda:0 cuda:1 cuda:2 cuda:3", 0, NULL);
    check("auto", "cuda:0 cuda:1 cuda:2 cuda:3", 0, NULL);
    check(" auto ", "cuda:0 cuda:1 cuda:2 cuda:3", 0, NULL);
    check("cuda,cpu", "cuda:0 cuda:1 cuda:2 cuda:3 cpu", 0, NULL);
    check("cuda,2", NULL, DPL_EINVAL, "names cuda:2 twice");
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    check("cuda", "cuda:0 cuda:1", 0, NULL);
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    check("auto", "cuda:0", 0, NULL);
}

/* No GPU: auto is the CPU and says why; asking for GPUs is an error. */
static void none_to_be_had(void **state)
{
    static const struct {
        const char *variable, *value, *text;
    } none[] = {
        { "FAKE_CUDA_DEVICES", "0", "no NVIDIA GPU is visible (CUDA error 100" },
        { "CUDA_VISIBLE_DEVICES", "", "no NVIDIA GPU is visible (CUDA error 100" },
        { "CUDA_VISIBLE_DEVICES", "9,0", "no NVIDIA GPU is visible (CUDA error 100" },
        { "FAKE_CUDA_DRIVER", "none", "no usable NVIDIA driver (CUDA error 35" },
        { "FAKE_CUDA_DRIVER", "stub", "no usable NVIDIA driver (CUDA error 34" },
    };
    (void)state;
    need_fake();
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char **spec;
        dpl_text why;

        set_up(state);
        setenv(none[i].variable, none[i].value, 1);
        assert_int_equal(dpl_device_list_parse(&spec, "auto", &why), 1);
        assert_string_equal(spec[0], "cpu");
        if (!strstr(why.s, none[i].text)) fail_msg("auto: %s", why.s);
        free(spec);
        check("cuda", NULL, DPL_EDEVICE, none[i].text);
        check("GPU-fa", NULL, DPL_EDEVICE, none[i].text);
    }
}

static void uuids(void **state)
{
    (void)state;
    need_fake();
    check("GPU-fa", "cuda:0", 0, NULL);
    check("gpu-FA6e", "cuda:0", 0, NULL);
    check("cuda:GPU-0b6ec0da-1234-4567-89ab-cdef01234501", "cuda:1", 0, NULL);
    check("GPU-2d, GPU-1c ,0", "cuda:3 cuda:2 cuda:0", 0, NULL);
    check("GPU-", NULL, DPL_EINVAL, "beginning of more than one UUID: GPU-fa6ec0da-");
    check("GPU-fa,0", NULL, DPL_EINVAL, "names cuda:0 twice");
    check("GPU-dead", NULL, DPL_EDEVICE, "none of the 4 visible GPUs");
    check("GPU-fa6ec0da-1234-4567-89ab-cdef012345000", NULL, DPL_EDEVICE, "none of the 4");
    setenv("CUDA_VISIBLE_DEVICES", "GPU-2d,1", 1);
    check("GPU-2d", "cuda:0", 0, NULL);
    check("GPU-0b", "cuda:1", 0, NULL);
    check("GPU-fa", NULL, DPL_EDEVICE, "none of the 2 visible GPUs");
}

static void a_gpu_is_described(void **state)
{
    dpl_gpu_info *g;
    dpl_text why;
    (void)state;

    need_fake();
    setenv("FAKE_CUDA_NAMES",
           "NVIDIA H200/139.5/9.0,NVIDIA A30/24/8.0,Some GPU,NVIDIA RTX 6000/96/12.0", 1);
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "3, GPU-0b,0", 1);
    assert_int_equal(dpl_gpu_list(&g, &why), 3);
    assert_int_equal(g[0].index, 0);
    assert_string_equal(g[0].outside, "3");
    assert_string_equal(g[0].name, "NVIDIA RTX 6000");
    assert_string_equal(g[0].pci, "0000:13:00.0");
    assert_string_equal(g[0].uuid, "GPU-2d6ec0da-1234-4567-89ab-cdef01234503");
    assert_true(g[0].memory == (uint64_t)96 << 30);
    assert_int_equal(g[0].major, 12);
    assert_int_equal(g[1].index, 1);
    assert_string_equal(g[1].outside, "GPU-0b");
    assert_string_equal(g[1].name, "NVIDIA A30");
    assert_string_equal(g[1].pci, "0000:11:00.0");
    assert_int_equal(g[1].major, 8);
    assert_int_equal(g[1].minor, 0);
    assert_string_equal(g[2].outside, "0");
    assert_true(g[2].memory == (uint64_t)279 << 29);
    free(g);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(dpl_gpu_list(&g, &why), 4);
    assert_string_equal(g[3].outside, "3");
    free(g);
    assert_int_equal(fake->last(), 0);
}

/* Looking starts nothing: a GPU that is lost can be listed, and only opening it fails. */
static void looking_starts_nothing(void **state)
{
    const int alive = fake ? fake->alive() : 0;
    dpl_gpu_info *g;
    dpl_text why;
    (void)state;

    need_fake();
    fake->lose(1, 46);
    assert_int_equal(dpl_gpu_list(&g, &why), 4);
    free(g);
    check("cuda", "cuda:0 cuda:1 cuda:2 cuda:3", 0, NULL);
    assert_int_equal(fake->alive(), alive);
    fake->reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_ranges),
        cmocka_unit_test_setup(all_visible_gpus, set_up),
        cmocka_unit_test_setup(none_to_be_had, set_up),
        cmocka_unit_test_setup(uuids, set_up),
        cmocka_unit_test_setup(a_gpu_is_described, set_up),
        cmocka_unit_test_setup(looking_starts_nothing, set_up),
    };

    fake = test_fake_cuda();
    set_up(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
