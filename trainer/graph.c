/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs by name, and their initial weights; see graph.h. */
#include "trainer/graph.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "dpload.h"
#include "trainer/graph_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 16384, MAX_CLASSES = 1000000 };

typedef struct model {
    const char *arch;
    int depth;    /* of a ResNet, 0 = tinynet */
    int min_side; /* each halving of the network must still have two pixels to halve */
} model;

static const model models[] = { { "resnet18", 18, 32 },   { "resnet34", 34, 32 },
                                { "resnet50", 50, 32 },   { "resnet101", 101, 32 },
                                { "resnet152", 152, 32 }, { "tinynet", 0, 8 } };
enum { MODELS = sizeof models / sizeof *models };

const char *const *dpt_graph_archs(void)
{
    static const char *const names[] = { "resnet18",  "resnet34", "resnet50", "resnet101",
                                         "resnet152", "tinynet",  NULL };

    return names;
}

static const model *find_model(const char *arch)
{
    for (int i = 0; i < MODELS; i++) {
        if (arch && strcmp(models[i].arch, arch) == 0) return &models[i];
    }
    return NULL;
}

static int check_request(const model *mod, const char *arch, int classes, int height, int width,
                         dpl_text *why)
{
    char list[256] = "";

    if (!mod) {
        for (int i = 0; i < MODELS; i++) {
            const size_t len = strlen(list);
            snprintf(list + len, sizeof list - len, " %s", models[i].arch);
        }
        return dpl_fail(why, DPL_EINVAL, "unknown network \"%s\": there are%s", arch ? arch : "",
                        list);
    }
    if (classes < 1 || classes > MAX_CLASSES) {
        return dpl_fail(why, DPL_EINVAL, "%s: %d classes asked for; 1 to %d are possible", arch,
                        classes, MAX_CLASSES);
    }
    if (height < mod->min_side || width < mod->min_side) {
        return dpl_fail(why, DPL_EINVAL,
                        "%s: pictures of %d x %d pixels are too small, the network halves them "
                        "too often: at least %d x %d",
                        arch, width, height, mod->min_side, mod->min_side);
    }
    if (height > MAX_SIDE || width > MAX_SIDE) {
        return dpl_fail(why, DPL_EINVAL, "%s: pictures of %d x %d pixels are too large: up to %d",
                        arch, width, height, MAX_SIDE);
    }
    return DPL_OK;
}

int dpt_graph_build(dpt_graph **out, const char *arch, int classes, int height, int width,
                    dpl_text *why)
{
    const model *mod = find_model(arch);
    dpt_maker m = { .err = DPL_OK };
    int err;

    *out = NULL;
    if ((err = check_request(mod, arch, classes, height, width, why))) return err;
    if (!(m.g = dpl_calloc(1, sizeof *m.g)) || !(m.g->arch = dpl_strdup(arch))) {
        err = DPL_ENOMEM;
        goto done;
    }
    m.g->classes = classes;
    if ((err = dpl_grow((void **)&m.g->tensor, &m.tensor_cap, 1, sizeof *m.g->tensor))) goto done;
    m.g->tensor[m.g->tensors++] = (dpt_shape){ 3, height, width };
    if (mod->depth) {
        dpt_model_resnet(&m, mod->depth, classes);
    } else {
        dpt_model_tinynet(&m, classes);
    }
    if ((err = m.err)) goto done;
    *out = m.g;
    m.g = NULL;
done:
    dpt_graph_destroy(&m.g);
    return err ? dpl_fail(why, err, "%s: out of memory", arch) : DPL_OK;
}

static void free_params(dpt_param *p, int n)
{
    for (int i = 0; i < n; i++) free(p[i].name);
    free(p);
}

void dpt_graph_destroy(dpt_graph **g)
{
    if (!*g) return;
    free_params((*g)->param, (*g)->params);
    free_params((*g)->buffer, (*g)->buffers);
    free((*g)->node);
    free((*g)->tensor);
    free((*g)->arch);
    free(*g);
    *g = NULL;
}

const char *dpt_graph_node_name(const dpt_graph *g, int i, char *buf, size_t len)
{
    static const char *const kind[] = { "conv",    "batch norm", "relu",  "add",
                                        "maxpool", "avgpool",    "linear" };
    const dpt_node *n = &g->node[i];

    if (n->param >= 0) {
        const char *name = g->param[n->param].name;
        snprintf(buf, len, "%.*s", (int)(strlen(name) - strlen(".weight")), name);
    } else {
        snprintf(buf, len, "%s %d", kind[n->op], i);
    }
    return buf;
}

static void init_one(const dpt_param *p, int index, uint64_t seed, float *v)
{
    dpl_rng r;

    dpl_rng_init(&r, seed, 0, (uint64_t)index, DPL_RNG_INIT);
    for (size_t i = 0; i < p->count; i++) {
        switch (p->init) {
        case DPT_INIT_ZERO: v[i] = 0; break;
        case DPT_INIT_ONE: v[i] = 1; break;
        case DPT_INIT_NORMAL: v[i] = (float)(p->init_arg * dpl_rng_normal(&r)); break;
        case DPT_INIT_UNIFORM: v[i] = (float)dpl_rng_uniform(&r, -p->init_arg, p->init_arg); break;
        }
    }
}

void dpt_graph_init(const dpt_graph *g, uint64_t seed, float *params, float *buffers)
{
    for (int i = 0; i < g->params; i++) {
        init_one(&g->param[i], i, seed, params + g->param[i].offset);
    }
    for (int i = 0; i < g->buffers; i++) {
        init_one(&g->buffer[i], i, seed, buffers + g->buffer[i].offset);
    }
}
