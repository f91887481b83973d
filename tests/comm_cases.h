/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a communicator, each a thread with a GPU, for the tests of sums over GPUs. */
#ifndef TESTS_COMM_CASES_H
#define TESTS_COMM_CASES_H

#include "device/device.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"
#include "trainer/cuda/comm.h"

#include <pthread.h>

enum { TEST_RANKS_MAX = 4, TEST_COMM_FLOATS = 1000 };

/* What is there, or NULL: the plug-in's functions, GPUs (at most TEST_RANKS_MAX), the fakes. */
typedef struct test_comm_world {
    const dpt_comm_calls *calls;
    int gpus;
    const fake_cuda *cuda;
    const fake_nccl *nccl;
} test_comm_world;
extern test_comm_world test_comm;

typedef struct test_member {
    dpt_comm_options opt; /* timeout_ms 0 = a minute */
    int absent;           /* never starts */
    int same_gpu;         /* on GPU 0 */
    int turn;             /* the test's own */
    float out[TEST_COMM_FLOATS];

    int (*body)(struct test_member *m); /* on the member's thread, when it has joined */
    dpl_device *d;
    dpl_stream *s;
    dpt_comm *c;
    float *dev, *host; /* [TEST_COMM_FLOATS] */
    dpt_comm_id id;
    int err; /* of joining or of body */
    dpl_text why;
    int ready, go; /* atomic */
    pthread_t thread;
} test_member;

void test_comm_find(void);  /* fills test_comm, for main() */
void test_comm_reset(void); /* fakes in order, four GPUs */
int test_comm_set_up(void **state);
int test_comm_tear_down(void **state); /* nothing of the fakes is left */
void need_comm(void);                  /* skip where there is no plug-in with its GPUs */
void need_fakes(void);                 /* skip where real ones are used */

/** Start m[0 .. ranks), each on its thread, unless absent. */
void test_comm_start(test_member *m, int ranks, int (*body)(test_member *m));
void test_comm_join(test_member *m);
/** Start, set *word (or NULL) after a while, join all. */
void test_comm_run(test_member *m, int ranks, int *word, int (*body)(test_member *m));

/** Fails unless m ended with err and a text that holds `text`. */
void test_comm_expect(const test_member *m, int err, const char *text);

/* For bodies. */
int test_comm_nothing(test_member *m);
void *test_native(const test_member *m);
int test_comm_put(test_member *m, size_t bytes); /* host to dev, queued */
int test_comm_get(test_member *m, size_t bytes); /* dev to host, and waits */
int test_comm_sum(test_member *m, size_t n);     /* host is summed in dev and brought back */
int test_wrong(test_member *m, const char *what, int i);
void test_comm_ready(test_member *m); /* for test_comm_wait_ready() */
void test_comm_await(test_member *m); /* test_comm_go() */
void test_comm_wait_ready(test_member *m);
void test_comm_go(test_member *m);
void test_pause_ms(int ms);

/** Fails unless a missing wait between compute and sums is reported, and with it nothing. */
void test_comm_plants(void);
/** For main(): a child's part. @return 1 and its status when argv asks for it, else 0 */
int test_comm_child(int argc, char **argv, int *status);

#endif
