/* SPDX-License-Identifier: Apache-2.0 */
/* --split auto: how the devices of a process share a batch, found by timing each of them. */
#ifndef DPT_TRAINER_SPLIT_AUTO_H
#define DPT_TRAINER_SPLIT_AUTO_H

#include "trainer/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Times of equal parts to weights, a pure function: the fastest has 100, the others 100 * its time /
 *  theirs, rounded half up, at least 1. All within 5 % of the fastest count as equal: 1 each.
 *  @param seconds  [n], each above 0 */
void dpt_split_weights(const double *seconds, int n, int *weight);

/** Let each device of this process, alone, make some steps on an equal part of made-up pictures, with
 *  weights that are thrown away; set the run's weights and parts accordingly, and say the times.
 *  Before the loaders are opened. @return as all functions of a run */
int dpt_run_split_auto(dpt_run *r, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
