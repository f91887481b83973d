/* SPDX-License-Identifier: Apache-2.0 */
/* What --opt brings with it: defaults, options of one rule only, the rule's numbers, its text. */
#include "trainer/cli.h"

#include <stdio.h>

enum { SGD = 1 << DPT_RULE_SGD, ADAMW = 1 << DPT_RULE_ADAMW, LARS = 1 << DPT_RULE_LARS };

static const char *const names[] = { "sgd", "adamw", "lars" };

void dpt_cli_optim_defaults(dpt_options *o)
{
    static const double lr[] = { 0.1, 1e-3, 1 }, weight_decay[] = { 1e-4, 1e-2, 1e-4 };

    if (o->lr < 0) o->lr = lr[o->opt];
    if (o->weight_decay < 0) o->weight_decay = weight_decay[o->opt];
}

int dpt_cli_optim_check(const dpt_cli *c, dpl_text *why)
{
    static const struct {
        const char *option;
        int rules;
        const char *theirs;
    } own[] = { { "momentum", SGD | LARS, "sgd and lars" },
                { "nesterov", SGD, "sgd" },
                { "opt-betas", ADAMW, "adamw" },
                { "opt-eps", ADAMW | LARS, "adamw and lars" },
                { "trust-coeff", LARS, "lars" } };
    const dpt_options *o = &c->opt;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (!dpt_cli_given(c, own[i].option) || own[i].rules >> o->opt & 1) continue;
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--%s with --opt %s: it is an option of %s; leave it out", own[i].option,
                        names[o->opt], own[i].theirs);
    }
    if (o->opt == DPT_RULE_SGD && o->nesterov && o->momentum <= 0)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--nesterov with --momentum 0: Nesterov needs a momentum above 0");
    if (o->betas[0] >= 1 || o->betas[1] >= 1)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--opt-betas %g,%g: an average that takes nothing new in; give numbers "
                        "below 1, such as 0.9,0.999",
                        o->betas[0], o->betas[1]);
    return DPT_EXIT_DONE;
}

dpt_update dpt_cli_update(const dpt_options *o)
{
    return (dpt_update){ .rule = (dpt_rule)o->opt,
                         .weight_decay = o->weight_decay,
                         .momentum = o->momentum,
                         .nesterov = o->nesterov,
                         .beta1 = o->betas[0],
                         .beta2 = o->betas[1],
                         .eps = o->eps,
                         .trust = o->trust };
}

void dpt_cli_optim_text(const dpt_options *o, char *buf, size_t len)
{
    static const char *const sched[] = { "step", "cosine", "const" };
    char own[128] = "";

    switch ((dpt_rule)o->opt) {
    case DPT_RULE_SGD:
        snprintf(own, sizeof own, "momentum %g%s", o->momentum, o->nesterov ? " (Nesterov)" : "");
        break;
    case DPT_RULE_ADAMW:
        snprintf(own, sizeof own, "betas %g and %g, eps %g", o->betas[0], o->betas[1], o->eps);
        break;
    case DPT_RULE_LARS:
        snprintf(own, sizeof own, "momentum %g, trust coefficient %g, eps %g", o->momentum,
                 o->trust, o->eps);
        break;
    }
    snprintf(buf, len, "%s lr %g (%s), %s, weight decay %g", dpt_rule_name((dpt_rule)o->opt), o->lr,
             sched[o->sched], own, o->weight_decay);
}
