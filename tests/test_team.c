/* SPDX-License-Identifier: Apache-2.0 */
/* Crews that carry out orders, and what every kind of team owes to who drives it, on the CPU's. */
#include "trainer/team.h"

#include "dpload.h"
#include "tests/fake/linear_backend.h"
#include "tests/testutil.h"
#include "trainer/crew.h"

#include <pthread.h>
#include <string.h>

enum { MEMBERS = 5, ROUNDS = 300 };

typedef struct work {
    pthread_t thread[MEMBERS];
    int count[MEMBERS]; /* each written by its member only, read by all in the next round */
    int status[MEMBERS];
    const char *text;
    char name[16];
} work;

static int note_thread(void *arg, int index, dpl_text *why)
{
    work *w = arg;

    assert_string_equal(why->s, "");
    w->thread[index] = pthread_self();
    if (index == 3) pthread_getname_np(pthread_self(), w->name, sizeof w->name);
    return DPL_OK;
}

/* In each round a member counts on from what its neighbour has: wrong without the barrier. */
static int count_on(void *arg, int index, dpl_text *why)
{
    work *w = arg;

    (void)why;
    if (!pthread_equal(w->thread[index], pthread_self())) return DPL_EINTERNAL;
    w->count[index]++;
    return DPL_OK;
}

static int compare(void *arg, int index, dpl_text *why)
{
    const work *w = arg;

    (void)why;
    return w->count[index] == w->count[(index + 1) % MEMBERS] ? DPL_OK : DPL_EINTERNAL;
}

static int give_status(void *arg, int index, dpl_text *why)
{
    const work *w = arg;

    if (w->status[index] && w->text) dpl_fail(why, 0, "%s %d", w->text, index);
    return w->status[index];
}

static void orders_are_carried_out_by_all_in_their_own_threads(void **state)
{
    work w = { .text = NULL };
    dpt_crew *c;

    (void)state;
    assert_int_equal(dpt_crew_create(&c, MEMBERS, "sailor", NULL), DPL_OK);
    assert_int_equal(dpt_crew_do(c, note_thread, &w, NULL), DPL_OK);
    assert_string_equal(w.name, "sailor3");
    for (int i = 0; i < MEMBERS; i++)
        for (int k = 0; k < i; k++) assert_false(pthread_equal(w.thread[i], w.thread[k]));
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(dpt_crew_do(c, count_on, &w, NULL), DPL_OK);
        assert_int_equal(dpt_crew_do(c, compare, &w, NULL), DPL_OK);
    }
    for (int i = 0; i < MEMBERS; i++) assert_int_equal(w.count[i], ROUNDS);
    dpt_crew_destroy(&c);
    assert_null(c);
    dpt_crew_destroy(&c);
}

static void the_first_failure_by_number_is_told(void **state)
{
    work w = { .status = { 0, 0, DPL_EDEVICE, DPL_ENOMEM, 0 }, .text = "broken" };
    dpt_crew *c;
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_crew_create(&c, MEMBERS, "gpu", &why), DPL_OK);
    assert_int_equal(dpt_crew_do(c, give_status, &w, &why), DPL_EDEVICE);
    assert_string_equal(why.s, "gpu 2: broken 2");
    w.status[4] = DPL_ECANCELED; /* a cancel is what made the others fail */
    assert_int_equal(dpt_crew_do(c, give_status, &w, &why), DPL_ECANCELED);
    assert_string_equal(why.s, "gpu 4: broken 4");
    w.text = NULL; /* nothing of the order before is left over */
    w.status[4] = 0;
    assert_int_equal(dpt_crew_do(c, give_status, &w, &why), DPL_EDEVICE);
    assert_string_equal(why.s, "gpu 2: device not usable");
    memset(w.status, 0, sizeof w.status);
    assert_int_equal(dpt_crew_do(c, give_status, &w, &why), DPL_OK);
    dpt_crew_destroy(&c);
}

typedef struct bench {
    float params[FAKE_PARAMS], momentum[FAKE_PARAMS], buffers[FAKE_BUFFERS];
    float pixels[4 * FAKE_PIXELS];
    int32_t labels[4];
    dpt_graph graph;
    dpt_team_part part[2];
    dpt_team *team;
} bench;

static void set_up(bench *b)
{
    static const int max_n[2] = { 4, 4 };
    dpt_team_options opt = { .graph = &b->graph,
                             .replicas = 2,
                             .max_n = max_n,
                             .params = b->params,
                             .momentum = b->momentum,
                             .buffers = b->buffers,
                             .backend = &fake_linear_backend };

    memset(b, 0, sizeof *b);
    fake_linear_graph(&b->graph, 2);
    for (int i = 0; i < 4 * FAKE_PIXELS; i++) b->pixels[i] = (float)(i % 4);
    for (int i = 0; i < FAKE_PARAMS; i++) b->params[i] = 0.25f;
    b->part[0] = (dpt_team_part){ .pixels = b->pixels, .labels = b->labels, .n = 3 };
    b->part[1] =
        (dpt_team_part){ .pixels = b->pixels + 3 * FAKE_PIXELS, .labels = b->labels + 3, .n = 1 };
    assert_int_equal(dpt_team_create(&b->team, &opt, NULL), DPL_OK);
}

static void the_cpu_works_in_submit_and_reads_host_memory(void **state)
{
    const dpt_team_step s = { .update = { .lr = 0.5 }, .planned = 4, .stop = 1 };
    dpt_team_step step = s;
    dpt_team_result r;
    bench b;
    float before[FAKE_PARAMS];

    (void)state;
    set_up(&b);
    step.part = b.part;
    assert_int_equal(dpt_team_depth(b.team), 1);
    assert_null(dpt_team_streams(b.team));
    memcpy(before, b.params, sizeof before);
    assert_int_equal(dpt_team_submit(b.team, &step, NULL), DPL_OK);
    assert_memory_not_equal(before, b.params, sizeof before);
    memset(b.pixels, 0xff, sizeof b.pixels); /* the batch may be given back before collect */
    assert_int_equal(dpt_team_collect(b.team, &r, NULL), DPL_OK);
    assert_int_equal(r.sums.n, 4);
    assert_true(r.sums.loss > 0);
    assert_int_equal(r.stop, 1); /* alone, who wants to stop is all */
    assert_int_equal(dpt_team_fetch(b.team, NULL), DPL_OK);
    dpt_team_destroy(&b.team);
    assert_null(b.team);
    dpt_team_destroy(&b.team);
}

static void a_step_of_nobody_changes_nothing(void **state)
{
    dpt_team_step step = { .update = { .lr = 0.5, .weight_decay = 0.5 }, .planned = 4 };
    dpt_team_result r = { .sums = { .n = 7 } };
    bench b;
    float before[FAKE_PARAMS];

    (void)state;
    set_up(&b);
    b.part[0].n = b.part[1].n = 0;
    step.part = b.part;
    memcpy(before, b.params, sizeof before);
    assert_int_equal(dpt_team_submit(b.team, &step, NULL), DPL_OK);
    assert_int_equal(dpt_team_collect(b.team, &r, NULL), DPL_OK);
    assert_int_equal(r.sums.n, 0);
    assert_true(r.sums.loss == 0);
    assert_int_equal(r.stop, 0);
    assert_memory_equal(before, b.params, sizeof before);
    dpt_team_destroy(&b.team);
}

static void processes_on_the_cpu_are_refused(void **state)
{
    const int max_n = 4;
    bench b;
    dpl_text why;
    dpt_team_options opt = { .graph = &b.graph,
                             .replicas = 1,
                             .max_n = &max_n,
                             .params = b.params,
                             .momentum = b.momentum,
                             .buffers = b.buffers,
                             .backend = &fake_linear_backend,
                             .rank = 1,
                             .world = 2,
                             .address = "127.0.0.1:29500" };

    (void)state;
    fake_linear_graph(&b.graph, 2);
    assert_int_equal(dpt_team_create(&b.team, &opt, &why), DPL_ENOTSUP);
    assert_non_null(strstr(why.s, "let one process drive all replicas"));
    assert_null(b.team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_carried_out_by_all_in_their_own_threads),
        cmocka_unit_test(the_first_failure_by_number_is_told),
        cmocka_unit_test(the_cpu_works_in_submit_and_reads_host_memory),
        cmocka_unit_test(a_step_of_nobody_changes_nothing),
        cmocka_unit_test(processes_on_the_cpu_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
