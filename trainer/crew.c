/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that carry out orders; see crew.h. */
#include "trainer/crew.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct member {
    dpt_crew *crew;
    int index;
    pthread_t thread;
    int err; /* of the last order; the member's during it, the caller's after */
    dpl_text why;
} member;

struct dpt_crew {
    const char *name;
    int members, started; /* started: threads to be joined */
    member *member;       /* [members] */
    pthread_mutex_t lock; /* guards round, order, arg, busy */
    pthread_cond_t ordered, done;
    unsigned round;        /* number of orders given */
    dpt_crew_order *order; /* NULL = end */
    void *arg;
    int busy; /* members that have not finished the order */
};

static void *member_main(void *arg)
{
    member *m = arg;
    dpt_crew *c = m->crew;
    unsigned seen = 0;
    dpt_crew_order *order;

    do {
        void *order_arg;

        pthread_mutex_lock(&c->lock);
        while (c->round == seen) pthread_cond_wait(&c->ordered, &c->lock);
        seen = c->round;
        order = c->order;
        order_arg = c->arg;
        pthread_mutex_unlock(&c->lock);

        m->why.s[0] = 0;
        m->err = order ? order(order_arg, m->index, &m->why) : DPL_OK;

        pthread_mutex_lock(&c->lock);
        if (--c->busy == 0) pthread_cond_signal(&c->done);
        pthread_mutex_unlock(&c->lock);
    } while (order);
    return NULL;
}

static void give(dpt_crew *c, dpt_crew_order *order, void *arg)
{
    pthread_mutex_lock(&c->lock);
    c->order = order;
    c->arg = arg;
    c->busy = c->started;
    c->round++;
    pthread_cond_broadcast(&c->ordered);
    while (c->busy > 0) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

int dpt_crew_do(dpt_crew *c, dpt_crew_order *order, void *arg, dpl_text *why)
{
    const member *first = NULL;

    assert(order);
    give(c, order, arg);
    for (int i = 0; i < c->members; i++) {
        const member *m = &c->member[i];
        if (m->err && (!first || m->err == DPL_ECANCELED)) first = m;
        if (m->err == DPL_ECANCELED) break;
    }
    if (!first) return DPL_OK;
    return dpl_fail(why, first->err, "%s %d: %s", c->name, first->index,
                    first->why.s[0] ? first->why.s : dpl_status_text(first->err));
}

static int start_threads(dpt_crew *c, dpl_text *why)
{
    for (int i = 0; i < c->members; i++) {
        char name[24]; /* cut to what the system takes */

        c->member[i].crew = c;
        c->member[i].index = i;
        snprintf(name, sizeof name, "%.12s%d", c->name, i);
        if (dpl_thread_start(&c->member[i].thread, name, member_main, &c->member[i]))
            return dpl_fail(why, DPL_ENOMEM, "%s %d of %d: its thread cannot be started", c->name,
                            i, c->members);
        c->started++;
    }
    return DPL_OK;
}

int dpt_crew_create(dpt_crew **out, int members, const char *name, dpl_text *why)
{
    dpt_crew *c = dpl_calloc(1, sizeof *c);
    int err;

    *out = NULL;
    assert(members > 0);
    if (!c) return dpl_fail(why, DPL_ENOMEM, "out of memory for %d threads", members);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ordered, NULL);
    pthread_cond_init(&c->done, NULL);
    c->name = name;
    c->members = members;
    if (!(c->member = dpl_calloc((size_t)members, sizeof *c->member))) {
        err = dpl_fail(why, DPL_ENOMEM, "out of memory for %d threads", members);
        goto done;
    }
    if ((err = start_threads(c, why))) goto done;
    *out = c;
    c = NULL; /* now the caller's */
done:
    dpt_crew_destroy(&c);
    return err;
}

void dpt_crew_destroy(dpt_crew **c)
{
    dpt_crew *x = *c;

    if (!x) return;
    give(x, NULL, NULL);
    for (int i = 0; i < x->started; i++) pthread_join(x->member[i].thread, NULL);
    pthread_cond_destroy(&x->done);
    pthread_cond_destroy(&x->ordered);
    pthread_mutex_destroy(&x->lock);
    free(x->member);
    free(x);
    *c = NULL;
}
