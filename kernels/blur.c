/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian blur. Blurred rows wait in a ring of 2 radius + 1 until the columns are done with them, so
 * that the picture can be changed in place. */
#include "kernels/blur.h"

#include <math.h>

void dpl_blur_weights(float *half, int radius, double sigma)
{
    double sum = 0;
    for (int d = 0; d <= radius; d++) {
        const double x = d / sigma;
        sum += (d ? 2 : 1) * exp(-0.5 * x * x);
    }
    for (int d = 0; d <= radius; d++) {
        const double x = d / sigma;
        half[d] = (float)(exp(-0.5 * x * x) / sum);
    }
}

/* A row's bytes and `radius` pixels on either side. */
static size_t padded_row(int width, int radius)
{
    return 3 * ((size_t)width + 2 * (size_t)radius);
}

size_t dpl_blur_scratch(int width, int radius)
{
    /* the ring, a row of input, a row of output */
    return 3 * (size_t)width * (2 * (size_t)radius + 2) + padded_row(width, radius);
}

/* Position i of a line of n that goes on as its mirror image, about the outermost pixels. */
static int mirrored(int i, int n)
{
    const int period = 2 * (n - 1);
    if (n == 1) return 0;
    i = i < 0 ? -i : i;
    i %= period;
    return i < n ? i : period - i;
}

static void blur_row(float *out, const uint8_t *in, int width, const float *half, int radius,
                     float *line, const dpl_blur_steps *steps)
{
    const float *low[DPL_BLUR_RADIUS_MAX + 1], *high[DPL_BLUR_RADIUS_MAX + 1];
    float *at = line + 3 * radius;
    steps->widen(at, in, 3 * (size_t)width);
    for (int d = 1; d <= radius; d++)
        for (int c = 0; c < 3; c++) {
            at[-3 * d + c] = in[3 * mirrored(-d, width) + c];
            at[3 * (width - 1 + d) + c] = in[3 * mirrored(width - 1 + d, width) + c];
        }
    for (int d = 0; d <= radius; d++) {
        low[d] = at - 3 * d;
        high[d] = at + 3 * d;
    }
    steps->weigh(out, low, high, half, radius, 3 * (size_t)width);
}

void dpl_blur_with(uint8_t *px, int width, int height, const float *half, int radius,
                   float *scratch, const dpl_blur_steps *steps)
{
    const float *low[DPL_BLUR_RADIUS_MAX + 1], *high[DPL_BLUR_RADIUS_MAX + 1];
    const size_t row = 3 * (size_t)width;
    const int rows = 2 * radius + 1;
    float *ring = scratch, *sum = ring + row * (size_t)rows, *line = sum + row;
    int done = 0; /* rows that are in the ring */
    for (int y = 0; y < height; y++) {
        for (; done < height && done <= y + radius; done++)
            blur_row(ring + row * (size_t)(done % rows), px + row * (size_t)done, width, half,
                     radius, line, steps);
        for (int d = 0; d <= radius; d++) {
            low[d] = ring + row * (size_t)(mirrored(y - d, height) % rows);
            high[d] = ring + row * (size_t)(mirrored(y + d, height) % rows);
        }
        steps->weigh(sum, low, high, half, radius, row);
        steps->round(px + row * (size_t)y, sum, row);
    }
}

static void weigh(float *out, const float *const *low, const float *const *high, const float *half,
                  int radius, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = half[0] * low[0][i];
        for (int d = 1; d <= radius; d++) sum += half[d] * (low[d][i] + high[d][i]);
        out[i] = sum;
    }
}

static void widen(float *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = in[i];
}

static void round_bytes(uint8_t *out, const float *in, size_t n)
{
    const float whole = 0x1.8p23F; /* its neighbours are 1 apart */
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)((in[i] + whole) - whole);
}

const dpl_blur_steps dpl_blur_steps_c = { weigh, widen, round_bytes };

void dpl_blur_c(uint8_t *px, int width, int height, const float *half, int radius, float *scratch)
{
    dpl_blur_with(px, width, height, half, radius, scratch, &dpl_blur_steps_c);
}
