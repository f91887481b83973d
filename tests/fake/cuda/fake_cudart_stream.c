/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: streams. The order told to ThreadSanitizer is CUDA's:
 *   what the host did before a call is seen by the work it queued;
 *   work of one stream is in order;
 *   a record makes what its stream did before visible to who waits for that record, host or stream.
 * Nothing else is an edge: not the queue's lock, not the end of a copy, not a later record. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The name behind cudaStream_t is the real header's. */
struct CUstream_st {
    struct CUstream_st *next; /* of all streams */
    int gpu, actor, stuck;
    int orphan;            /* destroyed while work was queued: the thread ends it */
    fake_op *head, **tail; /* the head stays in the queue while it runs */
    int64_t now_ns;        /* modelled time; its thread's */
    fake_clock clock;      /* what its next work comes after */
    pthread_t thread;
};

enum { PATIENCE_S = 60 };
static const long long latency_ns_0 = 8000;
static const double rate_0 = 25e9;

/* Guarded by the lock. */
static cudaStream_t streams;
static int held;
static long long latency_ns = 8000;
static double bytes_per_s = 25e9;
static long long kernel_ns[FAKE_GPUS_MAX];

/* --- marks --- */

void fake_mark_put(fake_mark *m)
{
    if (!m || --m->refs) return;
    fake_clock_end(&m->clock);
    free(m);
}

fake_mark *fake_mark_get(fake_mark *m)
{
    m->refs++;
    return m;
}

/* --- the thread of a stream --- */

static long long modelled(cudaStream_t s, const fake_op *op)
{
    long long ns = 0;
    fake_gpu g;

    fake_lock();
    if (op->kind == OP_COPY)
        ns = latency_ns + (op->inside ? 0 : (long long)((double)op->bytes * 1e9 / bytes_per_s));
    if (op->kind == OP_KERNEL) ns = kernel_ns[s->gpu];
    fake_unlock();
    if (op->kind == OP_KERNEL && !ns && fake_gpu_get(s->gpu, &g)) ns = g.kernel_ns;
    return ns;
}

/* Time passes first: who changes the source too early changes what arrives. @return that time */
static long long run_op(cudaStream_t s, fake_op *op)
{
    const long long ns = modelled(s, op);
    int64_t start;

    if (op->breaks != cudaSuccess) fake_break(s->gpu, op->breaks);
    if (fake_begin(s->gpu) != cudaSuccess) return 0; /* a failed GPU does nothing any more */
    fake_pass(ns);
    start = fake_now();
    if (op->kind == OP_COPY) {
        memcpy(op->dst, op->staged ? op->staged : op->src, op->bytes);
    } else if (op->kind == OP_SET) {
        memset(op->dst, op->value, op->bytes);
    } else if (op->run) {
        fake_in_host_function = 1; /* kernels cannot call CUDA either */
        op->run(op->arg);
        fake_in_host_function = 0;
    }
    return ns || !op->run ? ns : fake_now() - start;
}

/* The next operation that may run; a failed GPU passes over all of them. The lock is held. */
static fake_op *await_op(cudaStream_t s)
{
    for (;;) {
        fake_op *op = s->head;

        if (op && (op->kind == OP_STOP || fake_is_broken(s->gpu))) return op;
        if (op && !held && !s->stuck && (op->kind != OP_WAIT || op->mark->passed)) return op;
        fake_wait();
    }
}

static void end_stream(cudaStream_t s)
{
    for (cudaStream_t *at = &streams; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    fake_clock_end(&s->clock);
    free(s);
}

static void *stream_main(void *arg)
{
    cudaStream_t s = arg;
    fake_kind kind;
    int orphan, passed;

    fake_set_current(s->gpu);
    do {
        fake_op *op;

        fake_lock();
        op = await_op(s);
        passed = op->mark && op->mark->passed;
        if (op->queued_ns > s->now_ns) s->now_ns = op->queued_ns;
        if (op->kind == OP_WAIT && op->mark->at_ns > s->now_ns) s->now_ns = op->mark->at_ns;
        fake_unlock();
        fake_acquire(op);
        if (op->kind == OP_WAIT && passed) fake_acquire(op->mark);
        s->now_ns += run_op(s, op);
        if (op->kind == OP_RECORD) fake_release(op->mark);
        kind = op->kind;
        if (op->drop) op->drop(op->arg); /* also when the GPU has failed and nothing ran */
        fake_failed_release(s->gpu);
        fake_release(s); /* for who finds it empty */
        fake_lock();
        if (kind == OP_RECORD) {
            op->mark->passed = 1;
            op->mark->at_ns = s->now_ns;
        }
        fake_mark_put(op->mark);
        if (!(s->head = op->next)) s->tail = &s->head;
        free(op->staged);
        free(op);
        orphan = s->orphan;
        if (kind == OP_STOP && orphan) end_stream(s);
        fake_wake();
        fake_unlock();
    } while (kind != OP_STOP);
    return NULL;
}

/* --- queueing --- */

cudaError_t fake_push(cudaStream_t s, fake_op what)
{
    fake_op *op = malloc(sizeof *op);

    if (!op) fake_die("no memory for an operation");
    *op = what;
    fake_release(op);
    fake_lock();
    fake_clock_join(&s->clock, &fake_host_clock);
    fake_clock_tick(&s->clock, s->actor);
    if (op->kind == OP_RECORD) fake_clock_join(&op->mark->clock, &s->clock);
    if (op->kind == OP_WAIT) fake_clock_join(&s->clock, &op->mark->clock);
    if (op->src && !op->staged)
        fake_access_now(s->actor, &s->clock, op->src, op->bytes, 0, op->what);
    if (op->dst) fake_access_now(s->actor, &s->clock, op->dst, op->bytes, 1, op->what);
    op->queued_ns = s->head ? 0 : fake_now(); /* a stream that is not empty goes on without a gap */
    *s->tail = op;
    s->tail = &op->next;
    fake_wake();
    fake_unlock();
    return cudaSuccess;
}

/* Legacy and per-thread default streams order more than a program may rely on here. */
cudaError_t fake_begin_on(cudaStream_t s)
{
    if (!s || s == cudaStreamLegacy || s == cudaStreamPerThread)
        fake_die("a default stream is used");
    return fake_begin(s->gpu);
}

int fake_is_in_use(const void *p, size_t bytes)
{
    const char *from = p, *to = from + bytes;

    for (cudaStream_t s = streams; s; s = s->next) {
        for (const fake_op *op = s->head; op; op = op->next) {
            const char *dst = op->dst, *src = op->staged ? NULL : op->src;

            if (!op->bytes || fake_is_broken(s->gpu)) continue;
            if ((dst < to && dst + op->bytes > from) || (src && src < to && src + op->bytes > from))
                return 1;
        }
    }
    return 0;
}

void fake_stream_uses(cudaStream_t s, const void *p, size_t bytes, int write, const char *what)
{
    fake_lock();
    fake_access_now(s->actor, &s->clock, p, bytes, write, what);
    fake_unlock();
}

int fake_stream_gpu(cudaStream_t s)
{
    return s->gpu;
}

/* --- a test's controls --- */

void fake_streams_reset(void)
{
    held = 0;
    latency_ns = latency_ns_0;
    bytes_per_s = rate_0;
    memset(kernel_ns, 0, sizeof kernel_ns);
    for (cudaStream_t s = streams; s; s = s->next) s->stuck = 0;
}

void fake_streams_hold(int on)
{
    fake_lock();
    held = on;
    fake_wake();
    fake_unlock();
}

void fake_streams_stick(void *stream, int on)
{
    fake_lock();
    ((cudaStream_t)stream)->stuck = on;
    fake_wake();
    fake_unlock();
}

void fake_streams_copy_time(long long ns, double rate)
{
    fake_lock();
    latency_ns = ns;
    bytes_per_s = rate;
    fake_unlock();
}

void fake_streams_kernel_time(int gpu, long long ns)
{
    fake_lock();
    for (int i = 0; i < FAKE_GPUS_MAX; i++)
        if (gpu < 0 || gpu == i) kernel_ns[i] = ns;
    fake_unlock();
}

/* --- waiting --- */

void fake_mark_wait(fake_mark *m)
{
    const int64_t end = fake_now() + PATIENCE_S * 1000000000LL;

    fake_lock();
    while (!m->passed)
        if (fake_wait_until(end) && !m->passed)
            fake_die("the host has waited %d s for a stream that does not come forward",
                     PATIENCE_S);
    fake_unlock();
    fake_acquire(m);
    fake_lock();
    fake_clock_join(&fake_host_clock, &m->clock);
    fake_mark_put(m);
    fake_unlock();
}

fake_mark *fake_mark_push(cudaStream_t s)
{
    fake_mark *m = calloc(1, sizeof *m);

    if (!m) fake_die("no memory for a record");
    m->refs = 2;
    fake_push(s, (fake_op){ .kind = OP_RECORD, .mark = m });
    return m;
}

void fake_mark_await(cudaStream_t s, fake_mark *m)
{
    fake_push(s, (fake_op){ .kind = OP_WAIT, .mark = m });
}

/* A failed GPU is soon past everything: then nothing touches what the program may free. */
static void drain(cudaStream_t s)
{
    fake_lock();
    while (fake_is_broken(s->gpu) && s->head) fake_wait();
    fake_unlock();
    fake_failed_acquire(s->gpu);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    const cudaError_t e = fake_begin_on(s);

    if (e != cudaSuccess && !fake_in_host_function) drain(s);
    if (e != cudaSuccess) return fake_return(e);
    fake_mark_wait(fake_mark_push(s));
    drain(s); /* where it has failed on the way */
    return fake_return(fake_begin(s->gpu));
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    const cudaError_t e = fake_begin_on(s);
    int idle;

    if (e != cudaSuccess) return fake_return(e);
    fake_lock();
    idle = !s->head;
    if (idle) fake_clock_join(&fake_host_clock, &s->clock);
    fake_unlock();
    if (!idle) return fake_return(cudaErrorNotReady);
    fake_acquire(s);
    return fake_return(fake_begin(s->gpu));
}

/* --- streams --- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    int sticky;
    cudaError_t e = fake_begin(fake_current());
    cudaStream_t s;

    if (e == cudaSuccess) e = fake_injected(FAKE_STREAM, &sticky);
    if (e != cudaSuccess) return fake_return(e);
    if (flags & ~(unsigned)cudaStreamNonBlocking) return fake_return(cudaErrorInvalidValue);
    if (!(s = calloc(1, sizeof *s))) return fake_return(cudaErrorMemoryAllocation);
    s->gpu = fake_current();
    s->tail = &s->head;
    fake_lock();
    s->actor = fake_actor();
    fake_unlock();
    if (pthread_create(&s->thread, NULL, stream_main, s)) fake_die("no thread for a stream");
    fake_lock();
    s->next = streams;
    streams = s;
    fake_unlock();
    fake_count_alive(1);
    *out = s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)priority; /* any number is taken, and brought into the range */
    return cudaStreamCreateWithFlags(out, flags);
}

/* Returns at once, as the real one: what is still queued runs on. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    const cudaError_t e = fake_begin_on(s);
    const pthread_t thread = s->thread;
    int idle;

    drain(s);
    fake_lock();
    idle = !s->head;
    s->orphan = !idle;
    fake_unlock();
    fake_push(s, (fake_op){ .kind = OP_STOP }); /* an orphan is gone after this */
    fake_count_alive(-1);
    if (!idle) {
        pthread_detach(thread);
        return fake_return(e);
    }
    pthread_join(thread, NULL);
    fake_lock();
    end_stream(s);
    fake_unlock();
    return fake_return(e);
}
