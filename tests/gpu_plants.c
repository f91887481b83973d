/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu_plants.h"

#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_gpu_open(test_gpu *g)
{
    char path[PATH_MAX + 64];
    void *handle, *symbol;
    plants_entry *entry;

    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, "libgpuplants.so");
    if (access(path, F_OK)) skip(); /* built without CUDA */
    if (!(handle = dlopen(path, RTLD_NOW | RTLD_NODELETE))) fail_msg("%s", dlerror());
    assert_non_null(symbol = dlsym(handle, "plants_table"));
    memcpy(&entry, &symbol, sizeof entry);
    dlclose(handle);
    g->k = entry();
    assert_int_equal(g->k->stream_create(&g->stream), 0);
}

void test_gpu_close(test_gpu *g)
{
    assert_int_equal(g->k->sync(g->stream), 0);
    assert_int_equal(g->k->stream_destroy(g->stream), 0);
}

void *test_gpu_put(test_gpu *g, const void *from, size_t bytes)
{
    void *p = NULL;

    assert_int_equal(g->k->get(&p, bytes), 0);
    assert_int_equal(g->k->upload(p, from, bytes, g->stream), 0);
    return p;
}

void test_gpu_take(test_gpu *g, void *to, void *p, size_t bytes)
{
    assert_int_equal(g->k->download(to, p, bytes, g->stream), 0);
    assert_int_equal(g->k->put(p), 0);
}
