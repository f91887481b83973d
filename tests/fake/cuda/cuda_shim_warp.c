/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a warp: a thread brings a value and waits for the others of its mask; the last one to
 * come hands out all results. Threads that have ended are not waited for, as on a card. */
#include "tests/fake/cuda/cuda_shim_lane.h"
#include "tests/fake/cuda/fake_cudart.h"

/* Where there is no lane to read from: a value that shows. */
#define NOTHING 0xFFFA7FC1FFFA7FC1u

unsigned shim_lane(void)
{
    return shim_running() % SHIM_WARP;
}

/* Lane `lane` of the warp that begins at thread `warp`, or NULL: beyond the block, or ended. */
static shim_lane_state *find_lane(unsigned warp, unsigned lane)
{
    shim_lane_state *l;

    if (lane >= SHIM_WARP || warp + lane >= shim_threads()) return NULL;
    l = shim_lane_of(warp + lane);
    return l->state == SHIM_DONE ? NULL : l;
}

static int all_there(unsigned warp, unsigned mask)
{
    for (unsigned i = 0; i < SHIM_WARP; i++) {
        const shim_lane_state *const l = mask >> i & 1 ? find_lane(warp, i) : NULL;

        if (l && (l->state != SHIM_AT_WARP || l->mask != mask)) return 0;
    }
    return 1;
}

static void hand_out(unsigned warp, unsigned mask)
{
    unsigned ballot = 0, odds = 0;

    for (unsigned i = 0; i < SHIM_WARP; i++) {
        const shim_lane_state *const l = mask >> i & 1 ? find_lane(warp, i) : NULL;

        if (l && l->value) ballot |= 1u << i;
        if (l && l->odd) odds |= 1u << i;
    }
    for (unsigned i = 0; i < SHIM_WARP; i++) {
        shim_lane_state *const l = mask >> i & 1 ? find_lane(warp, i) : NULL;
        const shim_lane_state *from;

        if (!l) continue;
        from = l->from < SHIM_WARP && mask >> l->from & 1 ? find_lane(warp, l->from) : NULL;
        l->result.value = from ? from->value : NOTHING;
        l->result.ballot = ballot;
        l->odds = odds;
        l->state = SHIM_READY;
    }
}

/* The caller comes as the last one of its mask, or waits. */
static shim_lane_state *meet(unsigned mask, uint64_t value, unsigned from, const char *file,
                             int line)
{
    const unsigned me = shim_running(), warp = me - me % SHIM_WARP;
    shim_lane_state *const l = shim_lane_of(me);

    if (!(mask >> me % SHIM_WARP & 1))
        shim_die("thread %u calls a warp operation (%s:%d) with mask %#x, which it is not in", me,
                 file, line, mask);
    l->mask = mask;
    l->value = value;
    l->from = from;
    l->file = file;
    l->line = line;
    l->state = SHIM_AT_WARP;
    if (all_there(warp, mask))
        hand_out(warp, mask);
    else
        shim_wait(SHIM_AT_WARP, file, line);
    return l;
}

shim_warp_result shim_warp(unsigned mask, uint64_t value, unsigned from, const char *file, int line)
{
    return meet(mask, value, from, file, line)->result;
}

/* The only one that orders memory. Everybody has two objects, in turn: who is late must not see what
 * an early one does after it. */
void shim_warp_barrier(unsigned mask, const char *file, int line)
{
    const unsigned me = shim_running(), warp = me - me % SHIM_WARP;
    shim_lane_state *const l = shim_lane_of(me);
    uint64_t *const mine = shim_lane_edges(me);

    if (mine) fake_release(&mine[l->odd]);
    meet(mask, 0, 0, file, line);
    l->odd ^= 1;
    for (unsigned i = 0; mine && i < SHIM_WARP; i++) {
        if (mask >> i & 1 && warp + i < shim_threads())
            fake_acquire(&shim_lane_edges(warp + i)[l->odds >> i & 1]);
    }
}

void shim_warp_left(unsigned thread)
{
    const unsigned warp = thread - thread % SHIM_WARP;

    for (unsigned i = 0; i < SHIM_WARP; i++) {
        const shim_lane_state *const l = find_lane(warp, i);

        if (l && l->state == SHIM_AT_WARP && all_there(warp, l->mask)) hand_out(warp, l->mask);
    }
}
