/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL: collectives. */
#include "tests/fake/cuda/fake_nccl_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The real header has them without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

static _Thread_local int depth;          /* of ncclGroupStart() */
static _Thread_local fake_post *grouped; /* newest first */

/* --- words --- */

static const char *type_name(ncclDataType_t type, size_t *size)
{
    switch (type) {
    case ncclInt8: *size = 1; return "int8";
    case ncclUint8: *size = 1; return "byte";
    case ncclInt32: *size = 4; return "int32";
    case ncclFloat32: *size = 4; return "float";
    case ncclFloat64: *size = 8; return "double";
    default: *size = 0; return "?";
    }
}

static size_t bytes_of(const fake_ask *a)
{
    size_t size;

    type_name(a->type, &size);
    return a->n * size;
}

static const char *ask_text(const fake_ask *a, char out[96])
{
    size_t size;
    const char *type = type_name(a->type, &size);

    if (a->root < 0) {
        snprintf(out, 96, "%s of %zu %s", a->word, a->n, type);
    } else {
        snprintf(out, 96, "%s of %zu %s from rank %d", a->word, a->n, type, a->root);
    }
    return out;
}

/* --- on the stream --- */

static void add_all(const fake_meet *m, int ranks)
{
    for (size_t i = 0; i < m->ask.n; i++) {
        if (m->ask.type == ncclFloat32) {
            float sum = ((const float *)m->brought[0])[i];

            for (int r = 1; r < ranks; r++) sum += ((const float *)m->brought[r])[i];
            ((float *)m->result)[i] = sum;
        } else {
            double sum = ((const double *)m->brought[0])[i];

            for (int r = 1; r < ranks; r++) sum += ((const double *)m->brought[r])[i];
            ((double *)m->result)[i] = sum;
        }
    }
}

static void finish(const fake_group *g, fake_meet *m)
{
    if (m->ask.root >= 0) {
        memcpy(m->result, m->brought[m->ask.root], bytes_of(&m->ask));
    } else {
        add_all(m, g->ranks);
    }
}

static void hung(const fake_post *p)
{
    const fake_group *g = p->comm->group;
    char text[96], missing[256] = "";
    size_t len = 0;

    for (int r = 0; r < g->ranks; r++) {
        if (p->meet->came[r] || len + 8 > sizeof missing) continue;
        len += (size_t)snprintf(missing + len, sizeof missing - len, " %d", r);
    }
    fake_fault(&fake_nccl_faults,
               "rank %d hung in collective %u (%s): only %d of %d ranks came, missing:%s",
               p->comm->rank, p->meet->number, ask_text(&p->meet->ask, text), p->meet->arrived,
               g->ranks, missing);
    p->comm->error = ncclRemoteError;
}

/* Wait for the peers; the lock is held. @return 1 when all came */
static int await_peers(const fake_post *p)
{
    const fake_group *g = p->comm->group;
    const int64_t end = fake_now() + fake_nccl_patience_ms * 1000000LL;

    while (p->meet->arrived < g->ranks) {
        if (p->comm->aborted || p->meet->bad || fake_is_broken(p->comm->gpu)) return 0;
        if (!fake_wait_until(end) || p->meet->arrived == g->ranks) continue;
        hung(p);
        return 0;
    }
    return !p->comm->aborted && !p->meet->bad;
}

static void run_collective(void *arg)
{
    fake_post *p = arg;
    fake_meet *m = p->meet;
    const size_t bytes = bytes_of(&m->ask);
    int came = 0;

    if (m->bad) return;
    fake_reads(p->src, bytes);
    fake_lock();
    memcpy(m->brought[p->comm->rank], p->src, bytes);
    m->came[p->comm->rank] = 1;
    if (++m->arrived == p->comm->group->ranks) finish(p->comm->group, m);
    fake_wake();
    came = await_peers(p);
    fake_unlock();
    if (!came) return;
    fake_writes(p->dst, bytes);
    fake_lock();
    memcpy(p->dst, m->result, bytes);
    fake_unlock();
}

static void drop_collective(void *arg)
{
    fake_post *p = arg;

    fake_lock();
    if (++p->meet->left == p->comm->group->ranks) fake_nccl_put_meet(p->comm->group, p->meet);
    fake_nccl_put(p->comm);
    fake_wake();
    free(p);
    fake_unlock();
}

/* --- queueing --- */

static void queue(fake_post *p)
{
    const size_t bytes = bytes_of(&p->meet->ask);
    const char *word = p->meet->ask.word;
    const void *src = p->src;
    void *dst = p->dst;
    cudaStream_t s = p->stream;

    if (fake_work(s, run_collective, drop_collective, p, word) != cudaSuccess) return;
    fake_stream_uses(s, src, bytes, 0, word);
    fake_stream_uses(s, dst, bytes, 1, word);
}

int fake_nccl_flush(ncclComm_t c)
{
    for (;;) {
        fake_post *p;
        int wait;

        fake_lock();
        p = c->posts;
        wait = p && !p->meet->number && p->meet->asked < c->group->ranks && !p->meet->bad;
        if (p && !wait && !(c->posts = p->next)) c->tail = &c->posts;
        fake_unlock();
        if (!p || wait) return !p;
        queue(p);
    }
}

/* The meeting of c's next collective, new or joined; the lock is held. */
static fake_meet *meet_next(ncclComm_t c, const fake_ask *ask)
{
    fake_group *g = c->group;
    const unsigned number = c->number++;
    fake_meet *m = g->meets;
    char mine[96], theirs[96];

    while (m && m->number != number) m = m->next;
    if (!m) {
        if (!(m = calloc(1, sizeof *m))) fake_die("no memory for a collective");
        m->number = number;
        m->first = c->rank;
        m->ask = *ask;
        m->result = calloc(1, bytes_of(ask) + 1);
        for (int r = 0; r < g->ranks; r++) m->brought[r] = calloc(1, bytes_of(ask) + 1);
        m->next = g->meets;
        g->meets = m;
    }
    m->asked++;
    if (m->ask.n == ask->n && m->ask.type == ask->type && m->ask.root == ask->root &&
        !strcmp(m->ask.word, ask->word))
        return m;
    fake_fault(&fake_nccl_faults, "collective %u differs: rank %d %s, rank %d %s", number, m->first,
               ask_text(&m->ask, theirs), c->rank, ask_text(ask, mine));
    m->bad = 1;
    for (int r = 0; r < g->ranks; r++)
        if (g->member[r]) g->member[r]->error = ncclInvalidUsage;
    fake_wake();
    return m;
}

/* Hand in a finished call. */
static ncclResult_t post(fake_post *p)
{
    ncclComm_t c = p->comm;

    if (c->blocking) {
        queue(p);
        return ncclSuccess;
    }
    fake_lock();
    *c->tail = p;
    c->tail = &p->next;
    fake_unlock();
    return ncclInProgress;
}

static ncclResult_t may_ask(ncclComm_t c, const fake_ask *ask, const void *src, const void *dst,
                            cudaStream_t s)
{
    ncclResult_t state;

    if (c->error != ncclSuccess) return c->error;
    if (ask->root < -1 || ask->root >= c->group->ranks) return ncclInvalidArgument;
    if (ask->n &&
        (!fake_is_device_memory(src, bytes_of(ask)) || !fake_is_device_memory(dst, bytes_of(ask))))
        return ncclInvalidArgument;
    if (fake_stream_gpu(s) != c->gpu) return ncclUnhandledCudaError;
    if (depth) return ncclSuccess;
    ncclCommGetAsyncError(c, &state); /* what was asked before must be queued */
    return state == ncclInProgress ? ncclInvalidArgument : state;
}

static ncclResult_t collective(fake_nccl_call call, const fake_ask *ask, const void *src, void *dst,
                               ncclComm_t c, cudaStream_t s)
{
    ncclResult_t e = fake_nccl_injected(call);
    fake_post *p;
    int live;

    fake_lock();
    live = fake_nccl_is_live(c);
    fake_unlock();
    if (!live) fake_die("NCCL: a communicator is used after its end");
    if (e != ncclSuccess || (e = may_ask(c, ask, src, dst, s)) != ncclSuccess) return e;
    if (!(p = calloc(1, sizeof *p))) fake_die("no memory for a call");
    *p = (fake_post){ NULL, c, NULL, src, dst, s };
    fake_lock();
    p->meet = meet_next(c, ask);
    c->refs++;
    fake_unlock();
    if (!depth) return post(p);
    p->next = grouped;
    grouped = p;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t e = ncclSuccess;
    fake_post *first = NULL;

    if (!depth) return ncclInvalidUsage;
    if (--depth) return ncclSuccess;
    while (grouped) { /* into the order of the calls */
        fake_post *p = grouped;

        grouped = p->next;
        p->next = first;
        first = p;
    }
    while (first) {
        fake_post *p = first;
        ncclResult_t one;

        first = p->next;
        p->next = NULL;
        if ((one = post(p)) != ncclSuccess) e = one;
    }
    return e;
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    const fake_ask ask = { "sum", n, type, -1 };

    if (op != ncclSum || (type != ncclFloat32 && type != ncclFloat64)) return ncclInvalidArgument;
    return collective(FAKE_NCCL_SUM, &ask, src, dst, c, s);
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t n, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t s)
{
    const fake_ask ask = { "broadcast", n, type, root };
    size_t size;

    type_name(type, &size);
    if (!size) return ncclInvalidArgument;
    return collective(FAKE_NCCL_BROADCAST, &ask, src, dst, c, s);
}
