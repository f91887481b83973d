/* SPDX-License-Identifier: Apache-2.0 */
/* tinynet: four 3x3 convolutions with bias, no batch norm, for tests and demonstrations. Without
 * batch norm a step over a split batch equals the step over the whole one exactly. */
#include "trainer/graph_make.h"

#include <stdio.h>

void dpt_model_tinynet(dpt_maker *m, int classes)
{
    static const int width[] = { 16, 32, 64, 64 };
    enum { CONVS = sizeof width / sizeof *width };
    char name[16];
    int t = 0;

    for (int i = 0; i < CONVS; i++) {
        const dpt_conv_spec spec = {
            .channels = width[i], .k = 3, .stride = 1, .pad = 1, .bias = 1, .by_inputs = 1
        };

        snprintf(name, sizeof name, "conv%d", i + 1);
        t = dpt_make_relu(m, dpt_make_conv(m, t, name, &spec));
        if (i < CONVS - 1) t = dpt_make_maxpool(m, t, 2, 2, 0);
    }
    dpt_make_linear(m, dpt_make_avgpool(m, t), "fc", classes);
}
