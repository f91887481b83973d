/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a team as tests take it: handed in and fetched at once. */
#ifndef TESTS_TEAM_STEP_H
#define TESTS_TEAM_STEP_H

#include "trainer/team.h"

/** @return the first failure; *sums: of the step, 0 when it failed. planned: as in dpt_team_step */
int test_team_step(dpt_team *t, const dpt_team_part *part, const dpt_update *rule, int planned,
                   dpt_sums *sums, dpl_text *why);

#endif
