/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges that a profiler sees when batches go to a GPU: read, decode, h2d and batch with the number of
 * the batch, each ended by the thread that began it. The profiler and the GPU are fakes. */
#include "dpload.h"
#include "tests/fake/fake_nvtx.h"
#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 3, FILES = 7, SAMPLES = CLASSES * FILES, BATCH = 8, BATCHES = 3 };

static const fake_nvtx *nvtx;
static char library[PATH_MAX], tree[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    if (nvtx) nvtx->reset();
    return 0;
}

/* One epoch. @return batches */
static int run(const char *devices, int readers)
{
    dpl_options o;
    dpl_loader *l;
    dpl_batch b;
    int n = 0;

    dpl_options_init(&o, sizeof o);
    o.path = tree;
    o.devices = devices;
    o.batch = BATCH;
    o.width = o.height = 16;
    o.workers = 3;
    o.readers = readers;
    o.epochs = 1;
    if (dpl_open(&l, &o)) fail_msg("%s", dpl_error_text(NULL));
    while (!dpl_next(l, &b, -1)) {
        n++;
        dpl_release(l, &b, NULL);
    }
    dpl_close(&l);
    return n;
}

static void check(const char *name, int count, uint64_t numbers)
{
    const fake_nvtx_range r = nvtx->get(name);

    if (r.count != count || r.numbers != numbers)
        fail_msg("%s: %d ranges with numbers %llx, wanted %d with %llx", name, r.count,
                 (unsigned long long)r.numbers, count, (unsigned long long)numbers);
}

static void each_stage_shows_its_batches(void **state)
{
    (void)state;
    if (!nvtx) skip();
    for (int readers = 0; readers < 3; readers += 2) {
        nvtx->reset();
        assert_int_equal(run("cuda:0", readers), BATCHES);
        check("read", SAMPLES, 7);
        check("decode", SAMPLES, 7);
        check("h2d", BATCHES, 7);
        check("batch", BATCHES + 1, 7); /* and the end of the epoch */
        assert_int_equal(nvtx->names(), 4);
        assert_int_equal(nvtx->open(), 0);
        assert_int_equal(nvtx->faults(), 0);
    }
}

/* Ranges of one level: the next begins when the last has ended. */
static void stages_follow_each_other(void **state)
{
    static const char *const names[] = { "read", "decode", "h2d", "batch" };
    (void)state;

    if (!nvtx) skip();
    run("cuda:0", 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(nvtx->get(names[i]).within, 0);
}

static void parts_of_a_batch_are_copied_apart(void **state)
{
    (void)state;
    if (!nvtx) skip();
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_int_equal(run("cuda:0,cuda:1", 0), BATCHES);
    check("h2d", 2 * BATCHES, 7);
    assert_int_equal(nvtx->open(), 0);
}

static void other_devices_show_nothing(void **state)
{
    (void)state;
    if (!nvtx) skip();
    assert_int_equal(run("cpu", 0), BATCHES);
    assert_int_equal(run("sim:1ms", 0), BATCHES);
    assert_int_equal(nvtx->names(), 0);
    assert_int_equal(nvtx->open(), 0);
}

/* The library beside this test is the profiler; NVTX opens it at its first range. */
static const fake_nvtx *find_nvtx(void)
{
    fake_nvtx_entry *entry;
    void *handle, *symbol;

    if (!realpath("/proc/self/exe", library)) return NULL;
    strcpy(strrchr(library, '/') + 1, "libfakecudart.so");
    if (access(library, R_OK) || !(handle = dlopen(library, RTLD_NOW))) return NULL;
    setenv("NVTX_INJECTION64_PATH", library, 1);
    if (!(symbol = dlsym(handle, "fake_nvtx_controls"))) return NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return entry();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(other_devices_show_nothing, set_up),
        cmocka_unit_test_setup(each_stage_shows_its_batches, set_up),
        cmocka_unit_test_setup(stages_follow_each_other, set_up),
        cmocka_unit_test_setup(parts_of_a_batch_are_copied_apart, set_up),
    };

    nvtx = find_nvtx();
    snprintf(tree, sizeof tree, "%s", test_tempdir());
    test_make_tree(tree, CLASSES, FILES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
