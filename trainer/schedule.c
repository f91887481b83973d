/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate as a function of the position in the run; see optim.h. */
#include "trainer/optim.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* gamma is multiplied in one step at a time, as StepLR does, so that the value has the same bits. */
static double step_lr(const dpt_schedule *s, int64_t epoch)
{
    const double drops = s->step_size > 0 ? floor((double)epoch / s->step_size) : 0;
    double lr = s->lr;

    for (double k = 0; k < drops && lr != 0; k++) {
        const double next = lr * s->gamma;
        if (next == lr) break; /* gamma 1 */
        lr = next;
    }
    return lr;
}

static double cosine_lr(const dpt_schedule *s, double at)
{
    const double length = s->epochs - s->warmup;
    double t = length > 0 ? (at - s->warmup) / length : 1;

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return s->min_lr + (s->lr - s->min_lr) / 2 * (1 + cos(pi * t));
}

double dpt_schedule_lr(const dpt_schedule *s, int64_t epoch, double fraction)
{
    const double at = (double)epoch + fraction;
    double lr = s->lr;

    if (s->kind == DPT_SCHED_STEP) lr = step_lr(s, epoch);
    if (s->kind == DPT_SCHED_COSINE) lr = cosine_lr(s, at);
    if (at < s->warmup) lr *= s->warmup_start + (1 - s->warmup_start) * at / s->warmup;
    return lr;
}
