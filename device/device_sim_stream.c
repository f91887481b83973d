/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of the modelled accelerator: a thread with a queue of operations and a clock of modelled
 * time. The queue orders the host before the stream and never the other way round (a semaphore is
 * posted by one side and waited for by the other), so that a host which looks at a result without
 * waiting for an event is a data race that TSan can see. */
#include "device/device_sim.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "dpload.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum sim_kind { SIM_COPY, SIM_LAUNCH, SIM_RECORD, SIM_WAIT, SIM_STOP } sim_kind;

typedef struct sim_op {
    struct sim_op *next;
    sim_kind kind;
    int64_t queued_ns;
    union {
        struct {
            void *dst;
            const void *src;
            size_t bytes;
            dpl_copy_way way;
        } copy;
        struct {
            void (*run)(void *arg);
            void *arg;
            long long modelled_ns;
        } launch;
        struct {
            dpl_sim_point *point;
            uint32_t pass;
        } event;
    } u;
} sim_op;

typedef struct sim_stream {
    dpl_stream base;
    pthread_t thread;
    sem_t queued;         /* operations behind `head` */
    sim_op *head;         /* the last one done; the thread's */
    sim_op *tail;         /* the last one queued; the host's */
    sim_op *stop;         /* kept ready, so that destroying cannot fail */
    int64_t clock_ns;     /* modelled time: when the last operation ended; the thread's */
    dpl_sim_event synced; /* for dpl_sim_stream_sync() */
} sim_stream;

/* --- the thread --- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void sleep_until(int64_t ns)
{
    const struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {}
}

/* Do the work at once, then let the modelled time pass. An operation starts when it is queued or when
 * the one before it ended by the model, not when this thread woke up: errors do not add up. */
static void run_op(sim_stream *s, const sim_op *op)
{
    const int64_t start = later(s->clock_ns, op->queued_ns), before = dpl_now_ns();
    int64_t end = start;

    switch (op->kind) {
    case SIM_COPY:
        end = dpl_sim_bus_take(s->base.device, op->u.copy.way, start, op->u.copy.bytes);
        memcpy(op->u.copy.dst, op->u.copy.src, op->u.copy.bytes);
        s->clock_ns = later(end, start + dpl_now_ns() - before);
        break;
    case SIM_LAUNCH:
        op->u.launch.run(op->u.launch.arg);
        s->clock_ns = start + (dpl_now_ns() - before) + op->u.launch.modelled_ns;
        break;
    case SIM_RECORD:
        dpl_sim_point_pass(op->u.event.point, op->u.event.pass, start);
        s->clock_ns = start;
        break;
    case SIM_WAIT:
        s->clock_ns = later(start, dpl_sim_point_wait(op->u.event.point, op->u.event.pass));
        break;
    case SIM_STOP: break;
    }
    if (op->kind == SIM_COPY || op->kind == SIM_LAUNCH) sleep_until(s->clock_ns);
}

static void *stream_main(void *arg)
{
    sim_stream *s = arg;
    sim_kind kind;

    do {
        sim_op *op;

        while (sem_wait(&s->queued)) {} /* EINTR only */
        op = s->head->next;
        free(s->head);
        s->head = op;
        kind = op->kind;
        run_op(s, op);
    } while (kind != SIM_STOP);
    return NULL;
}

/* --- the host --- */

static void push(sim_stream *s, sim_op *op)
{
    op->queued_ns = dpl_now_ns();
    s->tail->next = op;
    s->tail = op;
    sem_post(&s->queued);
}

static sim_op *op_new(sim_kind kind)
{
    sim_op *op = dpl_calloc(1, sizeof *op);

    if (op) op->kind = kind;
    return op;
}

int dpl_sim_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why)
{
    sim_stream *s = dpl_calloc(1, sizeof *s);
    char short_name[16];
    int err = DPL_ENOMEM;

    if (!s) return dpl_fail(why, DPL_ENOMEM, "sim stream");
    snprintf(short_name, sizeof short_name, "%s", name);
    s->base.device = s->synced.base.device = d;
    sem_init(&s->queued, 0, 0);
    s->head = s->tail = op_new(SIM_STOP);
    s->stop = op_new(SIM_STOP);
    if (s->head && s->stop) err = dpl_thread_start(&s->thread, short_name, stream_main, s);
    if (err) {
        sem_destroy(&s->queued);
        free(s->head);
        free(s->stop);
        free(s);
        return dpl_fail(why, err, "sim stream %s: no memory, or no thread to be had", name);
    }
    *out = &s->base;
    return DPL_OK;
}

void dpl_sim_stream_destroy(dpl_stream *base)
{
    sim_stream *s = (sim_stream *)base;

    push(s, s->stop);
    pthread_join(s->thread, NULL);
    dpl_sim_event_disarm(&s->synced);
    sem_destroy(&s->queued);
    free(s->head);
    free(s);
}

int dpl_sim_copy(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way)
{
    sim_op *op;

    if (!bytes) return DPL_OK;
    if (!(op = op_new(SIM_COPY))) return DPL_ENOMEM;
    op->u.copy.dst = dst;
    op->u.copy.src = src;
    op->u.copy.bytes = bytes;
    op->u.copy.way = way;
    push((sim_stream *)s, op);
    return DPL_OK;
}

int dpl_sim_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns)
{
    sim_op *op = op_new(SIM_LAUNCH);

    if (!op) return DPL_ENOMEM;
    op->u.launch.run = run;
    op->u.launch.arg = arg;
    op->u.launch.modelled_ns = modelled_ns;
    push((sim_stream *)s, op);
    return DPL_OK;
}

int dpl_sim_event_record(dpl_event *base, dpl_stream *s)
{
    dpl_sim_event *e = (dpl_sim_event *)base;
    sim_op *op = op_new(SIM_RECORD);

    if (!op || !(op->u.event.point = dpl_sim_event_arm(e))) {
        free(op);
        return DPL_ENOMEM;
    }
    op->u.event.pass = e->pass;
    push((sim_stream *)s, op);
    return DPL_OK;
}

int dpl_sim_stream_wait(dpl_stream *s, dpl_event *base)
{
    dpl_sim_event *e = (dpl_sim_event *)base;
    sim_op *op;

    if (!e->point) return DPL_OK;
    if (!(op = op_new(SIM_WAIT))) return DPL_ENOMEM;
    op->u.event.point = e->point;
    op->u.event.pass = e->pass;
    push((sim_stream *)s, op);
    return DPL_OK;
}

int dpl_sim_stream_sync(dpl_stream *base)
{
    sim_stream *s = (sim_stream *)base;
    const int err = dpl_sim_event_record(&s->synced.base, base);

    if (!err) dpl_sim_point_wait(s->synced.point, s->synced.pass);
    return err;
}
