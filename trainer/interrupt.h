/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a run to end: the first one is noted and the run ends at the next safe point, a
 * second one ends the process at once. */
#ifndef DPT_TRAINER_INTERRUPT_H
#define DPT_TRAINER_INTERRUPT_H

#ifdef __cplusplus
extern "C" {
#endif

/** Take SIGINT, SIGTERM and SIGUSR1; ignore SIGPIPE and SIGXFSZ, so that a closed pipe does not end
 *  training and a file that may not grow is an error of the save. */
void dpt_interrupt_install(void);

/** The signal that arrived, or 0. Any thread. */
int dpt_interrupt_signal(void);

/** "SIGINT" … of a signal taken here. */
const char *dpt_interrupt_name(int sig);

/** The exit code of a run that this signal ended; saved: 1 = its state is on disk. */
int dpt_interrupt_exit(int sig, int saved);

#ifdef __cplusplus
}
#endif
#endif
