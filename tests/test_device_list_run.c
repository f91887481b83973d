/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of dptrain makes of its list of devices when GPUs are busy: over the fakes. */
#include "tests/fake/fake_cuda.h"
#include "tests/run_inside.h"
#include "trainer/trainer_plugin.h"

#include <stdlib.h>
#include <string.h>

enum { BUSY = 46 }; /* cudaErrorDevicesUnavailable */

static const fake_cuda *fake;

static void need_gpus(void)
{
    const dpt_trainer_plugin *plugin;

    if (!fake || dpt_plugin_cuda(&plugin, NULL)) skip();
    fake->reset();
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* The run's list is `found`, or it ends with code 4 and says `why`. */
static void check(const char *devices, const char *found, int cuda, const char *why)
{
    test_inside x;
    int rc;

    test_inside_open(&x, test_format("-a tinynet --size 16 -b 12 --devices %s data", devices));
    rc = test_inside_devices(&x);
    if (why) {
        assert_int_equal(rc, DPT_EXIT_DEVICE);
        if (!strstr(x.why.s, why)) fail_msg("%s: %s", devices, x.why.s);
    } else {
        if (rc) fail_msg("%s: %s", devices, x.why.s);
        assert_string_equal(x.run.device_text, found);
        assert_int_equal(x.run.cuda, cuda);
    }
    test_inside_close(&x);
}

static void auto_leaves_busy_gpus_out(void **state)
{
    (void)state;
    need_gpus();
    check("auto", "cuda:0,cuda:1,cuda:2", 1, NULL);
    fake->lose(1, BUSY);
    check("auto", "cuda:0,cuda:2", 1, NULL);
    fake->lose(0, BUSY);
    fake->lose(2, BUSY);
    check("auto", "cpu", 0, NULL);
    fake->reset();
}

static void a_busy_gpu_that_was_named_is_an_error(void **state)
{
    (void)state;
    need_gpus();
    fake->lose(1, BUSY);
    check("0,2", "cuda:0,cuda:2", 1, NULL);
    check("0,1", NULL, 1, "busy or unavailable");
    check("cuda", NULL, 1, "device \"cuda:1\": the GPU does not start");
    fake->reset();
}

static void numbers_are_those_of_the_list(void **state)
{
    test_inside x;
    (void)state;

    need_gpus();
    test_inside_open(&x, "-a tinynet --size 16 -b 12 --devices 2,0 data");
    if (test_inside_devices(&x)) fail_msg("%s", x.why.s);
    assert_int_equal(x.run.devices, 2);
    assert_int_equal(x.run.gpu[0], 2);
    assert_int_equal(x.run.gpu[1], 0);
    assert_string_equal(x.run.device[0], "cuda:2");
    test_inside_close(&x);
}

/* Each of several processes has a GPU of its own, unless its list says which. */
static void processes_take_a_gpu_each(void **state)
{
    static const char *const names[] = { "RANK",        "WORLD_SIZE",
                                         "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                         "MASTER_ADDR", "MASTER_PORT" };
    static const char *const values[] = { "1", "2", "1", "2", "127.0.0.1", "29555" };
    (void)state;

    need_gpus();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) setenv(names[i], values[i], 1);
    check("auto", "cuda:1", 1, NULL);
    check("cuda", "cuda:1", 1, NULL);
    check("2", "cuda:2", 1, NULL);
    check("0,2", "cuda:0,cuda:2", 1, NULL);
    setenv("CUDA_VISIBLE_DEVICES", "2", 1); /* as some launchers give each its own */
    check("auto", "cuda:0", 1, NULL);
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    setenv("LOCAL_RANK", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "3", 1);
    setenv("WORLD_SIZE", "3", 1);
    setenv("RANK", "2", 1);
    check("cuda", NULL, 1, "number 2 on this machine, which has 2 GPUs");
    setenv("LOCAL_RANK", "1", 1);
    fake->lose(1, BUSY);
    check("auto", NULL, 1, "cuda:1"); /* the others have as many: none is left out */
    fake->reset();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* What CUDA says is the reason, not how the GPUs would be shared. */
static void processes_without_gpus_say_why_there_are_none(void **state)
{
    static const char *const local[] = { "", " --local-rank 0" };
    char words[100];

    (void)state;
    need_gpus();
    setenv("FAKE_CUDA_DRIVER", "none", 1);
    for (int i = 0; i < 2; i++) {
        snprintf(words, sizeof words, "cuda --rank 0 --world 2 --master-addr node0%s", local[i]);
        check(words, NULL, 1, "--devices cuda: no usable NVIDIA driver");
        memcpy(words, "auto", 4);
        check(words, NULL, 1, "--devices auto: no usable NVIDIA driver");
    }
    unsetenv("FAKE_CUDA_DRIVER");
    fake->reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_leaves_busy_gpus_out),
        cmocka_unit_test(a_busy_gpu_that_was_named_is_an_error),
        cmocka_unit_test(numbers_are_those_of_the_list),
        cmocka_unit_test(processes_take_a_gpu_each),
        cmocka_unit_test(processes_without_gpus_say_why_there_are_none),
    };

    fake = test_fake_cuda();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
