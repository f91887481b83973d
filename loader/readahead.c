/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead; see readahead.h. */
#include "loader/readahead.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "loader/loader.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPARE = 16 };

#define KEEP ((size_t)1 << 20) /* of an entry that waits for its next file */

typedef enum entry_state { EMPTY, READING, READ } entry_state;

/* READING: the reader's, but for `state` and `stale`. Else guarded by the lock. */
typedef struct entry {
    entry_state state;
    int stale; /* READING for a position that was left */
    uint64_t id;
    void *file;
    size_t cap, len;
    int err;
    dpl_text why;
} entry;

struct dpl_ahead {
    /* constant while open */
    const dpl_loader *l;
    entry *entry; /* [entries] */
    uint64_t entries;
    pthread_t *thread; /* [started] */
    int started, has_sync;

    pthread_mutex_t lock;  /* guards everything below; taken after loader.lock, if both */
    pthread_cond_t room;   /* readers wait: an entry, a position, stop */
    pthread_cond_t filled; /* workers wait: their entry, stop */
    int stopping;
    int waiting;             /* workers in wait for an entry */
    uint64_t next;           /* number of the sample to read next */
    uint64_t epoch, index;   /* its batch */
    uint64_t first, n, done; /* positions of the batch: first ones, how many, how many are past */
    dpl_permutation order;
    uint64_t held; /* entries that are not EMPTY */
    size_t bytes;  /* of all buffers */
    dpl_ahead_count count;
};

/* --- the position; lock is held --- */

static void begin_batch(dpl_ahead *a, int new_epoch)
{
    const dpl_loader *l = a->l;
    dpl_mix_plan mix;

    if (new_epoch) dpl_permutation_init(&a->order, l->samples->count, l->opt.seed, a->epoch);
    dpl_steps_rank(&l->steps, a->index, l->opt.rank, l->opt.world, &a->first, &a->n);
    a->n += (uint64_t)dpl_mix_plan_batch(l, a->epoch, a->index, &mix); /* the halo */
    a->done = 0;
}

/* Leave batches that have nothing left. @return 0 at the end of the last epoch */
static int find_sample(dpl_ahead *a)
{
    while (a->done == a->n) {
        const int last = a->index + 1 == a->l->steps.count;

        if (last && !dpl_epoch_exists(a->l, a->epoch + 1)) return 0;
        a->epoch += (uint64_t)last;
        a->index = last ? 0 : a->index + 1;
        begin_batch(a, last);
    }
    return 1;
}

/* May the next read begin? Past the bytes that were announced only the sample that is due first. */
static int can_read(dpl_ahead *a)
{
    return a->entry[a->next % a->entries].state == EMPTY &&
           (!a->held || a->bytes <= dpl_ahead_bytes(a)) && find_sample(a);
}

/* --- readers --- */

static void read_entry(dpl_ahead *a, entry *e, uint64_t batch)
{
    const dpl_loader *l = a->l;
    const int64_t since = dpl_now_ns();

    dpl_trace_push(l->trace, "read", batch);
    e->err = l->samples->ops->read(l->samples, e->id, &e->file, &e->cap, &e->len,
                                   l->opt.max_file_bytes, &e->why);
    dpl_trace_pop(l->trace);
    __atomic_fetch_add(&a->count.read_ns, (uint64_t)(dpl_now_ns() - since), __ATOMIC_RELAXED);
    if (!e->err) __atomic_fetch_add(&a->count.bytes_read, e->len, __ATOMIC_RELAXED);
}

/* Read the next sample. Lock is held, and dropped meanwhile. */
static void read_next(dpl_ahead *a)
{
    entry *e = &a->entry[a->next % a->entries];
    const uint64_t batch = a->index;

    e->id = dpl_sample_at(a->l, &a->order, dpl_batch_position(a->l, a->index, a->first + a->done));
    e->state = READING;
    a->next++;
    a->done++;
    a->held++;
    a->bytes -= e->cap;
    if (can_read(a)) pthread_cond_signal(&a->room); /* one wakes the next: no crowd */
    pthread_mutex_unlock(&a->lock);
    read_entry(a, e, batch);
    pthread_mutex_lock(&a->lock);
    a->bytes += e->cap;
    e->state = e->stale ? EMPTY : READ;
    if (e->stale) {
        e->stale = 0;
        a->held--;
        pthread_cond_signal(&a->room);
    } else if (a->waiting) {
        pthread_cond_broadcast(&a->filled);
    }
}

static void *run(void *arg)
{
    dpl_ahead *a = arg;

    pthread_mutex_lock(&a->lock);
    while (!a->stopping) {
        if (can_read(a))
            read_next(a);
        else
            pthread_cond_wait(&a->room, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* --- workers --- */

int dpl_ahead_take(dpl_ahead *a, uint64_t number, void **buf, size_t *cap, size_t *len,
                   dpl_text *why)
{
    entry *e = &a->entry[number % a->entries];
    void *const spare = *buf;
    const size_t spare_cap = *cap;
    int err = DPL_ECANCELED;

    pthread_mutex_lock(&a->lock);
    while (!a->stopping && (number >= a->next || e->state != READ)) {
        a->waiting++;
        pthread_cond_wait(&a->filled, &a->lock);
        a->waiting--;
    }
    if (!a->stopping) {
        err = e->err;
        if (err) *why = e->why;
        *buf = e->file;
        *cap = e->cap;
        *len = e->len;
        a->bytes -= e->cap;
        e->file = spare_cap <= KEEP ? spare : NULL;
        e->cap = spare_cap <= KEEP ? spare_cap : 0;
        a->bytes += e->cap;
        e->state = EMPTY;
        a->held--;
        pthread_cond_signal(&a->room);
    }
    pthread_mutex_unlock(&a->lock);
    if (err == DPL_ECANCELED) return dpl_fail(why, err, "canceled");
    if (spare_cap > KEEP) free(spare);
    return err;
}

/* --- the loader's thread --- */

void dpl_ahead_restart(dpl_ahead *a, uint64_t epoch, uint64_t index)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    for (uint64_t k = 0; k < a->entries; k++) {
        entry *e = &a->entry[k];

        e->stale = e->state == READING;
        if (e->state != READ) continue;
        e->state = EMPTY;
        a->held--;
    }
    a->next = 0;
    a->epoch = epoch;
    a->index = index;
    a->n = a->done = 0;
    if (dpl_epoch_exists(a->l, epoch))
        begin_batch(a, 1);
    else
        a->index = a->l->steps.count - 1; /* behind it comes nothing */
    pthread_cond_broadcast(&a->room);
    pthread_mutex_unlock(&a->lock);
}

void dpl_ahead_cancel(dpl_ahead *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stopping = 1;
    pthread_cond_broadcast(&a->room);
    pthread_cond_broadcast(&a->filled);
    pthread_mutex_unlock(&a->lock);
}

void dpl_ahead_count_get(const dpl_ahead *a, dpl_ahead_count *out)
{
    *out = (dpl_ahead_count){ 0, 0 };
    if (!a) return;
    out->read_ns = __atomic_load_n(&a->count.read_ns, __ATOMIC_RELAXED);
    out->bytes_read = __atomic_load_n(&a->count.bytes_read, __ATOMIC_RELAXED);
}

uint64_t dpl_ahead_bytes(const dpl_ahead *a)
{
    return a ? a->entries * KEEP : 0;
}

/* --- open and close --- */

static int init_sync(dpl_ahead *a)
{
    if (!pthread_mutex_init(&a->lock, NULL)) a->has_sync = 1;
    if (a->has_sync == 1 && !dpl_cond_init(&a->room)) a->has_sync = 2;
    if (a->has_sync == 2 && !dpl_cond_init(&a->filled)) a->has_sync = 3;
    return a->has_sync == 3 ? DPL_OK : DPL_ENOMEM;
}

static int start(dpl_ahead *a, int readers, dpl_text *why)
{
    for (int k = 0; k < readers; k++) {
        char name[24]; /* 15 bytes are used: readers are 1024 at most */

        snprintf(name, sizeof name, "dpl-read-%d", k);
        if (dpl_thread_start(&a->thread[k], name, run, a))
            return dpl_fail(why, DPL_ENOMEM,
                            "readers %d: only %d threads could be started; ask for fewer, or raise "
                            "the limit of threads (ulimit -u, cgroup pids.max)",
                            readers, k);
        a->started = k + 1;
    }
    return DPL_OK;
}

int dpl_ahead_open(dpl_ahead **out, const dpl_loader *l, dpl_text *why)
{
    const int readers = l->opt.readers;
    dpl_ahead *a;
    int err;

    *out = NULL;
    if (!readers) return DPL_OK;
    if (!(*out = a = dpl_calloc(1, sizeof *a))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    a->l = l;
    /* For each reader one under way and one to begin while the first waits for a worker, and a few
     * for the time until a thread that is woken runs. */
    a->entries = 2 * (uint64_t)readers + 2 * (uint64_t)l->workers + SPARE;
    a->entry = dpl_calloc((size_t)a->entries, sizeof *a->entry);
    a->thread = dpl_calloc((size_t)readers, sizeof *a->thread);
    if (!a->entry || !a->thread || init_sync(a))
        err = dpl_fail(why, DPL_ENOMEM, "no memory to read ahead");
    else {
        dpl_ahead_restart(a, l->base_epoch, l->base_index);
        err = start(a, readers, why);
    }
    if (err) dpl_ahead_close(out);
    return err;
}

void dpl_ahead_close(dpl_ahead **out)
{
    dpl_ahead *a = *out;

    if (!a) return;
    *out = NULL;
    if (a->has_sync == 3) dpl_ahead_cancel(a);
    for (int k = 0; k < a->started; k++) pthread_join(a->thread[k], NULL);
    for (uint64_t k = 0; a->entry && k < a->entries; k++) free(a->entry[k].file);
    if (a->has_sync > 2) pthread_cond_destroy(&a->filled);
    if (a->has_sync > 1) pthread_cond_destroy(&a->room);
    if (a->has_sync > 0) pthread_mutex_destroy(&a->lock);
    free(a->thread);
    free(a->entry);
    free(a);
}
