/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake CUDA runtime share. */
#ifndef TESTS_FAKE_FAKE_CUDART_INSIDE_H
#define TESTS_FAKE_FAKE_CUDART_INSIDE_H

#include "tests/fake/cuda/fake_cudart.h"

/* --- calls and errors --- */

/** The status every call on gpu begins with: a sticky error, or a call out of a host function. */
cudaError_t fake_begin(int gpu);
int fake_current(void); /* the thread's current GPU */
void fake_set_current(int gpu);
void fake_break(int gpu, cudaError_t e);
/** What a failed GPU has done is seen by who sees that it failed. */
void fake_failed_release(int gpu);
void fake_failed_acquire(int gpu);
/** Count this call. Is it to fail? *sticky: with its work, not now. @return the error, success */
cudaError_t fake_injected(fake_cuda_call call, int *sticky);
void fake_count_alive(int by);
extern _Thread_local int fake_in_host_function;

/* --- GPUs --- */

typedef struct fake_gpu {
    int physical;
    char name[64];
    size_t bytes;
    int major, minor;
    long long kernel_ns;
} fake_gpu;

cudaError_t fake_driver(void);            /* success, or why there is none */
int fake_gpus(void);                      /* visible ones */
int fake_gpu_get(int gpu, fake_gpu *out); /* 0 = no such one */

/* --- order: vector clocks. Actor 0 is the host, all its threads; the others are streams. The lock
 * is held by all who call. --- */

typedef struct fake_clock {
    unsigned *t; /* [n]: what has been seen of each actor */
    int n;
} fake_clock;

int fake_actor(void); /* a new one */
void fake_clock_join(fake_clock *into, const fake_clock *from);
void fake_clock_tick(fake_clock *c, int actor);
void fake_clock_end(fake_clock *c);
extern fake_clock fake_host_clock;

struct fake_access;

/* --- memory --- */

typedef enum fake_where { FAKE_PAGEABLE, FAKE_PINNED, FAKE_DEVICE, FAKE_OUTSIDE } fake_where;

typedef struct fake_block {
    struct fake_block *next;
    char *p;
    size_t bytes;
    fake_where where;
    int gpu;
    struct fake_access *accesses; /* that the host has not waited for */
} fake_block;

/** Where do these bytes lie? FAKE_OUTSIDE: they begin in an allocation and end behind it. */
fake_where fake_find(const void *p, size_t bytes);
fake_block *fake_block_of(const void *p); /* or NULL; the lock is held */
/** Does work that is queued still use these bytes? The lock is held. */
int fake_is_in_use(const void *p, size_t bytes);

/** An access by what actor has just queued (0: by the host): reported unless ordered. The lock is
 *  held. */
void fake_access_now(int actor, const fake_clock *clock, const void *p, size_t bytes, int write,
                     const char *what);
void fake_accesses_end(fake_block *b);
int fake_order_faults(void);
const char *fake_order_fault(void);
void fake_order_reset(void);

/* --- streams --- */

/* One record of an event: its address is where the edge is. Counted: the event, the queued record
 * and each queued wait hold it. */
typedef struct fake_mark {
    int refs, passed;
    int64_t at_ns; /* when it passed, in modelled time */
    fake_clock clock;
} fake_mark;

/* The lock is held. */
void fake_mark_put(fake_mark *m);
fake_mark *fake_mark_get(fake_mark *m);

typedef enum fake_kind {
    OP_COPY,
    OP_SET,
    OP_HOST,
    OP_KERNEL,
    OP_WORK,
    OP_RECORD,
    OP_WAIT,
    OP_STOP
} fake_kind;

typedef struct fake_op {
    struct fake_op *next;
    fake_kind kind;
    const char *what;
    void *dst;
    const void *src;
    void *staged; /* pageable source: the copy that was made at the call */
    size_t bytes;
    int inside; /* a copy that does not leave its GPU */
    int value;  /* memset's */
    void (*run)(void *);
    void (*drop)(void *);
    void *arg;
    fake_mark *mark;
    cudaError_t breaks; /* the GPU fails when this runs */
    int64_t queued_ns;
} fake_op;

/** At the end of s. @return success */
cudaError_t fake_push(cudaStream_t s, fake_op what);

/** A new mark at the end of s, with one more holder than the queue. */
fake_mark *fake_mark_push(cudaStream_t s);
void fake_mark_await(cudaStream_t s, fake_mark *m); /* later work of s waits; m is the queue's */
void fake_mark_wait(fake_mark *m);                  /* the host waits, and puts it */
/** The status that calls on s begin with. */
cudaError_t fake_begin_on(cudaStream_t s);

void fake_streams_reset(void);
void fake_streams_hold(int on);
void fake_streams_stick(void *s, int on);
void fake_streams_copy_time(long long latency_ns, double rate);
void fake_streams_kernel_time(int gpu, long long ns);

#endif
