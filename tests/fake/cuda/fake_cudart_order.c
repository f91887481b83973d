/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA runtime: is every access ordered after those it must not meet? Streams run in
 * order, and a wait means the record made before it, so what is ordered is known when a call is
 * made: nothing here depends on when work runs. An access stays on the list of its memory until the
 * host has waited for it: what the host has seen comes before whatever is queued later. */
#include "tests/fake/cuda/fake_cudart_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_access {
    struct fake_access *next;
    size_t from, to; /* bytes of the block */
    int write, actor;
    unsigned tick;
    char what[48];
} fake_access;

fake_clock fake_host_clock;
static int actors = 1;
static fake_faults faults;

int fake_actor(void)
{
    return actors++;
}

static void grow(fake_clock *c, int n)
{
    if (c->n >= n) return;
    if (!(c->t = realloc(c->t, (size_t)n * sizeof *c->t))) fake_die("no memory for a clock");
    memset(c->t + c->n, 0, (size_t)(n - c->n) * sizeof *c->t);
    c->n = n;
}

void fake_clock_join(fake_clock *into, const fake_clock *from)
{
    grow(into, from->n);
    for (int i = 0; i < from->n; i++)
        if (from->t[i] > into->t[i]) into->t[i] = from->t[i];
}

void fake_clock_tick(fake_clock *c, int actor)
{
    grow(c, actor + 1);
    c->t[actor]++;
}

void fake_clock_end(fake_clock *c)
{
    free(c->t);
    *c = (fake_clock){ 0 };
}

static int has_seen(const fake_clock *c, const fake_access *a)
{
    return a->actor < c->n && c->t[a->actor] >= a->tick;
}

static void name(char out[64], int actor, const char *what)
{
    if (actor) {
        snprintf(out, 64, "%s (stream %d)", what, actor);
    } else {
        snprintf(out, 64, "%s (host)", what);
    }
}

static void report(const fake_block *b, const fake_access *old, const fake_access *now)
{
    char a[64], c[64];

    name(a, old->actor, old->what);
    name(c, now->actor, now->what);
    fake_fault(&faults,
               "%s [%zu..%zu) of %zu bytes: \"%s\" %s and is not ordered after \"%s\", which %s",
               b->where == FAKE_DEVICE ? "device memory" : "pinned memory", now->from, now->to,
               b->bytes, c, now->write ? "writes" : "reads", a, old->write ? "writes" : "reads");
}

void fake_access_now(int actor, const fake_clock *clock, const void *p, size_t bytes, int write,
                     const char *what)
{
    fake_block *b = bytes ? fake_block_of(p) : NULL;
    fake_access now = { .write = write, .actor = actor };

    if (!b) return; /* pageable: read or written during the call */
    now.from = (size_t)((const char *)p - b->p);
    now.to = now.from + bytes;
    now.tick = actor ? clock->t[actor] : 0;
    snprintf(now.what, sizeof now.what, "%s", what);
    for (fake_access **at = &b->accesses; *at;) {
        fake_access *a = *at;
        const int seen = has_seen(clock, a);

        if (!seen && (write || a->write) && a->from < now.to && now.from < a->to)
            report(b, a, &now);
        if (has_seen(&fake_host_clock, a) || /* or replaced: who is ordered after now is after a */
            (seen && actor && write >= a->write && now.from <= a->from && a->to <= now.to)) {
            *at = a->next;
            free(a);
        } else {
            at = &a->next;
        }
    }
    if (!actor) return; /* whatever is queued later comes after what the host did */
    fake_access *kept = malloc(sizeof *kept);
    if (!kept) fake_die("no memory for an access");
    *kept = now;
    kept->next = b->accesses;
    b->accesses = kept;
}

void fake_accesses_end(fake_block *b)
{
    while (b->accesses) {
        fake_access *a = b->accesses;

        b->accesses = a->next;
        free(a);
    }
}

void fake_host_uses(const void *p, size_t bytes, int write, const char *what)
{
    fake_lock();
    fake_access_now(0, &fake_host_clock, p, bytes, write, what);
    fake_unlock();
}

void fake_order_reset(void)
{
    faults = (fake_faults){ 0 };
}

int fake_order_faults(void)
{
    int n;

    fake_lock();
    n = faults.n;
    fake_unlock();
    return n;
}

const char *fake_order_fault(void)
{
    return faults.first;
}
