/* SPDX-License-Identifier: Apache-2.0 */
/* Replica threads and the steps they take together. The caller gives an order, every replica carries
 * it out, the caller waits for all: the two halves of a step (gradients; sum and update) are two
 * orders, and the wait between them is the barrier. See parallel.h. */
#include "trainer/parallel.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/parallel_reduce.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum order { ORDER_CREATE, ORDER_TRAIN, ORDER_UPDATE, ORDER_EVALUATE, ORDER_STOP } order;

typedef struct replica {
    dpt_team *team;
    int index, threads, max_n;
    dpt_exec *exec; /* made, used and freed by the replica's thread */
    pthread_t thread;
    dpt_step step; /* the caller's before an order, the replica's during it */
    int err;
    dpl_text why;
} replica;

struct dpt_team {
    const dpt_backend *backend;
    const dpt_graph *graph;
    const int *cancel;     /* the caller's, for the execs */
    int replicas, started; /* started: threads to be joined */
    replica *replica;      /* [replicas] */
    dpt_reduce reduce;     /* written by the caller between orders, read by replicas */
    float *scratch;        /* gradients and batch statistics of all replicas */
    pthread_mutex_t lock;  /* guards round, order, busy */
    pthread_cond_t ordered, done;
    unsigned round; /* number of orders given */
    order order;
    int busy; /* replicas that have not finished the order */
};

static int create_exec(replica *r)
{
    const dpt_team *t = r->team;
    const dpt_exec_options opt = { .max_n = r->max_n, .threads = r->threads, .cancel = t->cancel };

    /* before the backend starts threads of its own: they inherit the processors */
    dpl_cpus_bind_share(r->index, t->replicas);
    return t->backend->create(&r->exec, t->graph, &opt, &r->why);
}

static int carry_out(replica *r, order what)
{
    dpt_team *t = r->team;

    switch (what) {
    case ORDER_CREATE: return create_exec(r);
    case ORDER_TRAIN: return r->step.n ? t->backend->train(r->exec, &r->step, &r->why) : DPL_OK;
    case ORDER_EVALUATE:
        return r->step.n ? t->backend->evaluate(r->exec, &r->step, &r->why) : DPL_OK;
    case ORDER_UPDATE: dpt_reduce_slice(&t->reduce, r->index, t->replicas); return DPL_OK;
    case ORDER_STOP: break;
    }
    if (r->exec) t->backend->destroy(&r->exec);
    return DPL_OK;
}

static void *replica_main(void *arg)
{
    replica *r = arg;
    dpt_team *t = r->team;
    unsigned seen = 0;
    order what;

    do {
        pthread_mutex_lock(&t->lock);
        while (t->round == seen) pthread_cond_wait(&t->ordered, &t->lock);
        seen = t->round;
        what = t->order;
        pthread_mutex_unlock(&t->lock);

        r->err = carry_out(r, what);

        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0) pthread_cond_signal(&t->done);
        pthread_mutex_unlock(&t->lock);
    } while (what != ORDER_STOP);
    return NULL;
}

/* Give an order to all replicas that run and wait until the last has finished, failed or not.
 * @return DPL_ECANCELED when a replica was canceled, else the error of the first replica that has
 *         one; its number in the text */
static int command(dpt_team *t, order what, dpl_text *why)
{
    const replica *first = NULL;

    pthread_mutex_lock(&t->lock);
    t->order = what;
    t->busy = t->started;
    t->round++;
    pthread_cond_broadcast(&t->ordered);
    while (t->busy > 0) pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);

    for (int i = 0; i < t->started; i++) {
        const replica *r = &t->replica[i];
        if (r->err && (!first || r->err == DPL_ECANCELED)) first = r;
        if (r->err == DPL_ECANCELED) break;
    }
    if (!first) return DPL_OK;
    return dpl_fail(why, first->err, "replica %d: %s", first->index,
                    first->why.s[0] ? first->why.s : dpl_status_text(first->err));
}

/* Share k of n of `threads`, at least 1; sizes differ by at most one. */
static int thread_share(int threads, int k, int n)
{
    const int share = threads / n + (k < threads % n);

    return share > 0 ? share : 1;
}

/* Memory of all replicas in one block: gradients, then batch statistics, each at a cache line. */
static int set_up_scratch(dpt_team *t, const dpt_team_options *opt)
{
    const size_t params = dpt_reduce_padded(t->graph->param_floats);
    const size_t each = params + dpt_reduce_padded(t->graph->buffer_floats);
    size_t floats;

    if (dpl_mul(each, (size_t)t->replicas, &floats)) return DPL_ENOMEM;
    t->scratch = dpl_alloc_aligned(floats, sizeof *t->scratch);
    t->reduce.part = dpl_calloc((size_t)t->replicas, sizeof *t->reduce.part);
    if (!t->scratch || !t->reduce.part) return DPL_ENOMEM;
    t->reduce.graph = t->graph;
    t->reduce.params = opt->params;
    t->reduce.momentum = opt->momentum;
    t->reduce.buffers = opt->buffers;
    for (int i = 0; i < t->replicas; i++) {
        dpt_step *s = &t->replica[i].step;
        s->params = opt->params;
        s->buffers = opt->buffers;
        s->grads = t->scratch + (size_t)i * each;
        s->batch_stats = s->grads + params;
    }
    return DPL_OK;
}

static int set_up(dpt_team *t, const dpt_team_options *opt)
{
    t->backend = opt->backend;
    t->graph = opt->graph;
    t->cancel = opt->cancel;
    t->replicas = opt->replicas;
    if (!(t->replica = dpl_calloc((size_t)t->replicas, sizeof *t->replica))) return DPL_ENOMEM;
    for (int i = 0; i < t->replicas; i++) {
        replica *r = &t->replica[i];
        r->team = t;
        r->index = i;
        r->max_n = opt->max_n[i] > 0 ? opt->max_n[i] : 1; /* of a part that is always empty */
        r->threads = opt->threads > 0 ? thread_share(opt->threads, i, t->replicas)
                                      : dpl_cpus_share(i, t->replicas);
    }
    return set_up_scratch(t, opt);
}

static int start_threads(dpt_team *t, dpl_text *why)
{
    for (int i = 0; i < t->replicas; i++) {
        char name[24]; /* cut to what the system takes */

        snprintf(name, sizeof name, "replica%d", i);
        if (dpl_thread_start(&t->replica[i].thread, name, replica_main, &t->replica[i])) {
            return dpl_fail(why, DPL_ENOMEM, "replica %d of %d: its thread cannot be started", i,
                            t->replicas);
        }
        t->started++;
    }
    return DPL_OK;
}

int dpt_team_create(dpt_team **out, const dpt_team_options *opt, dpl_text *why)
{
    dpt_team *t = dpl_calloc(1, sizeof *t);
    int err;

    *out = NULL;
    assert(opt->replicas > 0);
    if (!t) return dpl_fail(why, DPL_ENOMEM, "out of memory for %d replicas", opt->replicas);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->ordered, NULL);
    pthread_cond_init(&t->done, NULL);
    if ((err = set_up(t, opt))) {
        dpl_fail(why, err, "out of memory for %d replicas of %s", opt->replicas, opt->graph->arch);
        goto done;
    }
    if ((err = start_threads(t, why))) goto done;
    if ((err = command(t, ORDER_CREATE, why))) goto done;
    *out = t;
    t = NULL; /* now the caller's */
done:
    dpt_team_destroy(&t);
    return err;
}

void dpt_team_destroy(dpt_team **t)
{
    dpt_team *x = *t;

    if (!x) return;
    command(x, ORDER_STOP, NULL); /* stopping has no error */
    for (int i = 0; i < x->started; i++) pthread_join(x->replica[i].thread, NULL);
    pthread_cond_destroy(&x->done);
    pthread_cond_destroy(&x->ordered);
    pthread_mutex_destroy(&x->lock);
    free(x->reduce.part);
    free(x->scratch);
    free(x->replica);
    free(x);
    *t = NULL;
}

/* @return samples of all parts */
static int64_t set_parts(dpt_team *t, const dpt_team_part *part)
{
    int64_t n = 0;

    for (int i = 0; i < t->replicas; i++) {
        dpt_step *s = &t->replica[i].step;

        assert(part[i].n >= 0 && part[i].n <= t->replica[i].max_n);
        s->pixels = part[i].pixels;
        s->labels = part[i].labels;
        s->labels2 = part[i].labels2;
        s->mix = part[i].mix;
        s->n = part[i].n;
        s->sums = (dpt_sums){ 0 };
        t->replica[i].why.s[0] = 0;
        n += part[i].n;
    }
    return n;
}

static void add_sums(const dpt_team *t, dpt_sums *sums)
{
    *sums = (dpt_sums){ 0 };
    for (int i = 0; i < t->replicas; i++) {
        const dpt_sums *s = &t->replica[i].step.sums;
        sums->loss += s->loss;
        sums->top1 += s->top1;
        sums->top5 += s->top5;
        sums->n += s->n;
    }
}

int dpt_team_train(dpt_team *t, const dpt_team_part *part, const dpt_sgd *sgd, dpt_sums *sums,
                   dpl_text *why)
{
    const int64_t n = set_parts(t, part);
    int err;

    assert(n > 0);
    t->reduce.parts = 0;
    for (int i = 0; i < t->replicas; i++) {
        dpt_step *s = &t->replica[i].step;

        s->grad_scale = 1.0 / (double)n;
        if (!s->n) continue; /* nothing to add, not even a zero */
        t->reduce.part[t->reduce.parts++] = (dpt_reduce_part){ .grads = s->grads,
                                                               .batch_stats = s->batch_stats,
                                                               .share = (double)s->n / (double)n };
    }
    t->reduce.sgd = *sgd;
    *sums = (dpt_sums){ 0 };
    if ((err = command(t, ORDER_TRAIN, why))) return err; /* weights are as before */
    add_sums(t, sums);
    return command(t, ORDER_UPDATE, why);
}

int dpt_team_evaluate(dpt_team *t, const dpt_team_part *part, dpt_sums *sums, dpl_text *why)
{
    int err;

    set_parts(t, part);
    *sums = (dpt_sums){ 0 };
    if ((err = command(t, ORDER_EVALUATE, why))) return err;
    add_sums(t, sums);
    return DPL_OK;
}

int dpt_team_threads(const dpt_team *t, int r)
{
    return t->replica[r].threads;
}

const char *dpt_team_describe(dpt_team *t, int i, int *fallback)
{
    *fallback = 0;
    for (int r = 0; r < t->replicas; r++) {
        int lines = 0;
        const char *text;

        /* replicas rest between orders, so that the caller may ask their execs */
        if ((text = t->backend->describe(t->replica[r].exec, i, fallback))) return text;
        while (t->backend->describe(t->replica[r].exec, lines, fallback)) lines++;
        *fallback = 0;
        i -= lines;
    }
    return NULL;
}
