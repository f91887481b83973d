/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's side: next, release, and moving to another position. */
#include "loader/loader.h"

#include "base/clock.h"
#include "base/thread.h"
#include "loader/options.h"

#include <errno.h>
#include <string.h>

enum { LATE_NS = 50000 };

int dpl_loader_check_process(dpl_loader *l)
{
    if (!dpl_loader_foreign(l)) return DPL_OK;
    return dpl_fail(&l->error, DPL_EFORK,
                    "the loader was opened by process %ld; open one in each process", (long)l->pid);
}

/* The finished batch that comes next, or NULL. Lock is held. */
static dpl_slot *next_ready(const dpl_loader *l)
{
    dpl_slot *s;

    if (l->deliver_seq >= l->claim_seq) return NULL;
    s = l->in_flight[l->deliver_seq % (uint64_t)l->slots];
    return s->state == DPL_SLOT_READY ? s : NULL;
}

/* Is there an answer other than a batch? Lock is held. */
static int end_status(dpl_loader *l)
{
    uint64_t epoch, index;

    if (l->canceled) return dpl_fail(&l->error, DPL_ECANCELED, "canceled");
    dpl_position_of(l, l->deliver_seq, &epoch, &index);
    if (l->at_eof || !dpl_epoch_exists(l, epoch)) {
        l->at_eof = 0;
        return dpl_fail(&l->error, DPL_EOF, "end of the epoch");
    }
    if (l->failed && (l->ended || !next_ready(l))) {
        l->error = l->fail_text;
        return l->failed;
    }
    if (l->held == l->slots)
        return dpl_fail(&l->error, DPL_EINVAL,
                        "all %d batch slots are held by the caller: release one before the next "
                        "dpl_next(), or raise prefetch",
                        l->slots);
    return DPL_OK;
}

/* Lock is held. */
static int wait_ready(dpl_loader *l, int timeout_ms)
{
    const int64_t start = dpl_now_ns();
    const int64_t until = timeout_ms < 0 ? -1 : start + (int64_t)timeout_ms * 1000000;
    int err, waited = 0;
    int64_t ns;

    while (!(err = end_status(l)) && !next_ready(l)) {
        waited = 1;
        if (!timeout_ms || dpl_cond_wait_until(&l->ready, &l->lock, until) == ETIMEDOUT) {
            if ((err = end_status(l)) || next_ready(l)) break;
            err = dpl_fail(&l->error, DPL_ETIMEOUT, "no batch was ready within %d ms", timeout_ms);
            break;
        }
    }
    if (!waited) return err;
    ns = dpl_now_ns() - start;
    l->wait_ns += ns;
    l->late += ns > LATE_NS;
    return err;
}

/* Hand out the batch that is ready. Lock is held. */
static int take_ready(dpl_loader *l, dpl_batch *out)
{
    dpl_slot *s = next_ready(l);
    const int err = dpl_issues_settle(l, s, &l->error);

    if (err) {
        dpl_loader_fail(l, err, &l->error);
        l->ended = 1;
        return err;
    }
    s->state = DPL_SLOT_HELD;
    l->held++;
    l->ready_count--;
    l->deliver_seq++;
    l->at_eof = s->index + 1 == l->steps.count;
    *out = (dpl_batch){ .epoch = s->epoch,
                        .index = s->index,
                        .first = s->index * l->steps.batch,
                        .planned = (int)s->planned,
                        .parts = l->lanes,
                        .part = s->view,
                        .dtype = l->opt.dtype,
                        .layout = l->opt.layout,
                        .width = l->opt.width,
                        .height = l->opt.height,
                        .slot = s };
    for (int p = 0; p < l->lanes; p++) out->n += s->view[p].n;
    l->batches++;
    l->images += (uint64_t)out->n;
    return DPL_OK;
}

/* Make the copies to the devices visible: to the stream of each part, or to the host. */
static int wait_uploads(const dpl_loader *l, const dpl_batch *b, void *const *streams)
{
    const dpl_slot *s = b->slot;
    int err = DPL_OK;

    for (int p = 0; p < l->lanes && !err; p++) {
        if (!s->part[p].uploaded || !b->part[p].n) continue;
        err = streams && streams[p] ? dpl_native_wait(streams[p], s->part[p].uploaded)
                                    : dpl_event_sync(s->part[p].uploaded);
    }
    return err;
}

/* The next batch in order, or what there is instead; its copies may be under way. */
static int next(dpl_loader *l, dpl_batch *out, int timeout_ms)
{
    uint64_t epoch, index;
    int err;

    dpl_position_of(l, l->deliver_seq, &epoch, &index); /* only the caller's calls change it */
    dpl_trace_push(l->trace, "batch", index);
    pthread_mutex_lock(&l->lock);
    if (!(err = wait_ready(l, timeout_ms))) err = take_ready(l, out);
    pthread_mutex_unlock(&l->lock);
    dpl_trace_pop(l->trace);
    return err;
}

int dpl_next_on(dpl_loader *l, dpl_batch *out, void *const *streams, int timeout_ms)
{
    int err;

    if (out) memset(out, 0, sizeof *out);
    if (!l) return DPL_EINVAL;
    if ((err = dpl_loader_check_process(l))) return err;
    if (!out) return dpl_fail(&l->error, DPL_EINVAL, "dpl_next: the place for the batch is NULL");
    err = next(l, out, timeout_ms);
    if (err || !(err = wait_uploads(l, out, streams))) return err;
    dpl_fail(&l->error, err, "a device failed while batch %llu was copied to it: %s",
             (unsigned long long)out->index, dpl_lanes_failure(l));
    pthread_mutex_lock(&l->lock);
    dpl_loader_fail(l, err, &l->error);
    pthread_mutex_unlock(&l->lock);
    dpl_release(l, out, NULL);
    return err;
}

int dpl_next(dpl_loader *l, dpl_batch *out, int timeout_ms)
{
    return dpl_next_on(l, out, NULL, timeout_ms);
}

/* Mark the point of the consumer's stream after which the part may be rewritten. */
static int mark_release(const dpl_lane *lane, dpl_slot_part *part, void *stream)
{
    const int err = dpl_native_record(part->released, stream);

    return err ? dpl_native_sync(lane->device, stream) : DPL_OK; /* no event: wait for the stream */
}

/* Is b still this loader's slot's batch? A copy of a batch that was released before is not. */
static int is_held(dpl_loader *l, const dpl_batch *b)
{
    const dpl_slot *s = b->slot;
    int held;

    pthread_mutex_lock(&l->lock);
    held = s->state == DPL_SLOT_HELD && s->epoch == b->epoch && s->index == b->index;
    pthread_mutex_unlock(&l->lock);
    return held;
}

void dpl_release(dpl_loader *l, dpl_batch *b, void *const *streams)
{
    dpl_batch was;
    dpl_slot *s;
    int err = DPL_OK;

    if (!l || !b) return;
    was = *b;
    memset(b, 0, sizeof *b);
    if (!(s = was.slot) || dpl_loader_foreign(l) || !is_held(l, &was)) return;
    for (int p = 0; streams && p < l->lanes; p++)
        if (streams[p] && mark_release(&l->lane[p], &s->part[p], streams[p])) err = DPL_EDEVICE;
    pthread_mutex_lock(&l->lock);
    if (err) {
        dpl_text why;

        dpl_fail(&why, err, "a device failed in the work on batch %llu: %s",
                 (unsigned long long)was.index, dpl_lanes_failure(l));
        dpl_loader_fail(l, err, &why);
    }
    l->held--;
    dpl_slot_recycle(l, s);
    pthread_mutex_unlock(&l->lock);
}

/* --- position --- */

void dpl_loader_pause(dpl_loader *l)
{
    l->paused = 1;
    while (l->busy) pthread_cond_wait(&l->idle, &l->lock);
}

void dpl_loader_restart(dpl_loader *l, uint64_t epoch, uint64_t index)
{
    dpl_loader_pause(l);
    for (uint64_t q = l->deliver_seq; q < l->claim_seq; q++)
        dpl_slot_recycle(l, l->in_flight[q % (uint64_t)l->slots]);
    l->filling = NULL;
    l->ready_count = 0;
    l->base_epoch = epoch;
    l->base_index = index;
    l->claim_seq = l->deliver_seq = l->claim_number = 0;
    l->claim_end = UINT64_MAX;
    l->paused = 0;
    dpl_ahead_restart(l->ahead, epoch, index);
    pthread_cond_broadcast(&l->work);
}

int dpl_loader_check_idle(dpl_loader *l)
{
    if (l->canceled) return dpl_fail(&l->error, DPL_ECANCELED, "canceled");
    if (l->held)
        return dpl_fail(&l->error, DPL_EINVAL, "%d batches are still held: release them first",
                        l->held);
    if (!l->failed) return DPL_OK;
    l->error = l->fail_text;
    return l->failed;
}

/* Go to (epoch, index) unless that comes next anyway. Lock is held. */
static int move_to(dpl_loader *l, uint64_t epoch, uint64_t index)
{
    const int err = dpl_loader_check_idle(l);
    uint64_t at_epoch, at_index;

    if (err) return err;
    dpl_position_of(l, l->deliver_seq, &at_epoch, &at_index);
    if (at_epoch != epoch || at_index != index) dpl_loader_restart(l, epoch, index);
    l->at_eof = 0;
    return DPL_OK;
}

static int check_epoch(dpl_loader *l, uint64_t epoch)
{
    const uint64_t most = l->opt.epochs ? l->opt.epochs : DPL_EPOCHS_MAX;

    if (epoch <= most) return DPL_OK;
    return dpl_fail(&l->error, DPL_EINVAL, "epoch %llu: expected 0..%llu",
                    (unsigned long long)epoch, (unsigned long long)most);
}

int dpl_set_epoch(dpl_loader *l, uint64_t epoch)
{
    int err;

    if ((err = dpl_loader_check_process(l)) || (err = check_epoch(l, epoch))) return err;
    pthread_mutex_lock(&l->lock);
    err = move_to(l, epoch, 0);
    pthread_mutex_unlock(&l->lock);
    return err;
}

/* Position after the last batch of an epoch. */
static uint64_t end_of_epoch(const dpl_loader *l)
{
    return l->steps.samples - l->steps.dropped;
}

void dpl_state_get(const dpl_loader *l, dpl_state *out)
{
    dpl_loader *m = (dpl_loader *)(uintptr_t)l; /* the lock is taken, nothing is changed */
    uint64_t index = 0;

    *out = (dpl_state){ .count = l->samples->count, .seed = l->opt.seed };
    if (dpl_loader_foreign(l)) return;
    pthread_mutex_lock(&m->lock);
    dpl_position_of(l, l->deliver_seq, &out->epoch, &index);
    out->sample = index * l->steps.batch;
    if (l->at_eof) { /* DPL_EOF is still to come: the position is the end of the epoch before */
        out->epoch--;
        out->sample = end_of_epoch(l);
    }
    pthread_mutex_unlock(&m->lock);
}

static int check_state(dpl_loader *l, const dpl_state *st)
{
    const uint64_t end = end_of_epoch(l);

    if (st->count != l->samples->count)
        return dpl_fail(&l->error, DPL_EINVAL,
                        "the state is of another data set: %llu samples, here are %llu",
                        (unsigned long long)st->count, (unsigned long long)l->samples->count);
    if (st->seed != l->opt.seed)
        return dpl_fail(&l->error, DPL_EINVAL, "the state has seed %llu, this loader has %llu",
                        (unsigned long long)st->seed, (unsigned long long)l->opt.seed);
    if (st->sample != end && (st->sample > end || st->sample % l->steps.batch))
        return dpl_fail(&l->error, DPL_EINVAL,
                        "sample %llu of the state is not where a batch of %llu begins (epoch of "
                        "%llu samples)",
                        (unsigned long long)st->sample, (unsigned long long)l->steps.batch,
                        (unsigned long long)end);
    return check_epoch(l,
                       st->epoch < DPL_EPOCHS_MAX && st->sample == end ? st->epoch + 1 : st->epoch);
}

int dpl_state_set(dpl_loader *l, const dpl_state *st)
{
    int err, at_end;

    if ((err = dpl_loader_check_process(l)) || (err = check_state(l, st))) return err;
    at_end = st->sample == end_of_epoch(l);
    pthread_mutex_lock(&l->lock);
    err =
        at_end ? move_to(l, st->epoch + 1, 0) : move_to(l, st->epoch, st->sample / l->steps.batch);
    if (!err) l->at_eof = at_end;
    pthread_mutex_unlock(&l->lock);
    return err;
}
