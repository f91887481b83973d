/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL: joining, states and ends of communicators, and the test's controls. */
#include "tests/fake/cuda/fake_nccl_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 20000 };

/* Guarded by the lock of the fakes. */
static fake_group *groups;
static ncclComm_t comms;
static unsigned ids;
static int never[FAKE_RANKS_MAX];
static int abort_ms;
static int deaf; /* so many joinings find nobody */
static const char *refused = "";
static struct {
    int count, at;
    ncclResult_t e;
} calls[FAKE_NCCL_CALLS];
fake_faults fake_nccl_faults;
int fake_nccl_patience_ms = PATIENCE_MS;

/* --- lists --- */

int fake_nccl_is_live(ncclComm_t c)
{
    for (ncclComm_t i = comms; i; i = i->next)
        if (i == c) return 1;
    return 0;
}

void fake_nccl_put_meet(fake_group *g, fake_meet *m)
{
    for (fake_meet **at = &g->meets; *at; at = &(*at)->next) {
        if (*at != m) continue;
        *at = m->next;
        break;
    }
    for (int r = 0; r < g->ranks; r++) free(m->brought[r]);
    free(m->result);
    free(m);
}

static void put_group(fake_group *g)
{
    if (--g->refs) return;
    while (g->meets) fake_nccl_put_meet(g, g->meets);
    for (fake_group **at = &groups; *at; at = &(*at)->next) {
        if (*at != g) continue;
        *at = g->next;
        break;
    }
    free(g);
}

void fake_nccl_put(ncclComm_t c)
{
    if (--c->refs) return;
    put_group(c->group);
    free(c);
}

/* The owner gives it back: queued work may still hold it. */
static void give_back(ncclComm_t c)
{
    for (ncclComm_t *at = &comms; *at; at = &(*at)->next) {
        if (*at != c) continue;
        *at = c->next;
        break;
    }
    c->group->member[c->rank] = NULL;
    if (!c->group->full) c->group->joined--;
    while (c->posts) {
        fake_post *p = c->posts;

        c->posts = p->next;
        free(p);
        c->refs--;
    }
    fake_nccl_put(c);
}

/* --- failures on order --- */

ncclResult_t fake_nccl_injected(fake_nccl_call call)
{
    ncclResult_t e;

    fake_lock();
    e = ++calls[call].count == calls[call].at ? calls[call].e : ncclSuccess;
    fake_unlock();
    return e;
}

static void control_inject(fake_nccl_call call, int k, int e)
{
    fake_lock();
    calls[call].at = calls[call].count + k;
    calls[call].e = (ncclResult_t)e;
    fake_unlock();
}

static void control_fail_rank(int rank, int e)
{
    fake_lock();
    for (ncclComm_t c = comms; c; c = c->next)
        if (c->rank == rank) c->error = (ncclResult_t)e;
    fake_unlock();
}

static void control_never_ready(int rank, int on)
{
    fake_lock();
    never[rank] = on;
    fake_unlock();
}

static void control_patience(int ms)
{
    fake_lock();
    fake_nccl_patience_ms = ms;
    fake_unlock();
}

static void control_abort_takes(int ms)
{
    fake_lock();
    abort_ms = ms;
    fake_unlock();
}

static void control_nobody_listens(int times)
{
    fake_lock();
    deaf = times;
    fake_unlock();
}

static void control_reset(void)
{
    fake_lock();
    abort_ms = deaf = 0;
    refused = "";
    fake_nccl_patience_ms = PATIENCE_MS;
    fake_nccl_faults = (fake_faults){ 0 };
    memset(never, 0, sizeof never);
    for (int i = 0; i < FAKE_NCCL_CALLS; i++) calls[i].at = 0;
    fake_unlock();
}

static int control_count(fake_nccl_call call)
{
    int n;

    fake_lock();
    n = calls[call].count;
    fake_unlock();
    return n;
}

static int control_alive(void)
{
    int n = 0;

    fake_lock();
    for (ncclComm_t c = comms; c; c = c->next) n++;
    fake_unlock();
    return n;
}

static int control_faults(void)
{
    int n;

    fake_lock();
    n = fake_nccl_faults.n;
    fake_unlock();
    return n;
}

static const char *control_fault(void)
{
    return fake_nccl_faults.first;
}

const fake_nccl *fake_nccl_controls(void);

const fake_nccl *fake_nccl_controls(void)
{
    static const fake_nccl controls = {
        .inject = control_inject,
        .fail_rank = control_fail_rank,
        .never_ready = control_never_ready,
        .patience_ms = control_patience,
        .abort_takes = control_abort_takes,
        .nobody_listens = control_nobody_listens,
        .reset = control_reset,
        .count = control_count,
        .alive = control_alive,
        .faults = control_faults,
        .fault = control_fault,
    };

    return &controls;
}

/* --- words --- */

ncclResult_t ncclGetVersion(int *version)
{
    const char *other = getenv("FAKE_NCCL_VERSION");

    *version = other ? atoi(other) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t e)
{
    static const char *const words[ncclNumResults] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return (unsigned)e < ncclNumResults ? words[e] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return *refused ? refused : fake_nccl_faults.first;
}

/* --- joining --- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *address = getenv("NCCL_COMM_ID");
    const ncclResult_t e = fake_nccl_injected(FAKE_NCCL_ID);

    if (e != ncclSuccess) return e;
    memset(id, 0, sizeof *id);
    fake_lock();
    if (address) {
        snprintf(id->internal, sizeof id->internal, "at %s", address);
    } else {
        snprintf(id->internal, sizeof id->internal, "group %u", ++ids);
    }
    fake_unlock();
    return ncclSuccess;
}

/* The group of that id that is not complete yet; a complete one is of an earlier time. */
static fake_group *find_group(const ncclUniqueId *id, int ranks)
{
    fake_group *g;

    for (g = groups; g; g = g->next)
        if (!g->full && !memcmp(&g->id, id, sizeof *id)) return g;
    if (!(g = calloc(1, sizeof *g))) fake_die("no memory for a group");
    g->id = *id;
    g->ranks = ranks;
    g->next = groups;
    groups = g;
    return g;
}

/* What NCCL would refuse, or hang on. */
static ncclResult_t may_join(const fake_group *g, int ranks, int rank, int gpu)
{
    if (g->ranks != ranks) {
        fake_fault(&fake_nccl_faults, "rank %d joins %d ranks, others joined %d", rank, ranks,
                   g->ranks);
        return ncclInvalidArgument;
    }
    if (g->member[rank]) {
        fake_fault(&fake_nccl_faults, "rank %d joins twice", rank);
        return ncclInvalidUsage;
    }
    for (int r = 0; r < ranks; r++) {
        if (!g->member[r] || g->member[r]->gpu != gpu) continue;
        fake_fault(&fake_nccl_faults, "Duplicate GPU detected: rank %d and rank %d both on GPU %d",
                   rank, r, gpu);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

/* Wait until all have joined; the lock is held. */
static ncclResult_t await_group(const fake_group *g, int rank)
{
    const int64_t end = fake_now() + fake_nccl_patience_ms * 1000000LL;

    while (!g->full) {
        if (!fake_wait_until(end)) continue;
        fake_fault(&fake_nccl_faults, "rank %d hung in joining: only %d of %d ranks came", rank,
                   g->joined, g->ranks);
        return ncclRemoteError;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    const int blocking = !config || config->blocking != 0;
    ncclResult_t e = fake_nccl_injected(FAKE_NCCL_INIT);
    fake_group *g;
    ncclComm_t c;
    int gpu;

    *out = NULL;
    if (e != ncclSuccess) return e;
    if (cudaGetDevice(&gpu) != cudaSuccess) return ncclUnhandledCudaError;
    if (rank < 0 || rank >= ranks || ranks > FAKE_RANKS_MAX) return ncclInvalidArgument;
    fake_lock();
    refused = deaf > 0 ? "socketPollConnect: connect to 10.0.0.1<29501> returned Connection "
                         "refused, exceeded error retry count after 35 attempts"
                       : "";
    if (deaf > 0) {
        deaf--;
        fake_unlock();
        return ncclRemoteError;
    }
    g = find_group(&id, ranks);
    if ((e = may_join(g, ranks, rank, gpu)) != ncclSuccess) {
        fake_unlock();
        return e;
    }
    if (!(c = calloc(1, sizeof *c))) fake_die("no memory for a communicator");
    *c = (struct ncclComm){ comms, g, rank, gpu, blocking, .refs = 1, .tail = &c->posts };
    comms = c;
    g->member[rank] = c;
    g->refs++;
    g->full = ++g->joined == ranks;
    fake_wake();
    if (blocking) e = await_group(g, rank);
    fake_unlock();
    *out = c;
    return blocking ? e : ncclInProgress;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(out, ranks, id, rank, NULL);
}

/* --- states and ends --- */

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    int joining, finalizing;

    fake_lock();
    if (!fake_nccl_is_live(c)) fake_die("NCCL: a communicator is used after its end");
    *state = c->error;
    joining = !c->group->full || never[c->rank];
    finalizing = c->finalizing && c->refs > 1;
    fake_unlock();
    if (*state == ncclSuccess && (joining || finalizing || !fake_nccl_flush(c)))
        *state = ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    fake_lock();
    if (!fake_nccl_is_live(c)) fake_die("NCCL: a communicator is used after its end");
    c->finalizing = 1;
    fake_unlock();
    return c->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    fake_lock();
    if (!fake_nccl_is_live(c)) fake_die("NCCL: a communicator is destroyed twice");
    if (c->refs > 1 && !fake_is_broken(c->gpu))
        fake_fault(&fake_nccl_faults, "rank %d is destroyed while its collectives run", c->rank);
    give_back(c);
    fake_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    int ms;

    fake_lock();
    ms = abort_ms;
    fake_unlock();
    fake_pass(ms * 1000000LL);
    fake_lock();
    if (!fake_nccl_is_live(c)) fake_die("NCCL: a communicator is aborted after its end");
    c->aborted = 1;
    give_back(c);
    fake_wake();
    fake_unlock();
    return ncclSuccess;
}
