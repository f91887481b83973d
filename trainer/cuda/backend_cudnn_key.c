/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of operations: equal layers have equal keys and share a plan; see backend_cudnn_prog.h. */
#include "trainer/cuda/backend_cudnn_prog.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    char *at;
    size_t used;
    int full;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(w->at + w->used, DPT_CU_KEY - w->used, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= DPT_CU_KEY - w->used) {
        w->full = 1;
    } else {
        w->used += (size_t)n;
    }
}

/* "3" for a tensor that was named before, "3:256x64x56x56/t" for a new one. */
static void put_tensor(writer *w, const dpt_cu_prog *p, int tensor, int *local, int *locals)
{
    static const char *const elem[] = { "t", "f", "b", "i" };
    const dpt_cu_tensor *t = &p->tensor[tensor];
    int i = 0;

    while (i < *locals && local[i] != tensor) i++;
    if (i == DPT_CU_LOCAL) {
        w->full = 1;
        return;
    }
    put(w, " %d", i);
    if (i < *locals) return;
    local[(*locals)++] = tensor;
    if (t->at == DPT_CU_SCALAR) {
        put(w, ":scalar");
        return;
    }
    put(w, ":%dx%dx%dx%d/%s%s", t->n, t->c, t->h, t->w, elem[t->elem],
        t->at == DPT_CU_VIRTUAL ? "v" : "");
}

int dpt_cu_key(const dpt_cu_prog *p, size_t op, char key[DPT_CU_KEY], int local[DPT_CU_LOCAL])
{
    static const char *const kind[] = { "conv",    "dgrad",    "wgrad",   "add",     "sub", "mul",
                                        "rsqrt",   "relu",     "gt",      "drelu",   "bn",  "dbn",
                                        "maxpool", "dmaxpool", "avgpool", "davgpool" };
    const dpt_cu_op *o = &p->op[op];
    writer w = { .at = key };
    int locals = 0;

    put(&w, "%s", dpt_gpu_type_name(p->type));
    for (int i = 0; i < o->prims; i++) {
        const dpt_cu_prim *q = &o->prim[i];

        put(&w, "%s %s", i ? ";" : "", kind[q->kind]);
        if (q->k) put(&w, " k%ds%dp%d", q->k, q->stride, q->pad);
        for (int k = 0; k < DPT_CU_IN; k++) {
            if (q->in[k] >= 0) put_tensor(&w, p, q->in[k], local, &locals);
        }
        put(&w, " >");
        for (int k = 0; k < DPT_CU_OUT; k++) {
            if (q->out[k] >= 0) put_tensor(&w, p, q->out[k], local, &locals);
        }
    }
    return w.full ? -1 : locals;
}
