/* SPDX-License-Identifier: Apache-2.0 */
/* How the files model_*.c put a graph together: one call per layer, each returns the number of the
 * tensor it makes. The first failure sticks; later calls then do nothing and return 0, so that a
 * model reads as a list of layers. */
#ifndef DPT_TRAINER_GRAPH_MAKE_H
#define DPT_TRAINER_GRAPH_MAKE_H

#include "trainer/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpt_maker {
    dpt_graph *g;
    size_t tensor_cap, node_cap, param_cap, buffer_cap;
    int err; /* DPL_OK or DPL_ENOMEM */
} dpt_maker;

/** Convolution `name` with a k x k kernel. Weights: normal(0, sqrt(2 / fan)), fan = outputs * k * k
 *  (by_inputs = 0: torchvision's ResNet) or inputs * k * k (1). Bias, if any, starts at 0. */
typedef struct dpt_conv_spec {
    int channels, k, stride, pad, bias, by_inputs;
} dpt_conv_spec;
int dpt_make_conv(dpt_maker *m, int in, const char *name, const dpt_conv_spec *spec);

int dpt_make_bn(dpt_maker *m, int in, const char *name);
int dpt_make_relu(dpt_maker *m, int in);
int dpt_make_add(dpt_maker *m, int in, int in2);
int dpt_make_maxpool(dpt_maker *m, int in, int k, int stride, int pad);
int dpt_make_avgpool(dpt_maker *m, int in);

/** Fully connected; weights and bias uniform(+-1 / sqrt(inputs)), PyTorch's default. */
int dpt_make_linear(dpt_maker *m, int in, const char *name, int outputs);

/** The models: append everything after tensor 0. depth: 18, 34, 50, 101, 152. */
void dpt_model_resnet(dpt_maker *m, int depth, int classes);
void dpt_model_tinynet(dpt_maker *m, int classes);

#ifdef __cplusplus
}
#endif
#endif
