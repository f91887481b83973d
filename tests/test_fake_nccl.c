/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake NCCL offers beyond what the trainer calls: groups, communicators that block,
 * buffers apart. */
#include "device/device.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* By number, so that this file needs no NCCL header. */
enum {
    FLOAT = 7,
    BYTE = 1,
    SUM = 0,
    PROD = 1,
    WRONG_ARGUMENT = 4,
    WRONG_USAGE = 5,
    IN_PROGRESS = 7
};
enum { N = 100, BYTES = N * sizeof(float) };

typedef struct id {
    char bytes[128];
} id;

static struct {
    int (*GetUniqueId)(id *out);
    int (*CommInitRank)(void **c, int ranks, id which, int rank);
    int (*CommDestroy)(void *c);
    int (*CommGetAsyncError)(void *c, int *state);
    int (*AllReduce)(const void *src, void *dst, size_t n, int type, int op, void *c, void *s);
    int (*Broadcast)(const void *src, void *dst, size_t n, int type, int root, void *c, void *s);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
} nccl;
static int (*set_device)(int gpu);
static const fake_nccl *fake;

static void find(void *handle, const char *name, void *fn)
{
    void *symbol = dlsym(handle, name);

    if (!symbol) fail_msg("no %s", name);
    memcpy(fn, &symbol, sizeof symbol);
}

static void find_all(void)
{
    char path[PATH_MAX + 32];
    void *handle;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    if (!(fake = test_fake_nccl())) return;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("NCCL_COMM_ID");
    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, "libnccl.so.2");
    assert_non_null(handle = dlopen(path, RTLD_NOW));
#define FIND(name) find(handle, "nccl" #name, &nccl.name)
    FIND(GetUniqueId), FIND(CommInitRank), FIND(CommDestroy), FIND(CommGetAsyncError);
    FIND(AllReduce), FIND(Broadcast), FIND(GroupStart), FIND(GroupEnd);
#undef FIND
    find(handle, "cudaSetDevice", &set_device);
}

/* --- two ranks --- */

typedef struct rank {
    int number, err;
    id group;
    void *c;
    dpl_device *d;
    dpl_stream *s;
    float *dev, *sum, *host; /* [N] */
} rank;

static rank ranks[2];

static void *join_main(void *arg)
{
    rank *r = arg;

    r->err = set_device(r->number);
    if (!r->err)
        r->err = nccl.CommInitRank(&r->c, 2, r->group, r->number); /* until both are there */
    return NULL;
}

static void open_gpu(rank *r)
{
    dpl_text why;

    if (dpl_device_open(&r->d, test_format("cuda:%d", r->number), &why) ||
        dpl_stream_create(r->d, &r->s, "sums", &why))
        fail_msg("%s", why.s);
    r->dev = dpl_device_alloc(r->d, BYTES);
    r->sum = dpl_device_alloc(r->d, BYTES);
    r->host = dpl_device_host_alloc(r->d, BYTES);
    assert_true(r->dev && r->sum && r->host);
    for (int i = 0; i < N; i++) r->host[i] = (float)((r->number + 1) * i);
    assert_int_equal(dpl_copy_to_device(r->s, r->dev, r->host, BYTES), 0);
    assert_int_equal(dpl_stream_sync(r->s), 0);
}

static int set_up(void **state)
{
    pthread_t thread[2];
    id group;
    (void)state;

    if (!fake) return 0;
    fake->reset();
    assert_int_equal(nccl.GetUniqueId(&group), 0);
    for (int i = 0; i < 2; i++) {
        ranks[i] = (rank){ .number = i, .group = group };
        open_gpu(&ranks[i]);
        assert_int_equal(pthread_create(&thread[i], NULL, join_main, &ranks[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(ranks[i].err, 0);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; fake && i < 2; i++) {
        rank *r = &ranks[i];

        dpl_stream_sync(r->s);
        assert_int_equal(nccl.CommDestroy(r->c), 0);
        dpl_stream_destroy(&r->s);
        dpl_device_free(r->d, r->dev);
        dpl_device_free(r->d, r->sum);
        dpl_device_host_free(r->d, r->host);
        dpl_device_close(&r->d);
    }
    if (fake) assert_int_equal(fake->alive(), 0);
    return 0;
}

static void need_fake(void)
{
    if (!fake) skip();
}

static int sum_of(rank *r, int op)
{
    return nccl.AllReduce(r->dev, r->sum, N, FLOAT, op, r->c, dpl_stream_native(r->s));
}

static void expect(rank *r, const float *dev, float factor)
{
    assert_int_equal(dpl_copy_to_host(r->s, r->host, dev, BYTES), 0);
    assert_int_equal(dpl_stream_sync(r->s), 0);
    for (int i = 0; i < N; i++) assert_true(r->host[i] == factor * (float)i);
}

/* --- the tests --- */

/* One thread may make the calls of two ranks when it says so; none starts before the end of the
 * group. */
static void a_group_is_queued_at_its_end(void **state)
{
    (void)state;
    need_fake();
    assert_int_equal(nccl.GroupStart(), 0);
    assert_int_equal(nccl.GroupStart(), 0); /* groups nest */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sum_of(&ranks[i], SUM), 0);
        assert_int_equal(nccl.Broadcast(ranks[i].dev, ranks[i].dev, BYTES, BYTE, 1, ranks[i].c,
                                        dpl_stream_native(ranks[i].s)),
                         0);
    }
    assert_int_equal(nccl.GroupEnd(), 0);
    assert_int_equal(dpl_copy_to_host(ranks[0].s, ranks[0].host, ranks[0].sum, BYTES), 0);
    assert_int_equal(dpl_stream_sync(ranks[0].s), 0);
    assert_int_equal(*(unsigned char *)ranks[0].host,
                     0xA5); /* nothing has been written there yet */
    assert_int_equal(nccl.GroupEnd(), 0);
    for (int i = 0; i < 2; i++) {
        expect(&ranks[i], ranks[i].sum, 3);
        expect(&ranks[i], ranks[i].dev, 2); /* rank 1's */
    }
    assert_int_equal(nccl.GroupEnd(), WRONG_USAGE);
    assert_int_equal(fake->faults(), 0);
}

static void what_nccl_refuses_is_refused(void **state)
{
    rank *r = &ranks[0];
    int status = IN_PROGRESS;
    (void)state;

    need_fake();
    assert_int_equal(sum_of(r, PROD), WRONG_ARGUMENT); /* not modelled */
    assert_int_equal(nccl.AllReduce(r->host, r->host, N, FLOAT, SUM, r->c, dpl_stream_native(r->s)),
                     WRONG_ARGUMENT); /* no device memory */
    assert_int_equal(
        nccl.AllReduce(r->dev, r->dev, N + 1, FLOAT, SUM, r->c, dpl_stream_native(r->s)),
        WRONG_ARGUMENT); /* past its end */
    assert_int_equal(nccl.Broadcast(r->dev, r->dev, 4, BYTE, 2, r->c, dpl_stream_native(r->s)),
                     WRONG_ARGUMENT); /* no such rank */
    assert_int_equal(
        sum_of(&(rank){ .c = r->c, .dev = r->dev, .sum = r->sum, .s = ranks[1].s }, SUM),
        1); /* a stream of another GPU */
    assert_int_equal(nccl.CommGetAsyncError(r->c, &status), 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_is_queued_at_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_nccl_refuses_is_refused, set_up, tear_down),
    };

    find_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
