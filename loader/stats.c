/* SPDX-License-Identifier: Apache-2.0 */
/* What a loader tells about itself: facts of the opening, counters, errors. */
#include "loader/loader.h"

#include "base/clock.h"

#include <string.h>

static uint64_t load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

/* Add one worker's counters; a wait that goes on counts up to now. Lock is held. */
static void add_worker(dpl_stats *st, const dpl_worker *w, int64_t now)
{
    const dpl_counters *c = &w->count;
    const uint64_t waiting = w->wait == DPL_WAIT_NONE ? 0 : (uint64_t)(now - w->wait_since);

    st->prepared += load(&c->prepared);
    st->bytes_read += load(&c->bytes_read);
    st->pixels_decoded += load(&c->pixels_decoded);
    st->bytes_out += load(&c->bytes_out);
    st->read_s += seconds(load(&c->read_ns));
    st->decode_s += seconds(load(&c->decode_ns));
    st->augment_s += seconds(load(&c->augment_ns));
    st->read_wait_s += seconds(load(&c->read_wait_ns));
    st->upload_s += seconds(load(&c->upload_ns));
    st->starved_s += seconds(load(&c->starved_ns) + (w->wait == DPL_WAIT_STARVED ? waiting : 0));
    st->blocked_s += seconds(load(&c->blocked_ns) + (w->wait == DPL_WAIT_BLOCKED ? waiting : 0));
}

void dpl_stats_get(const dpl_loader *l, dpl_stats *out)
{
    dpl_loader *m = (dpl_loader *)(uintptr_t)l; /* the lock is taken, nothing is changed */
    const size_t size = out->size < sizeof *out ? out->size : sizeof *out;
    dpl_stats st = { .size = size };
    dpl_ahead_count ahead;

    if (!dpl_loader_foreign(l)) {
        pthread_mutex_lock(&m->lock);
        const int64_t now = dpl_now_ns();

        for (int k = 0; k < l->workers; k++) add_worker(&st, &l->worker[k], now);
        dpl_ahead_count_get(l->ahead, &ahead);
        st.read_s += seconds(ahead.read_ns);
        st.bytes_read += ahead.bytes_read;
        st.seconds = seconds((uint64_t)(now - l->opened_ns));
        st.batches = l->batches;
        st.images = l->images;
        st.bad = l->refused;
        st.warned = l->warned;
        st.wait_s = seconds((uint64_t)l->wait_ns);
        st.late = l->late;
        st.workers = l->workers;
        st.ready = l->ready_count;
        pthread_mutex_unlock(&m->lock);
    }
    memcpy(out, &st, size);
}

void dpl_info_get(const dpl_loader *l, dpl_info *out)
{
    const dpl_samples *s = l->samples;

    *out = (dpl_info){ .samples = s->count,
                       .batches = l->steps.count,
                       .dropped = l->steps.dropped,
                       .ignored_files = s->ignored_files,
                       .ignored_example = s->ignored_example,
                       .classes = s->classes,
                       .class_names = s->class_names,
                       .class_counts = s->class_counts,
                       .workers = l->workers,
                       .readers = l->opt.readers,
                       .read_ahead_bytes = dpl_ahead_bytes(l->ahead),
                       .prefetch = l->opt.prefetch,
                       .parts = l->lanes,
                       .slot_bytes = l->slot_bytes,
                       .scratch_bytes = dpl_prepare_scratch(l),
                       .index_bytes = s->index_bytes,
                       .index_use = s->index_use,
                       .index_text = s->index_text,
                       .devices = l->devices,
                       .devices_text = l->devices_text };
}
