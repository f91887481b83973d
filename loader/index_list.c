/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a tree into an index: threads take one class folder after the other; see index.h. */
#include "loader/index.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"
#include "loader/source_walk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64 };

typedef struct listing {
    dpl_index *index;
    dpl_walk *walk;       /* [index->classes] what was met, by the thread that took the class */
    uint64_t next;        /* class to take; atomic */
    uint64_t failed;      /* first class that failed so far, or `classes`; atomic */
    pthread_mutex_t lock; /* guards err, why and the writing of failed */
    int err;
    dpl_text *why;
} listing;

static void fail_at(listing *l, uint64_t k, int err, const dpl_text *why)
{
    pthread_mutex_lock(&l->lock);
    if (k < __atomic_load_n(&l->failed, __ATOMIC_RELAXED)) {
        __atomic_store_n(&l->failed, k, __ATOMIC_RELAXED);
        l->err = err;
        if (l->why) *l->why = *why;
    }
    pthread_mutex_unlock(&l->lock);
}

/* Classes are taken in order, so those before the first one that failed are all looked at. */
static void *list_classes(void *arg)
{
    listing *l = arg;
    dpl_index *x = l->index;

    for (;;) {
        const uint64_t k = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        const char *title;
        dpl_text why = { "" };
        int err;

        if (k >= __atomic_load_n(&l->failed, __ATOMIC_RELAXED)) return NULL;
        title = dpl_name_at(&x->titles, k);
        err = dpl_walk_class(&l->walk[k], title, &x->lists[k], &why);
        if (err == DPL_ENOTSUP)
            dpl_fail(&why, err, "%s/%s: more than 4 GiB of names in one class", l->walk[k].root,
                     title);
        if (err) fail_at(l, k, err, &why);
        dpl_name_list_sort(&x->lists[k]);
        dpl_name_list_trim(&x->lists[k]);
    }
}

static int list_by_threads(listing *l, int threads)
{
    pthread_t thread[THREADS_MAX];
    const uint64_t classes = l->index->classes;
    int started = 0;

    if (threads > THREADS_MAX) threads = THREADS_MAX;
    if ((uint64_t)threads > classes) threads = (int)classes;
    /* This thread is one of them: a system that gives no other still lists everything. */
    while (started < threads - 1 &&
           !dpl_thread_start(&thread[started], "dpl-list", list_classes, l))
        started++;
    list_classes(l);
    for (int t = 0; t < started; t++) pthread_join(thread[t], NULL);
    return l->err;
}

static int take_stamps(dpl_index *x, const dpl_stamps *s)
{
    int err = DPL_OK;

    for (uint64_t k = 0; !err && k < s->path.count; k++)
        err = dpl_stamps_add(&x->stamps, dpl_name_at(&s->path, k), &s->stamp[k]);
    return err;
}

/* What was met besides samples, in the order of classes. */
static int take_walk(dpl_index *x, dpl_walk *w)
{
    x->ignored += w->ignored;
    x->loose_pictures += w->loose_pictures;
    if (!x->example) {
        x->example = w->ignored_example;
        w->ignored_example = NULL;
    }
    return take_stamps(x, &w->stamps);
}

static void walk_fini(dpl_walk *w)
{
    free(w->ignored_example);
    dpl_stamps_free(&w->stamps);
}

static int list_all(dpl_index *x, const dpl_walk *root, int threads, dpl_text *why)
{
    listing l = { .index = x, .failed = x->classes, .why = why };
    int err = DPL_ENOMEM;

    x->of = dpl_calloc((size_t)x->classes, sizeof *x->of);
    x->lists = dpl_calloc((size_t)x->classes, sizeof *x->lists);
    l.walk = dpl_calloc((size_t)x->classes, sizeof *l.walk);
    if (!x->of || !x->lists || !l.walk || pthread_mutex_init(&l.lock, NULL)) {
        free(l.walk);
        return err;
    }
    for (uint64_t k = 0; k < x->classes; k++)
        l.walk[k] =
            (dpl_walk){ .root = root->root, .root_fd = root->root_fd, .stamped = root->stamped };
    err = list_by_threads(&l, threads);
    for (uint64_t k = 0; k < x->classes; k++) {
        const dpl_name_list *names = &x->lists[k];

        if (!err) err = take_walk(x, &l.walk[k]);
        walk_fini(&l.walk[k]);
        x->of[k] = (dpl_index_class){ dpl_name_at(&x->titles, k), names->block, names->offset,
                                      names->count, names->block_len };
        x->samples += names->count;
        x->bytes += sizeof *x->of + sizeof *names + dpl_name_list_bytes(names);
    }
    pthread_mutex_destroy(&l.lock);
    free(l.walk);
    return err;
}

int dpl_index_list(dpl_index *x, int root_fd, const char *root, int threads, int stamped,
                   dpl_text *why)
{
    dpl_walk walk = { .root = root, .root_fd = root_fd, .stamped = stamped };
    struct timespec now;
    int err;

    memset(x, 0, sizeof *x);
    clock_gettime(CLOCK_REALTIME, &now);
    x->listed_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    err = dpl_walk_root(&walk, &x->titles, why);
    dpl_name_list_sort(&x->titles);
    dpl_name_list_trim(&x->titles);
    x->classes = x->titles.count;
    if (!err) err = take_walk(x, &walk);
    if (!err && x->classes) err = list_all(x, &walk, threads, why);
    x->ignored_example = x->example;
    x->bytes += dpl_name_list_bytes(&x->titles);
    walk_fini(&walk);
    if (err == DPL_ENOMEM) dpl_fail(why, err, "%s: no memory for the list of files", root);
    if (err) dpl_index_fini(x);
    return err;
}
