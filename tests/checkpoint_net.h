/* SPDX-License-Identifier: Apache-2.0 */
/* A small net to save and load, and what the checkpoint tests share about it. */
#ifndef TESTS_CHECKPOINT_NET_H
#define TESTS_CHECKPOINT_NET_H

#include "tests/testutil.h"
#include "trainer/checkpoint.h"

/* A net of one convolution, one batch norm and a classifier. */
enum { FILTERS = 32, CLASSES = 2, WEIGHTS = FILTERS * 27, HEAD = CLASSES * FILTERS };
enum { PARAMS = WEIGHTS + 2 * FILTERS + HEAD + CLASSES, BUFFERS = 2 * FILTERS };

typedef struct test_net {
    dpt_param param[5], buffer[2];
    dpt_node node[5];
    dpt_graph graph;
    float params[PARAMS], momentum[PARAMS], second[PARAMS], buffers[BUFFERS];
    dpt_checkpoint c;
} test_net;

extern const char *const test_animals[2]; /* folder names need not be UTF-8 */

/** A net of zeros; its parts point into n: it must not move. */
void test_net_init(test_net *n);
/** Fill with numbers that tell which save they belong to; with the state of c.rule. */
void test_net_fill(test_net *n, int k);
int test_net_same(const test_net *a, const test_net *b);

void test_net_save(const test_net *n, const char *folder, const char *name, int with_state);
/** A new folder with save k in it. */
const char *test_net_saved(int k);

/** Loading must fail with err and a text that has all of the words ("a|b"); n must stay as it is. */
void test_net_refused(test_net *n, const char *path, int need_state, int err, const char *words);

/** Names in a folder that contain `part`; the last one goes to last (may be NULL, else 256 bytes). */
int test_count_files(const char *folder, const char *part, char *last);
/** Path of the optimizer state in a run folder, of which there must be one. */
const char *test_net_state(const char *folder);

#endif
