/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a run to end: the first one is noted, cancels the step that is being computed, and
 * the run ends with its state saved; a second one ends the process at once, unless it is a SIGHUP. */
#ifndef DPT_TRAINER_INTERRUPT_H
#define DPT_TRAINER_INTERRUPT_H

#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Take SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored, SIGHUP; ignore SIGPIPE and SIGXFSZ, so
 *  that a closed pipe does not end training and a file that may not grow is an error of the save. */
void dpt_interrupt_install(void);

/** The signal that arrived, or 0. Any thread. */
int dpt_interrupt_signal(void);

/** The word that this signal is put in, for dpt_team_options.cancel. */
const int *dpt_interrupt_cancel(void);

/** "SIGINT" … of a signal taken here. */
const char *dpt_interrupt_name(int sig);

/** The exit code of a run that this signal ended; saved: 1 = its state is on disk. */
int dpt_interrupt_exit(int sig, int saved);
/** The same for the signal that arrived, with nothing saved; why: "stopped by SIGINT". */
int dpt_interrupt_fail(dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
