/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the tests: a team with one wait left out, or a loader that rewrites labels too early, is
 * reported; with all its waits it is not. Found by ThreadSanitizer, and in every build by the fake's
 * checker of order where it knows of the accesses. */
#include "dpload.h"
#include "tests/device_cases.h"
#include "tests/gpu_team.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RACE = 66, FAULT = 67, BROKEN = 68 };

static const test_gpu_case two = { .arch = "slimnet", .size = 8, .gpus = 2, .n = { 2, 1 } };

/* Two steps of two GPUs, as the loader and the loop make them. */
static int steps(int early)
{
    const dpt_update sgd = { .lr = 0.01, .momentum = 0.9 };
    dpt_team_result r;
    test_gpus g;
    int faults;

    test_gpus_open(&g, &two);
    if (test_gpus_start(&g, NULL)) return BROKEN;
    for (int k = 0; k < 2; k++) {
        if (test_gpus_submit(&g, k, &sgd, NULL)) return BROKEN;
        if (early) g.slot[k].labels[0][0] = 1; /* the copy of it may not be over */
    }
    for (int k = 0; k < 2; k++) {
        if (dpt_team_collect(g.team, &r, NULL)) return BROKEN;
    }
    faults = test_fake_cuda()->faults();
    test_gpus_close(&g);
    return faults ? FAULT : 0;
}

typedef struct plant {
    const char *what, *name, *plant;
    int declared; /* 1 = the checker of order knows both accesses */
} plant;

/* slimnet's gradients travel in three pieces, each handed over with a wait; then statistics and counts
 * with one, and one is for the way back: five in a step. */
static const plant plants[] = {
    { "the first piece is summed before it is there", "steps", "no-wait=0/5", 1 },
    { "the second piece is summed before it is there", "steps", "no-wait=1/5", 1 },
    { "the last piece is summed before it is there", "steps", "no-wait=2/5", 1 },
    { "statistics are summed before they are there", "steps", "no-wait=3/5", 0 },
    { "the update does not wait for the last sum", "steps", "no-wait=4/5", 1 },
    { "the executor says ready too early", "steps", "early-ready", 1 },
    { "weights are updated while something reads them", "steps", "late-read", 0 },
    { "labels are rewritten before they are copied", "labels", "", 0 },
};

static void planted_bugs_are_reported(void **state)
{
    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(2)) skip();
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        const plant *p = &plants[i];
        const int code = test_gpus_child(p->name, p->plant);

        if (test_device_has_tsan() ? code != RACE : p->declared && code != FAULT)
            fail_msg("%s: not seen (exit code %d)", p->what, code);
    }
}

static void without_them_nothing_is_reported(void **state)
{
    (void)state;
    if (!test_fake_cuda() || !test_gpus_there(2)) skip();
    assert_int_equal(test_gpus_child("steps", ""), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_bugs_are_reported),
        cmocka_unit_test(without_them_nothing_is_reported),
    };

    if (argc == 3 && !strcmp(argv[1], "planted")) return steps(!strcmp(argv[2], "labels"));
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
