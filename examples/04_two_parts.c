/* SPDX-License-Identifier: Apache-2.0 */
/* Feed a training loop of your own: each of two replicas gets its part of every batch, and the sum of
 * their gradients makes the step of the whole batch. The model is a linear map from the mean colour.
 *
 *     cc 04_two_parts.c -ldpload && ./a.out imagenet/train */
#include <dpload.h>
#include <pthread.h>
#include <stdio.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, CLASSES = 1000, FEATURES = 4, EPOCHS = 5 };

typedef struct replica {
    const dpl_part *part;
    double grad[CLASSES][FEATURES], loss; /* sums over the pictures of the part */
} replica;

static double weight[CLASSES][FEATURES]; /* only read while the replicas run */
static int classes;

static void *forward_backward(void *arg)
{
    replica *r = arg;
    for (int i = 0; i < r->part->n; i++) { /* a part of a small last batch may hold none */
        const float *pixels = (const float *)r->part->pixels + (size_t)i * 3 * PLANE;
        double x[FEATURES] = { 0, 0, 0, 1 };
        for (int k = 0; k < 3 * PLANE; k++) x[k / PLANE] += pixels[k] / PLANE;
        for (int c = 0; c < classes; c++) {
            double error = c == r->part->labels[i] ? -1 : 0;
            for (int f = 0; f < FEATURES; f++) error += weight[c][f] * x[f];
            for (int f = 0; f < FEATURES; f++) r->grad[c][f] += error * x[f];
            r->loss += error * error / 2;
        }
    }
    return NULL;
}

/* One step on one batch. @return the sum of its losses */
static double train_step(const dpl_batch *b)
{
    replica r[2] = { { .part = &b->part[0] }, { .part = &b->part[1] } };
    pthread_t other;
    const int threaded = !pthread_create(&other, NULL, forward_backward, &r[1]);
    forward_backward(&r[0]);
    if (!threaded) forward_backward(&r[1]);
    if (threaded) pthread_join(other, NULL);
    for (int k = 0; b->n && k < classes * FEATURES; k++)
        weight[0][k] -= 0.1 * (r[0].grad[0][k] + r[1].grad[0][k]) / b->n;
    return r[0].loss + r[1].loss;
}

int main(int argc, char **argv)
{
    dpl_options opt;
    dpl_loader *l;
    dpl_info info;
    double loss = 0, n = 0;
    int err = DPL_EOF;

    dpl_options_init(&opt, sizeof opt);
    opt.path = argc > 1 ? argv[1] : ".";
    opt.batch = 16; /* both parts together; options.split makes them uneven */
    opt.devices = "cpu,cpu";
    opt.width = opt.height = SIDE;
    opt.dtype = DPL_FLOAT32;
    opt.layout = DPL_NCHW;
    if (dpl_open(&l, &opt)) return fprintf(stderr, "%s\n", dpl_error_text(NULL)), 1;
    dpl_info_get(l, &info);
    classes = info.classes < CLASSES ? info.classes : CLASSES; /* labels beyond it have no output */
    for (int epoch = 0; epoch < EPOCHS && err == DPL_EOF; epoch++, loss = n = 0) {
        for (dpl_batch b; !(err = dpl_next(l, &b, -1)); dpl_release(l, &b, NULL)) {
            loss += train_step(&b);
            n += b.n;
        }
        if (err == DPL_EOF) printf("epoch %d: loss %.4f over %.0f pictures\n", epoch, loss / n, n);
    }
    if (err != DPL_EOF) fprintf(stderr, "%s\n", dpl_error_text(l));
    dpl_close(&l);
    return err != DPL_EOF;
}
