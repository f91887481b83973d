/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of the reference backend; see backend_ref_ops.h. */
#include "trainer/backend_ref_ops.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The outputs [*lo, *hi) of one axis whose input place o * stride + shift lies within 0 .. size - 1. */
static void valid_range(int outputs, int size, int stride, int shift, int *lo, int *hi)
{
    *lo = shift < 0 ? (-shift + stride - 1) / stride : 0;
    *hi = size - shift > 0 ? (size - shift - 1) / stride + 1 : 0;
    if (*hi > outputs) *hi = outputs;
}

/* One kernel position: which outputs it touches, and where its inputs lie. */
typedef struct tap {
    int y0, y1, x0, x1; /* outputs, ends excluded */
    int dy, dx;         /* input place = output place * stride + this */
} tap;

static tap tap_at(const dpt_ref_window *s, int ky, int kx)
{
    tap t = { .dy = ky - s->pad, .dx = kx - s->pad };

    valid_range(s->out.h, s->in.h, s->stride, t.dy, &t.y0, &t.y1);
    valid_range(s->out.w, s->in.w, s->stride, t.dx, &t.x0, &t.x1);
    return t;
}

/* Index into an input plane of what output (y, 0) sees through the tap. May be before the row's
 * start, where x0 > 0 keeps the sum inside. */
static ptrdiff_t row_of(const dpt_ref_window *s, const tap *t, int y)
{
    return (ptrdiff_t)(y * s->stride + t->dy) * s->in.w + t->dx;
}

static size_t plane(dpt_shape s)
{
    return (size_t)s.h * (size_t)s.w;
}

/* acc (an output plane) += weight * the inputs seen through the tap */
static void gather(const dpt_ref_window *s, const tap *t, const float *x, double weight,
                   double *acc)
{
    for (int y = t->y0; y < t->y1; y++) {
        const ptrdiff_t row = row_of(s, t, y);
        double *a = acc + (size_t)y * (size_t)s->out.w;

        for (int i = t->x0; i < t->x1; i++) a[i] += weight * x[row + i * s->stride];
    }
}

/* acc (an input plane) += weight * the outputs that see it through the tap */
static void scatter(const dpt_ref_window *s, const tap *t, const float *dy, double weight,
                    double *acc)
{
    for (int y = t->y0; y < t->y1; y++) {
        const ptrdiff_t row = row_of(s, t, y);
        const float *d = dy + (size_t)y * (size_t)s->out.w;

        for (int i = t->x0; i < t->x1; i++) acc[row + i * s->stride] += weight * d[i];
    }
}

static double product(const dpt_ref_window *s, const tap *t, const float *x, const float *dy)
{
    double sum = 0;

    for (int y = t->y0; y < t->y1; y++) {
        const ptrdiff_t row = row_of(s, t, y);
        const float *d = dy + (size_t)y * (size_t)s->out.w;

        for (int i = t->x0; i < t->x1; i++) sum += (double)x[row + i * s->stride] * d[i];
    }
    return sum;
}

typedef void tap_fn(const dpt_ref_window *, const tap *, const float *, double, double *);

/* f over all taps of one kernel [k][k] */
static void each_tap(const dpt_ref_window *s, tap_fn *f, const float *from, const float *kernel,
                     double *acc)
{
    for (int ky = 0; ky < s->k; ky++) {
        for (int kx = 0; kx < s->k; kx++) {
            const tap t = tap_at(s, ky, kx);
            f(s, &t, from, kernel[ky * s->k + kx], acc);
        }
    }
}

static const float *kernel_of(const dpt_ref_window *s, const float *w, int oc, int ic)
{
    return w + ((size_t)oc * (size_t)s->in.c + (size_t)ic) * (size_t)(s->k * s->k);
}

static const float *plane_of(const float *x, dpt_shape s, int n, int c)
{
    return x + ((size_t)n * (size_t)s.c + (size_t)c) * plane(s);
}

void dpt_ref_conv(const dpt_ref_window *s, const float *x, const float *w, const float *b, float *y,
                  double *acc)
{
    const size_t size = plane(s->out);

    for (int n = 0; n < s->n; n++) {
        for (int oc = 0; oc < s->out.c; oc++) {
            for (size_t i = 0; i < size; i++) acc[i] = b ? b[oc] : 0;
            for (int ic = 0; ic < s->in.c; ic++) {
                each_tap(s, gather, plane_of(x, s->in, n, ic), kernel_of(s, w, oc, ic), acc);
            }
            for (size_t i = 0; i < size; i++) *y++ = (float)acc[i];
        }
    }
}

void dpt_ref_conv_dx(const dpt_ref_window *s, const float *dy, const float *w, float *dx,
                     double *acc)
{
    const size_t size = plane(s->in);

    for (int n = 0; n < s->n; n++) {
        for (int ic = 0; ic < s->in.c; ic++) {
            memset(acc, 0, size * sizeof *acc);
            for (int oc = 0; oc < s->out.c; oc++) {
                each_tap(s, scatter, plane_of(dy, s->out, n, oc), kernel_of(s, w, oc, ic), acc);
            }
            for (size_t i = 0; i < size; i++) *dx++ += (float)acc[i];
        }
    }
}

static float weight_gradient(const dpt_ref_window *s, const tap *t, int oc, int ic, const float *x,
                             const float *dy)
{
    double sum = 0;

    for (int n = 0; n < s->n; n++) {
        sum += product(s, t, plane_of(x, s->in, n, ic), plane_of(dy, s->out, n, oc));
    }
    return (float)sum;
}

static float plane_sums(int n, dpt_shape shape, int c, const float *dy)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const float *d = plane_of(dy, shape, i, c);
        for (size_t j = 0; j < plane(shape); j++) sum += d[j];
    }
    return (float)sum;
}

void dpt_ref_conv_dw(const dpt_ref_window *s, const float *x, const float *dy, float *dw, float *db)
{
    for (int oc = 0; oc < s->out.c; oc++) {
        for (int ic = 0; ic < s->in.c; ic++) {
            for (int k = 0; k < s->k * s->k; k++) {
                const tap t = tap_at(s, k / s->k, k % s->k);
                *dw++ = weight_gradient(s, &t, oc, ic, x, dy);
            }
        }
        if (db) db[oc] = plane_sums(s->n, s->out, oc, dy);
    }
}

/* Index in the plane of the window's first largest value. */
static size_t largest(const dpt_ref_window *s, const float *x, int oy, int ox)
{
    const int y0 = oy * s->stride - s->pad, x0 = ox * s->stride - s->pad;
    size_t best = 0;
    int found = 0;

    for (int iy = y0 < 0 ? 0 : y0; iy < y0 + s->k && iy < s->in.h; iy++) {
        for (int ix = x0 < 0 ? 0 : x0; ix < x0 + s->k && ix < s->in.w; ix++) {
            const size_t i = (size_t)iy * (size_t)s->in.w + (size_t)ix;
            if (!found || x[i] > x[best] || isnan(x[i])) best = i;
            found = 1;
        }
    }
    return best;
}

void dpt_ref_maxpool(const dpt_ref_window *s, const float *x, float *y)
{
    for (int p = 0; p < s->n * s->in.c; p++, x += plane(s->in)) {
        for (int oy = 0; oy < s->out.h; oy++) {
            for (int ox = 0; ox < s->out.w; ox++) *y++ = x[largest(s, x, oy, ox)];
        }
    }
}

void dpt_ref_maxpool_dx(const dpt_ref_window *s, const float *x, const float *dy, float *dx)
{
    for (int p = 0; p < s->n * s->in.c; p++, x += plane(s->in), dx += plane(s->in)) {
        for (int oy = 0; oy < s->out.h; oy++) {
            for (int ox = 0; ox < s->out.w; ox++) dx[largest(s, x, oy, ox)] += *dy++;
        }
    }
}

void dpt_ref_bn_stats(const dpt_ref_bn *s, const float *x)
{
    const size_t size = plane(s->shape);
    const double count = (double)s->n * (double)size;

    for (int c = 0; c < s->shape.c; c++) {
        double sum = 0, square = 0, mean;

        for (int n = 0; n < s->n; n++) {
            const float *p = plane_of(x, s->shape, n, c);
            for (size_t i = 0; i < size; i++) sum += p[i];
        }
        mean = sum / count;
        for (int n = 0; n < s->n; n++) {
            const float *p = plane_of(x, s->shape, n, c);
            for (size_t i = 0; i < size; i++) square += (p[i] - mean) * (p[i] - mean);
        }
        s->mean[c] = (float)mean;
        s->var[c] = (float)(square / count);
    }
}

void dpt_ref_bn_apply(const dpt_ref_bn *s, const float *x, float *y)
{
    const size_t size = plane(s->shape);

    for (int n = 0; n < s->n; n++) {
        for (int c = 0; c < s->shape.c; c++) {
            const double scale = s->weight[c] / sqrt(s->var[c] + DPT_BN_EPSILON);
            for (size_t i = 0; i < size; i++) {
                *y++ = (float)((*x++ - (double)s->mean[c]) * scale + s->bias[c]);
            }
        }
    }
}

/* With xhat = (x - mean) * r, r = 1 / sqrt(var + eps), over the m values of a channel:
 * dbias = sum(dy), dweight = sum(dy * xhat), dx = weight * r * (dy - dbias / m - xhat * dweight / m) */
void dpt_ref_bn_back(const dpt_ref_bn *s, const float *x, const float *dy, float *dx,
                     float *dweight, float *dbias)
{
    const size_t size = plane(s->shape);
    const double m = (double)s->n * (double)size;

    for (int c = 0; c < s->shape.c; c++) {
        const double mean = s->mean[c], r = 1 / sqrt(s->var[c] + DPT_BN_EPSILON);
        double sum = 0, dot = 0;

        for (int n = 0; n < s->n; n++) {
            const float *p = plane_of(x, s->shape, n, c), *d = plane_of(dy, s->shape, n, c);
            for (size_t i = 0; i < size; i++) {
                sum += d[i];
                dot += d[i] * (p[i] - mean) * r;
            }
        }
        for (int n = 0; n < s->n; n++) {
            const float *p = plane_of(x, s->shape, n, c), *d = plane_of(dy, s->shape, n, c);
            float *out = dx + (p - x);
            for (size_t i = 0; i < size; i++) {
                const double xhat = (p[i] - mean) * r;
                out[i] += (float)(s->weight[c] * r * (d[i] - sum / m - xhat * dot / m));
            }
        }
        dweight[c] = (float)dot;
        dbias[c] = (float)sum;
    }
}

void dpt_ref_linear(int n, int inputs, int outputs, const float *x, const float *w, const float *b,
                    float *y)
{
    for (int i = 0; i < n; i++, x += inputs) {
        for (int o = 0; o < outputs; o++) {
            const float *row = w + (size_t)o * (size_t)inputs;
            double sum = b[o];

            for (int j = 0; j < inputs; j++) sum += (double)row[j] * x[j];
            *y++ = (float)sum;
        }
    }
}

void dpt_ref_linear_back(int n, int inputs, int outputs, const float *x, const float *w,
                         const float *dy, float *dx, float *dw, float *db)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < inputs; j++) {
            double sum = 0;

            for (int o = 0; o < outputs; o++) {
                sum += (double)dy[i * outputs + o] * w[(size_t)o * (size_t)inputs + (size_t)j];
            }
            dx[(size_t)i * (size_t)inputs + (size_t)j] += (float)sum;
        }
    }
    for (int o = 0; o < outputs; o++) {
        double sum = 0;

        for (int i = 0; i < n; i++) sum += dy[i * outputs + o];
        db[o] = (float)sum;
        for (int j = 0; j < inputs; j++) {
            sum = 0;
            for (int i = 0; i < n; i++) {
                sum += (double)dy[i * outputs + o] * x[(size_t)i * (size_t)inputs + (size_t)j];
            }
            *dw++ = (float)sum;
        }
    }
}
