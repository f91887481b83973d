/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a kernel: launch limits, scheduling, barriers. Built without any sanitizer (cuda.mk),
 * so that ThreadSanitizer knows of order only what is said here:
 *   what was before the kernel is before each of its threads, they are before its end;
 *   what was before a barrier of a block is before what is behind it. */
#include "tests/fake/cuda/cuda_shim_block.h"

#include "tests/fake/cuda/cuda_shim_lane.h"
#include "tests/fake/cuda/fake_cudart.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Under ThreadSanitizer lanes change from block to block, or a thread of one block and that of the next
 * would be one thread to it, and what one thread does is never a race. Few more than the block has,
 * because its time for each barrier grows with the lanes that there are. */
enum { PAGE = 4096, SHARED_MAX = 48 << 10, SPARE = 64, STEP = 33 };

/* From ThreadSanitizer's run time, where there is one. */
void AnnotateIgnoreSyncBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char *file, int line) __attribute__((weak));

/* A launch that is queued; `end` is where its threads' work becomes visible. */
typedef struct shim_job {
    shim_launch launch;
    uint64_t end;
} shim_job;

/* A block's objects of order. New ones for each, so that blocks are not ordered. */
typedef struct block_edges {
    uint64_t start, barrier[2], lane[SHIM_THREADS][2];
} block_edges;

shim_place shim_here;

/* One kernel at a time: guards everything below, and shared memory. Hidden from ThreadSanitizer. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shim_job *job;
static shim_lane_state lanes[SHIM_THREADS + SPARE];
static unsigned first, pool, threads; /* the block's are lanes[(first + i) % pool] */
static unsigned running;              /* i */
static unsigned phase;                /* barriers that the block has passed */
static block_edges *edges;
static char dynamic[SHARED_MAX] __attribute__((aligned(PAGE)));

void shim_die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "fake CUDA: kernel %s, block (%u,%u,%u): ", job->launch.kernel,
            shim_here.block.x, shim_here.block.y, shim_here.block.z);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* --- what CUDA threads call --- */

shim_lane_state *shim_lane_of(unsigned thread)
{
    return &lanes[(first + thread) % pool];
}

unsigned shim_running(void)
{
    return running;
}

unsigned shim_threads(void)
{
    return threads;
}

uint64_t *shim_lane_edges(unsigned thread)
{
    return shim_fibre_traced() ? edges->lane[thread] : NULL;
}

char *shim_dynamic_shared(void)
{
    return dynamic;
}

void shim_wait(shim_state state, const char *file, int line)
{
    shim_lane_state *const l = shim_lane_of(running);

    l->state = state;
    l->file = file;
    l->line = line;
    shim_fibre_leave(0);
}

/* Two objects in turn: who is late at one barrier must not see who is early at the next. */
void shim_barrier(const char *file, int line)
{
    uint64_t *const edge = &edges->barrier[phase & 1];

    fake_release(edge);
    shim_wait(SHIM_AT_BARRIER, file, line);
    fake_acquire(edge);
}

static void lane_main(void)
{
    fake_acquire(&edges->start);
    job->launch.thread(job->launch.args);
    fake_release(&job->end);
    shim_lane_of(running)->state = SHIM_DONE;
    shim_warp_left(running);
    shim_fibre_leave(1);
}

/* --- scheduling --- */

/* The i-th of n in the order that the seed gives. */
static uint64_t in_order(uint64_t i, uint64_t n, uint64_t seed, uint64_t turn)
{
    uint64_t h = (seed * 0x9E3779B97F4A7C15u) ^ (turn * 0xC2B2AE3D27D4EB4Fu);

    if (!seed) return i;
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
    i = (i + (h >> 20) % n) % n;
    return seed & 1 ? n - 1 - i : i;
}

static uint3 place_of(uint64_t i, dim3 dim)
{
    const uint3 p = { (unsigned)(i % dim.x), (unsigned)(i / dim.x % dim.y),
                      (unsigned)(i / dim.x / dim.y) };

    return p;
}

/* What a block finds in its shared memory is no number: NaN as bfloat16, float and double. To
 * ThreadSanitizer it is new memory, or it would take what another block did there for a race. */
static void make_fresh(char *from, char *to)
{
    if (shim_fibre_traced() && to > from &&
        mmap(from, (size_t)(to - from), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fake_die("no fresh shared memory");
    for (uint32_t *p = (uint32_t *)(void *)from; (char *)p < to; p++) *p = 0xFFFA7FC1u;
}

/* Nobody can go on. @return how many wait for the block's barrier; they all do, or none is left */
static unsigned count_waiting(void)
{
    const shim_lane_state *one = NULL, *other = NULL;
    unsigned waiting = 0;

    for (unsigned i = 0; i < threads; i++) {
        const shim_lane_state *const l = shim_lane_of(i);

        if (l->state == SHIM_AT_WARP)
            shim_die(
                "thread %u waits in a warp operation (%s:%d, mask %#x) for threads that never come",
                i, l->file, l->line, l->mask);
        if (l->state != SHIM_AT_BARRIER) continue;
        waiting++;
        if (!one) one = l;
        if (l->line != one->line) other = l;
    }
    if (waiting && waiting < threads)
        shim_die("%u threads wait at __syncthreads (%s:%d) that %u left without reaching it",
                 waiting, one->file, one->line, threads - waiting);
    if (other)
        shim_die("threads wait at different __syncthreads (%s:%d and %s:%d)", one->file, one->line,
                 other->file, other->line);
    return waiting;
}

/* Enter each thread that can go on. @return 0 when there was none */
static int run_ready(uint64_t seed, uint64_t turn)
{
    int any = 0;

    for (unsigned k = 0; k < threads; k++) {
        shim_lane_state *l;

        running = (unsigned)in_order(k, threads, seed, turn);
        l = shim_lane_of(running);
        if (l->state != SHIM_READY) continue;
        any = 1;
        shim_here.thread = place_of(running, job->launch.block);
        shim_fibre_enter(&l->fibre);
    }
    return any;
}

static void run_block(uint64_t seed, uint64_t turn)
{
    for (unsigned i = 0; i < threads; i++) {
        shim_lane_of(i)->state = SHIM_READY;
        shim_lane_of(i)->odd = 0;
        shim_fibre_begin(&shim_lane_of(i)->fibre, lane_main);
    }
    phase = 0;
    for (;;) {
        while (run_ready(seed, turn + phase)) {}
        if (!count_waiting()) break;
        for (unsigned i = 0; i < threads; i++) shim_lane_of(i)->state = SHIM_READY;
        phase++;
    }
}

static void run_blocks(const shim_launch *l)
{
    const char *text = getenv("FAKE_CUDA_ORDER");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : 0;
    const uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;

    threads = l->block.x * l->block.y * l->block.z;
    pool = threads + SPARE;
    first %= pool;
    shim_here.block_dim = l->block;
    shim_here.grid_dim = l->grid;
    for (uint64_t i = 0; i < blocks; i++) {
        shim_here.block = place_of(in_order(i, blocks, seed, 0), l->grid);
        make_fresh(l->shared_begin, l->shared_end);
        make_fresh(dynamic, dynamic + (l->shared + 3) / 4 * 4);
        if (!(edges = malloc(sizeof *edges))) fake_die("no memory for a block");
        fake_release(&edges->start);
        run_block(seed, i);
        if (shim_fibre_traced()) first = (first + STEP) % pool;
        free(edges);
    }
}

static void ignore_order(int on)
{
    if (on && AnnotateIgnoreSyncBegin) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    if (!on && AnnotateIgnoreSyncEnd) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

static void drop(void *arg)
{
    shim_job *const j = arg;

    j->launch.drop(j->launch.args);
    free(j);
}

static void run(void *arg)
{
    ignore_order(1);
    pthread_mutex_lock(&lock);
    ignore_order(0);
    job = arg;
    shim_fibre_home();
    run_blocks(&job->launch);
    fake_acquire(&job->end);
    ignore_order(1);
    pthread_mutex_unlock(&lock);
    ignore_order(0);
}

/* --- launching --- */

static cudaError_t check_limits(const shim_launch *l)
{
    const uint64_t n = (uint64_t)l->block.x * l->block.y * l->block.z;
    const dim3 g = l->grid;

    if (!n || n > SHIM_THREADS || l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64)
        return cudaErrorInvalidConfiguration;
    if (!g.x || !g.y || !g.z || g.x > 0x7FFFFFFF || g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    return l->shared > SHARED_MAX ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t shim_enqueue(const shim_launch *l, cudaStream_t s)
{
    shim_job *const j = malloc(sizeof *j);
    const cudaError_t e = check_limits(l);

    if (!j) fake_die("no memory for a launch");
    j->launch = *l;
    if (e == cudaSuccess) return fake_kernel(s, run, drop, j);
    drop(j);
    return fake_return(e);
}
