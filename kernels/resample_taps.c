/* SPDX-License-Identifier: Apache-2.0 */
/* Taps of one axis. The order of the floating-point operations is Pillow's, because the integer
 * weights, and through them the pixels, must come out the same. */
#include "kernels/resample.h"

#include "base/alloc.h"
#include "dpload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BITS = 22, HALF_BITS = 11 };

typedef struct axis_scale {
    double scale, filterscale, support;
} axis_scale;

static axis_scale scale_of(const dpl_axis *a)
{
    axis_scale s;
    s.scale = (a->box1 - a->box0) / a->out_n;
    s.filterscale = s.scale < 1.0 ? 1.0 : s.scale;
    s.support = (a->filter == DPL_RESAMPLE_BICUBIC ? 2.0 : 1.0) * s.filterscale;
    return s;
}

/* Source pixels [*lo, *hi) of output i; returns its centre. */
static double bounds_of(const dpl_axis *a, const axis_scale *s, int i, int *lo, int *hi)
{
    const double centre = a->box0 + (i + 0.5) * s->scale;
    const int first = (int)(centre - s->support + 0.5);
    const int last = (int)(centre + s->support + 0.5);
    *lo = first < 0 ? 0 : first;
    *hi = last > a->in_n ? a->in_n : last;
    return centre;
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' cubic with a = -1/2. */
static double cubic(double x)
{
    static const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

void dpl_axis_support(const dpl_axis *a, int *lo, int *hi)
{
    const axis_scale s = scale_of(a);
    int unused;
    bounds_of(a, &s, a->first, lo, &unused);
    bounds_of(a, &s, a->first + a->count - 1, &unused, hi);
}

/* Lay the arrays out in one block, widest elements first. tmp: [stride]. */
static int reserve(dpl_taps *t, int count, int stride, double **tmp)
{
    size_t cells, bytes;
    const size_t per_cell = sizeof *t->weight + 3 * sizeof *t->weight16;
    const size_t head = (size_t)stride * sizeof **tmp + 2 * (size_t)count * sizeof *t->start;
    if (dpl_mul((size_t)count, (size_t)stride, &cells) || dpl_mul(cells, per_cell, &bytes) ||
        bytes > SIZE_MAX - head)
        return DPL_ENOMEM;
    if (dpl_reserve(&t->block, &t->block_cap, bytes + head)) return DPL_ENOMEM;
    *tmp = t->block;
    t->weight = (int32_t *)(*tmp + stride);
    t->start = (int *)(t->weight + cells);
    t->size = t->start + count;
    t->weight16 = (int16_t *)(t->size + count);
    t->hi = t->weight16 + cells;
    t->lo = t->hi + cells;
    t->count = count;
    t->stride = stride;
    return DPL_OK;
}

/* 22-bit weights of output i into w, without the zeros at either end. Returns the largest. */
static int32_t weigh(const dpl_axis *a, const axis_scale *s, int i, double *tmp, int32_t *w,
                     int *start, int *size)
{
    const double ss = 1.0 / s->filterscale;
    int lo, hi, n = 0;
    int32_t largest = 0;
    double sum = 0.0;
    const double centre = bounds_of(a, s, i, &lo, &hi);
    for (int x = lo; x < hi; x++) {
        const double at = (x - centre + 0.5) * ss;
        tmp[x - lo] = a->filter == DPL_RESAMPLE_BICUBIC ? cubic(at) : triangle(at);
        sum += tmp[x - lo];
    }
    *start = lo;
    for (int x = lo; x < hi; x++) {
        const double v = (sum != 0.0 ? tmp[x - lo] / sum : tmp[x - lo]) * (1 << WEIGHT_BITS);
        const int32_t k = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
        if (!n && !k && x + 1 < hi) {
            *start = x + 1;
            continue;
        }
        w[n++] = k;
        if (abs(k) > largest) largest = abs(k);
    }
    while (n > 1 && !w[n - 1]) n--;
    *size = n;
    return largest;
}

/* 16-bit weights of one output; what rounding leaves over goes to the largest, so that an even
 * picture stays as it is. */
static void weigh16(int16_t *out, const int32_t *w, int n, int bits)
{
    const int shift = WEIGHT_BITS - bits;
    int sum = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        out[i] = (int16_t)(shift ? (w[i] + (1 << (shift - 1))) >> shift : w[i]);
        sum += out[i];
        if (out[i] > out[largest]) largest = i;
    }
    if (shift) out[largest] = (int16_t)(out[largest] + (1 << bits) - sum);
}

/* Fill hi, lo, and weight16 with zeros. Four at a time (stride is a multiple): a vector for the
 * compiler. */
static void halve(dpl_taps *t)
{
    const size_t cells = (size_t)t->count * (size_t)t->stride;
    for (size_t at = 0; at < cells; at += 4) {
        const int32_t *w = t->weight + at;
        int16_t hi[4], lo[4];
        for (int i = 0; i < 4; i++) {
            hi[i] = (int16_t)((w[i] + (1 << (HALF_BITS - 1))) >> HALF_BITS);
            lo[i] = (int16_t)(w[i] - hi[i] * (1 << HALF_BITS));
        }
        memcpy(t->hi + at, hi, sizeof hi);
        memcpy(t->lo + at, lo, sizeof lo);
    }
    memset(t->weight16, 0, cells * sizeof *t->weight16);
}

static int bits_for(int32_t largest)
{
    int shift = 0;
    while (largest >> shift > 32000) shift++;
    return WEIGHT_BITS - shift;
}

int dpl_taps_make(dpl_taps *t, const dpl_axis *a)
{
    const axis_scale s = scale_of(a);
    const int stride = ((int)ceil(s.support) * 2 + 1 + 3) & ~3; /* kernels take four at a time */
    double *tmp;
    int32_t largest = 0;
    if (reserve(t, a->count, stride, &tmp)) return DPL_ENOMEM;
    memset(t->weight, 0, (size_t)a->count * (size_t)stride * sizeof *t->weight);
    for (int k = 0; k < a->count; k++) {
        const int i = a->reverse ? a->first + a->count - 1 - k : a->first + k;
        int32_t *w = t->weight + (size_t)k * (size_t)stride;
        const int32_t m = weigh(a, &s, i, tmp, w, &t->start[k], &t->size[k]);
        if (m > largest) largest = m;
    }
    t->bits16 = bits_for(largest);
    halve(t);
    for (int k = 0; k < a->count; k++) {
        const size_t at = (size_t)k * (size_t)stride;
        weigh16(t->weight16 + at, t->weight + at, t->size[k], t->bits16);
    }
    return DPL_OK;
}

void dpl_taps_free(dpl_taps *t)
{
    free(t->block);
    memset(t, 0, sizeof *t);
}
