/* SPDX-License-Identifier: Apache-2.0 */
/* Where the GPUs of a team meet, and how weights come to all of them and back to the host. */
#include "dpload.h"
#include "trainer/cuda/team_cuda.h"

#include <string.h>

/* --- who is there --- */

static int join(dpt_cuda_member *m, const dpt_team_options *opt, dpl_text *why)
{
    dpt_cuda_team *t = m->team;
    const dpt_comm_options o = { .rank = m->rank,
                                 .ranks = t->ranks,
                                 .gpu = m->gpu,
                                 .timeout_ms = t->opt.timeout_ms,
                                 .cancel = opt->cancel,
                                 .failed = &t->failed };
    dpt_comm *comm;
    const int err = dpt_comm_create(&comm, &t->id, &o, why);
    int failed;

    if (err) return err;
    pthread_mutex_lock(&t->lock);
    m->comm = comm; /* from now on it is ended when another member fails */
    failed = t->failed;
    pthread_mutex_unlock(&t->lock);
    if (failed) dpt_comm_abort(comm);
    return DPL_OK;
}

/* Wait on the host for what was queued on the talk stream. */
static int talk_over(dpt_cuda_member *m, const char *what, dpl_text *why)
{
    const int err = dpt_cuda_check(cudaEventRecord(m->summed, m->talk), what, why);

    return err ? err : dpt_cuda_wait(m, m->summed, what, why);
}

/* --- do all processes mean the same run? --- */

enum { TRAITS = 10 };
static const char *const trait_name[TRAITS] = {
    "parameters",      "running statistics",
    "classes",         "picture height",
    "picture width",   "kind of pixels",
    "type of numbers", "GPUs of each process",
    "optimizer",       "check sum of classes, options and position"
};

static void traits_of(const dpt_cuda_team *t, double out[TRAITS])
{
    const dpt_graph *g = t->opt.graph;

    out[0] = (double)g->param_floats;
    out[1] = (double)g->buffer_floats;
    out[2] = g->classes;
    out[3] = g->tensor[0].h;
    out[4] = g->tensor[0].w;
    out[5] = t->opt.bytes;
    out[6] = t->type;
    out[7] = t->opt.replicas;
    out[8] = t->opt.rule;
    out[9] = (double)(t->opt.digest >> 11); /* what a double holds exactly */
}

/* Gradients are not there yet: their memory carries the numbers. */
static int check_peers(dpt_cuda_member *m, dpl_text *why)
{
    double mine[TRAITS], first[TRAITS], differ = 0, others;
    double *const at = (double *)(void *)m->grads;
    int err, which = 0;

    traits_of(m->team, mine);
    if ((err = dpt_cuda_upload(m, at, mine, sizeof mine, why)) ||
        (err = dpt_comm_broadcast(m->comm, at, sizeof mine, m->talk, why)) ||
        (err = talk_over(m, "comparing options", why)) ||
        (err = dpt_cuda_download(m, first, at, sizeof first, why)))
        return err;
    for (int i = TRAITS - 1; i >= 0; i--) {
        if (mine[i] != first[i]) differ = 1, which = i;
    }
    if ((err = dpt_cuda_upload(m, at, &differ, sizeof differ, why)) ||
        (err = dpt_comm_sum_double(m->comm, at, 1, m->talk, why)) ||
        (err = talk_over(m, "comparing options", why)) ||
        (err = dpt_cuda_download(m, &others, at, sizeof others, why)))
        return err;
    if (differ > 0)
        return dpl_fail(why, DPL_EINVAL,
                        "%s: %.0f here, %.0f in the first process; start all processes with the "
                        "same options",
                        trait_name[which], mine[which], first[which]);
    if (others > 0)
        return dpl_fail(why, DPL_EINVAL,
                        "%.0f of %d GPUs were started with other options than the first process; "
                        "their messages say which",
                        others, m->team->ranks);
    return DPL_OK;
}

/* --- weights --- */

/* An array on the GPU and the caller's, which may be NULL. */
typedef struct array {
    void *dev, *host;
    size_t bytes;
} array;

enum { ARRAYS = 5 };

static void list_arrays(const dpt_cuda_member *m, const dpt_team_options *o, array out[ARRAYS])
{
    const size_t params = o->graph->param_floats * sizeof(float);
    const size_t buffers = o->graph->buffer_floats * sizeof(float);
    const array list[ARRAYS] = { { m->params, o->params, params },
                                 { m->momentum, o->momentum, params },
                                 { m->second, o->second, m->second ? params : 0 },
                                 { m->updates, o->updates, sizeof *m->updates },
                                 { m->buffers, o->buffers, buffers } };

    memcpy(out, list, sizeof list);
}

static int upload_weights(dpt_cuda_member *m, dpl_text *why)
{
    array a[ARRAYS];
    int err = DPL_OK;

    list_arrays(m, &m->team->opt, a);
    for (int i = 0; i < ARRAYS && !err; i++)
        if (a[i].host && a[i].bytes) err = dpt_cuda_upload(m, a[i].dev, a[i].host, a[i].bytes, why);
    return err;
}

/* What the caller may not have. */
static int clear_state(dpt_cuda_member *m, dpl_text *why)
{
    const size_t bytes = m->team->opt.graph->param_floats * sizeof(float);
    cudaError_t e = cudaMemsetAsync(m->momentum, 0, bytes, m->compute);

    if (e == cudaSuccess && m->second) e = cudaMemsetAsync(m->second, 0, bytes, m->compute);
    if (e == cudaSuccess) e = cudaMemsetAsync(m->updates, 0, sizeof *m->updates, m->compute);
    if (e == cudaSuccess) e = cudaEventRecord(m->written, m->compute);
    if (e != cudaSuccess) return dpt_cuda_check(e, "clearing momentum", why);
    return dpt_cuda_wait(m, m->written, "clearing momentum", why);
}

static int share_weights(dpt_cuda_member *m, dpl_text *why)
{
    array a[ARRAYS];
    int err = DPL_OK;

    list_arrays(m, &m->team->opt, a);
    for (int i = 0; i < ARRAYS && !err; i++)
        if (a[i].bytes) err = dpt_comm_broadcast(m->comm, a[i].dev, a[i].bytes, m->talk, why);
    return err ? err : talk_over(m, "sharing the weights", why);
}

static int join_all(dpt_cuda_member *m, const dpt_team_options *opt, dpl_text *why)
{
    int err = DPL_OK;

    if (m->team->ranks > 1) err = join(m, opt, why);
    if (!err && m->team->opt.world > 1) err = check_peers(m, why);
    if (!err) err = clear_state(m, why);
    if (!err && m->rank == 0) err = upload_weights(m, why);
    return !err && m->comm ? share_weights(m, why) : err;
}

int dpt_cuda_order_join(void *arg, int index, dpl_text *why)
{
    const dpt_cuda_call *c = arg;
    dpt_cuda_member *m = &c->team->member[index];
    const int err = join_all(m, c->opt, why);

    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}

static int fetch(dpt_cuda_member *m, dpl_text *why)
{
    array a[ARRAYS];
    int err = DPL_OK;

    list_arrays(m, &m->team->opt, a);
    for (int i = 0; i < ARRAYS && !err; i++)
        if (a[i].host && a[i].bytes)
            err = dpt_cuda_download(m, a[i].host, a[i].dev, a[i].bytes, why);
    return err;
}

int dpt_cuda_order_fetch(void *arg, int index, dpl_text *why)
{
    dpt_cuda_member *m = &((dpt_cuda_call *)arg)->team->member[index];
    const int err = index ? DPL_OK : fetch(m, why); /* all have the same */

    return err ? dpt_cuda_fail(m, err, why) : DPL_OK;
}
