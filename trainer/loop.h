/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over the pictures: training, evaluation, simulated training. Each ends early, with
 * DPT_EXIT_DONE, when a signal arrived; the caller looks at dpt_loop_stopping(). */
#ifndef DPT_TRAINER_LOOP_H
#define DPT_TRAINER_LOOP_H

#include "trainer/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The next batch of l. Waits in slices, so that a signal ends the wait within 100 ms, when this
 *  process is alone. streams as in dpl_next_on().
 *  @return as dpl_next_on(); DPL_ECANCELED also after a signal */
int dpt_loop_next(dpt_run *r, dpl_loader *l, void *const *streams, dpl_batch *b,
                  const dpt_pass *pass);
enum { DPT_LOOP_PARTS = 256 }; /* devices at most, as in dpl_device_list_parse() */
/** The parts of a batch as a team takes them: part[b->parts]. */
void dpt_loop_parts(const dpl_batch *b, dpt_team_part *part);
/** 1 when the run is to end early: a signal arrived or, with several processes, all agreed to stop
 *  because one of them got it. Each process then ends its loops at the same step. */
int dpt_loop_stopping(const dpt_run *r);
/** Name pictures that were refused or warned about since the last call. */
void dpt_loop_name_bad(dpt_run *r, dpl_loader *l, uint64_t *named);
/** The exit code and text for a loader's failure. */
int dpt_loop_data_error(dpt_run *r, dpl_loader *l, int status, dpl_text *why);

/** 1 when --steps optimizer steps are done. */
int dpt_loop_steps_done(const dpt_run *r);
/** The pass of the epoch that progress stands in, with what a resumed run has done of it. */
void dpt_loop_train_pass(const dpt_run *r, dpt_pass *pass);
/** Train to the end of the epoch, to --steps, or to a signal, which also cuts a step short: that one
 *  does not count. Progress is kept up to date, and steps on to the next epoch at the end. */
int dpt_loop_train(dpt_run *r, dpt_pass *pass, dpl_text *why);
/** Evaluate every validation picture once. Several processes finish it, whatever signal arrives: all
 *  have to make the same calls. */
int dpt_loop_evaluate(dpt_run *r, dpt_pass *pass, dpl_text *why);
/** The whole of a run on simulated devices. */
int dpt_loop_simulate(dpt_run *r, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
