/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-18, 34 (basic blocks) and 50, 101, 152 (bottlenecks with the stride on the 3x3 convolution)
 * with torchvision's names, key order and initialisation. */
#include "trainer/graph_make.h"

#include <stdio.h>

enum { STAGES = 4, BASIC = 1, BOTTLENECK = 4 }; /* block outputs = this times the stage's width */

typedef struct block {
    char name[32]; /* "layer1.0" */
    int width, expansion, stride;
} block;

static const char *under(char *buf, size_t len, const block *b, const char *what)
{
    snprintf(buf, len, "%s.%s", b->name, what);
    return buf;
}

static int conv(dpt_maker *m, const block *b, int in, const char *what, dpt_conv_spec spec)
{
    char name[64];

    return dpt_make_conv(m, in, under(name, sizeof name, b, what), &spec);
}

static int bn(dpt_maker *m, const block *b, int in, const char *what)
{
    char name[64];

    return dpt_make_bn(m, in, under(name, sizeof name, b, what));
}

/* The branch beside the shortcut, up to its last batch norm. */
static int basic_branch(dpt_maker *m, const block *b, int t)
{
    t = conv(m, b, t, "conv1",
             (dpt_conv_spec){ .channels = b->width, .k = 3, .stride = b->stride, .pad = 1 });
    t = dpt_make_relu(m, bn(m, b, t, "bn1"));
    t = conv(m, b, t, "conv2",
             (dpt_conv_spec){ .channels = b->width, .k = 3, .stride = 1, .pad = 1 });
    return bn(m, b, t, "bn2");
}

static int bottleneck_branch(dpt_maker *m, const block *b, int t)
{
    t = conv(m, b, t, "conv1", (dpt_conv_spec){ .channels = b->width, .k = 1, .stride = 1 });
    t = dpt_make_relu(m, bn(m, b, t, "bn1"));
    t = conv(m, b, t, "conv2",
             (dpt_conv_spec){ .channels = b->width, .k = 3, .stride = b->stride, .pad = 1 });
    t = dpt_make_relu(m, bn(m, b, t, "bn2"));
    t = conv(m, b, t, "conv3",
             (dpt_conv_spec){ .channels = b->width * BOTTLENECK, .k = 1, .stride = 1 });
    return bn(m, b, t, "bn3");
}

static int make_block(dpt_maker *m, const block *b, int in)
{
    const int outputs = b->width * b->expansion;
    int t, shortcut = in;

    if (m->err) return 0;
    t = b->expansion == BASIC ? basic_branch(m, b, in) : bottleneck_branch(m, b, in);
    if (b->stride != 1 || m->g->tensor[in].c != outputs) {
        shortcut = conv(m, b, in, "downsample.0",
                        (dpt_conv_spec){ .channels = outputs, .k = 1, .stride = b->stride });
        shortcut = bn(m, b, shortcut, "downsample.1");
    }
    return dpt_make_relu(m, dpt_make_add(m, t, shortcut));
}

static const int *stage_blocks(int depth)
{
    static const int n18[STAGES] = { 2, 2, 2, 2 }, n50[STAGES] = { 3, 4, 6, 3 };
    static const int n101[STAGES] = { 3, 4, 23, 3 }, n152[STAGES] = { 3, 8, 36, 3 };

    return depth == 18 ? n18 : depth == 101 ? n101 : depth == 152 ? n152 : n50; /* 34 is as 50 */
}

void dpt_model_resnet(dpt_maker *m, int depth, int classes)
{
    const int *blocks = stage_blocks(depth);
    dpt_conv_spec stem = { .channels = 64, .k = 7, .stride = 2, .pad = 3 };
    int t = dpt_make_conv(m, 0, "conv1", &stem);

    t = dpt_make_relu(m, dpt_make_bn(m, t, "bn1"));
    t = dpt_make_maxpool(m, t, 3, 2, 1);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < blocks[stage]; i++) {
            block b = { .width = 64 << stage, .expansion = depth < 50 ? BASIC : BOTTLENECK };

            b.stride = stage > 0 && i == 0 ? 2 : 1;
            snprintf(b.name, sizeof b.name, "layer%d.%d", stage + 1, i);
            t = make_block(m, &b, t);
        }
    }
    dpt_make_linear(m, dpt_make_avgpool(m, t), "fc", classes);
}
