/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN backend: plans per number of samples, made when first needed and kept while they are
 * used, over one arena. Shuffled epochs need two sizes, full and last; a few more stay for batches
 * that lost samples. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/backend.h"
#include "trainer/backend_dnnl_plan.h"
#include "trainer/backend_loss.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PLANS = 6, LINE = 256, HUGE_PAGE = 2 << 20 };

struct dpt_exec {
    const dpt_graph *g;
    int max_n, threads;
    const int *cancel; /* the caller's */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dpt_dnnl_plan *plan[PLANS]; /* most recently used first; NULL at the end */
    void *arena;                /* of the plan that needs most */
    size_t arena_bytes;
    char (*line)[LINE]; /* for describe() */
    int *fallback;      /* [lines] */
    int lines;
};

static void destroy(dpt_exec **e)
{
    if (!*e) return;
    for (int i = 0; i < PLANS; i++) dpt_dnnl_plan_destroy(&(*e)->plan[i]);
    if ((*e)->stream) dnnl_stream_destroy((*e)->stream);
    if ((*e)->engine) dnnl_engine_destroy((*e)->engine);
    free((*e)->arena);
    free((*e)->line);
    free((*e)->fallback);
    free(*e);
    *e = NULL;
}

static void describe_conv(dpt_exec *e, const dpt_dnnl_plan *p, int node)
{
    static const char *const pass[DPT_DNNL_PASSES] = { "forward", "backward data",
                                                       "backward weights" };
    char name[96], *line = e->line[e->lines];
    int len;

    len = snprintf(line, LINE, "conv %s:", dpt_graph_node_name(e->g, node, name, sizeof name));
    for (int i = 0; i < DPT_DNNL_PASSES; i++) {
        const char *impl = p->layer[node].impl[i];

        if (!*impl || len >= LINE) continue; /* the first layer has no backward data */
        len += snprintf(line + len, (size_t)(LINE - len), "%s %s %s", i ? "," : "", pass[i], impl);
        if (strncmp(impl, "ref", 3) == 0) e->fallback[e->lines] = 1;
    }
    e->lines++;
}

static int make_lines(dpt_exec *e, const dpt_dnnl_plan *p)
{
    const dnnl_version_t *v = dnnl_version();
    int convs = 0;

    for (int i = 0; i < e->g->nodes; i++) convs += e->g->node[i].op == DPT_CONV;
    e->line = dpl_calloc((size_t)convs + 1, sizeof *e->line);
    e->fallback = dpl_calloc((size_t)convs + 1, sizeof *e->fallback);
    if (!e->line || !e->fallback) return DPL_ENOMEM;
    snprintf(e->line[e->lines++], LINE,
             "oneDNN %d.%d.%d, %d threads, %.1f MiB for activations and gradients of %d samples",
             v->major, v->minor, v->patch, e->threads, (double)p->prog.arena_bytes / (1 << 20),
             p->n);
    for (int i = 0; i < e->g->nodes; i++) {
        if (e->g->node[i].op == DPT_CONV) describe_conv(e, p, i);
    }
    return DPL_OK;
}

/* The plan for n samples, moved to the front. */
static int find_plan(dpt_exec *e, int n, int training, dpt_dnnl_plan **out, dpl_text *why)
{
    dpt_dnnl_plan *p = NULL;
    int i, err;

    for (i = 0; i < PLANS && e->plan[i]; i++) {
        if (e->plan[i]->n == n && e->plan[i]->train == training) {
            p = e->plan[i];
            break;
        }
    }
    if (!p) {
        if ((err = dpt_dnnl_plan_create(&p, e->g, n, training, e->engine, e->stream, why))) {
            return err;
        }
        if (i == PLANS) dpt_dnnl_plan_destroy(&e->plan[--i]);
    }
    memmove(e->plan + 1, e->plan, (size_t)i * sizeof *e->plan);
    *out = e->plan[0] = p;
    return DPL_OK;
}

/* Large pages where the system gives them: activations are walked from end to end each step. */
static int reserve_arena(dpt_exec *e, const dpt_dnnl_plan *p, dpl_text *why)
{
    const size_t bytes = (p->prog.arena_bytes / HUGE_PAGE + 1) * HUGE_PAGE;

    if (bytes <= e->arena_bytes) return DPL_OK;
    free(e->arena);
    e->arena_bytes = 0;
    if (!(e->arena = aligned_alloc(HUGE_PAGE, bytes))) {
        return dpl_fail(why, DPL_ENOMEM,
                        "oneDNN: no memory for the %.1f MiB that %s needs for %d samples: use a "
                        "smaller batch",
                        (double)bytes / (1 << 20), e->g->arch, p->n);
    }
    madvise(e->arena, bytes, MADV_HUGEPAGE); /* only a wish */
    e->arena_bytes = bytes;
    return DPL_OK;
}

static int create(dpt_exec **out, const dpt_graph *g, const dpt_exec_options *opt, dpl_text *why)
{
    dpt_exec *e;
    dpt_dnnl_plan *p;
    dnnl_status_t s;
    int err;

    *out = NULL;
    if (opt->max_n < 1 || opt->threads < 1) {
        return dpl_fail(why, DPL_EINVAL, "oneDNN: max_n %d and threads %d must be at least 1",
                        opt->max_n, opt->threads);
    }
    if (!(e = dpl_calloc(1, sizeof *e))) return dpl_fail(why, DPL_ENOMEM, "oneDNN: out of memory");
    e->g = g;
    e->max_n = opt->max_n;
    e->threads = opt->threads;
    e->cancel = opt->cancel;
    omp_set_num_threads(e->threads); /* for this thread and what it compiles or runs */
    s = dnnl_engine_create(&e->engine, dnnl_cpu, 0);
    if (!s) s = dnnl_stream_create(&e->stream, e->engine, dnnl_stream_default_flags);
    if (s) {
        err = dpl_fail(why, DPL_EDEVICE, "oneDNN: no engine for this processor: %s",
                       dnnl_status2str(s));
        goto done;
    }
    if ((err = find_plan(e, e->max_n, 1, &p, why))) goto done;
    if ((err = make_lines(e, p))) {
        dpl_fail(why, err, "oneDNN: out of memory");
        goto done;
    }
    *out = e;
    e = NULL;
done:
    if (e) destroy(&e);
    return err;
}

/* The bound plan for this call. */
static int prepare(dpt_exec *e, const dpt_step *s, int training, dpt_dnnl_plan **out, dpl_text *why)
{
    void *base[DPT_PLACES];
    int err;

    omp_set_num_threads(e->threads); /* the caller may have run another exec since */
    if ((err = find_plan(e, s->n, training, out, why))) return err;
    if ((err = reserve_arena(e, *out, why))) return err;
    /* oneDNN's handles are not const; nothing is written through these. */
    base[DPT_AT_ARENA] = e->arena;
    base[DPT_AT_PARAMS] = (void *)s->params;
    base[DPT_AT_GRADS] = training ? s->grads : NULL;
    base[DPT_AT_PIXELS] = (void *)s->pixels;
    base[DPT_AT_BUFFERS] = training ? NULL : (void *)s->buffers;
    return dpt_dnnl_bind(&(*out)->prog, base, why);
}

static void give_stats(const dpt_dnnl_plan *p, const dpt_step *s)
{
    for (int i = 0; i < p->g->nodes; i++) {
        const dpt_node *n = &p->g->node[i];
        const dpt_param *b;
        float *var;

        if (n->op != DPT_BN) continue;
        b = &p->g->buffer[n->buffer];
        var = s->batch_stats + b[1].offset;
        memcpy(s->batch_stats + b[0].offset, dpt_dnnl_bytes(&p->prog, p->layer[i].mean),
               b[0].count * sizeof *var);
        memcpy(var, dpt_dnnl_bytes(&p->prog, p->layer[i].var), b[1].count * sizeof *var);
        dpt_loss_unbias(var, p->g->tensor[n->in], s->n);
    }
}

static int train(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    dpt_dnnl_plan *p;
    int err = dpt_loss_check_step(s, e->max_n, e->g->classes, why);

    if (err) return err;
    if (s->n == 0) {
        dpt_loss_nothing(e->g, s);
        return DPL_OK;
    }
    if ((err = prepare(e, s, 1, &p, why))) return err;
    if ((err = dpt_dnnl_run(&p->prog, 0, p->forward_ops, e->cancel, why))) return err;
    dpt_loss(dpt_dnnl_bytes(&p->prog, p->logits), s, e->g->classes,
             dpt_dnnl_bytes(&p->prog, p->logits_grad));
    if ((err = dpt_dnnl_run(&p->prog, p->forward_ops, p->prog.ops, e->cancel, why))) return err;
    give_stats(p, s);
    /* oneDNN's ReLU turns NaN into 0, which would hide a network that is lost. */
    if (!dpt_loss_all_finite(s->grads, e->g->param_floats) ||
        !dpt_loss_all_finite(s->batch_stats, e->g->buffer_floats)) {
        s->sums.loss = NAN;
    }
    return DPL_OK;
}

static int evaluate(dpt_exec *e, dpt_step *s, dpl_text *why)
{
    dpt_dnnl_plan *p;
    int err = dpt_loss_check_step(s, e->max_n, e->g->classes, why);

    s->sums = (dpt_sums){ .n = 0 };
    if (err || s->n == 0) return err;
    if ((err = prepare(e, s, 0, &p, why))) return err;
    if ((err = dpt_dnnl_run(&p->prog, 0, p->forward_ops, e->cancel, why))) return err;
    dpt_loss(dpt_dnnl_bytes(&p->prog, p->logits), s, e->g->classes, NULL);
    if (!dpt_loss_all_finite(s->params, e->g->param_floats)) s->sums.loss = NAN; /* as in train */
    return DPL_OK;
}

static int logits_of(dpt_exec *e, dpt_step *s, float *out, dpl_text *why)
{
    dpt_dnnl_plan *p;
    int err = dpt_loss_check(NULL, s->n, e->max_n, e->g->classes, why);

    if (err || s->n == 0) return err;
    if ((err = prepare(e, s, 0, &p, why))) return err;
    if ((err = dpt_dnnl_run(&p->prog, 0, p->forward_ops, e->cancel, why))) return err;
    memcpy(out, dpt_dnnl_bytes(&p->prog, p->logits),
           (size_t)s->n * (size_t)e->g->classes * sizeof *out);
    return DPL_OK;
}

static const char *describe(dpt_exec *e, int i, int *fallback)
{
    if (i < 0 || i >= e->lines) return NULL;
    if (e->fallback[i]) *fallback = 1;
    return e->line[i];
}

const dpt_backend dpt_backend_dnnl = { .name = "dnnl",
                                       .create = create,
                                       .train = train,
                                       .evaluate = evaluate,
                                       .logits = logits_of,
                                       .describe = describe,
                                       .destroy = destroy };
