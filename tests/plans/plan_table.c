/* SPDX-License-Identifier: Apache-2.0 */
/* Builds cuDNN's plans for whole networks on a GPU that is only described, and prints one line per plan:
 * device, key, engine, workspace in bytes, notes (tc tensor cores, nd not deterministic, rt compiled at
 * run time), the first layer that uses it. tests/data/cudnn/README says how the table is made.
 *
 *   plan_table [--conv] [--train] [--threads N] [--cache DIR] DEVICE.json NET:SIDE:BATCH:TYPE...
 *   plan_table --gpu N        prints what cuDNN knows of that GPU */
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
    static const char *const names[] = { "fp32", "bf16", "fp16" };

    for (int i = 0; i < 3; i++) {
        if (strcmp(s, names[i]) != 0) continue;
        *out = (dpt_gpu_type)i;
        return 0;
    }
    return -1;
}

/* sm_NN of the description. */
static int device_number(const char *json)
{
    const char *at = strstr(json, "\"deviceVer\":");

    return at ? atoi(at + strlen("\"deviceVer\":")) / 10 : 0;
}

static void print_new(const dpt_cu_plans *s, size_t from, const dpt_cu_prog *p, const int *which,
                      int device)
{
    for (size_t k = from; k < s->plans; k++) {
        const dpt_cu_plan *q = s->plan[k];
        char name[160] = "";

        for (size_t i = p->ops; i-- > 0;) {
            if (which[i] == (int)k) dpt_cu_op_name(p, i, name, sizeof name);
        }
        printf("sm_%d\t%s\t%" PRId64 "\t%" PRId64 "\t%s%s%s%s\t%s\n", device, q->key, q->engine,
               q->workspace, q->tensor_core ? "tc" : "-", q->nondeterministic ? ",nd" : "",
               q->compiled ? ",rt" : "", q->reloaded ? ",cached" : "", name);
    }
}

static int add(dpt_cu_plans *s, const request *r, int train, const dpt_cu_plan_options *o,
               dpl_text *why)
{
    dpt_graph *g = NULL;
    dpt_cu_prog p = { .err = DPL_OK };
    dpt_gpu_type type;
    int *which = NULL, err;
    const size_t before = s->plans;

    if (type_of(r->type, &type)) return dpl_fail(why, DPL_EINVAL, "no such type: %s", r->type);
    if ((err = dpt_graph_build(&g, r->net, 1000, r->side, r->side, why))) goto done;
    if ((err = dpt_cu_prog_build(&p, g, type, r->batch, train, why))) goto done;
    if (!(which = calloc(p.ops, sizeof *which))) {
        err = DPL_ENOMEM;
        goto done;
    }
    if ((err = dpt_cu_plans_add(s, &p, o, which, why))) goto done;
    print_new(s, before, &p, which, device_number(o->device));
done:
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

static int tables(int argc, char **argv, int at, dpt_cu_plan_options *o, int train_only,
                  dpl_text *why)
{
    dpt_cu_plans s = { .plans = 0 };
    void *json = NULL;
    size_t cap = 0, len = 0;
    char *text = NULL;
    int err = dpl_read_file(AT_FDCWD, argv[at], &json, &cap, &len, 1 << 20, why);

    if (err) goto done;
    if (!(text = calloc(len + 1, 1))) {
        err = DPL_ENOMEM;
        goto done;
    }
    memcpy(text, json, len);
    while (len > 0 && text[len - 1] == '\n') text[--len] = '\0';
    o->device = text;
    for (int i = at + 1; i < argc && !err; i++) {
        request r;

        if (sscanf(argv[i], "%31[^:]:%d:%d:%7s", r.net, &r.side, &r.batch, r.type) != 4) {
            err = dpl_fail(why, DPL_EINVAL, "%s is not NET:SIDE:BATCH:TYPE", argv[i]);
            break;
        }
        err = add(&s, &r, 1, o, why);
        if (!err && !train_only) err = add(&s, &r, 0, o, why);
    }
done:
    dpt_cu_plans_fini(&s);
    free(text);
    free(json);
    return err;
}

int main(int argc, char **argv)
{
    dpt_cu_plan_options o = { .workspace_cap = (size_t)256 << 20, .threads = 2 };
    dpl_text why = { "" };
    int at = 1, gpu = -1, train_only = 0, err = dpt_cu_version(&why);

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--conv") == 0) o.precompiled_only = 1;
        if (strcmp(argv[at], "--train") == 0) train_only = 1;
        if (at + 1 < argc && strcmp(argv[at], "--gpu") == 0) gpu = atoi(argv[++at]);
        if (at + 1 < argc && strcmp(argv[at], "--threads") == 0) o.threads = atoi(argv[++at]);
        if (at + 1 < argc && strcmp(argv[at], "--cache") == 0) o.cache = argv[++at];
    }
    if (!err && gpu >= 0) {
        err = print_gpu(gpu, &why);
    } else if (!err && at + 1 < argc) {
        err = tables(argc, argv, at, &o, train_only, &why);
    } else if (!err) {
        err = dpl_fail(&why, DPL_EINVAL, "plan_table [options] DEVICE.json NET:SIDE:BATCH:TYPE...");
    }
    if (err) fprintf(stderr, "plan_table: %s\n", why.s);
    return err ? 1 : 0;
}
