/* SPDX-License-Identifier: Apache-2.0 */
/* A team of GPUs: the caller's side. Every call is an order to the threads of team_cuda_member.c and
 * its neighbours; see team_cuda.h for the picture. */
#include "trainer/cuda/team_cuda.h"

#include "base/alloc.h"
#include "dpload.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 600000 };

/* PyTorch's GradScaler. */
enum { GOOD_STEPS = 2000 };
static const double first_scale = 65536, most_scale = 1 << 24;

static int give(dpt_cuda_team *t, dpt_crew_order *order, dpt_cuda_call *c, dpl_text *why)
{
    c->team = t;
    if (!dpt_cuda_has_failed(t) && !dpt_crew_do(t->crew, order, c, NULL)) return DPL_OK;
    return dpl_fail(why, t->err, "%s", t->failure.s); /* whose comes first, not whose number is */
}

/* --- making one --- */

static int check_distinct(const dpt_team_options *opt, dpl_text *why)
{
    for (int i = 0; i < opt->replicas; i++) {
        for (int k = 0; k < i; k++) {
            if (opt->gpu[i] == opt->gpu[k])
                return dpl_fail(why, DPL_EINVAL,
                                "GPU cuda:%d is named twice; every replica needs one of its own",
                                opt->gpu[i]);
        }
    }
    return DPL_OK;
}

/* Neighbours to which weight decay applies alike become one segment; with LARS, where tensors have
 * rates of their own, each is one. @return number of segments */
static int cut_segments(const dpt_graph *g, dpt_rule rule, dpt_gpu_segment *out)
{
    int n = 0;

    for (int i = 0; i < g->params; i++) {
        const dpt_param *p = &g->param[i];
        const int decay = dpt_rule_decays(rule, p->decay, p->dims);

        if (n && rule != DPT_RULE_LARS && out[n - 1].decay == decay &&
            out[n - 1].at + out[n - 1].count == p->offset)
            out[n - 1].count += p->count;
        else
            out[n++] = (dpt_gpu_segment){ p->offset, p->count, decay };
    }
    return n;
}

static int set_up(dpt_cuda_team *t, const dpt_team_options *opt)
{
    const size_t params = (size_t)opt->graph->params;

    t->opt = *opt;
    t->opt.max_n = t->opt.gpu = t->opt.cancel = NULL;
    t->opt.address = t->opt.cache = NULL;
    if (t->opt.world < 1) t->opt.world = 1;
    if (t->opt.timeout_ms < 1) t->opt.timeout_ms = TIMEOUT_MS;
    t->ranks = t->opt.world * opt->replicas;
    t->next_scale = 1;
    t->updates = opt->updates ? *opt->updates : 0;
    t->bucket = dpl_calloc(params, sizeof *t->bucket);
    t->segment = dpl_calloc(params, sizeof *t->segment);
    t->streams = dpl_calloc((size_t)opt->replicas, sizeof *t->streams);
    t->member = dpl_calloc((size_t)opt->replicas, sizeof *t->member);
    if (!t->bucket || !t->segment || !t->streams || !t->member) return DPL_ENOMEM;
    t->buckets =
        dpt_buckets_cut(opt->graph, opt->bucket_bytes ? opt->bucket_bytes : DPT_BUCKET_FIRST,
                        opt->bucket_bytes ? opt->bucket_bytes : DPT_BUCKET_BYTES, t->bucket);
    t->segments = cut_segments(opt->graph, opt->rule, t->segment);
    for (int i = 0; i < opt->replicas; i++) {
        t->member[i].team = t;
        t->member[i].index = i;
        t->member[i].gpu = opt->gpu[i];
        t->member[i].rank = t->opt.rank * opt->replicas + i;
        t->member[i].max_n = opt->max_n[i] > 0 ? opt->max_n[i] : 1; /* of an always empty part */
    }
    return DPL_OK;
}

/* All compute in one type: what the least of them can. */
static int choose_type(dpt_cuda_team *t, dpl_text *why)
{
    const dpt_cuda_member *least = &t->member[0];

    for (int i = 1; i < t->opt.replicas; i++) {
        if (t->member[i].capability < least->capability) least = &t->member[i];
    }
    switch (t->opt.amp) {
    case DPT_AMP_OFF: t->type = DPT_GPU_FP32; break;
    case DPT_AMP_BF16: t->type = DPT_GPU_BF16; break;
    case DPT_AMP_FP16: t->type = DPT_GPU_FP16; break;
    case DPT_AMP_AUTO: t->type = least->capability >= 80 ? DPT_GPU_BF16 : DPT_GPU_FP16; break;
    }
    if (t->type == DPT_GPU_BF16 && least->capability < 80)
        return dpl_fail(why, DPL_ENOTSUP,
                        "GPU %d (cuda:%d): bf16 needs compute capability 8.0, it has %d.%d; take "
                        "fp16, or fp32",
                        least->index, least->gpu, least->capability / 10, least->capability % 10);
    if (t->type == DPT_GPU_FP16) t->next_scale = first_scale;
    return DPL_OK;
}

static int start(dpt_cuda_team *t, const dpt_team_options *opt, dpl_text *why)
{
    dpt_cuda_call c = { .opt = opt };
    int err;

    if ((err = dpt_crew_create(&t->crew, opt->replicas, "GPU", why))) return err;
    if ((err = give(t, dpt_cuda_order_open, &c, why))) return err;
    if ((err = choose_type(t, why))) return err;
    if ((err = give(t, dpt_cuda_order_build, &c, why))) return err;
    t->scale[0] = 1;
    if (t->ranks > 1 && (err = give(t, dpt_cuda_order_warm_up, &c, why))) return err;
    if (t->ranks > 1 &&
        (err = dpt_comm_id_get(&t->id, t->opt.world > 1 ? opt->address : NULL, why)))
        return err;
    if ((err = give(t, dpt_cuda_order_join, &c, why))) return err;
    for (int i = 0; i < opt->replicas; i++) t->streams[i] = t->member[i].compute;
    t->base.streams = t->streams;
    return DPL_OK;
}

static void destroy(dpt_team *base)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;
    dpt_cuda_call c = { .team = t };

    if (t->crew) dpt_crew_do(t->crew, dpt_cuda_order_close, &c, NULL);
    dpt_crew_destroy(&t->crew);
    pthread_mutex_destroy(&t->lock);
    free(t->member);
    free(t->streams);
    free(t->segment);
    free(t->bucket);
    free(t);
}

static int create(dpt_team **out, const dpt_team_options *opt, dpl_text *why)
{
    dpt_cuda_team *t;
    int err;

    *out = NULL;
    assert(opt->replicas > 0);
    if ((err = check_distinct(opt, why))) return err;
    if (!(t = dpl_calloc(1, sizeof *t)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory for a team of GPUs");
    pthread_mutex_init(&t->lock, NULL);
    t->base = (dpt_team){ .ops = &dpt_team_cuda_ops, .depth = DPT_CUDA_DEPTH };
    err = set_up(t, opt);
    if (err) dpl_fail(why, err, "out of memory for a team of %d GPUs", opt->replicas);
    if (!err) err = start(t, opt, why);
    if (err)
        destroy(&t->base);
    else
        *out = &t->base;
    return err;
}

/* --- steps --- */

/* Take notice of a step that was collected. The loss scale of a step follows from those up to two before
 * it, whatever of them has been collected by now: so every process finds the same one. An overflow
 * of a step that still had an older scale says nothing about the present one. */
static void note_step(dpt_cuda_team *t, int slot)
{
    const dpt_cuda_result *r = &t->member[0].host->result[slot];
    const int overflow = r->bad;

    t->updates += !overflow && r->sums[DPT_GPU_N] > 0;
    if (t->type != DPT_GPU_FP16) return;
    t->skipped += overflow;
    if (overflow && t->scale[slot] == t->next_scale) {
        t->next_scale /= 2;
        t->good = 0;
    } else if (!overflow && ++t->good == GOOD_STEPS) {
        t->next_scale = fmin(2 * t->next_scale, most_scale);
        t->good = 0;
    }
}

static void check_parts(const dpt_cuda_team *t, const dpt_team_part *part)
{
    (void)t, (void)part; /* with NDEBUG */
    for (int i = 0; i < t->opt.replicas; i++)
        assert(part[i].n >= 0 && part[i].n <= t->member[i].max_n);
}

static int submit(dpt_team *base, const dpt_team_step *s, dpl_text *why)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;
    dpt_cuda_call c = { .step = s,
                        .part = s->part,
                        .slot = (int)(t->submitted % DPT_CUDA_DEPTH),
                        .number = (uint64_t)t->submitted };
    int err;

    assert(t->submitted - t->collected < DPT_CUDA_DEPTH && s->planned > 0);
    assert(s->update.rule == t->opt.rule);
    check_parts(t, s->part);
    if (t->submitted >= DPT_CUDA_DEPTH) note_step(t, c.slot);
    t->scale[c.slot] = t->next_scale;
    c.update = t->updates + (t->submitted ? DPT_CUDA_DEPTH : 1);
    if (!(err = give(t, dpt_cuda_order_step, &c, why))) t->submitted++;
    return err;
}

static dpt_sums sums_of(const dpt_cuda_result *r, int nan_if_bad)
{
    return (dpt_sums){ .loss = nan_if_bad && r->bad ? (double)NAN : r->sums[DPT_GPU_LOSS],
                       .top1 = llround(r->sums[DPT_GPU_TOP1]),
                       .top5 = llround(r->sums[DPT_GPU_TOP5]),
                       .n = llround(r->sums[DPT_GPU_N]) };
}

static int collect(dpt_team *base, dpt_team_result *out, dpl_text *why)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;
    dpt_cuda_call c = { .slot = (int)(t->collected % DPT_CUDA_DEPTH) };
    const dpt_cuda_result *r;
    int err;

    *out = (dpt_team_result){ 0 };
    assert(t->submitted > t->collected || dpt_cuda_has_failed(t));
    if ((err = give(t, dpt_cuda_order_collect, &c, why))) return err;
    t->collected++;
    r = &t->member[0].host->result[c.slot];          /* all have the same */
    out->sums = sums_of(r, t->type != DPT_GPU_FP16); /* there it is only a step that is skipped */
    out->stop = r->sums[DPT_CUDA_STOP] > 0;
    out->busy_s = t->member[0].busy_s;
    for (int i = 1; i < t->opt.replicas; i++) out->busy_s = fmin(out->busy_s, t->member[i].busy_s);
    return DPL_OK;
}

static int evaluate(dpt_team *base, const dpt_team_part *part, dpt_sums *sums, dpl_text *why)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;
    dpt_cuda_call c = { .part = part };
    int err;

    *sums = (dpt_sums){ 0 };
    assert(t->submitted == t->collected || dpt_cuda_has_failed(t));
    check_parts(t, part);
    if ((err = give(t, dpt_cuda_order_evaluate, &c, why))) return err;
    *sums = sums_of(&t->member[0].host->result[DPT_CUDA_EVAL], 1);
    return DPL_OK;
}

static int fetch(dpt_team *base, dpl_text *why)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;
    dpt_cuda_call c = { 0 };

    assert(t->submitted == t->collected || dpt_cuda_has_failed(t));
    return give(t, dpt_cuda_order_fetch, &c, why);
}

static int threads(const dpt_team *base, int r)
{
    (void)base, (void)r;
    return 0;
}

/* --- in words --- */

static const char *own_line(dpt_cuda_team *t)
{
    const double mib = 1 << 20;
    const dpt_cuda_member *m = &t->member[0];
    const size_t bytes = m->bytes + dpt_gpu_exec_linked()->memory(m->exec);
    int n = snprintf(t->line, sizeof t->line, "%d GPU%s, %s, %.0f MiB of memory on %s", t->ranks,
                     t->ranks > 1 ? "s" : "", dpt_gpu_type_name(t->type), (double)bytes / mib,
                     t->ranks > 1 ? "each" : "it");

    if (t->ranks > 1)
        n += snprintf(t->line + n, sizeof t->line - (size_t)n, ", gradients in %d piece%s",
                      t->buckets, t->buckets > 1 ? "s" : "");
    if (t->type == DPT_GPU_FP16)
        snprintf(t->line + n, sizeof t->line - (size_t)n,
                 ", loss scale %g (%lld steps skipped by overflow)", t->next_scale,
                 (long long)t->skipped);
    return t->line;
}

static const char *describe(dpt_team *base, int i, int *fallback)
{
    dpt_cuda_team *t = (dpt_cuda_team *)base;

    *fallback = 0;
    if (i == 0) return own_line(t);
    return dpt_gpu_exec_linked()->describe(t->member[0].exec, i - 1, fallback);
}

const dpt_team_ops dpt_team_cuda_ops = { .kind = "cuda",
                                         .create = create,
                                         .destroy = destroy,
                                         .submit = submit,
                                         .collect = collect,
                                         .evaluate = evaluate,
                                         .fetch = fetch,
                                         .threads = threads,
                                         .describe = describe };
