/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a communicator, and planted races between compute and sums. */
#include "tests/comm_cases.h"

#include "dpload.h"
#include "tests/device_cases.h"
#include "trainer/trainer_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = TEST_COMM_FLOATS * sizeof(float), BY_CLOCKS = 65, BY_TSAN = 66 };

test_comm_world test_comm;

void test_comm_find(void)
{
    const dpt_trainer_plugin *plugin;
    dpl_device *d;
    dpl_text why;

    test_comm.cuda = test_fake_cuda();
    test_comm.nccl = test_comm.cuda ? test_fake_nccl() : NULL;
    if (test_comm.cuda) { /* on a card the user's choice holds */
        setenv("FAKE_CUDA_DEVICES", "4", 1);
        unsetenv("FAKE_CUDA_DRIVER");
        unsetenv("CUDA_VISIBLE_DEVICES");
        unsetenv("NCCL_COMM_ID");
    }
    if (dpt_plugin_cuda(&plugin, &why)) return;
    while (test_comm.gpus < TEST_RANKS_MAX &&
           !dpl_device_open(&d, test_format("cuda:%d", test_comm.gpus), &why)) {
        dpl_device_close(&d);
        test_comm.gpus++;
    }
    if (test_comm.gpus) test_comm.calls = plugin->comm;
}

void test_comm_reset(void)
{
    if (test_comm.cuda) test_comm.cuda->reset();
    if (test_comm.nccl) test_comm.nccl->reset();
}

void need_comm(void)
{
    if (!test_comm.calls) skip();
}

void need_fakes(void)
{
    if (!test_comm.calls || !test_comm.nccl) skip();
}

void test_pause_ms(int ms)
{
    const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&ts, NULL);
}

/* --- members --- */

static int open_gpu(test_member *m)
{
    char spec[16];
    int err;

    snprintf(spec, sizeof spec, "cuda:%d", m->opt.gpu);
    if ((err = dpl_device_open(&m->d, spec, &m->why)) ||
        (err = dpl_stream_create(m->d, &m->s, "sums", &m->why)))
        return err;
    m->dev = dpl_device_alloc(m->d, BYTES);
    m->host = dpl_device_host_alloc(m->d, BYTES);
    return m->dev && m->host ? DPL_OK : DPL_ENOMEM;
}

static void close_gpu(test_member *m)
{
    if (m->s) dpl_stream_destroy(&m->s);
    if (m->host) dpl_device_host_free(m->d, m->host);
    if (m->dev) dpl_device_free(m->d, m->dev);
    dpl_device_close(&m->d);
    m->host = m->dev = NULL;
}

static void *member_main(void *arg)
{
    test_member *m = arg;

    m->err = open_gpu(m);
    if (!m->err) m->err = test_comm.calls->create(&m->c, &m->id, &m->opt, &m->why);
    if (!m->err) m->err = m->body(m);
    if (m->err && m->c) test_comm.calls->abort(m->c);
    test_comm.calls->destroy(&m->c);
    close_gpu(m);
    return NULL;
}

void test_comm_start(test_member *m, int ranks, int (*body)(test_member *m))
{
    dpt_comm_id id;
    dpl_text why;

    if (test_comm.calls->id_get(&id, NULL, &why)) fail_msg("%s", why.s);
    for (int r = 0; r < ranks; r++) {
        m[r].opt.rank = r;
        m[r].opt.ranks = ranks;
        m[r].opt.gpu = m[r].same_gpu ? 0 : r;
        if (!m[r].opt.timeout_ms) m[r].opt.timeout_ms = 60000;
        m[r].id = id;
        m[r].body = body;
        m[r].c = NULL;
        m[r].d = NULL;
        m[r].s = NULL;
        m[r].dev = m[r].host = NULL;
        m[r].ready = m[r].go = 0;
        m[r].why.s[0] = '\0';
        if (!m[r].absent)
            assert_int_equal(pthread_create(&m[r].thread, NULL, member_main, &m[r]), 0);
    }
}

void test_comm_join(test_member *m)
{
    if (!m->absent) assert_int_equal(pthread_join(m->thread, NULL), 0);
}

void test_comm_run(test_member *m, int ranks, int *word, int (*body)(test_member *m))
{
    test_comm_start(m, ranks, body);
    if (word) {
        test_pause_ms(50);
        __atomic_store_n(word, 1, __ATOMIC_RELAXED);
    }
    for (int r = 0; r < ranks; r++) test_comm_join(&m[r]);
}

/* --- for bodies --- */

void *test_native(const test_member *m)
{
    return dpl_stream_native(m->s);
}

int test_comm_put(test_member *m, size_t bytes)
{
    return dpl_copy_to_device(m->s, m->dev, m->host, bytes);
}

int test_comm_get(test_member *m, size_t bytes)
{
    const int err = dpl_copy_to_host(m->s, m->host, m->dev, bytes);

    return err ? err : dpl_stream_sync(m->s);
}

int test_comm_sum(test_member *m, size_t n)
{
    int err = test_comm_put(m, n * sizeof(float));

    if (!err) err = test_comm.calls->sum_float(m->c, m->dev, n, test_native(m), &m->why);
    return err ? err : test_comm_get(m, n * sizeof(float));
}

int test_wrong(test_member *m, const char *what, int i)
{
    return dpl_fail(&m->why, DPL_EINTERNAL, "rank %d of %d: wrong %s at %d: %g", m->opt.rank,
                    m->opt.ranks, what, i, (double)m->host[i]);
}

static void set(int *word)
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void await(const int *word)
{
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) test_pause_ms(1);
}

void test_comm_ready(test_member *m)
{
    set(&m->ready);
}

void test_comm_await(test_member *m)
{
    await(&m->go);
}

void test_comm_wait_ready(test_member *m)
{
    await(&m->ready);
}

void test_comm_go(test_member *m)
{
    set(&m->go);
}

/* --- planted races --- */

static void fill(void *arg) /* stands for a kernel */
{
    float *grads = arg;

    for (int i = 0; i < TEST_COMM_FLOATS; i++) grads[i] = (float)i;
}

static void use(void *arg)
{
    const float *grads = arg;
    float sum = 0;

    for (int i = 0; i < TEST_COMM_FLOATS; i++) sum += grads[i];
    if (sum == 1) abort(); /* the reads must not be optimised away */
}

/* Backward fills a bucket on its stream, the sum runs on another one, then the update reads it.
 * turn: the waits that are there (1: the sum's, 2: the update's). */
static int bucket(test_member *m)
{
    dpl_stream *compute = NULL;
    dpl_event *filled = NULL, *summed = NULL;
    int err;

    if ((err = dpl_stream_create(m->d, &compute, "compute", &m->why)) ||
        (err = dpl_event_create(m->d, &filled, &m->why)) ||
        (err = dpl_event_create(m->d, &summed, &m->why)))
        return err;
    dpl_stream_launch(compute, fill, m->dev, 0);
    test_comm.cuda->stream_uses(dpl_stream_native(compute), m->dev, BYTES, 1, "backward");
    dpl_event_record(filled, compute);
    if (m->turn & 1) dpl_stream_wait(m->s, filled);
    test_pause_ms(50); /* the work is over by now, but nobody may know */
    err = test_comm.calls->sum_float(m->c, m->dev, TEST_COMM_FLOATS, test_native(m), &m->why);
    dpl_event_record(summed, m->s);
    if (m->turn & 2) dpl_stream_wait(compute, summed);
    test_pause_ms(50);
    dpl_stream_launch(compute, use, m->dev, 0);
    test_comm.cuda->stream_uses(dpl_stream_native(compute), m->dev, BYTES, 0, "update");
    dpl_stream_sync(compute);
    dpl_stream_sync(m->s);
    dpl_event_destroy(&filled);
    dpl_event_destroy(&summed);
    dpl_stream_destroy(&compute);
    return err;
}

static int plant_main(int waits)
{
    test_member m[2] = { { .turn = 0 } };

    test_comm_find();
    m[0].turn = m[1].turn = waits;
    test_comm_run(m, 2, NULL, bucket);
    if (m[0].err || m[1].err) return 1;
    return !test_device_has_tsan() && test_comm.cuda->faults() ? BY_CLOCKS : 0;
}

int test_comm_child(int argc, char **argv, int *status)
{
    if (argc != 3 || strcmp(argv[1], "planted") != 0) return 0;
    *status = plant_main(atoi(argv[2]));
    return 1;
}

static int child(int waits)
{
    char which[2] = { (char)('0' + waits) };
    char *argv[] = { (char *)"test", (char *)"planted", which, NULL };
    char *envp[] = { (char *)"TSAN_OPTIONS=exitcode=66 log_path=/dev/null", NULL };

    return test_run_self(argv, envp, 1); /* what the clocks find is also a line there */
}

void test_comm_plants(void)
{
    const int seen = test_device_has_tsan() ? BY_TSAN : BY_CLOCKS;

    for (int waits = 0; waits < 4; waits++) assert_int_equal(child(waits), waits == 3 ? 0 : seen);
}

int test_comm_set_up(void **state)
{
    (void)state;
    test_comm_reset();
    return 0;
}

int test_comm_tear_down(void **state)
{
    (void)state;
    if (!test_comm.nccl) return 0;
    assert_int_equal(test_comm.nccl->alive(), 0);
    assert_int_equal(test_comm.cuda->alive(), 0);
    return 0;
}

int test_comm_nothing(test_member *m)
{
    (void)m;
    return DPL_OK;
}

void test_comm_expect(const test_member *m, int err, const char *text)
{
    if (m->err != err || !strstr(m->why.s, text))
        fail_msg("rank %d gave %d: %s", m->opt.rank, m->err, m->why.s);
}
