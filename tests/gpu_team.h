/* SPDX-License-Identifier: Apache-2.0 */
/* A team of GPUs under test: made data, a stand-in for the loader that brings it as the loader does (a copy
 * stream, two slots, events), and the same steps computed on the host, where the reference backend
 * takes each part and the CPU team's reduction adds them up. */
#ifndef TESTS_GPU_TEAM_H
#define TESTS_GPU_TEAM_H

#include "device/device.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"
#include "trainer/team.h"

enum { TEST_GPUS = 4, TEST_SLOTS = 2, TEST_CLASSES = 7 };

typedef struct test_gpu_case {
    const char *arch; /* a network, or "slimnet": batch norm, residual, more than one bucket */
    int size;         /* pixels, square */
    int gpus;         /* of each process */
    int n[TEST_GPUS]; /* samples of each part, over all processes */
    int refused;      /* samples of the batch that are not there */
    int soft;         /* 1 = two labels per sample */
    int bytes;        /* 1 = uint8 NHWC pixels */
    dpt_amp amp;
    int timeout_ms;
    const int *cancel;
    dpt_rule rule;
    int64_t updates; /* made before */
    int rank, world; /* world 0 = one process; GPU p of rank r is cuda:(r * gpus + p) */
} test_gpu_case;

typedef struct test_gpu_slot {
    dpl_event *copied[TEST_GPUS], *released[TEST_GPUS];
    void *host[TEST_GPUS], *dev[TEST_GPUS];          /* pixels */
    int32_t *labels[TEST_GPUS], *labels2[TEST_GPUS]; /* one pinned block, and mix */
    float *mix[TEST_GPUS];
} test_gpu_slot;

typedef struct test_gpus {
    test_gpu_case c;
    dpt_graph *graph;
    dpl_device *device[TEST_GPUS];
    dpl_stream *copy[TEST_GPUS];
    test_gpu_slot slot[TEST_SLOTS];
    float *params, *momentum, *buffers; /* the team's, brought by fetch */
    float *second;                      /* AdamW, as the team takes it */
    int64_t updates;
    int max_n[TEST_GPUS], gpu[TEST_GPUS];
    dpt_team *team; /* NULL before test_gpus_start() */
} test_gpus;

/** Are the plug-ins and n GPUs there? Fake ones are as many as are asked for. */
int test_gpus_there(int n);
/** 1 where sanitizers make millions of kernels' threads last for minutes. */
int test_gpus_slow(void);
/** Largest difference allowed between a number of the team and of the host, relative to the largest:
 *  over the fake the same arithmetic in another order; on a card its convolutions. */
double test_gpus_tolerance(void);

/** Everything but the team. Fails the test when something is not there. */
void test_gpus_open(test_gpus *g, const test_gpu_case *c);
void test_gpus_options(test_gpus *g, dpt_team_options *opt);
/** @return as dpt_team_create() */
int test_gpus_start(test_gpus *g, dpl_text *why);
void test_gpus_close(test_gpus *g);

/** What the loader does for batch k: wait until the slot is released, fill it, copy, let the team's
 *  streams wait. A pure function of k. @return the parts */
const dpt_team_part *test_gpus_feed(test_gpus *g, int k, dpt_team_part part[TEST_GPUS]);
/** The same without copies: pixels are there already. */
const dpt_team_part *test_gpus_parts(test_gpus *g, int k, dpt_team_part part[TEST_GPUS]);
void test_gpus_release(test_gpus *g, int k);

/** Feed, submit, release. @return as dpt_team_submit() */
int test_gpus_submit(test_gpus *g, int k, const dpt_update *sgd, dpl_text *why);
dpt_update test_gpus_sgd(int k);
int test_gpus_planned(const test_gpu_case *c);
/** GPUs of all processes. */
int test_gpus_all(const test_gpu_case *c);

/* Samples of a batch, a pure function of (batch, sample), however it is split. */
typedef struct test_gpu_data {
    uint8_t *level; /* [n][h][w][3] */
    float *normal;  /* [n][3][h][w] the same, normalised as the loader does */
    int32_t *labels, *labels2;
    float *mix;
} test_gpu_data;

void test_gpus_data(test_gpu_data *d, const test_gpu_case *c, int k, int first, int n);
void test_gpus_data_free(test_gpu_data *d);
dpt_graph *test_gpus_graph(const test_gpu_case *c);
/** What momentum begins with: a first step must not look at it. */
void test_gpus_momentum(const dpt_graph *g, float *momentum);
/** Second moments: far above 0, where a gradient that is rounding alone would count as any other. */
void test_gpus_second(const dpt_graph *g, float *second);

/* The same steps on the host. */
typedef struct test_twin {
    test_gpu_case c;
    dpt_graph *graph;
    struct dpt_exec *exec[TEST_GPUS];
    float *params, *momentum, *second, *buffers;
    double *norms;
    int64_t updates;
    float *grads[TEST_GPUS], *stats[TEST_GPUS];
} test_twin;

void test_twin_open(test_twin *t, const test_gpu_case *c);
void test_twin_step(test_twin *t, int k, const dpt_update *update, dpt_sums *sums);
void test_twin_evaluate(test_twin *t, int k, dpt_sums *sums);
void test_twin_close(test_twin *t);

/** Fail the test unless both have the same weights, state of the optimizer and running statistics, within
 *  tolerance. */
void test_twin_compare(const test_twin *t, const test_gpus *g);
void test_twin_compare_sums(const dpt_sums *got, const dpt_sums *want, const char *what);

/** Start this program again as `argv[0] planted NAME`, with plant as REF_EXEC_PLANT. @return exit code */
int test_gpus_child(const char *name, const char *plant);

#endif
