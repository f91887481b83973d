/* SPDX-License-Identifier: Apache-2.0 */
/* The worker threads: claim the next place of the batch being filled, prepare it, and hand the batch
 * over when it was the last. Places are claimed in order from one counter, so that every worker is on
 * the oldest unfinished batch. */
#include "loader/loader.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>

void dpl_loader_fail(dpl_loader *l, int status, const dpl_text *why)
{
    if (l->failed) return;
    l->failed = status;
    l->fail_text = *why;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->ready);
}

/* Sleep until something changes; the time counts as kind. Lock is held. */
static void wait_for_work(dpl_worker *w, dpl_wait_kind kind)
{
    dpl_loader *l = w->loader;
    int64_t ns;

    w->wait = kind;
    w->wait_since = dpl_now_ns();
    pthread_cond_wait(&l->work, &l->lock);
    ns = dpl_now_ns() - w->wait_since;
    w->wait = DPL_WAIT_NONE;
    if (kind == DPL_WAIT_STARVED)
        __atomic_fetch_add(&w->count.starved_ns, (uint64_t)ns, __ATOMIC_RELAXED);
    if (kind == DPL_WAIT_BLOCKED)
        __atomic_fetch_add(&w->count.blocked_ns, (uint64_t)ns, __ATOMIC_RELAXED);
}

static void set_busy(dpl_worker *w, int busy)
{
    dpl_loader *l = w->loader;

    if (w->busy == busy) return;
    w->busy = busy;
    l->busy += busy ? 1 : -1;
    if (!l->busy) pthread_cond_signal(&l->idle);
}

/* The halo is one more place, behind the last part's. */
static void plan_mix(const dpl_loader *l, dpl_slot *s)
{
    dpl_slot_part *halo = &s->part[l->lanes];

    halo->first = s->total;
    halo->planned = dpl_mix_plan_batch(l, s->epoch, s->index, &s->mix);
    s->places = s->left = s->total + halo->planned;
}

/* Plan a slot as batch `index` of `epoch`. The slot is this worker's alone. */
static int plan_slot(dpl_loader *l, dpl_slot *s, uint64_t *share)
{
    const uint64_t begin = s->index * l->steps.batch, rest = l->steps.samples - begin;
    uint64_t n;
    int at = 0;

    s->planned = rest < l->steps.batch ? rest : l->steps.batch;
    dpl_steps_rank(&l->steps, s->index, l->opt.rank, l->opt.world, &s->first, &n);
    dpl_split(n, l->weight, l->lanes, share);
    s->total = (int)n;
    s->parts_left = 0;
    for (int p = 0; p < l->lanes; p++) {
        s->part[p].first = at;
        s->part[p].planned = s->part[p].left = (int)share[p];
        at += (int)share[p];
        s->parts_left += share[p] > 0;
        if (!share[p]) dpl_slot_compact(l, s, p);
    }
    dpl_permutation_init(&s->order, l->samples->count, l->opt.seed, s->epoch);
    plan_mix(l, s);
    return dpl_slot_settle(s, l->lanes); /* until then the consumer's queued work may read it */
}

/* Lock is held. */
static void mark_ready(dpl_loader *l, dpl_slot *s)
{
    s->state = DPL_SLOT_READY;
    l->ready_count++;
    pthread_cond_signal(&l->ready);
}

/* Make the first free slot the batch that comes next. Lock is held, and dropped on the way. */
static void open_slot(dpl_worker *w)
{
    dpl_loader *l = w->loader;
    dpl_slot *s = l->free_slots;
    uint64_t share[256]; /* as many parts as a device list can have */
    const int64_t since = dpl_now_ns();
    int err;

    if (!(l->free_slots = s->next_free)) l->free_tail = &l->free_slots;
    dpl_position_of(l, l->claim_seq, &s->epoch, &s->index);
    s->state = DPL_SLOT_FILLING;
    l->opening = 1;
    set_busy(w, 1);
    pthread_mutex_unlock(&l->lock);
    err = plan_slot(l, s, share);
    __atomic_fetch_add(&w->count.blocked_ns, (uint64_t)(dpl_now_ns() - since), __ATOMIC_RELAXED);
    pthread_mutex_lock(&l->lock);
    l->opening = 0;
    if (err) {
        dpl_text why;

        dpl_fail(&why, err, "a device failed in the work that used an earlier batch: %s",
                 dpl_lanes_failure(l));
        dpl_loader_fail(l, err, &why);
        dpl_slot_recycle(l, s);
        return;
    }
    l->in_flight[l->claim_seq++ % (uint64_t)l->slots] = s;
    s->number = l->claim_number;
    l->claim_number += (uint64_t)s->places;
    if (s->total) {
        l->filling = s;
        l->next_place = l->next_part = 0;
    } else { /* a last batch too small for this rank */
        mark_ready(l, s);
    }
    pthread_cond_broadcast(&l->work);
}

/* Is there a batch to begin after those that have a slot? Lock is held. */
static int may_begin(const dpl_loader *l)
{
    uint64_t epoch, index;

    dpl_position_of(l, l->claim_seq, &epoch, &index);
    return l->claim_seq < l->claim_end && dpl_epoch_exists(l, epoch);
}

/* Lock is held, and dropped on the way. */
static void run_task(dpl_worker *w)
{
    dpl_loader *l = w->loader;
    const dpl_task task = l->task;

    l->task.next++;
    set_busy(w, 1);
    pthread_mutex_unlock(&l->lock);
    task.run(w, task.arg, task.next);
    pthread_mutex_lock(&l->lock);
    set_busy(w, 0);
}

/* Wait for the next place. Lock is held. @return its slot, or NULL to end */
static dpl_slot *claim(dpl_worker *w, int *p, int *place)
{
    dpl_loader *l = w->loader;
    dpl_slot *s;

    set_busy(w, 0);
    while (!l->stopping) {
        if (l->task.next < l->task.count) {
            run_task(w);
        } else if (l->paused || l->failed) {
            wait_for_work(w, DPL_WAIT_NONE);
        } else if ((s = l->filling)) {
            while (l->next_place >= s->part[l->next_part].first + s->part[l->next_part].planned)
                l->next_part++;
            *p = l->next_part;
            *place = l->next_place++;
            if (l->next_place == s->places) l->filling = NULL;
            set_busy(w, 1);
            return s;
        } else if (l->opening) {
            wait_for_work(w, DPL_WAIT_BLOCKED);
        } else if (!may_begin(l)) {
            wait_for_work(w, DPL_WAIT_STARVED);
        } else if (!l->free_slots) {
            wait_for_work(w, DPL_WAIT_BLOCKED);
        } else {
            open_slot(w);
            set_busy(w, 0);
        }
    }
    return NULL;
}

/* Note what a sample had to say. @return DPL_OK, or what ends the loader */
static int note(dpl_worker *w, dpl_slot *s, int p, int place, int err, int warned, dpl_text *why)
{
    dpl_loader *l = w->loader;
    dpl_slot_part *part = &s->part[p];
    const int refused = err == DPL_EDATA || err == DPL_EIO;
    const uint64_t id = part->ids[place - part->first];
    const char *path;

    part->bad[place - part->first] = (uint8_t)refused;
    if (err && !refused) return err;
    if (!refused && !warned) return DPL_OK;
    if (p == l->lanes) return DPL_OK; /* the halo: the rank that delivers it names it */
    if (!(path = dpl_sample_name(l, id))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    pthread_mutex_lock(&l->lock);
    err = dpl_issue_add(l, s, place, refused ? DPL_BAD_REFUSED : DPL_BAD_WARNED, id, path, why->s);
    pthread_mutex_unlock(&l->lock);
    return err ? dpl_fail(why, err, "no memory for the list of bad samples") : DPL_OK;
}

/* Every place of a part is finished, and mixed: on to its device. */
static int hand_over(dpl_worker *w, dpl_slot *s, int p, dpl_text *why)
{
    dpl_loader *l = w->loader;
    const int64_t since = dpl_now_ns();
    int err;

    dpl_slot_compact(l, s, p);
    dpl_trace_push(l->trace, "h2d", s->index);
    err = dpl_slot_upload(l, s, p);
    dpl_trace_pop(l->trace);
    if (err)
        return dpl_fail(why, err, "device %s: a batch could not be copied: %s",
                        dpl_device_name(l->lane[p].device), dpl_device_failure(l->lane[p].device));
    __atomic_fetch_add(&w->count.upload_ns, (uint64_t)(dpl_now_ns() - since), __ATOMIC_RELAXED);
    return DPL_OK;
}

/* Mixing reads across parts: one worker does it, and hands all of them over. */
static int finish_mixed(dpl_worker *w, dpl_slot *s, dpl_text *why)
{
    const dpl_loader *l = w->loader;
    const int64_t since = dpl_now_ns();
    int err = DPL_OK;

    dpl_mix_slot(l, s);
    __atomic_fetch_add(&w->count.augment_ns, (uint64_t)(dpl_now_ns() - since), __ATOMIC_RELAXED);
    for (int p = 0; p < l->lanes && !err; p++)
        if (s->part[p].planned) err = hand_over(w, s, p, why);
    return err;
}

/* The worker that finishes the last place of a part, or of a batch that is mixed, owns it: every other
 * worker's writes are visible to it through `left`. */
static int finish(dpl_worker *w, dpl_slot *s, int p, dpl_text *why)
{
    dpl_loader *l = w->loader;
    const int mixed = s->mix.kind != DPL_MIX_NONE;
    int err;

    if (__atomic_sub_fetch(mixed ? &s->left : &s->part[p].left, 1, __ATOMIC_ACQ_REL)) return DPL_OK;
    if ((err = mixed ? finish_mixed(w, s, why) : hand_over(w, s, p, why))) return err;
    pthread_mutex_lock(&l->lock);
    s->parts_left -= mixed ? s->parts_left : 1;
    if (!s->parts_left) mark_ready(l, s);
    pthread_mutex_unlock(&l->lock);
    return DPL_OK;
}

static void *run(void *arg)
{
    dpl_worker *w = arg;
    dpl_loader *l = w->loader;
    dpl_slot *s;
    int p, place;

    pthread_mutex_lock(&l->lock);
    while ((s = claim(w, &p, &place))) {
        dpl_text why = { "" };
        int warned, err;

        pthread_mutex_unlock(&l->lock);
        err = dpl_prepare(w, s, p, place, &warned, &why);
        if (!(err = note(w, s, p, place, err, warned, &why))) err = finish(w, s, p, &why);
        dpl_prepare_trim(w);
        pthread_mutex_lock(&l->lock);
        if (err) dpl_loader_fail(l, err, &why);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int dpl_workers_count(const dpl_options *opt)
{
    const int cpus = dpl_cpus_usable(NULL);

    return opt->workers ? opt->workers : cpus < 1024 ? cpus : 1024;
}

int dpl_workers_start(dpl_loader *l, dpl_text *why)
{
    const int n = l->workers;
    int err;

    if (!(l->worker = dpl_alloc_aligned((size_t)n, sizeof *l->worker)))
        return dpl_fail(why, DPL_ENOMEM, "no memory for %d workers", n);
    for (int k = 0; k < n; k++) l->worker[k] = (dpl_worker){ .loader = l, .index = k };
    for (int k = 0; k < n; k++)
        if ((err = dpl_prepare_init(&l->worker[k], why))) return err;
    for (int k = 0; k < n; k++) {
        char name[24]; /* 15 bytes are used: workers are 1024 at most */

        snprintf(name, sizeof name, "dpl-work-%d", k);
        if (dpl_thread_start(&l->worker[k].thread, name, run, &l->worker[k]))
            return dpl_fail(why, DPL_ENOMEM,
                            "workers %d: only %d threads could be started; ask for fewer, or raise "
                            "the limit of threads (ulimit -u, cgroup pids.max)",
                            n, k);
        l->worker[k].started = 1;
    }
    return DPL_OK;
}

void dpl_workers_stop(dpl_loader *l)
{
    if (!l->worker) return;
    pthread_mutex_lock(&l->lock);
    l->stopping = 1;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < l->workers; k++)
        if (l->worker[k].started) pthread_join(l->worker[k].thread, NULL);
    for (int k = 0; k < l->workers; k++) dpl_prepare_fini(&l->worker[k]);
    free(l->worker);
    l->worker = NULL;
}
