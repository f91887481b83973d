/* SPDX-License-Identifier: Apache-2.0 */
/* Bad and warned samples. A slot collects what its workers met; the list and the cap see it only when
 * the batch is delivered, so that what is counted when depends on the data, never on timing. */
#include "loader/loader.h"

#include "base/alloc.h"
#include "loader/source_walk.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seen_key(uint64_t id, dpl_bad_kind kind)
{
    return id * 2 + (kind == DPL_BAD_WARNED);
}

int dpl_issue_add(dpl_loader *l, dpl_slot *s, int place, dpl_bad_kind kind, uint64_t id,
                  const char *path, const char *reason)
{
    dpl_issue *issue;
    char *copy;

    if (dpl_idmap_get(&l->bad_seen, seen_key(id, kind))) return DPL_OK;
    if (dpl_grow((void **)&s->issue, &s->issue_cap, s->issues + 1, sizeof *s->issue) ||
        !(copy = dpl_strdup(reason)))
        return DPL_ENOMEM;
    issue = &s->issue[s->issues++];
    issue->place = place;
    issue->kind = kind;
    issue->id = id;
    issue->path = path;
    issue->reason = copy;
    return DPL_OK;
}

void dpl_issues_clear(dpl_slot *s)
{
    for (size_t k = 0; k < s->issues; k++) free(s->issue[k].reason);
    s->issues = 0;
}

static int by_place(const void *a, const void *b)
{
    return ((const dpl_issue *)a)->place - ((const dpl_issue *)b)->place;
}

/* Enter one issue; the reason becomes the list's. */
static int enter(dpl_loader *l, dpl_issue *issue)
{
    const uint64_t key = seen_key(issue->id, issue->kind);
    dpl_bad *bad;

    if (dpl_idmap_get(&l->bad_seen, key)) return DPL_OK; /* met in the slot of another epoch too */
    if (dpl_grow((void **)&l->bad, &l->bad_room, l->bads + 1, sizeof *l->bad)) return DPL_ENOMEM;
    bad = &l->bad[l->bads];
    if (dpl_idmap_put(&l->bad_seen, key, l)) return DPL_ENOMEM;
    bad->path = issue->path;
    bad->id = issue->id;
    bad->kind = issue->kind;
    bad->reason = issue->reason;
    issue->reason = NULL;
    l->bads++;
    if (bad->kind == DPL_BAD_REFUSED)
        l->refused++;
    else
        l->warned++;
    return DPL_OK;
}

static int past_cap(const dpl_loader *l, dpl_text *why)
{
    const dpl_bad *first = l->bad;

    while (first->kind != DPL_BAD_REFUSED) first++;
    return dpl_fail(why, DPL_EDATA,
                    "%llu bad sample%s, the cap is %llu (max_bad %g of %llu samples); the first: "
                    "%.600s: %s",
                    (unsigned long long)l->refused, l->refused == 1 ? "" : "s",
                    (unsigned long long)l->bad_cap, l->opt.max_bad,
                    (unsigned long long)l->samples->count, first->path, first->reason);
}

int dpl_issues_settle(dpl_loader *l, dpl_slot *s, dpl_text *why)
{
    int err = DPL_OK;

    if (!s->issues) return DPL_OK;
    qsort(s->issue, s->issues, sizeof *s->issue, by_place);
    for (size_t k = 0; k < s->issues && !err; k++) err = enter(l, &s->issue[k]);
    dpl_issues_clear(s);
    if (err) return dpl_fail(why, err, "no memory for the list of bad samples");
    return l->refused > l->bad_cap ? past_cap(l, why) : DPL_OK;
}

void dpl_bad_fini(dpl_loader *l)
{
    for (size_t k = 0; k < l->bads; k++) free((void *)(uintptr_t)l->bad[k].reason);
    free(l->bad);
    dpl_idmap_free(&l->bad_seen, 0);
    dpl_idmap_free(&l->names, 1);
}

int dpl_bad_get(const dpl_loader *l, uint64_t i, dpl_bad *out)
{
    dpl_loader *m = (dpl_loader *)(uintptr_t)l; /* the lock is taken, nothing is changed */
    int err = DPL_EOF;

    memset(out, 0, sizeof *out);
    if (dpl_loader_foreign(l)) return DPL_EFORK;
    pthread_mutex_lock(&m->lock);
    if (i < l->bads) {
        *out = l->bad[i];
        err = DPL_OK;
    }
    pthread_mutex_unlock(&m->lock);
    return err;
}

const char *dpl_sample_name(const dpl_loader *l, uint64_t id)
{
    dpl_loader *m = (dpl_loader *)(uintptr_t)l; /* the cache of names has a lock of its own */
    char buf[DPL_PATH_BYTES];
    char *name, *fresh = NULL;

    if (id >= l->samples->total || dpl_loader_foreign(l)) return NULL;
    pthread_mutex_lock(&m->name_lock);
    name = dpl_idmap_get(&m->names, id);
    pthread_mutex_unlock(&m->name_lock);
    if (name) return name;
    /* The caller's own function may run here: no lock is held. */
    if (!(fresh = dpl_strdup(l->samples->ops->name(l->samples, id, buf, sizeof buf)))) return NULL;
    pthread_mutex_lock(&m->name_lock);
    if (!(name = dpl_idmap_get(&m->names, id)) && !dpl_idmap_put(&m->names, id, fresh)) {
        name = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&m->name_lock);
    free(fresh);
    return name;
}
