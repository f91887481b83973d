/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop with several steps under way: a team that works like the CPU's, but gives out
 * results late, keeps weights to itself until they are fetched, and checks what callers owe. */
#include "tests/run_inside.h"
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4, MAX = 64 };

/* What the next run's team does, and what was seen of it. */
static struct {
    int depth, world;
    int nan_at, fail_at, stop_at, signal_at; /* step, from 1; 0 = never */
    double busy_s;
    int submitted, collected, fetched, evaluated, wanted_stop;
} plan;

typedef struct late_team {
    dpt_team base;
    dpt_team *inner;
    dpt_run *run;
    float *own[3]; /* weights, momentum, statistics that steps change; the run's are copies */
    dpt_team_result done[DEPTH_MAX];
} late_team;

static void copy_weights(const late_team *t)
{
    const dpt_graph *g = t->run->graph;

    memcpy(t->run->params, t->own[0], g->param_floats * sizeof(float));
    memcpy(t->run->momentum, t->own[1], g->param_floats * sizeof(float));
    memcpy(t->run->buffers, t->own[2], g->buffer_floats * sizeof(float));
}

static int submit(dpt_team *base, const dpt_team_step *s, dpl_text *why)
{
    late_team *t = (late_team *)base;
    const int at = plan.submitted++;
    int err;

    plan.wanted_stop += s->stop;
    if ((err = dpt_team_submit(t->inner, s, why))) return err;
    err = dpt_team_collect(t->inner, &t->done[at % DEPTH_MAX], why);
    if (at + 1 == plan.signal_at) raise(SIGTERM);
    return err;
}

static int collect(dpt_team *base, dpt_team_result *r, dpl_text *why)
{
    late_team *t = (late_team *)base;
    const int at = plan.collected++;

    *r = t->done[at % DEPTH_MAX];
    r->busy_s = plan.busy_s;
    r->stop = at + 1 == plan.stop_at;
    if (at + 1 == plan.nan_at) r->sums.loss = NAN;
    if (at + 1 == plan.fail_at) return dpl_fail(why, DPL_EDEVICE, "gpu 0: lost");
    return DPL_OK;
}

static int evaluate(dpt_team *base, const dpt_team_part *part, dpt_sums *sums, dpl_text *why)
{
    plan.evaluated++;
    return dpt_team_evaluate(((late_team *)base)->inner, part, sums, why);
}

static int fetch(dpt_team *base, dpl_text *why)
{
    (void)why;
    assert_int_equal(plan.submitted, plan.collected);
    plan.fetched++;
    copy_weights((late_team *)base);
    return DPL_OK;
}

static void destroy(dpt_team *base)
{
    late_team *t = (late_team *)base;

    dpt_team_destroy(&t->inner);
    for (int i = 0; i < 3; i++) free(t->own[i]);
    free(t);
}

static int threads(const dpt_team *base, int r)
{
    (void)base;
    (void)r;
    return 0;
}

static const char *describe(dpt_team *base, int i, int *fallback)
{
    (void)base;
    (void)i;
    *fallback = 0;
    return NULL;
}

static const dpt_team_ops late_ops = { "late",   NULL,  destroy, submit,  collect,
                                       evaluate, fetch, threads, describe };

static float *copy_of(const float *x, size_t n)
{
    float *own = malloc((n ? n : 1) * sizeof *own);

    assert_non_null(own);
    memcpy(own, x, n * sizeof *own);
    return own;
}

/* Put the late team in the place of the run's. */
static void make_late(dpt_run *r)
{
    late_team *t = calloc(1, sizeof *t);
    const dpt_graph *g = r->graph;
    dpt_team_options o = {
        .graph = g, .replicas = r->devices, .max_n = r->part_most, .backend = r->backend
    };

    assert_non_null(t);
    dpt_team_destroy(&r->team);
    t->base.ops = &late_ops;
    t->base.depth = plan.depth;
    t->run = r;
    o.params = t->own[0] = copy_of(r->params, g->param_floats);
    o.momentum = t->own[1] = copy_of(r->momentum, g->param_floats);
    o.buffers = t->own[2] = copy_of(r->buffers, g->buffer_floats);
    assert_int_equal(dpt_team_create(&t->inner, &o, NULL), DPL_OK); /* no signal cancels it */
    r->team = &t->base;
}

/* A run with these words over the late team. @return its exit code; *why: its text */
static int train(const char *words, dpl_text *why)
{
    test_inside x;
    int rc;

    plan.submitted = plan.collected = plan.fetched = plan.evaluated = plan.wanted_stop = 0;
    test_inside_open(&x, test_format("-a tinynet --size 16 --backend ref --lr 0.01 --devices cpu "
                                     "-j 1 %s data",
                                     words));
    if (test_inside_devices(&x)) fail_msg("%s", x.why.s);
    x.run.world = plan.world;
    if (test_inside_data(&x)) fail_msg("%s", x.why.s);
    x.run.world = 1; /* of the CPU's team, which the late one stands before */
    if (test_inside_model(&x)) fail_msg("%s", x.why.s);
    make_late(&x.run);
    x.run.world = plan.world;
    x.why.s[0] = '\0';
    rc = dpt_run_train(&x.run, &x.why);
    *why = x.why;
    test_inside_close(&x);
    return rc;
}

static int set_up(void **state)
{
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.depth = 3;
    plan.world = 1;
    return 0;
}

/* What log.jsonl and the checkpoint came to. */
typedef struct outcome {
    double step[MAX], loss[MAX], lr[MAX], batch[MAX], val[MAX];
    int steps, losses, vals;
    uint8_t *weights; /* the last bytes of model.safetensors: parameters */
} outcome;
enum { WEIGHTS = 240000 };

static void read_outcome(outcome *o, const char *folder)
{
    const char *log = test_format("%s/log.jsonl", folder);
    char name[256];
    size_t len;
    uint8_t *file;

    snprintf(name, sizeof name, "%s", log);
    memset(o, 0, sizeof *o);
    o->steps = test_log_numbers(name, "step", o->step, MAX);
    o->losses = test_log_numbers(name, "train.loss", o->loss, MAX);
    test_log_numbers(name, "train.lr", o->lr, MAX);
    test_log_numbers(name, "batch", o->batch, MAX);
    o->vals = test_log_numbers(name, "val.loss", o->val, MAX);
    file = test_read_file(test_format("%s/%s/model.safetensors", test_work(), folder), &len);
    assert_true(len > WEIGHTS);
    o->weights = malloc(WEIGHTS);
    assert_non_null(o->weights);
    memcpy(o->weights, file + len - WEIGHTS, WEIGHTS);
    free(file);
}

static void assert_same(outcome *a, outcome *b)
{
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->losses, b->losses);
    assert_int_equal(a->vals, b->vals);
    assert_memory_equal(a->step, b->step, sizeof a->step);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->lr, b->lr, sizeof a->lr);
    assert_memory_equal(a->batch, b->batch, sizeof a->batch);
    assert_memory_equal(a->val, b->val, sizeof a->val);
    assert_memory_equal(a->weights, b->weights, WEIGHTS);
    free(b->weights);
}

#define RUN "-b 5 --epochs 2 --step-size 1 --save-freq 3" /* 36 pictures: 8 steps an epoch */

static const outcome *unbroken(void)
{
    static outcome o;
    dpl_text why;

    if (o.losses) return &o;
    plan.depth = 1;
    if (train(RUN " -o whole", &why)) fail_msg("%s", why.s);
    read_outcome(&o, "whole");
    assert_int_equal(o.losses, 16);
    assert_int_equal(o.vals, 2);
    return &o;
}

static void any_depth_trains_and_logs_the_same(void **state)
{
    outcome want = *unbroken(), got;
    dpl_text why;

    (void)state;
    for (int depth = 2; depth <= DEPTH_MAX; depth++) {
        char args[128], folder[16];

        plan.depth = depth;
        snprintf(folder, sizeof folder, "depth%d", depth);
        snprintf(args, sizeof args, RUN " -o %s", folder);
        if (train(args, &why)) fail_msg("%s", why.s);
        assert_int_equal(plan.submitted, 16);
        assert_int_equal(plan.collected, 16);
        assert_int_equal(plan.evaluated, 6); /* 12 pictures */
        /* steps 3, 6, 9, 12, 15; two epochs; the best of each that was one */
        assert_true(plan.fetched >= 5 + 2 + 1 && plan.fetched <= 5 + 2 + 2);
        read_outcome(&got, folder);
        assert_same(&want, &got);
    }
}

/* Steps that were under way when the run ended are in no log and no checkpoint. */
static void a_lost_device_leaves_finished_steps_only(void **state)
{
    outcome want = *unbroken(), got;
    double steps[MAX];
    dpl_text why;

    (void)state;
    plan.depth = 3;
    plan.fail_at = 11;
    assert_int_equal(train(RUN " -o lost", &why), 4);
    assert_string_equal(why.s, "gpu 0: lost");
    assert_int_equal(plan.collected, 11);
    assert_int_equal(test_log_numbers("lost/log.jsonl", "train.loss", steps, MAX), 10);
    plan.fail_at = 0;
    if (train("--resume lost", &why)) fail_msg("%s", why.s); /* from step 9 on */
    assert_int_equal(plan.submitted, 16 - 9);
    read_outcome(&got, "lost");
    assert_same(&want, &got);
}

static void the_number_of_steps_is_exact(void **state)
{
    outcome want = *unbroken(), got;
    dpl_text why;

    (void)state;
    plan.depth = 4;
    if (train(RUN " --steps 2 -o few", &why)) fail_msg("%s", why.s);
    assert_int_equal(plan.submitted, 2);
    if (train("--resume few --steps 11", &why)) fail_msg("%s", why.s);
    assert_int_equal(plan.submitted, 9);
    if (train("--resume few", &why)) fail_msg("%s", why.s);
    assert_int_equal(plan.submitted, 5);
    read_outcome(&got, "few");
    assert_int_equal(got.losses, 16);
    assert_memory_equal(got.loss, want.loss, sizeof got.loss);
    assert_memory_equal(got.weights, want.weights, WEIGHTS);
    free(got.weights);
}

static void divergence_is_found_when_the_step_is_done(void **state)
{
    double steps[MAX];
    dpl_text why;

    (void)state;
    plan.nan_at = 5;
    assert_int_equal(train(RUN " -o nan", &why), 1);
    assert_non_null(strstr(why.s, "not a number at step 5 (epoch 1"));
    assert_int_equal(test_log_numbers("nan/log.jsonl", "step", steps, MAX), 4);
    assert_int_equal(plan.fetched, 1); /* at step 3 */
}

/* Of a step's time, what its device did not work is time without data. */
static void waiting_is_what_a_device_does_not_work(void **state)
{
    double data[MAX], compute[MAX], ips[MAX], images[MAX];
    dpl_text why;
    int n;

    (void)state;
    plan.busy_s = 1e-9;
    if (train(RUN " --epochs 1 -o idle", &why)) fail_msg("%s", why.s);
    n = test_log_numbers("idle/log.jsonl", "train.data_time", data, MAX);
    assert_int_equal(test_log_numbers("idle/log.jsonl", "train.compute_time", compute, MAX), n);
    assert_int_equal(test_log_numbers("idle/log.jsonl", "train.total_ips", ips, MAX), n);
    test_log_numbers("idle/log.jsonl", "train.images", images, MAX);
    for (int i = 0; i < n; i++) {
        assert_true(data[i] >= 0 && fabs(compute[i] - 1e-9) < 1e-8);
        assert_true(fabs(images[i] / ips[i] - data[i] - compute[i]) < 1e-6);
    }
    plan.busy_s = 1000; /* clocks differ: never below 0 */
    if (train(RUN " --epochs 1 -o busy", &why)) fail_msg("%s", why.s);
    n = test_log_numbers("busy/log.jsonl", "train.data_time", data, MAX);
    for (int i = 0; i < n; i++) assert_true(data[i] == 0);
}

/* Another process got a signal: the step that says so is the same everywhere, and all finish what was
 * under way. */
static void all_processes_stop_at_the_same_step(void **state)
{
    double steps[MAX];
    dpl_text why;

    (void)state;
    plan.world = 2; /* this one has half of each batch; the late team knows no other */
    plan.stop_at = 4;
    assert_int_equal(train("-b 12 --epochs 9 -o agreed", &why), 75);
    assert_int_equal(plan.submitted, 6); /* steps 5 and 6 were under way */
    assert_int_equal(plan.collected, 6);
    assert_int_equal(plan.wanted_stop, 0);
    assert_int_equal(test_log_numbers("agreed/log.jsonl", "train.loss", steps, MAX), 6);
    assert_non_null(strstr(why.s, "another process"));
    assert_non_null(strstr(why.s, "checkpoint saved (epoch 3, 0 of 36 pictures)"));
}

/* Last: the signal stays taken. A process with others goes on until all know. */
static void a_signal_here_is_told_to_the_others(void **state)
{
    dpl_text why;

    (void)state;
    dpt_interrupt_install();
    plan.world = 2;
    plan.signal_at = 2;
    plan.stop_at = 5;
    if (train("-b 12 --epochs 9 -o told", &why) != 75) fail_msg("%s", why.s);
    assert_non_null(strstr(why.s, "stopped by SIGTERM: checkpoint saved"));
    assert_int_equal(plan.submitted, 6);   /* 3 steps an epoch */
    assert_int_equal(plan.wanted_stop, 4); /* each step from the third on */
    assert_int_equal(plan.evaluated, 1);   /* the second epoch is not evaluated yet */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_depth_trains_and_logs_the_same, set_up),
        cmocka_unit_test_setup(a_lost_device_leaves_finished_steps_only, set_up),
        cmocka_unit_test_setup(the_number_of_steps_is_exact, set_up),
        cmocka_unit_test_setup(divergence_is_found_when_the_step_is_done, set_up),
        cmocka_unit_test_setup(waiting_is_what_a_device_does_not_work, set_up),
        cmocka_unit_test_setup(all_processes_stop_at_the_same_step, set_up),
        cmocka_unit_test_setup(a_signal_here_is_told_to_the_others, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
