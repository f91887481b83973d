/* SPDX-License-Identifier: Apache-2.0 */
/* `dptrain devices` and --devices as a user meets them: without any part for GPUs, with the loader's
 * alone, and with both, over a fake CUDA runtime. Each is a folder of its own, because the program looks
 * for its parts beside itself. */
#include "tests/testutil.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum parts { NONE, LOADER, BOTH } parts;
enum { OUTPUT = 1 << 16 };

static char here[PATH_MAX], work[PATH_MAX];
static const char *program = "dptrain";

static const char *folder_of(parts p)
{
    static const char *const name[] = { "none", "loader", "both" };

    return name[p];
}

static int copy_here(parts p, const char *file)
{
    char to[3 * PATH_MAX];
    const char *from = test_format("%s/%s", here, file);
    uint8_t *bytes;
    size_t len;

    if (access(from, R_OK)) return -1;
    bytes = test_read_file(from, &len);
    snprintf(to, sizeof to, "%s/%s/%s", work, folder_of(p), file);
    test_write_file(to, bytes, len);
    assert_int_equal(chmod(to, 0755), 0);
    free(bytes);
    return 0;
}

/* A folder with the program and its parts. Skips the test where they were not built. */
static void need(parts p)
{
    static const char *const files[] = { "dptrain", "libfakecudart.so", "libdpload_cuda.so",
                                         "libnccl.so.2", "libdptrain_cuda.so" };
    const int n = p == NONE ? 1 : p == LOADER ? 3 : 5;
    int missing = 0;

    if (!access(test_format("%s/%s/%s", work, folder_of(p), files[n - 1]), R_OK)) return;
    test_make_folder(test_format("%s/%s", work, folder_of(p)));
    for (int i = 0; i < n; i++) missing |= copy_here(p, files[i]);
    if (missing) skip();
}

/* Run it with these parts, variables and words. @return what it wrote to both, then "exit N" */
static char *run(parts p, const char *variables, const char *words)
{
    char command[4 * PATH_MAX], *text = calloc(1, OUTPUT);
    FILE *f;

    snprintf(command, sizeof command,
             "cd '%s' && env -u CUDA_VISIBLE_DEVICES -u CUDA_DEVICE_ORDER -u FAKE_CUDA_DEVICES "
             "-u FAKE_CUDA_DRIVER %s '%s/%s/%s' %s 2>&1; echo \"exit $?\"",
             work, variables, work, folder_of(p), program, words);
    assert_non_null(f = popen(command, "r"));
    assert_true(fread(text, 1, OUTPUT - 1, f) > 0);
    pclose(f);
    return text;
}

/* The run must end with that code and say each of the texts (up to a NULL); one behind a '!' not. */
static void says(parts p, const char *variables, const char *words, int code,
                 const char *const *texts)
{
    char *text = run(p, variables, words), end[16];

    snprintf(end, sizeof end, "exit %d\n", code);
    if (!strstr(text, end)) fail_msg("%s %s %s: not %s%s", variables, program, words, end, text);
    for (; *texts; texts++) {
        const int absent = **texts == '!';

        if ((strstr(text, *texts + absent) != NULL) == absent)
            fail_msg("%s %s %s: %s \"%s\" in\n%s", variables, program, words,
                     absent ? "there is" : "no", *texts + absent, text);
    }
    free(text);
}
#define SAYS(parts, variables, words, code, ...)                                                   \
    says(parts, variables, words, code, (const char *const[]){ __VA_ARGS__, NULL })

#define TRAIN "-a tinynet --size 16 --epochs 1 -b 12 --steps 1 -o out -f data"

/* --- dptrain devices --- */

static void devices_without_a_part_for_gpus(void **state)
{
    (void)state;
    need(NONE);
    SAYS(NONE, "", "devices", 0, "cpu       ", " usable core", " ref",
         "cuda      none: no CUDA support here: libdpload_cuda.so is not in",
         "no training on GPUs: no CUDA support here: libdptrain_cuda.so is not in",
         "--devices auto is cpu\n");
}

static void devices_lists_gpus(void **state)
{
    (void)state;
    need(LOADER);
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "devices", 0,
         "cuda:0    Fake GPU, 16.0 GiB, compute capability 9.0, PCI 0000:10:00.0, "
         "GPU-fa6ec0da-1234-4567-89ab-cdef01234500\n",
         "cuda:1    Fake GPU, 16.0 GiB, compute capability 9.0, PCI 0000:11:00.0, GPU-0b6ec0da",
         "no training on GPUs: ", "libdptrain_cuda.so is not in", "--devices auto is cpu\n",
         "!nvidia-smi");
}

/* Which GPU of the machine is it? In whose order are they counted? */
static void devices_maps_visible_gpus(void **state)
{
    (void)state;
    need(LOADER);
    SAYS(LOADER, "FAKE_CUDA_DEVICES=4 CUDA_VISIBLE_DEVICES=2,0", "devices", 0,
         "cuda:0    GPU 2, Fake GPU, ", "PCI 0000:12:00.0, GPU-1c6ec0da", "cuda:1    GPU 0, Fake",
         "CUDA_DEVICE_ORDER=PCI_BUS_ID makes both the same");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=4 CUDA_VISIBLE_DEVICES=0", "devices", 0,
         "cuda:0    GPU 0, Fake GPU, ");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=4 CUDA_VISIBLE_DEVICES=2,0 CUDA_DEVICE_ORDER=PCI_BUS_ID",
         "devices", 0, "cuda:0    GPU 2, ", "!nvidia-smi");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=4 CUDA_VISIBLE_DEVICES=GPU-2d", "devices", 0,
         "cuda:0    GPU-2d, Fake GPU, ", "!nvidia-smi");
}

static void devices_says_why_there_is_none(void **state)
{
    (void)state;
    need(LOADER);
    SAYS(LOADER, "FAKE_CUDA_DRIVER=none", "devices", 0,
         "cuda      none: no usable NVIDIA driver (CUDA error 35: ", "--devices auto is cpu\n");
    SAYS(LOADER, "FAKE_CUDA_DRIVER=stub", "devices", 0, "no usable NVIDIA driver (CUDA error 34: ");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=0", "devices", 0, "no NVIDIA GPU is visible (CUDA error 100: ");
    SAYS(LOADER, "CUDA_VISIBLE_DEVICES=", "devices", 0, "no NVIDIA GPU is visible");
}

static void devices_as_json(void **state)
{
    char *text, *end;
    json_t *j, *gpu;
    (void)state;

    need(LOADER);
    text = run(LOADER, "FAKE_CUDA_DEVICES=3 CUDA_VISIBLE_DEVICES=1,2", "devices --json");
    assert_non_null(end = strchr(text, '\n'));
    assert_string_equal(end + 1, "exit 0\n");
    *end = '\0';
    assert_non_null(j = json_loads(text, 0, NULL));
    assert_string_equal(json_string_value(json_object_get(j, "auto")), "cpu");
    assert_string_equal(json_string_value(json_object_get(j, "CUDA_VISIBLE_DEVICES")), "1,2");
    assert_true(json_is_null(json_object_get(j, "no_gpu")));
    assert_true(json_is_string(json_object_get(j, "no_gpu_training")));
    assert_true(json_integer_value(json_object_get(json_object_get(j, "cpu"), "usable_cores")) > 0);
    assert_int_equal(json_array_size(json_object_get(j, "gpus")), 2);
    gpu = json_array_get(json_object_get(j, "gpus"), 1);
    assert_string_equal(json_string_value(json_object_get(gpu, "device")), "cuda:1");
    assert_string_equal(json_string_value(json_object_get(gpu, "outside")), "2");
    assert_string_equal(json_string_value(json_object_get(gpu, "compute_capability")), "9.0");
    assert_true(json_integer_value(json_object_get(gpu, "memory_bytes")) == 16LL << 30);
    json_decref(j);
    free(text);
}

static void devices_takes_little(void **state)
{
    (void)state;
    need(NONE);
    SAYS(NONE, "", "devices data", 2, "devices takes no \"data\"", "./devices");
    SAYS(NONE, "", "devices --jsn", 2, "--json");
    SAYS(NONE, "", "devices -h", 0, "Usage: dptrain devices", "--json");
    SAYS(NONE, "", "./devices", 3, "./devices", "No such file");
}

/* --- --devices --- */

static void auto_is_the_cpu_and_says_why(void **state)
{
    (void)state;
    need(LOADER);
    need(NONE);
    SAYS(NONE, "", TRAIN, 0, "devices: cpu (no CUDA support here)\n", "1 device (cpu");
    SAYS(NONE, "", "--devices cpu " TRAIN, 0, "!devices: cpu (", "1 device (cpu");
    SAYS(LOADER, "FAKE_CUDA_DRIVER=none", TRAIN, 0, "devices: cpu (no usable NVIDIA driver)\n");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", TRAIN, 0,
         "devices: cpu and not the GPUs: ", "libdptrain_cuda.so", "1 device (cpu");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "-qq " TRAIN, 0, "!devices: ");
}

static void gpus_asked_for_and_not_there(void **state)
{
    (void)state;
    need(LOADER);
    need(NONE);
    SAYS(NONE, "", "--devices cuda " TRAIN, 4,
         "dptrain: --devices cuda: ", "libdpload_cuda.so is not in", "!Epoch");
    SAYS(NONE, "", "--devices 0 " TRAIN, 4, "dptrain: --devices 0: ", "libdpload_cuda.so");
    SAYS(LOADER, "FAKE_CUDA_DRIVER=none", "--devices cuda " TRAIN, 4, "no usable NVIDIA driver");
    SAYS(LOADER, "FAKE_CUDA_DRIVER=none", "--devices 0,1 " TRAIN, 4, "no usable NVIDIA driver");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=0", "--devices cuda " TRAIN, 4, "no NVIDIA GPU is visible");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "--devices 1-2 " TRAIN, 4, "\"cuda:2\"",
         "no such GPU (visible: 0-1)");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "--devices GPU-dead " TRAIN, 4, "none of the 2 visible");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "--devices cuda:0 " TRAIN, 4,
         "--devices cuda:0: ", "libdptrain_cuda.so is not in", "!Epoch");
}

static void lists_that_make_no_sense(void **state)
{
    (void)state;
    need(LOADER);
    need(NONE);
    SAYS(NONE, "", "--devices 0,cpu " TRAIN, 2, "cuda:0 and cpu cannot share a batch", "one kind");
    SAYS(NONE, "", "--devices cpu,cuda:1 " TRAIN, 2, "cpu and cuda:1 cannot share a batch");
    SAYS(NONE, "", "--devices 1,1 " TRAIN, 2, "names cuda:1 twice");
    SAYS(NONE, "", "--devices 3-1 " TRAIN, 2, "a range (0-3)");
    SAYS(NONE, "", "--devices auto,cpu " TRAIN, 2, "auto stands alone");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "--devices GPU- " TRAIN, 2, "more than one UUID");
    SAYS(LOADER, "FAKE_CUDA_DEVICES=2", "--devices cuda,cpu " TRAIN, 2, "cannot share a batch");
}

/* Kernels are built for compute capability 8.0 and later. */
static void old_gpus_are_left_out(void **state)
{
    const char *both = "FAKE_CUDA_NAMES=T4/16/7.5,A100/40/8.0", *old = "FAKE_CUDA_NAMES=T4/16/7.5";
    (void)state;

    need(BOTH);
    SAYS(BOTH, both, TRAIN, 0, "warning: cuda:0: T4 has compute capability 7.5", "it is left out",
         "cuda:1: A100, ", "1 GPU (");
    SAYS(BOTH, both, "--devices cuda " TRAIN, 4,
         "--devices cuda: cuda:0: T4 has compute capability 7.5", "needs 8.0");
    SAYS(BOTH, both, "devices", 0, "!no training",
         "--devices auto is cuda, all that can be used\n");
    SAYS(BOTH, old, TRAIN, 0, "devices: cpu and not the GPU: cuda:0: T4 has", "1 device (cpu");
    SAYS(BOTH, old, "devices", 0, "no training on GPUs: cuda:0: T4 has", "--devices auto is cpu\n");
}

static void gpus_are_used_and_named(void **state)
{
    (void)state;
    need(BOTH);
    SAYS(BOTH, "FAKE_CUDA_DEVICES=2", "devices", 0, "cuda:1 ", "!no training",
         "--devices auto is cuda, all that can be used\n");
    SAYS(BOTH, "FAKE_CUDA_DEVICES=2", TRAIN, 0, "!devices: cpu", "2 GPUs (",
         "cuda:0: Fake GPU, 16.0 GiB, compute capability 9.0, PCI 0000:10:00.0\n", "cuda:1: ");
    SAYS(BOTH, "FAKE_CUDA_DEVICES=3 CUDA_VISIBLE_DEVICES=2,1", "--devices '1 , 0' " TRAIN, 0,
         "cuda:1: GPU 1, Fake GPU", "PCI 0000:11:00.0", "cuda:0: GPU 2, Fake GPU", "2 GPUs (");
    SAYS(BOTH, "FAKE_CUDA_DEVICES=3", "--devices GPU-1c " TRAIN, 0, "cuda:2: Fake GPU", "1 GPU (",
         "!cuda:0");
}

/* dpload takes the same lists, and all GPUs unless it is told otherwise. */
static void dpload_measures_on_gpus(void **state)
{
    const char *bin = getenv("BIN"), *gpus = "FAKE_CUDA_DEVICES=2";
    (void)state;

    need(LOADER);
    if (system(test_format("cp '%s/dpload' '%s/loader/dpload'", bin ? bin : "build/bin", work)))
        skip();
    program = "dpload";
    SAYS(LOADER, gpus, "bench --size 16 -b 6 data", 0, "batches ahead 3, cuda:0,cuda:1\n",
         "upload");
    SAYS(LOADER, gpus, "bench --size 16 -b 6 --devices 1 data", 0, "batches ahead 3, cuda:1\n");
    SAYS(LOADER, gpus, "bench --size 16 -b 6 --devices 1 --json data", 0, "\"devices\":\"cuda:1\"");
    SAYS(LOADER, gpus, "bench --size 16 -b 6 --hash data", 0, "batches ahead 3, cpu\n");
    SAYS(LOADER, gpus, "bench --size 16 -b 6 --hash --devices 0 data", 2, "use --devices cpu");
    SAYS(LOADER, gpus, "bench --size 16 -b 6 --devices 2 data", 4, "no such GPU (visible: 0-1)");
    SAYS(LOADER, "FAKE_CUDA_DRIVER=none", "bench -v --size 16 -b 6 data", 0,
         "batches ahead 3, cpu\n", "no GPU is used: no usable NVIDIA driver");
    program = "dptrain";
}

int main(void)
{
    char data[PATH_MAX + 32];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_without_a_part_for_gpus),
        cmocka_unit_test(devices_lists_gpus),
        cmocka_unit_test(devices_maps_visible_gpus),
        cmocka_unit_test(devices_says_why_there_is_none),
        cmocka_unit_test(devices_as_json),
        cmocka_unit_test(devices_takes_little),
        cmocka_unit_test(auto_is_the_cpu_and_says_why),
        cmocka_unit_test(gpus_asked_for_and_not_there),
        cmocka_unit_test(lists_that_make_no_sense),
        cmocka_unit_test(gpus_are_used_and_named),
        cmocka_unit_test(old_gpus_are_left_out),
        cmocka_unit_test(dpload_measures_on_gpus),
    };

    if (!realpath("/proc/self/exe", here)) return 1;
    *strrchr(here, '/') = '\0';
    snprintf(work, sizeof work, "%s", test_tempdir());
    snprintf(data, sizeof data, "%s/data", work);
    test_make_tree(data, 2, 8);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
