/* SPDX-License-Identifier: Apache-2.0 */
/* N threads that carry out an order each while the caller waits for all: the way of replicas, where
 * each has memory and state that belong to its own thread. The wait between two orders is the
 * barrier: what a member wrote during one, every member and the caller see after it. */
#ifndef DPT_TRAINER_CREW_H
#define DPT_TRAINER_CREW_H

#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_crew dpt_crew;

/** What member `index` does, in its thread. why is the member's own and empty at first.
 *  @return DPL_OK, or a status; why may say more */
typedef int dpt_crew_order(void *arg, int index, dpl_text *why);

/** Start `members` threads, which wait for orders. name: static, such as "replica": threads are named
 *  replica0, replica1 …, and error texts begin with "replica 1: ".
 *  @return DPL_OK, DPL_ENOMEM; why */
int dpt_crew_create(dpt_crew **out, int members, const char *name, dpl_text *why);
/** End and join the threads. What members hold of their own is given up by an order before. NULL is
 *  fine. */
void dpt_crew_destroy(dpt_crew **c);

/** Let every member carry out the order; blocks until the last has finished, failed or not. One
 *  thread at a time gives orders. @return DPL_OK; DPL_ECANCELED when a member was canceled, else the
 *  status of the first member, by number, that failed; why (may be NULL) names it */
int dpt_crew_do(dpt_crew *c, dpt_crew_order *order, void *arg, dpl_text *why);

#ifdef __cplusplus
}
#endif
#endif
