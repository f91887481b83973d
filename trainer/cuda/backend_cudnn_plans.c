/* SPDX-License-Identifier: Apache-2.0 */
/* All plans of a program, on several threads; see backend_cudnn_plan.h. */
#include "base/alloc.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/backend.h"
#include "trainer/cuda/backend_cudnn_desc.h"
#include "trainer/cuda/backend_cudnn_plan.h"

#include <stdlib.h>
#include <string.h>

/* A plan to be made, by one worker. */
typedef struct job {
    size_t op;
    dpt_cu_plan *plan;
    int err;
    dpl_text why;
} job;

typedef struct builder {
    const dpt_cu_prog *p;
    const dpt_cu_plan_options *o;
    job *job;
    size_t jobs;
    pthread_mutex_t lock; /* guards next, failed */
    size_t next;
    int failed;
} builder;

static int take(builder *b, size_t *i)
{
    int there;

    pthread_mutex_lock(&b->lock);
    there = !b->failed && b->next < b->jobs;
    if (there) *i = b->next++;
    pthread_mutex_unlock(&b->lock);
    return there;
}

static void fail(builder *b)
{
    pthread_mutex_lock(&b->lock);
    b->failed = 1;
    pthread_mutex_unlock(&b->lock);
}

static void make(builder *b, job *j, cudnnBackendDescriptor_t dev)
{
    if (dpt_canceled(b->o->cancel)) {
        j->err = dpl_fail(&j->why, DPL_ECANCELED, "canceled while plans were built");
    } else {
        char name[160];

        j->err = dpt_cu_plan_make(j->plan, b->p, j->op, b->o, dev, &j->why);
        if (j->err) {
            dpl_text_prefix(&j->why, "%s", dpt_cu_op_name(b->p, j->op, name, sizeof name));
        }
    }
    if (j->err) fail(b);
}

static void *work(void *arg)
{
    builder *b = arg;
    cudnnBackendDescriptor_t dev; /* its own: cuDNN promises nothing about sharing one */
    cudnnStatus_t s;
    size_t i;

    if (b->o->begin) b->o->begin(b->o->gpu);
    s = dpt_cu_device_open(b->o->device, &dev);
    while (take(b, &i)) {
        if (s) {
            b->job[i].err = dpt_cu_fail(s, "describe the device", &b->job[i].why);
            fail(b);
        } else {
            make(b, &b->job[i], dev);
        }
    }
    if (!s) cudnnBackendDestroyDescriptor(dev);
    return NULL;
}

static void run(builder *b)
{
    enum { MOST = 16 };
    pthread_t thread[MOST];
    int started = 0, want = b->o->threads < MOST ? b->o->threads : MOST;

    if ((size_t)want > b->jobs) want = (int)b->jobs;
    while (started < want - 1 && !dpl_thread_start(&thread[started], "plans", work, b)) started++;
    work(b);
    while (started > 0) pthread_join(thread[--started], NULL);
}

static void plan_free(dpt_cu_plan *p)
{
    if (!p) return;
    if (p->d) cudnnBackendDestroyDescriptor(p->d);
    free(p->key);
    free(p);
}

static int find(const dpt_cu_plans *s, const char *key)
{
    for (size_t i = 0; i < s->plans; i++) {
        if (s->plan[i]->key && strcmp(s->plan[i]->key, key) == 0) return (int)i;
    }
    return -1;
}

/* Number every operation's plan; what the set has not becomes a job. */
static int collect(dpt_cu_plans *s, builder *b, int *which)
{
    const dpt_cu_prog *p = b->p;

    for (size_t i = 0; i < p->ops; i++) {
        char key[DPT_CU_KEY];
        int local[DPT_CU_LOCAL];
        dpt_cu_plan *plan;
        void *list = s->plan;

        which[i] = -1;
        if (p->op[i].what != DPT_CU_GRAPH) continue;
        if (b->o->skip && b->o->skip[i]) continue;
        if (dpt_cu_key(p, i, key, local) >= 0 && (which[i] = find(s, key)) >= 0) continue;
        if (dpl_grow(&list, &s->cap, s->plans + 1, sizeof(dpt_cu_plan *))) return DPL_ENOMEM;
        s->plan = list;
        if (!(plan = dpl_calloc(1, sizeof *plan)) || !(plan->key = dpl_strdup(key))) {
            plan_free(plan);
            return DPL_ENOMEM;
        }
        which[i] = (int)s->plans;
        b->job[b->jobs++] = (job){ .op = i, .plan = plan };
        s->plan[s->plans++] = plan;
    }
    return DPL_OK;
}

int dpt_cu_plans_add(dpt_cu_plans *s, const dpt_cu_prog *p, const dpt_cu_plan_options *o,
                     int *which, dpl_text *why)
{
    const size_t before = s->plans;
    builder b = { .p = p, .o = o };
    int err = DPL_ENOMEM;

    pthread_mutex_init(&b.lock, NULL);
    if ((b.job = dpl_calloc(p->ops, sizeof *b.job))) err = collect(s, &b, which);
    if (err) dpl_fail(why, err, "out of memory for the list of plans");
    if (!err && b.jobs > 0) run(&b);
    for (size_t i = 0; i < b.jobs && !err; i++) {
        if ((err = b.job[i].err) && why) *why = b.job[i].why;
    }
    while (err && s->plans > before) plan_free(s->plan[--s->plans]);
    pthread_mutex_destroy(&b.lock);
    free(b.job);
    return err;
}

void dpt_cu_plans_fini(dpt_cu_plans *s)
{
    while (s->plans > 0) plan_free(s->plan[--s->plans]);
    free(s->plan);
    *s = (dpt_cu_plans){ .plans = 0 };
}
