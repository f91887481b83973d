/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: streams, events and copies. The order told to ThreadSanitizer is CUDA's:
 *   what the host did before a call is seen by the work it queued;
 *   work of one stream is in order;
 *   a record makes what its stream did before visible to who waits for that record, host or stream.
 * Nothing else is an edge: not the queue's lock, not the end of a copy, not a later record. */
#include "tests/fake/cuda/fake_cudart.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One record of an event: its address is where the edge is. Counted: the event, the queued record
 * and each queued wait hold it. */
typedef struct fake_mark {
    int refs, passed;
} fake_mark;

typedef enum fake_kind {
    OP_COPY,
    OP_SET,
    OP_HOST,
    OP_KERNEL,
    OP_RECORD,
    OP_WAIT,
    OP_STOP
} fake_kind;

typedef struct fake_op {
    struct fake_op *next;
    fake_kind kind;
    void *dst;
    const void *src;
    void *staged; /* pageable source: the copy that was made at the call */
    size_t bytes;
    int value;           /* memset's */
    void (*run)(void *); /* host function or kernel */
    void (*drop)(void *);
    void *arg;
    fake_mark *mark;
    cudaError_t breaks; /* the GPU fails when this runs */
} fake_op;

/* The names behind cudaStream_t and cudaEvent_t are the real header's. */
struct CUstream_st {
    struct CUstream_st *next; /* of all streams */
    int gpu;
    fake_op *head, **tail; /* the head stays in the queue while it runs */
    pthread_t thread;
};
struct CUevent_st {
    int gpu;
    fake_mark *mark; /* NULL = never recorded */
};

static cudaStream_t streams;
static int held;
static long long latency_ns = 8000;
static double bytes_per_s = 25e9;

/* --- marks; the lock is held --- */

static void mark_put(fake_mark *m)
{
    if (m && !--m->refs) free(m);
}

static fake_mark *mark_get(fake_mark *m)
{
    m->refs++;
    return m;
}

/* --- the thread of a stream --- */

static void pass_time(size_t bytes)
{
    const long long ns = latency_ns + (long long)((double)bytes * 1e9 / bytes_per_s);
    const struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    nanosleep(&ts, NULL);
}

/* Time passes first: who changes the source too early changes what arrives. */
static void run_op(cudaStream_t s, fake_op *op)
{
    if (op->breaks != cudaSuccess) fake_break(s->gpu, op->breaks);
    if (fake_begin(s->gpu) != cudaSuccess) return; /* a failed GPU does nothing any more */
    if (op->kind == OP_COPY) {
        pass_time(op->bytes);
        memcpy(op->dst, op->staged ? op->staged : op->src, op->bytes);
    } else if (op->kind == OP_SET) {
        memset(op->dst, op->value, op->bytes);
    } else if (op->kind == OP_KERNEL) {
        fake_in_host_function = 1; /* a kernel cannot call CUDA either */
        op->run(op->arg);
        fake_in_host_function = 0;
    } else if (op->kind == OP_HOST) {
        fake_in_host_function = 1;
        op->run(op->arg);
        fake_in_host_function = 0;
    }
}

static void *stream_main(void *arg)
{
    cudaStream_t s = arg;
    fake_kind kind;

    do {
        fake_op *op;

        fake_lock();
        while (!(op = s->head) || (held && op->kind != OP_STOP) ||
               (op->kind == OP_WAIT && !op->mark->passed)) {
            fake_wait();
        }
        fake_unlock();
        fake_acquire(op);
        if (op->kind == OP_WAIT) fake_acquire(op->mark);
        run_op(s, op);
        if (op->kind == OP_RECORD) fake_release(op->mark);
        kind = op->kind;
        if (op->drop) op->drop(op->arg); /* also when the GPU has failed and nothing ran */
        free(op->staged);
        fake_lock();
        if (kind == OP_RECORD) op->mark->passed = 1;
        mark_put(op->mark);
        if (!(s->head = op->next)) s->tail = &s->head;
        fake_wake();
        fake_unlock();
        free(op);
    } while (kind != OP_STOP);
    return NULL;
}

/* --- queueing --- */

static cudaError_t push(cudaStream_t s, fake_op what)
{
    fake_op *op = malloc(sizeof *op);

    if (!op) fake_die("no memory for an operation");
    *op = what;
    fake_release(op);
    fake_lock();
    *s->tail = op;
    s->tail = &op->next;
    fake_wake();
    fake_unlock();
    return cudaSuccess;
}

/* Legacy and per-thread default streams order more than a program may rely on here. */
static cudaError_t begin_on(cudaStream_t s)
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

void fake_streams_hold(int on)
{
    fake_lock();
    held = on;
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

/* Wait for a mark, and see what came before it. */
static void mark_wait(fake_mark *m)
{
    fake_lock();
    while (!m->passed) fake_wait();
    fake_unlock();
    fake_acquire(m);
    fake_lock();
    mark_put(m);
    fake_unlock();
}

/* A new mark at the end of s, with one more holder than the queue. */
static fake_mark *mark_push(cudaStream_t s)
{
    fake_mark *m = calloc(1, sizeof *m);

    if (!m) fake_die("no memory for a record");
    m->refs = 2;
    push(s, (fake_op){ .kind = OP_RECORD, .mark = m });
    return m;
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
    if (pthread_create(&s->thread, NULL, stream_main, s)) fake_die("no thread for a stream");
    fake_lock();
    s->next = streams;
    streams = s;
    fake_unlock();
    fake_count_alive(1);
    *out = s;
    return cudaSuccess;
}

/* Returns while work is queued on the real one; here that work is finished first. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    const cudaError_t e = begin_on(s);

    push(s, (fake_op){ .kind = OP_STOP });
    pthread_join(s->thread, NULL);
    fake_lock();
    for (cudaStream_t *at = &streams; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    fake_unlock();
    fake_count_alive(-1);
    free(s);
    return fake_return(e);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    const cudaError_t e = begin_on(s);

    if (e != cudaSuccess) return fake_return(e);
    mark_wait(mark_push(s));
    return fake_return(fake_begin(s->gpu));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const fake_where to = fake_find(dst, bytes), from = fake_find(src, bytes);
    fake_op op = { .kind = OP_COPY, .dst = dst, .src = src, .bytes = bytes };
    cudaError_t e = begin_on(s), injected;
    int sticky, good = 0;

    if (e != cudaSuccess) return fake_return(e);
    injected = fake_injected(FAKE_COPY, &sticky);
    if (injected != cudaSuccess && !sticky) return fake_return(injected);
    op.breaks = injected;
    if (kind == cudaMemcpyHostToDevice) good = to == FAKE_DEVICE && from <= FAKE_PINNED;
    if (kind == cudaMemcpyDeviceToDevice) good = from == FAKE_DEVICE && to == FAKE_DEVICE;
    if (kind == cudaMemcpyDeviceToHost) good = from == FAKE_DEVICE && to <= FAKE_PINNED;
    if (!good) return fake_return(cudaErrorInvalidValue);
    if (from ==
        FAKE_PAGEABLE) { /* read at the call: the source is free again, nothing is waited for */
        if (!(op.staged = malloc(bytes))) fake_die("no memory for a pageable copy");
        memcpy(op.staged, src, bytes);
    }
    push(s, op);
    return to == FAKE_PAGEABLE ? cudaStreamSynchronize(s)
                               : cudaSuccess; /* the whole copy is done */
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s)
{
    cudaError_t e = begin_on(s), injected;
    int sticky;

    if (e != cudaSuccess) return fake_return(e);
    injected = fake_injected(FAKE_COPY, &sticky);
    if (injected != cudaSuccess && !sticky) return fake_return(injected);
    if (fake_find(dst, bytes) != FAKE_DEVICE) return fake_return(cudaErrorInvalidValue);
    return push(
        s, (fake_op){
               .kind = OP_SET, .dst = dst, .value = value, .bytes = bytes, .breaks = injected });
}

cudaError_t fake_kernel(cudaStream_t s, void (*run)(void *), void (*drop)(void *), void *arg)
{
    cudaError_t e = begin_on(s), injected = cudaSuccess;
    int sticky = 0;

    if (e == cudaSuccess) {
        injected = fake_injected(FAKE_LAUNCH, &sticky);
        if (!sticky) e = injected;
    }
    if (e != cudaSuccess) {
        if (drop) drop(arg);
        return fake_return(e);
    }
    return push(
        s,
        (fake_op){ .kind = OP_KERNEL, .run = run, .drop = drop, .arg = arg, .breaks = injected });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
    cudaError_t e = begin_on(s), injected;
    int sticky;

    if (e != cudaSuccess) return fake_return(e);
    injected = fake_injected(FAKE_LAUNCH, &sticky);
    if (injected != cudaSuccess && !sticky) return fake_return(injected);
    return push(s, (fake_op){ .kind = OP_HOST, .run = fn, .arg = arg, .breaks = injected });
}

/* --- events --- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    int sticky;
    cudaError_t e = fake_begin(fake_current());

    if (e == cudaSuccess) e = fake_injected(FAKE_EVENT, &sticky);
    if (e != cudaSuccess) return fake_return(e);
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        return fake_return(cudaErrorInvalidValue);
    if (!(*out = calloc(1, sizeof **out))) return fake_return(cudaErrorMemoryAllocation);
    (*out)->gpu = fake_current();
    fake_count_alive(1);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t ev)
{
    fake_lock();
    mark_put(ev->mark);
    fake_unlock();
    fake_count_alive(-1);
    free(ev);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t ev, cudaStream_t s)
{
    const cudaError_t e = begin_on(s);
    fake_mark *m;

    if (e != cudaSuccess) return fake_return(e);
    if (ev->gpu != s->gpu) return fake_return(cudaErrorInvalidResourceHandle);
    m = mark_push(s);
    fake_lock();
    mark_put(ev->mark);
    ev->mark = m;
    fake_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags)
{
    const cudaError_t e = begin_on(s);
    fake_mark *m = NULL;

    if (e != cudaSuccess) return fake_return(e);
    if (flags) return fake_return(cudaErrorInvalidValue);
    fake_lock();
    if (ev->mark) m = mark_get(ev->mark);
    fake_unlock();
    return m ? push(s, (fake_op){ .kind = OP_WAIT, .mark = m }) : cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t ev)
{
    const cudaError_t e = fake_begin(ev->gpu);
    int passed;

    if (e != cudaSuccess) return fake_return(e);
    fake_lock();
    passed = !ev->mark || ev->mark->passed;
    fake_unlock();
    if (!passed) return fake_return(cudaErrorNotReady);
    if (ev->mark) fake_acquire(ev->mark);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t ev)
{
    const cudaError_t e = fake_begin(ev->gpu);
    fake_mark *m = NULL;

    if (e != cudaSuccess) return fake_return(e);
    fake_lock();
    if (ev->mark) m = mark_get(ev->mark);
    fake_unlock();
    if (m) mark_wait(m);
    return fake_return(fake_begin(ev->gpu));
}
