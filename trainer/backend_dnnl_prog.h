/* SPDX-License-Identifier: Apache-2.0 */
/* A program for oneDNN: primitives in execution order over memories, most of which lie in one arena
 * whose plan follows from the first and last primitive that uses each. Building calls do not return
 * a status: the first failure sticks in prog->err and turns the rest into no-ops, so that the layers
 * read as what they compute. */
#ifndef DPT_TRAINER_BACKEND_DNNL_PROG_H
#define DPT_TRAINER_BACKEND_DNNL_PROG_H

#include "base/text.h"
#include "trainer/backend.h"
#include "trainer/backend_arena.h"

#include <dnnl.h>
#include <dnnl_debug.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a memory lies. All but the arena belong to the caller of a step and change with each. */
typedef enum dpt_dnnl_place {
    DPT_AT_ARENA,
    DPT_AT_PARAMS,
    DPT_AT_GRADS,
    DPT_AT_PIXELS,
    DPT_AT_BUFFERS,
    DPT_PLACES
} dpt_dnnl_place;

typedef struct dpt_dnnl_mem {
    dnnl_memory_t m;
    dnnl_memory_desc_t md;
    dpt_dnnl_place at;
    size_t offset; /* bytes from the start of its place */
} dpt_dnnl_mem;

enum { DPT_DNNL_ARGS = 12 }; /* a batch norm has most */

typedef struct dpt_dnnl_op {
    dnnl_primitive_t p;
    dnnl_exec_arg_t arg[DPT_DNNL_ARGS];
    int args;
    int node; /* of the graph, for messages */
} dpt_dnnl_op;

typedef struct dpt_dnnl_prog {
    const dpt_graph *g;
    dnnl_engine_t engine;            /* the exec's */
    dnnl_stream_t stream;            /* the exec's */
    dpl_text *why;                   /* of the build */
    int err;                         /* first failure */
    int node;                        /* the one that is being built, for messages */
    dnnl_primitive_attr_t attr;      /* scratchpad from the arena */
    dnnl_primitive_attr_t attr_relu; /* and a ReLU behind */
    dpt_dnnl_mem *mem;
    dpt_arena_buf *buf; /* [mems] life of each; places only for DPT_AT_ARENA */
    size_t mems, mem_cap, buf_cap;
    dpt_dnnl_op *op;
    size_t ops, op_cap;
    int (*converted)[2]; /* pairs of memories: the second is the first in another layout */
    size_t conversions, converted_cap;
    size_t arena_bytes;
    void *base[DPT_PLACES]; /* what the memories point into now */
} dpt_dnnl_prog;

/** One argument of a primitive: DNNL_ARG_* and a memory number. */
typedef struct dpt_dnnl_arg {
    int arg, mem;
} dpt_dnnl_arg;

void dpt_dnnl_prog_init(dpt_dnnl_prog *p, const dpt_graph *g, dnnl_engine_t engine,
                        dnnl_stream_t stream, dpl_text *why);
void dpt_dnnl_prog_fini(dpt_dnnl_prog *p);

/** Note a failed oneDNN call on the node that is being built. @return prog->err */
int dpt_dnnl_check(dpt_dnnl_prog *p, dnnl_status_t status, const char *what);

/** A new memory. offset: floats, for all places but the arena. @return its number */
int dpt_dnnl_mem_new(dpt_dnnl_prog *p, const dnnl_memory_desc_t *md, dpt_dnnl_place at,
                     size_t offset);

/** Append a primitive, with its scratchpad. pd stays the caller's; NULL after a failure. */
void dpt_dnnl_append(dpt_dnnl_prog *p, const_dnnl_primitive_desc_t pd, const dpt_dnnl_arg *arg,
                     int args);

/** The memory in layout md: itself when it has it, else another one filled by a reorder that is
 *  appended here (or was before). @return a memory number */
int dpt_dnnl_in_layout(dpt_dnnl_prog *p, int mem, const dnnl_memory_desc_t *md);

/** The primitive that comes next (or the host) uses this memory. */
void dpt_dnnl_touch(dpt_dnnl_prog *p, int mem);

/** After the last append: place the arena's memories; sets arena_bytes. @return prog->err */
int dpt_dnnl_prog_seal(dpt_dnnl_prog *p);

/** Point the memories into these blocks. @return DPL_OK or DPL_EDEVICE */
int dpt_dnnl_bind(dpt_dnnl_prog *p, void *const base[DPT_PLACES], dpl_text *why);

/** Run primitives [from, to) and wait. cancel as in dpt_exec_options, read before each.
 *  @return DPL_OK, DPL_ENOMEM, DPL_EDEVICE, DPL_ECANCELED; why names the layer */
int dpt_dnnl_run(dpt_dnnl_prog *p, size_t from, size_t to, const int *cancel, dpl_text *why);

/** Where the bytes of a bound memory lie. */
void *dpt_dnnl_bytes(const dpt_dnnl_prog *p, int mem);

#ifdef __cplusplus
}
#endif
#endif
