/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas on the CPU: each a thread with its share of the processors and its own dpt_exec; weights
 * are shared in the caller's memory. A step is two orders: every replica computes the gradient of its
 * part (already weighted by 1 / samples of the batch); then each reduces and updates its own slice of
 * the flat arrays, in replica order. LARS has a third between them, which measures norms. One global
 * gradient, bit-reproducible. All of it happens in submit; collect hands out the sums. */
#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/crew.h"
#include "trainer/parallel_reduce.h"
#include "trainer/team.h"

#include <assert.h>
#include <stdlib.h>

typedef struct replica {
    int threads, max_n;
    dpt_exec *exec; /* made, used and freed by the replica's thread */
    dpt_step step;  /* the caller's before an order, the replica's during it */
} replica;

typedef struct team {
    dpt_team base;
    const dpt_backend *backend;
    const dpt_graph *graph;
    const int *cancel; /* the caller's, for the execs */
    dpt_rule rule;
    int64_t *updates; /* the caller's, or NULL */
    int replicas;
    replica *replica;       /* [replicas] */
    dpt_crew *crew;         /* a member per replica */
    dpt_reduce reduce;      /* written by the caller between orders, read by replicas */
    float *scratch;         /* gradients and batch statistics of all replicas */
    dpt_team_result result; /* of the step that is not collected yet */
} team;

/* --- orders, carried out by the replicas' threads --- */

static int create_exec(void *arg, int index, dpl_text *why)
{
    team *t = arg;
    replica *r = &t->replica[index];
    const dpt_exec_options opt = { .max_n = r->max_n, .threads = r->threads, .cancel = t->cancel };

    /* before the backend starts threads of its own: they inherit the processors */
    dpl_cpus_bind_share(index, t->replicas);
    return t->backend->create(&r->exec, t->graph, &opt, why);
}

static int destroy_exec(void *arg, int index, dpl_text *why)
{
    team *t = arg;

    (void)why;
    if (t->replica[index].exec) t->backend->destroy(&t->replica[index].exec);
    return DPL_OK;
}

static int train(void *arg, int index, dpl_text *why)
{
    const team *t = arg;
    replica *r = &t->replica[index];

    return r->step.n ? t->backend->train(r->exec, &r->step, why) : DPL_OK;
}

static int measure_norms(void *arg, int index, dpl_text *why)
{
    const team *t = arg;

    (void)why;
    dpt_reduce_norms(&t->reduce, index, t->replicas);
    return DPL_OK;
}

static int update(void *arg, int index, dpl_text *why)
{
    const team *t = arg;

    (void)why;
    dpt_reduce_slice(&t->reduce, index, t->replicas);
    return DPL_OK;
}

static int measure(void *arg, int index, dpl_text *why)
{
    const team *t = arg;
    replica *r = &t->replica[index];

    return r->step.n ? t->backend->evaluate(r->exec, &r->step, why) : DPL_OK;
}

/* --- making --- */

/* Share k of n of `threads`, at least 1; sizes differ by at most one. */
static int thread_share(int threads, int k, int n)
{
    const int share = threads / n + (k < threads % n);

    return share > 0 ? share : 1;
}

/* Memory of all replicas in one block: gradients, then batch statistics, each at a cache line. */
static int set_up_scratch(team *t, const dpt_team_options *opt)
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
    t->reduce.second = opt->second;
    t->reduce.buffers = opt->buffers;
    if (opt->rule == DPT_RULE_LARS &&
        !(t->reduce.norms = dpl_calloc(dpt_reduce_norm_count(t->graph), sizeof(double))))
        return DPL_ENOMEM;
    for (int i = 0; i < t->replicas; i++) {
        dpt_step *s = &t->replica[i].step;
        s->params = opt->params;
        s->buffers = opt->buffers;
        s->grads = t->scratch + (size_t)i * each;
        s->batch_stats = s->grads + params;
    }
    return DPL_OK;
}

static int set_up(team *t, const dpt_team_options *opt)
{
    t->base.ops = &dpt_team_cpu_ops;
    t->base.depth = 1;
    t->backend = opt->backend;
    t->graph = opt->graph;
    t->cancel = opt->cancel;
    t->rule = opt->rule;
    t->updates = opt->updates;
    t->replicas = opt->replicas;
    if (!(t->replica = dpl_calloc((size_t)t->replicas, sizeof *t->replica))) return DPL_ENOMEM;
    for (int i = 0; i < t->replicas; i++) {
        replica *r = &t->replica[i];
        r->max_n = opt->max_n[i] > 0 ? opt->max_n[i] : 1; /* of a part that is always empty */
        r->threads = opt->threads > 0 ? thread_share(opt->threads, i, t->replicas)
                                      : dpl_cpus_share(i, t->replicas);
    }
    return set_up_scratch(t, opt);
}

static void destroy(dpt_team *base)
{
    team *t = (team *)base;

    if (t->crew) dpt_crew_do(t->crew, destroy_exec, t, NULL);
    dpt_crew_destroy(&t->crew);
    free(t->reduce.norms);
    free(t->reduce.part);
    free(t->scratch);
    free(t->replica);
    free(t);
}

static int create(dpt_team **out, const dpt_team_options *opt, dpl_text *why)
{
    team *t;
    int err;

    if (opt->world > 1)
        return dpl_fail(why, DPL_ENOTSUP,
                        "%d processes on the CPU: they are joined by NCCL only, between GPUs; let "
                        "one process drive all replicas",
                        opt->world);
    if (!(t = dpl_calloc(1, sizeof *t)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory for %d replicas", opt->replicas);
    if ((err = set_up(t, opt))) {
        dpl_fail(why, err, "out of memory for %d replicas of %s", opt->replicas, opt->graph->arch);
        goto done;
    }
    if ((err = dpt_crew_create(&t->crew, t->replicas, "replica", why))) goto done;
    if ((err = dpt_crew_do(t->crew, create_exec, t, why))) goto done;
    *out = &t->base;
    t = NULL; /* now the caller's */
done:
    if (t) destroy(&t->base);
    return err;
}

/* --- steps --- */

/* @return samples of all parts */
static int64_t set_parts(team *t, const dpt_team_part *part)
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
        n += part[i].n;
    }
    return n;
}

static void add_sums(const team *t, dpt_sums *sums)
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

static int change_weights(team *t, const dpt_update *u, dpl_text *why)
{
    int err = DPL_OK;

    assert(u->rule == t->rule);
    t->reduce.update = *u;
    if (t->updates) t->reduce.step = ++*t->updates;
    if (u->rule == DPT_RULE_LARS) err = dpt_crew_do(t->crew, measure_norms, t, why);
    return err ? err : dpt_crew_do(t->crew, update, t, why);
}

static int submit(dpt_team *base, const dpt_team_step *step, dpl_text *why)
{
    team *t = (team *)base;
    const int64_t n = set_parts(t, step->part);
    int err;

    t->result = (dpt_team_result){ .stop = step->stop };
    if (!n) return DPL_OK;
    t->reduce.parts = 0;
    for (int i = 0; i < t->replicas; i++) {
        dpt_step *s = &t->replica[i].step;

        s->grad_scale = 1.0 / (double)n;
        if (!s->n) continue; /* nothing to add, not even a zero */
        t->reduce.part[t->reduce.parts++] = (dpt_reduce_part){ .grads = s->grads,
                                                               .batch_stats = s->batch_stats,
                                                               .share = (double)s->n / (double)n };
    }
    if ((err = dpt_crew_do(t->crew, train, t, why))) return err; /* weights are as before */
    add_sums(t, &t->result.sums);
    return change_weights(t, &step->update, why);
}

static int collect(dpt_team *base, dpt_team_result *r, dpl_text *why)
{
    (void)why;
    *r = ((const team *)base)->result;
    return DPL_OK;
}

static int evaluate(dpt_team *base, const dpt_team_part *part, dpt_sums *sums, dpl_text *why)
{
    team *t = (team *)base;
    int err;

    set_parts(t, part);
    if ((err = dpt_crew_do(t->crew, measure, t, why))) return err;
    add_sums(t, sums);
    return DPL_OK;
}

/* The caller's memory is what replicas update. */
static int fetch(dpt_team *base, dpl_text *why)
{
    (void)base;
    (void)why;
    return DPL_OK;
}

static int threads(const dpt_team *base, int r)
{
    return ((const team *)base)->replica[r].threads;
}

static const char *describe(dpt_team *base, int i, int *fallback)
{
    team *t = (team *)base;

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

const dpt_team_ops dpt_team_cpu_ops = { "cpu",    create, destroy, submit,  collect,
                                        evaluate, fetch,  threads, describe };
