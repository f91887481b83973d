/* SPDX-License-Identifier: Apache-2.0 */
/* See team_step.h. */
#include "tests/team_step.h"

int test_team_step(dpt_team *t, const dpt_team_part *part, const dpt_update *rule, int planned,
                   dpt_sums *sums, dpl_text *why)
{
    const dpt_team_step s = { .part = part, .update = *rule, .planned = planned };
    dpt_team_result r = { .stop = 0 };
    int err = dpt_team_submit(t, &s, why);

    if (!err) err = dpt_team_collect(t, &r, why);
    *sums = r.sums;
    return err;
}
