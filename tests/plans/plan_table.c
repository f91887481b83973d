/* SPDX-License-Identifier: Apache-2.0 */
/* Builds cuDNN's plans for whole networks on a GPU that is only described, and prints one line per plan:
 * device, key, engine, workspace in bytes, notes (tc tensor cores, nd not deterministic, rt compiled at
 * run time), the first layer that uses it. tests/scripts/make_plan_table.sh says how the table is made.
 *
 *   plan_table [options] DEVICE.json NET:SIDE:BATCH:TYPE...
 *     --conv         only convolutions, which need no driver at all; --rest: only what they leave
 *     --forms        of the rest one of each form, whatever its size
 *     --threads N    that build [2];  --cache DIR: keep plans there
 *     --plant mask|channels   spoil one layer: a mask of what the ReLU reads, 60 channels
 *     --cancel       as when the run is ended before the first plan
 *   plan_table --version, plan_table --gpu N (what cuDNN knows of that GPU) */
#include "base/files.h"
#include "dpload.h"
#include "trainer/cuda/backend_cudnn_plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    char net[32], type[8];
    int side, batch;
} request;

static int type_of(const char *s, dpt_gpu_type *out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(s, dpt_gpu_type_name((dpt_gpu_type)i)) != 0) continue;
        *out = (dpt_gpu_type)i;
        return 0;
    }
    return -1;
}

static int number_of(const char *json, const char *name)
{
    const char *at = strstr(json, name);

    return at ? atoi(at + strlen(name)) : 0;
}

/* Does cuDNN take the plan for one of the GPU that was described? */
static int is_of(const dpt_cu_plan *q, const char *device)
{
    static const char *const name[] = { "\"cudaDeviceId\":", "\"pciDeviceId\":" };
    int64_t n = 0;
    char *json = NULL;
    int same = 0;

    if (!cudnnBackendGetAttribute(q->d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                  CUDNN_TYPE_CHAR, 0, &n, NULL) &&
        (json = calloc((size_t)n + 1, 1)) &&
        !cudnnBackendGetAttribute(q->d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                  CUDNN_TYPE_CHAR, n, &n, json)) {
        same = number_of(json, name[0]) == number_of(device, name[0]) &&
               number_of(json, name[1]) == number_of(device, name[1]);
    }
    free(json);
    return same;
}

static void print_new(const dpt_cu_plans *s, size_t from, const dpt_cu_prog *p, const int *which,
                      const char *device)
{
    for (size_t k = from; k < s->plans; k++) {
        const dpt_cu_plan *q = s->plan[k];
        char name[160] = "";

        for (size_t i = p->ops; i-- > 0;) {
            if (which[i] == (int)k) dpt_cu_op_name(p, i, name, sizeof name);
        }
        printf("sm_%d\t%s\t%" PRId64 "\t%" PRId64 "\t%s%s%s%s%s\t%s\n",
               number_of(device, "\"deviceVer\":") / 10, q->key, q->engine, q->workspace,
               q->tensor_core ? "tc" : "-", q->nondeterministic ? ",nd" : "",
               q->compiled ? ",rt" : "", q->reloaded ? ",cached" : "",
               q->reloaded && !is_of(q, device) ? ",other" : "", name);
    }
}

typedef struct options {
    dpt_cu_plan_options plan;
    int conv, rest, forms, gpu, version;
    const char *plant;
} options;

static int convolves(const dpt_cu_op *o)
{
    return o->prim[0].kind <= DPT_CU_WGRAD;
}

/* Same primitives over the same sorts of tensors. */
static int same_form(const dpt_cu_prog *p, const dpt_cu_op *a, const dpt_cu_op *b)
{
    if (a->prims != b->prims) return 0;
    for (int i = 0; i < a->prims; i++) {
        const dpt_cu_prim *x = &a->prim[i], *y = &b->prim[i];

        if (x->kind != y->kind || x->k != y->k || x->stride != y->stride) return 0;
        if ((p->tensor[x->out[0]].at == DPT_CU_VIRTUAL) !=
            (p->tensor[y->out[0]].at == DPT_CU_VIRTUAL)) {
            return 0;
        }
    }
    return 1;
}

static char *choose(const dpt_cu_prog *p, const options *o)
{
    char *skip = calloc(p->ops, 1);

    for (size_t i = 0; skip && i < p->ops; i++) {
        const dpt_cu_op *op = &p->op[i];

        if (op->what != DPT_CU_GRAPH) continue;
        skip[i] = convolves(op) ? o->rest != 0 : o->conv != 0;
        for (size_t k = 0; o->forms && k < i && !skip[i]; k++) {
            skip[i] = p->op[k].what == DPT_CU_GRAPH && same_form(p, op, &p->op[k]);
        }
    }
    return skip;
}

/* What cuDNN cannot do, or on tensor cores only by copying whole tensors. */
static void spoil(dpt_cu_prog *p, const char *plant)
{
    for (size_t i = 0; i < p->ops; i++) {
        dpt_cu_op *o = &p->op[i];
        const int mask = strcmp(plant, "mask") == 0;

        if (o->what != DPT_CU_GRAPH || convolves(o) == mask) continue;
        if (mask && o->prims == 3 && o->prim[2].kind == DPT_CU_POSITIVE) {
            o->prim[2].in[0] = o->prim[1].in[0];
            return;
        }
        if (!mask && p->tensor[o->prim[0].in[0]].c == 64) {
            dpt_cu_tensor *w = &p->tensor[o->prim[0].in[1]];

            p->tensor[o->prim[0].in[0]].c = p->tensor[o->prim[0].out[0]].c = w->n = w->c = 60;
            p->ops = i + 1; /* what follows does not fit any more */
            return;
        }
    }
}

static int add(dpt_cu_plans *s, const request *r, int train, const options *given, dpl_text *why)
{
    dpt_cu_plan_options o = given->plan;
    dpt_graph *g = NULL;
    dpt_cu_prog p = { .err = DPL_OK };
    dpt_gpu_type type;
    char *skip = NULL;
    int *which = NULL, err;
    const size_t before = s->plans;

    if (type_of(r->type, &type)) return dpl_fail(why, DPL_EINVAL, "no such type: %s", r->type);
    if ((err = dpt_graph_build(&g, r->net, 1000, r->side, r->side, why))) goto done;
    if ((err = dpt_cu_prog_build(&p, g, type, r->batch, train, why))) goto done;
    if (given->plant) spoil(&p, given->plant);
    if (!(which = calloc(p.ops, sizeof *which)) || !(skip = choose(&p, given))) {
        err = dpl_fail(why, DPL_ENOMEM, "out of memory");
        goto done;
    }
    o.skip = skip;
    if ((err = dpt_cu_plans_add(s, &p, &o, which, why))) goto done;
    print_new(s, before, &p, which, o.device);
done:
    free(skip);
    free(which);
    dpt_cu_prog_fini(&p);
    dpt_graph_destroy(&g);
    return err;
}

static int print_gpu(int gpu, dpl_text *why)
{
    char *json;
    const int err = dpt_cu_device_json(gpu, &json, why);

    if (!err) puts(json);
    free(json);
    return err;
}

static int tables(int argc, char **argv, int at, options *o, dpl_text *why)
{
    dpt_cu_plans s = { .plans = 0 };
    void *json = NULL;
    size_t cap = 0, len = 0;
    char *text = NULL;
    int err = dpl_read_file(AT_FDCWD, argv[at], &json, &cap, &len, 1 << 20, why);

    if (err) goto done;
    if (!(text = calloc(len + 1, 1))) {
        err = dpl_fail(why, DPL_ENOMEM, "out of memory");
        goto done;
    }
    memcpy(text, json, len);
    while (len > 0 && text[len - 1] == '\n') text[--len] = '\0';
    o->plan.device = text;
    for (int i = at + 1; i < argc && !err; i++) {
        request r;

        if (sscanf(argv[i], "%31[^:]:%d:%d:%7s", r.net, &r.side, &r.batch, r.type) != 4) {
            err = dpl_fail(why, DPL_EINVAL, "%s is not NET:SIDE:BATCH:TYPE", argv[i]);
            break;
        }
        err = add(&s, &r, 1, o, why);
        if (!err) err = add(&s, &r, 0, o, why);
    }
done:
    dpt_cu_plans_fini(&s);
    free(text);
    free(json);
    return err;
}

static const int canceled = 1;

/* @return index of the first argument that is no option, -1 = an unknown one */
static int parse(int argc, char **argv, options *o)
{
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *name = argv[at], *value = at + 1 < argc ? argv[at + 1] : NULL;

        if (strcmp(name, "--conv") == 0) {
            o->conv = 1;
        } else if (strcmp(name, "--rest") == 0) {
            o->rest = 1;
        } else if (strcmp(name, "--forms") == 0) {
            o->forms = 1;
        } else if (strcmp(name, "--cancel") == 0) {
            o->plan.cancel = &canceled;
        } else if (strcmp(name, "--version") == 0) {
            o->version = 1;
        } else if (!value) {
            return -1;
        } else {
            at++;
            if (strcmp(name, "--threads") == 0) {
                o->plan.threads = atoi(value);
            } else if (strcmp(name, "--cache") == 0) {
                o->plan.cache = value;
            } else if (strcmp(name, "--plant") == 0) {
                o->plant = value;
            } else if (strcmp(name, "--gpu") == 0) {
                o->gpu = atoi(value);
            } else {
                return -1;
            }
        }
    }
    return at;
}

int main(int argc, char **argv)
{
    options o = { .plan = { .workspace_cap = (size_t)256 << 20, .threads = 2 }, .gpu = -1 };
    dpl_text why = { "" };
    const int at = parse(argc, argv, &o);
    int err = dpt_cu_version(&why);

    if (!err && at > 0 && o.version) {
        printf("%zu\n", cudnnGetVersion());
    } else if (!err && at > 0 && o.gpu >= 0) {
        err = print_gpu(o.gpu, &why);
    } else if (!err && at > 0 && at + 1 < argc) {
        err = tables(argc, argv, at, &o, &why);
    } else if (!err) {
        err = dpl_fail(&why, DPL_EINVAL, "plan_table [options] DEVICE.json NET:SIDE:BATCH:TYPE...");
    }
    if (err) fprintf(stderr, "plan_table: %s\n", why.s);
    return err ? 1 : 0;
}
