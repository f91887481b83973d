/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs that tests plant into a team of fake GPUs, to see that they are found. */
#ifndef TESTS_FAKE_REF_EXEC_H
#define TESTS_FAKE_REF_EXEC_H

#ifdef __cplusplus
extern "C" {
#endif

/** Is the bug of that name asked for? Environment REF_EXEC_PLANT:
 *    early-ready  the executor says that gradients are final before it has queued what writes them
 *    late-read    something reads the weights on a stream that nobody waits for
 *    no-wait=K/N  of every N waits of one stream for another, the K-th (0 = first) is left out */
int ref_exec_planted(const char *name);

#ifdef __cplusplus
}
#endif
#endif
