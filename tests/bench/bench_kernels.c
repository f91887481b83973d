/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on one everyday picture: a box of 330 x 270 pixels to 224 x 224. Prints the best time of
 * each. Arguments: calls of a kernel [500], one kernel's name [all]; see tools/bench_kernels.sh. */
#include "base/cpu.h"
#include "kernels/kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IN_W = 400, IN_H = 300, OUT = 224, PIXELS = OUT * OUT };

typedef struct bench {
    dpl_kernels k;
    dpl_taps x, y;
    int top, bottom;
    uint8_t *in, *rows, *out;
    float *floats;
    uint16_t *halves;
} bench;

static const float scale[3] = { 0.01F, 0.011F, 0.012F }, bias[3] = { -2, -1.9F, -1.8F };

static void taps(bench *b)
{
    const dpl_axis x = { .box0 = 3.2, .box1 = 333.2, .in_n = IN_W, .out_n = OUT, .count = OUT };
    const dpl_axis y = { .box0 = 3.2, .box1 = 273.2, .in_n = IN_H, .out_n = OUT, .count = OUT };

    if (dpl_taps_make(&b->x, &x) || dpl_taps_make(&b->y, &y)) exit(1);
    dpl_axis_support(&y, &b->top, &b->bottom);
}

static void rows(bench *b)
{
    b->k.rows(b->rows, b->in + b->top * IN_W * 3, IN_W * 3, b->bottom - b->top, 0, &b->x);
}

static void cols(bench *b)
{
    b->k.cols(b->out, 3 * OUT, b->rows, 3 * OUT, b->top, &b->y);
}

static void rows_fast(bench *b)
{
    b->k.rows_fast(b->rows, b->in + b->top * IN_W * 3, IN_W * 3, b->bottom - b->top, 0, &b->x);
}

static void cols_fast(bench *b)
{
    b->k.cols_fast(b->out, 3 * OUT, b->rows, 3 * OUT, b->top, &b->y);
}

static void float_nchw(bench *b)
{
    b->k.normalize_nchw(b->floats, b->out, PIXELS, scale, bias);
}

static void float_nhwc(bench *b)
{
    b->k.normalize_nhwc(b->floats, b->out, PIXELS, scale, bias);
}

static void bfloat_nchw(bench *b)
{
    b->k.bfloat_nchw(b->halves, b->out, PIXELS, scale, bias);
}

static void half_nchw(bench *b)
{
    b->k.half_nchw(b->halves, b->out, PIXELS, scale, bias);
}

static const struct {
    const char *name;
    void (*run)(bench *);
} all[] = {
    { "taps", taps },
    { "rows_exact", rows },
    { "cols_exact", cols },
    { "rows_fast", rows_fast },
    { "cols_fast", cols_fast },
    { "float_nchw", float_nchw },
    { "float_nhwc", float_nhwc },
    { "bfloat_nchw", bfloat_nchw },
    { "half_nchw", half_nchw },
};

/* Processor time: others on the machine count less. */
static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static double best_us(bench *b, void (*run)(bench *), int calls)
{
    double best = 1e12;

    for (int i = 0; i < calls; i++) {
        const double start = now_us();

        run(b);
        if (now_us() - start < best) best = now_us() - start;
    }
    return best;
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 500;
    const char *only = argc > 2 ? argv[2] : NULL;
    bench b = { .in = malloc(IN_W * IN_H * 3),
                .rows = malloc(IN_H * OUT * 3),
                .out = malloc(PIXELS * 3),
                .floats = malloc(PIXELS * 3 * sizeof(float)),
                .halves = malloc(PIXELS * 3 * sizeof(uint16_t)) };

    if (!b.in || !b.rows || !b.out || !b.floats || !b.halves) return 1;
    dpl_kernels_select(&b.k, dpl_cpu_flags());
    for (uint32_t i = 0; i < IN_W * IN_H * 3; i++) b.in[i] = (uint8_t)(i * 2654435761U >> 24);
    memset(b.rows, 1, IN_H * OUT * 3);
    memset(b.out, 1, PIXELS * 3);
    taps(&b);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!only || !strcmp(only, all[k].name))
            printf("%-12s %8.1f us\n", all[k].name, best_us(&b, all[k].run, calls));
    dpl_taps_free(&b.x);
    dpl_taps_free(&b.y);
    free(b.in);
    free(b.rows);
    free(b.out);
    free(b.floats);
    free(b.halves);
    return 0;
}
