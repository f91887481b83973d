/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled accelerator: memory of its own, a bus with a bandwidth, streams that are threads. */
#include "device/device_sim.h"

#include "base/alloc.h"
#include "base/optparse.h"
#include "dpload.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double default_bus = 12e9;            /* PCIe 3.0 x16, as measured by most tools */
static const int64_t longest_step = 3600000000000; /* one hour */

/* Waiting is a futex on `done`, not a lock: a lock would also order the waiter before the next
 * passer, which CUDA does not, and would so hide races from TSan. Points live until the device
 * closes, because a waiter may look at one after its event is gone. */
struct dpl_sim_point {
    _Atomic uint32_t done;     /* number of the last pass that is over */
    uint32_t issued;           /* number of the last pass that was queued; the event holder's */
    _Atomic int64_t passed_ns; /* modelled time of the last pass */
    struct dpl_sim_point *next;
};

typedef struct sim_device {
    dpl_device base;
    double bus;              /* bytes per second, each way */
    _Atomic int64_t lane[2]; /* by dpl_copy_way: when that way of the bus is free again, ns */
    pthread_mutex_t lock;    /* guards `spare` */
    dpl_sim_point *spare;    /* points that no event holds; passes may still be on their way */
} sim_device;

/* --- points --- */

static int is_over(uint32_t done, uint32_t pass)
{
    return (int32_t)(done - pass) >= 0; /* numbers may wrap */
}

void dpl_sim_point_pass(dpl_sim_point *p, uint32_t pass, int64_t now_ns)
{
    atomic_store_explicit(&p->passed_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&p->done, pass, memory_order_release);
    syscall(SYS_futex, &p->done, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int dpl_sim_point_passed(dpl_sim_point *p, uint32_t pass)
{
    return is_over(atomic_load_explicit(&p->done, memory_order_acquire), pass);
}

int64_t dpl_sim_point_wait(dpl_sim_point *p, uint32_t pass)
{
    uint32_t done;

    while (!is_over(done = atomic_load_explicit(&p->done, memory_order_acquire), pass)) {
        syscall(SYS_futex, &p->done, FUTEX_WAIT_PRIVATE, done, NULL, NULL, 0);
    }
    return atomic_load_explicit(&p->passed_ns, memory_order_relaxed);
}

/* The same question without an ordering edge: only for using a point again. */
static int is_idle(dpl_sim_point *p)
{
    return is_over(atomic_load_explicit(&p->done, memory_order_relaxed), p->issued);
}

/* A point without a pass on its way, from the spare ones or new. */
static dpl_sim_point *point_take(sim_device *d)
{
    dpl_sim_point *p = NULL;

    pthread_mutex_lock(&d->lock);
    for (dpl_sim_point **at = &d->spare; *at; at = &(*at)->next) {
        if (!is_idle(*at)) continue;
        p = *at;
        *at = p->next;
        break;
    }
    pthread_mutex_unlock(&d->lock);
    return p ? p : dpl_calloc(1, sizeof *p);
}

dpl_sim_point *dpl_sim_event_arm(dpl_sim_event *e)
{
    if (e->point && !is_idle(e->point)) dpl_sim_event_disarm(e); /* still on its way: it keeps it */
    if (!e->point && !(e->point = point_take((sim_device *)e->base.device))) return NULL;
    e->pass = ++e->point->issued;
    return e->point;
}

void dpl_sim_event_disarm(dpl_sim_event *e)
{
    sim_device *d = (sim_device *)e->base.device;

    if (!e->point) return;
    pthread_mutex_lock(&d->lock);
    e->point->next = d->spare;
    d->spare = e->point;
    pthread_mutex_unlock(&d->lock);
    e->point = NULL;
}

/* --- device --- */

/* "38ms" or "38ms,bus=16G" */
static int parse_args(const char *args, int64_t *step_ns, double *bus, dpl_text *why)
{
    char step[64], *rest;
    uint64_t bytes;

    if (!args) return dpl_fail(why, DPL_EINVAL, "the time of a step is missing, as in sim:38ms");
    if (strlen(args) >= sizeof step) return dpl_fail(why, DPL_EINVAL, "too long");
    strcpy(step, args);
    if ((rest = strchr(step, ','))) *rest++ = '\0';
    if (dpl_parse_time_ns(step, step_ns) || *step_ns < 0 || *step_ns > longest_step) {
        return dpl_fail(why, DPL_EINVAL, "\"%s\" is no step time of 0 to 1h, as in sim:38ms", step);
    }
    if (!rest) return DPL_OK;
    if (strncmp(rest, "bus=", 4) != 0) {
        return dpl_fail(why, DPL_EINVAL, "\"%s\" is not known; bus=BYTES/S is", rest);
    }
    if (dpl_parse_size(rest + 4, &bytes) || !bytes) {
        return dpl_fail(why, DPL_EINVAL, "\"%s\" is no number of bytes per second, as in bus=16G",
                        rest);
    }
    *bus = (double)bytes;
    return DPL_OK;
}

static int sim_open(dpl_device **out, const char *args, dpl_text *why)
{
    sim_device *d;
    double bus = default_bus;
    int64_t step_ns;
    int err;

    if ((err = parse_args(args, &step_ns, &bus, why))) return err;
    if (!(d = dpl_calloc(1, sizeof *d))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    pthread_mutex_init(&d->lock, NULL);
    d->bus = bus;
    d->base.step_ns = step_ns;
    *out = &d->base;
    return DPL_OK;
}

static void sim_close(dpl_device *base)
{
    sim_device *d = (sim_device *)base;

    for (dpl_sim_point *p = d->spare, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void *sim_alloc(dpl_device *d, size_t bytes)
{
    (void)d;
    return dpl_alloc_aligned(bytes, 1);
}

static void sim_free(dpl_device *d, void *p)
{
    (void)d;
    free(p);
}

int64_t dpl_sim_bus_take(dpl_device *base, dpl_copy_way way, int64_t from_ns, size_t bytes)
{
    sim_device *d = (sim_device *)base;
    const int64_t cost = (int64_t)((double)bytes * 1e9 / d->bus);
    int64_t free_ns = atomic_load_explicit(&d->lane[way], memory_order_relaxed), end;

    do {
        end = (free_ns > from_ns ? free_ns : from_ns) + cost;
    } while (!atomic_compare_exchange_weak_explicit(&d->lane[way], &free_ns, end,
                                                    memory_order_relaxed, memory_order_relaxed));
    return end;
}

/* --- events --- */

static int sim_event_create(dpl_device *d, dpl_event **out, dpl_text *why)
{
    dpl_sim_event *e = dpl_calloc(1, sizeof *e);

    if (!e) return dpl_fail(why, DPL_ENOMEM, "sim event");
    e->base.device = d;
    *out = &e->base;
    return DPL_OK;
}

static void sim_event_destroy(dpl_event *base)
{
    dpl_sim_event_disarm((dpl_sim_event *)base);
    free(base);
}

static int sim_event_query(dpl_event *base)
{
    dpl_sim_event *e = (dpl_sim_event *)base;

    return !e->point || dpl_sim_point_passed(e->point, e->pass);
}

static int sim_event_sync(dpl_event *base)
{
    dpl_sim_event *e = (dpl_sim_event *)base;

    if (e->point) dpl_sim_point_wait(e->point, e->pass);
    return DPL_OK;
}

const dpl_device_ops dpl_device_sim_ops = {
    .word = "sim",
    .kind = DPL_DEVICE_SIM,
    .has_memory = 1,
    .open = sim_open,
    .close = sim_close,
    .host_alloc = sim_alloc,
    .host_free = sim_free,
    .alloc = sim_alloc,
    .free = sim_free,
    .stream_create = dpl_sim_stream_create,
    .stream_destroy = dpl_sim_stream_destroy,
    .event_create = sim_event_create,
    .event_destroy = sim_event_destroy,
    .copy = dpl_sim_copy,
    .launch = dpl_sim_launch,
    .event_record = dpl_sim_event_record,
    .stream_wait = dpl_sim_stream_wait,
    .event_query = sim_event_query,
    .event_sync = sim_event_sync,
    .stream_sync = dpl_sim_stream_sync,
};
