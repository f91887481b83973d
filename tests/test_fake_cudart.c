/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake CUDA runtime offers beyond what the loader's devices use: kernels, memsets, timed
 * events, GPUs of several kinds, streams that are stuck, GPUs that are lost, and its clocks. */
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* By number, so that this file needs no CUDA header. */
enum { TO_DEVICE = 1, TO_HOST = 2, INSIDE = 3, NO_TIMING = 2, NON_BLOCKING = 1 };
enum {
    INVALID = 1,
    NO_MEMORY = 2,
    BAD_HANDLE = 400,
    NOT_READY = 600,
    NOT_ALLOWED = 800,
    LOST = 719
};
enum { MAJOR = 75, MINOR = 76, BYTES = 1 << 16 };

/* The runtime's functions, all of which return a cudaError_t. */
static struct {
    int (*SetDevice)(int gpu);
    int (*GetDeviceCount)(int *n);
    int (*DeviceGetAttribute)(int *value, int attr, int gpu);
    int (*GetDeviceProperties)(void *prop, int gpu);
    int (*DeviceGetPCIBusId)(char *id, int len, int gpu);
    int (*DeviceGetByPCIBusId)(int *gpu, const char *id);
    int (*DeviceGetStreamPriorityRange)(int *least, int *greatest);
    int (*MemGetInfo)(size_t *unused, size_t *total);
    int (*Malloc)(void **p, size_t bytes);
    int (*Free)(void *p);
    int (*HostAlloc)(void **p, size_t bytes, unsigned flags);
    int (*FreeHost)(void *p);
    int (*StreamCreateWithPriority)(void **s, unsigned flags, int priority);
    int (*StreamDestroy)(void *s);
    int (*StreamSynchronize)(void *s);
    int (*StreamQuery)(void *s);
    int (*StreamWaitEvent)(void *s, void *e, unsigned flags);
    int (*MemcpyAsync)(void *dst, const void *src, size_t bytes, int kind, void *s);
    int (*MemsetAsync)(void *dst, int value, size_t bytes, void *s);
    int (*EventCreate)(void **e);
    int (*EventCreateWithFlags)(void **e, unsigned flags);
    int (*EventDestroy)(void *e);
    int (*EventRecord)(void *e, void *s);
    int (*EventQuery)(void *e);
    int (*EventSynchronize)(void *e);
    int (*EventElapsedTime)(float *ms, void *from, void *to);
    int (*PeekAtLastError)(void);
    int (*GetLastError)(void);
} cuda;
static const char *(*error_name)(int e);
static int (*kernel)(void *s, void (*run)(void *), void (*drop)(void *), void *arg);
static const fake_cuda *fake;

static void find(void *handle, const char *name, void *fn)
{
    void *symbol = dlsym(handle, name);

    if (!symbol) fail_msg("no %s", name);
    memcpy(fn, &symbol, sizeof symbol);
}

static void find_all(void)
{
    void *handle;
    char path[PATH_MAX + 32];

    if (!(fake = test_fake_cuda())) return;
    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, "libfakecudart.so");
    assert_non_null(handle = dlopen(path, RTLD_NOW));
#define FIND(name) find(handle, "cuda" #name, &cuda.name)
    FIND(SetDevice), FIND(GetDeviceCount), FIND(DeviceGetAttribute), FIND(GetDeviceProperties);
    FIND(DeviceGetPCIBusId), FIND(DeviceGetByPCIBusId), FIND(DeviceGetStreamPriorityRange);
    FIND(MemGetInfo), FIND(Malloc), FIND(Free), FIND(HostAlloc), FIND(FreeHost);
    FIND(StreamCreateWithPriority), FIND(StreamDestroy), FIND(StreamSynchronize), FIND(StreamQuery);
    FIND(StreamWaitEvent), FIND(MemcpyAsync), FIND(MemsetAsync), FIND(EventCreate);
    FIND(EventCreateWithFlags), FIND(EventDestroy), FIND(EventRecord), FIND(EventQuery);
    FIND(EventSynchronize), FIND(EventElapsedTime), FIND(PeekAtLastError), FIND(GetLastError);
#undef FIND
    find(handle, "cudaGetErrorName", &error_name);
    find(handle, "fake_kernel", &kernel);
}

static void ok(int e)
{
    if (e) fail_msg("CUDA error %d", e);
}

/* --- two streams and some memory of GPU 0 --- */

static void *a, *b, *dev, *dev2;
static uint8_t *host;

static int set_up(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    unsetenv("FAKE_CUDA_NAMES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    if (!fake) return 0;
    fake->reset();
    ok(cuda.SetDevice(0));
    ok(cuda.StreamCreateWithPriority(&a, NON_BLOCKING, -5));
    ok(cuda.StreamCreateWithPriority(&b, NON_BLOCKING, 0));
    ok(cuda.Malloc(&dev, BYTES));
    ok(cuda.Malloc(&dev2, BYTES));
    ok(cuda.HostAlloc((void **)&host, BYTES, 0));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!fake) return 0;
    fake->reset();
    unsetenv("FAKE_CUDA_NAMES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    if (a) ok(cuda.StreamDestroy(a));
    if (b) ok(cuda.StreamDestroy(b));
    ok(cuda.Free(dev));
    ok(cuda.Free(dev2));
    ok(cuda.FreeHost(host));
    assert_int_equal(fake->alive(), 0);
    return 0;
}

static void need_fake(void)
{
    if (!fake) skip();
}

static void pause_ms(int ms)
{
    const struct timespec ts = { .tv_nsec = ms * 1000000L };

    nanosleep(&ts, NULL);
}

/* --- GPUs --- */

static const char *name_of(int gpu)
{
    static char prop[4096]; /* the name is its first field */

    ok(cuda.GetDeviceProperties(prop, gpu));
    return prop;
}

static void gpus_are_as_the_environment_says(void **state)
{
    int n = 0, value, least = 9, greatest = 9;
    size_t unused, total;
    char id[32];
    (void)state;

    need_fake();
    unsetenv("FAKE_CUDA_DEVICES");
    setenv("FAKE_CUDA_NAMES", "Big Card/80/10.0,Small/0.5/7.5/500", 1);
    ok(cuda.GetDeviceCount(&n));
    assert_int_equal(n, 2);
    assert_string_equal(name_of(0), "Big Card");
    assert_string_equal(name_of(1), "Small");
    ok(cuda.DeviceGetAttribute(&value, MAJOR, 0));
    assert_int_equal(value, 10);
    ok(cuda.DeviceGetAttribute(&value, MINOR, 1));
    assert_int_equal(value, 5);
    assert_int_equal(cuda.DeviceGetAttribute(&value, MAJOR, 2), 101);
    ok(cuda.DeviceGetPCIBusId(id, sizeof id, 1));
    assert_string_equal(id, "0000:11:00.0");
    ok(cuda.DeviceGetByPCIBusId(&value, "0000:11:00.0"));
    assert_int_equal(value, 1);
    ok(cuda.SetDevice(1));
    ok(cuda.MemGetInfo(&unused, &total));
    assert_true(total == (size_t)1 << 29 && unused == total);
    ok(cuda.DeviceGetStreamPriorityRange(&least, &greatest));
    assert_true(least == 0 && greatest == -5);
    ok(cuda.SetDevice(0));
}

static void the_visible_ones_are_counted(void **state)
{
    char prop[4096], list[64];
    const unsigned char *uuid = (const unsigned char *)prop + 256;
    int n;
    (void)state;

    need_fake();
    unsetenv("FAKE_CUDA_DEVICES");
    setenv("FAKE_CUDA_NAMES", "A,B,C", 1);
    ok(cuda.GetDeviceProperties(prop, 2));
    snprintf(list, sizeof list, "GPU-%02X%02x,0,7,1", uuid[0], uuid[1]);
    setenv("CUDA_VISIBLE_DEVICES", list, 1); /* 7 ends the list */
    ok(cuda.GetDeviceCount(&n));
    assert_int_equal(n, 2);
    assert_string_equal(name_of(0), "C");
    assert_string_equal(name_of(1), "A");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_int_equal(cuda.GetDeviceCount(&n), 100);
}

static void memory_is_as_large_as_the_gpu(void **state)
{
    size_t unused, total;
    void *p, *q;
    (void)state;

    need_fake();
    setenv("FAKE_CUDA_NAMES", "Tiny/0.001", 1); /* a mebibyte */
    ok(cuda.MemGetInfo(&unused, &total));
    assert_int_equal(total, (size_t)(0.001 * (1 << 30)));
    assert_int_equal(unused, total - 2 * BYTES);
    ok(cuda.Malloc(&p, 900000));
    assert_int_equal(cuda.Malloc(&q, 100000), NO_MEMORY);
    assert_string_equal(error_name(cuda.PeekAtLastError()), "cudaErrorMemoryAllocation");
    assert_int_equal(cuda.GetLastError(), NO_MEMORY);
    assert_int_equal(cuda.GetLastError(), 0);
    ok(cuda.Free(p));
    ok(cuda.Malloc(&q, 100000));
    ok(cuda.Free(q));
}

/* --- work --- */

static void memory_is_set_and_copied_inside(void **state)
{
    (void)state;
    need_fake();
    ok(cuda.MemsetAsync(dev, 0x11, BYTES, a));
    ok(cuda.MemsetAsync((char *)dev + 100, 0x22, 50, a));
    ok(cuda.MemcpyAsync(dev2, dev, BYTES, INSIDE, a));
    ok(cuda.MemcpyAsync(host, dev2, BYTES, TO_HOST, a));
    ok(cuda.StreamSynchronize(a));
    for (int i = 0; i < BYTES; i++) assert_int_equal(host[i], i >= 100 && i < 150 ? 0x22 : 0x11);
    assert_int_equal(cuda.MemsetAsync((char *)dev + 1, 0, BYTES, a), INVALID); /* past the end */
    assert_int_equal(cuda.MemsetAsync(host, 0, BYTES, a), INVALID);
    assert_int_equal(cuda.MemcpyAsync(dev2, host, BYTES, INSIDE, a), INVALID);
    fake->inject(FAKE_SET, 1, LOST, 0);
    assert_int_equal(cuda.MemsetAsync(dev, 0, BYTES, a), LOST);
    assert_int_equal(fake->faults(), 0);
}

typedef struct work {
    int run, drop, status;
    uint8_t *at;
} work;

static void run(void *arg)
{
    work *w = arg;

    w->run++;
    w->status = cuda.MemsetAsync(dev, 0, 1, a); /* no kernel may do that */
    if (w->at) *w->at = 1;
}

static void drop(void *arg)
{
    __atomic_add_fetch(&((work *)arg)->drop, 1, __ATOMIC_RELAXED);
}

static void kernels_run_and_are_dropped_once(void **state)
{
    work w = { 0 }, failed = { 0 }, sticky = { 0 };
    const int launches = fake ? fake->count(FAKE_LAUNCH) : 0;
    (void)state;

    need_fake();
    w.at = dev; /* of the GPU */
    ok(kernel(a, run, drop, &w));
    ok(cuda.StreamSynchronize(a));
    assert_true(w.run == 1 && w.drop == 1 && w.status == NOT_ALLOWED && *w.at == 1);
    fake->inject(FAKE_LAUNCH, 1, LOST, 0);
    assert_int_equal(kernel(a, run, drop, &failed), LOST);
    assert_true(failed.run == 0 && failed.drop == 1);
    fake->inject(FAKE_LAUNCH, 1, LOST, 1);
    ok(kernel(a, run, drop, &sticky));
    assert_int_equal(cuda.StreamSynchronize(a), LOST);
    assert_true(sticky.run == 0 && sticky.drop == 1);
    assert_int_equal(fake->count(FAKE_LAUNCH), launches + 3);
}

/* Modelled times are exact where a stream is never empty. */
static void events_measure_modelled_time(void **state)
{
    void *e[5], *untimed;
    work w = { 0 };
    float ms = -1;
    (void)state;

    need_fake();
    fake->copy_time(1000000, BYTES * 1000.0); /* 1 ms + 1 ms for all of it */
    fake->kernel_time(-1, 3000000);
    for (int i = 0; i < 5; i++) ok(cuda.EventCreate(&e[i]));
    ok(cuda.EventCreateWithFlags(&untimed, NO_TIMING));
    fake->hold(1);
    ok(cuda.StreamQuery(b)); /* empty is idle, held or not */
    ok(cuda.EventRecord(e[0], a));
    ok(cuda.MemcpyAsync(dev, host, BYTES, TO_DEVICE, a));
    ok(cuda.EventRecord(e[1], a));
    ok(cuda.StreamWaitEvent(b, e[1], 0)); /* b goes on where a is, or later */
    ok(cuda.EventRecord(e[3], b));
    ok(kernel(b, drop, NULL, &w));
    ok(cuda.EventRecord(e[2], b));
    assert_int_equal(cuda.EventElapsedTime(&ms, e[0], e[1]), NOT_READY);
    assert_int_equal(cuda.StreamQuery(a), NOT_READY);
    fake->hold(0);
    ok(cuda.StreamSynchronize(b));
    ok(cuda.StreamQuery(b));
    ok(cuda.EventElapsedTime(&ms, e[0], e[1]));
    assert_true(ms > 1.99f && ms < 2.01f);
    ok(cuda.EventElapsedTime(&ms, e[3], e[2]));
    assert_true(ms > 2.99f && ms < 3.01f);
    ok(cuda.EventElapsedTime(&ms, e[0], e[2]));
    assert_true(ms > 4.99f);
    assert_int_equal(cuda.EventElapsedTime(&ms, e[0], e[4]), BAD_HANDLE); /* never recorded */
    ok(cuda.EventRecord(untimed, a));
    assert_int_equal(cuda.EventElapsedTime(&ms, e[0], untimed), BAD_HANDLE);
    for (int i = 0; i < 5; i++) ok(cuda.EventDestroy(e[i]));
    ok(cuda.EventDestroy(untimed));
}

/* --- what goes wrong --- */

static void *sync_main(void *stream)
{
    return (void *)(intptr_t)cuda.StreamSynchronize(stream);
}

static void a_stuck_stream_holds_only_who_waits_for_it(void **state)
{
    pthread_t thread;
    work w = { 0 };
    void *result;
    (void)state;

    need_fake();
    fake->stick(a, 1);
    ok(kernel(a, run, drop, &w));
    assert_int_equal(pthread_create(&thread, NULL, sync_main, a), 0);
    ok(cuda.MemsetAsync(dev, 0, BYTES, b)); /* another one goes on */
    ok(cuda.StreamSynchronize(b));
    assert_int_equal(cuda.StreamQuery(a), NOT_READY);
    fake->stick(a, 0);
    pthread_join(thread, &result);
    assert_null(result);
    assert_true(w.run == 1 && w.drop == 1);
}

static void a_stuck_stream_can_be_destroyed(void **state)
{
    static work w; /* outlives the test: the stream does */
    (void)state;

    need_fake();
    fake->stick(a, 1);
    ok(kernel(a, drop, NULL, &w));
    ok(cuda.StreamDestroy(a)); /* returns */
    a = NULL;
    fake->reset();
    for (int i = 0; i < 5000 && !__atomic_load_n(&w.drop, __ATOMIC_RELAXED); i++) pause_ms(1);
    assert_int_equal(__atomic_load_n(&w.drop, __ATOMIC_RELAXED), 1); /* it ran on */
}

static void a_lost_gpu_ends_its_work_and_no_other(void **state)
{
    work w = { 0 };
    void *other, *p;
    (void)state;

    need_fake();
    ok(cuda.SetDevice(1));
    ok(cuda.StreamCreateWithPriority(&other, NON_BLOCKING, 0));
    ok(cuda.Malloc(&p, 16));
    ok(cuda.SetDevice(0));
    fake->hold(1);
    ok(kernel(a, run, drop, &w));
    fake->lose(0, LOST);
    fake->hold(0);
    assert_int_equal(cuda.StreamSynchronize(a), LOST);
    assert_int_equal(cuda.Malloc(&dev2, 1), LOST);
    ok(cuda.SetDevice(1));
    ok(cuda.MemsetAsync(p, 0, 16, other));
    ok(cuda.StreamSynchronize(other));
    ok(cuda.StreamDestroy(other));
    ok(cuda.Free(p));
    fake->reset();
    ok(cuda.SetDevice(0));
    assert_true(w.run == 0 && w.drop == 1);
}

/* --- the clocks --- */

static void clocks_name_both_accesses(void **state)
{
    const char *text;
    (void)state;

    need_fake();
    ok(cuda.MemcpyAsync(dev, host, 1000, TO_DEVICE, a));
    fake->host_uses(host, 1000, 0, "look");     /* two readers */
    fake->host_uses(host + 1000, 1, 1, "fill"); /* beside it */
    assert_int_equal(fake->faults(), 0);
    fake->host_uses(host + 999, 1, 1, "fill");
    assert_int_equal(fake->faults(), 1);
    text = fake->fault();
    if (!strstr(text, "pinned memory [999..1000) of 65536 bytes: \"fill (host)\" writes and is not "
                      "ordered after \"copy to device (stream ") ||
        !strstr(text, ")\", which reads"))
        fail_msg("%s", text);
    ok(cuda.StreamSynchronize(a));
    fake->host_uses(host, 1000, 1, "fill");
    assert_int_equal(fake->faults(), 1);
    fake->reset();
    assert_string_equal(fake->fault(), "");
}

/* Each way to be ordered, and that one step short of it is none. */
static void clocks_know_every_order(void **state)
{
    void *e;
    (void)state;

    need_fake();
    ok(cuda.EventCreate(&e));
    ok(cuda.MemsetAsync(dev, 1, BYTES, a));
    ok(cuda.MemsetAsync(dev, 2, BYTES, a)); /* the same stream */
    ok(cuda.EventRecord(e, a));
    ok(cuda.StreamWaitEvent(b, e, 0));
    ok(cuda.MemsetAsync(dev, 3, BYTES, b)); /* a stream that waited */
    ok(cuda.EventRecord(e, b));
    while (cuda.EventQuery(e)) {}
    fake->host_uses(dev, BYTES, 1, "after a query");
    ok(cuda.MemsetAsync(dev, 4, BYTES, a)); /* what the host has seen, all have seen */
    ok(cuda.EventRecord(e, a));
    ok(cuda.EventSynchronize(e));
    fake->host_uses(dev, BYTES, 1, "after a wait");
    ok(cuda.MemsetAsync(dev, 5, BYTES, b));
    while (cuda.StreamQuery(b)) {}
    fake->host_uses(dev, BYTES, 1, "after the stream was empty");
    assert_int_equal(fake->faults(), 0);
    ok(cuda.EventRecord(e, a)); /* too early */
    ok(cuda.MemsetAsync(dev, 6, 8, a));
    ok(cuda.StreamWaitEvent(b, e, 0));
    fake->stream_uses(b, (char *)dev + 8, 8, 1, "beside");
    assert_int_equal(fake->faults(), 0);
    fake->stream_uses(b, (char *)dev + 7, 8, 0, "too early");
    assert_int_equal(fake->faults(), 1);
    ok(cuda.StreamSynchronize(a));
    ok(cuda.StreamSynchronize(b));
    ok(cuda.EventDestroy(e));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(gpus_are_as_the_environment_says),
        CASE(the_visible_ones_are_counted),
        CASE(memory_is_as_large_as_the_gpu),
        CASE(memory_is_set_and_copied_inside),
        CASE(kernels_run_and_are_dropped_once),
        CASE(events_measure_modelled_time),
        CASE(a_stuck_stream_holds_only_who_waits_for_it),
        CASE(a_stuck_stream_can_be_destroyed),
        CASE(a_lost_gpu_ends_its_work_and_no_other),
        CASE(clocks_name_both_accesses),
        CASE(clocks_know_every_order),
    };

    find_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
