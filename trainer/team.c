/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a team, passed on to its kind; see team.h. What callers owe is checked here, once. */
#include "trainer/team.h"

#include "dpload.h"

#include <assert.h>

int dpt_team_create(dpt_team **out, const dpt_team_options *opt, dpl_text *why)
{
    const dpt_team_ops *ops = opt->ops ? opt->ops : &dpt_team_cpu_ops;

    assert(opt->replicas > 0);
    *out = NULL;
    return ops->create(out, opt, why);
}

void dpt_team_destroy(dpt_team **t)
{
    if (*t) (*t)->ops->destroy(*t);
    *t = NULL;
}

int dpt_team_depth(const dpt_team *t)
{
    return t->depth;
}

void *const *dpt_team_streams(const dpt_team *t)
{
    return t->streams;
}

int dpt_team_submit(dpt_team *t, const dpt_team_step *s, dpl_text *why)
{
    int err;

    assert(t->under_way < t->depth);
    err = t->ops->submit(t, s, why);
    if (!err) t->under_way++;
    return err;
}

int dpt_team_collect(dpt_team *t, dpt_team_result *r, dpl_text *why)
{
    assert(t->under_way > 0);
    *r = (dpt_team_result){ .stop = 0 };
    t->under_way--;
    return t->ops->collect(t, r, why);
}

int dpt_team_evaluate(dpt_team *t, const dpt_team_part *part, dpt_sums *sums, dpl_text *why)
{
    assert(t->under_way == 0);
    *sums = (dpt_sums){ 0 };
    return t->ops->evaluate(t, part, sums, why);
}

int dpt_team_fetch(dpt_team *t, dpl_text *why)
{
    assert(t->under_way == 0);
    return t->ops->fetch(t, why);
}

int dpt_team_threads(const dpt_team *t, int r)
{
    return t->ops->threads(t, r);
}

const char *dpt_team_describe(dpt_team *t, int i, int *fallback)
{
    return t->ops->describe(t, i, fallback);
}
