/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for oneDNN; see backend_dnnl_prog.h. */
#include "trainer/backend_dnnl_prog.h"

#include "base/alloc.h"
#include "dpload.h"

#include <stdlib.h>
#include <string.h>

static int status_of(dnnl_status_t s)
{
    return s == dnnl_success         ? DPL_OK
           : s == dnnl_out_of_memory ? DPL_ENOMEM
           : s == dnnl_unimplemented ? DPL_ENOTSUP
                                     : DPL_EDEVICE;
}

static int fail_at(const dpt_dnnl_prog *p, int node, dnnl_status_t status, const char *what,
                   dpl_text *why)
{
    char name[96];

    return dpl_fail(why, status_of(status), "oneDNN: layer %s: %s failed: %s",
                    dpt_graph_node_name(p->g, node, name, sizeof name), what,
                    dnnl_status2str(status));
}

int dpt_dnnl_check(dpt_dnnl_prog *p, dnnl_status_t status, const char *what)
{
    if (!p->err && status != dnnl_success) p->err = fail_at(p, p->node, status, what, p->why);
    return p->err;
}

static dnnl_status_t make_attr(dnnl_primitive_attr_t *attr, int relu)
{
    dnnl_post_ops_t post = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(attr);

    if (!s) s = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (s || !relu) return s;
    s = dnnl_post_ops_create(&post);
    if (!s) s = dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0);
    if (!s) s = dnnl_primitive_attr_set_post_ops(*attr, post);
    dnnl_post_ops_destroy(post);
    return s;
}

void dpt_dnnl_prog_init(dpt_dnnl_prog *p, const dpt_graph *g, dnnl_engine_t engine,
                        dnnl_stream_t stream, dpl_text *why)
{
    *p = (dpt_dnnl_prog){ .g = g, .engine = engine, .stream = stream, .why = why };
    dpt_dnnl_check(p, make_attr(&p->attr, 0), "making attributes");
    dpt_dnnl_check(p, make_attr(&p->attr_relu, 1), "making attributes");
}

void dpt_dnnl_prog_fini(dpt_dnnl_prog *p)
{
    for (size_t i = 0; i < p->ops; i++) dnnl_primitive_destroy(p->op[i].p);
    for (size_t i = 0; i < p->mems; i++) dnnl_memory_destroy(p->mem[i].m);
    if (p->attr) dnnl_primitive_attr_destroy(p->attr);
    if (p->attr_relu) dnnl_primitive_attr_destroy(p->attr_relu);
    free(p->op);
    free(p->mem);
    free(p->buf);
    free(p->converted);
    memset(p, 0, sizeof *p);
}

static int no_memory(dpt_dnnl_prog *p)
{
    return dpt_dnnl_check(p, dnnl_out_of_memory, "making a list");
}

int dpt_dnnl_mem_new(dpt_dnnl_prog *p, const dnnl_memory_desc_t *md, dpt_dnnl_place at,
                     size_t offset)
{
    dnnl_memory_desc_t layout;
    dpt_dnnl_mem *m;

    if (p->err) return 0;
    layout = *md; /* md may lie in p->mem, which may move */
    if (dpl_grow((void **)&p->mem, &p->mem_cap, p->mems + 1, sizeof *p->mem) ||
        dpl_grow((void **)&p->buf, &p->buf_cap, p->mems + 1, sizeof *p->buf)) {
        no_memory(p);
        return 0;
    }
    m = &p->mem[p->mems];
    *m = (dpt_dnnl_mem){ .md = layout, .at = at, .offset = offset * sizeof(float) };
    if (dpt_dnnl_check(p, dnnl_memory_create(&m->m, &layout, p->engine, DNNL_MEMORY_NONE),
                       "describing a tensor")) {
        return 0;
    }
    p->buf[p->mems] = (dpt_arena_buf){ .first = -1, .last = -1 };
    if (at == DPT_AT_ARENA) p->buf[p->mems].bytes = dnnl_memory_desc_get_size(&layout);
    return (int)p->mems++;
}

void dpt_dnnl_touch(dpt_dnnl_prog *p, int mem)
{
    dpt_arena_buf *b;

    if (p->err) return;
    b = &p->buf[mem];
    if (b->first < 0) b->first = (int)p->ops;
    b->last = (int)p->ops;
}

static void add_arg(dpt_dnnl_prog *p, dpt_dnnl_op *op, int arg, int mem)
{
    dpt_dnnl_touch(p, mem);
    op->arg[op->args++] = (dnnl_exec_arg_t){ .arg = arg, .memory = p->mem[mem].m };
}

void dpt_dnnl_append(dpt_dnnl_prog *p, const_dnnl_primitive_desc_t pd, const dpt_dnnl_arg *arg,
                     int args)
{
    const dnnl_memory_desc_t *scratch;
    dpt_dnnl_op op = { .node = p->node };
    int mem;

    if (p->err) return;
    if (dpl_grow((void **)&p->op, &p->op_cap, p->ops + 1, sizeof *p->op)) {
        no_memory(p);
        return;
    }
    for (int i = 0; i < args; i++) add_arg(p, &op, arg[i].arg, arg[i].mem);
    scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (scratch && dnnl_memory_desc_get_size(scratch) > 0) {
        mem = dpt_dnnl_mem_new(p, scratch, DPT_AT_ARENA, 0);
        if (p->err) return;
        add_arg(p, &op, DNNL_ARG_SCRATCHPAD, mem);
    }
    if (dpt_dnnl_check(p, dnnl_primitive_create(&op.p, pd), "making its code")) return;
    p->op[p->ops++] = op;
}

static int find_converted(const dpt_dnnl_prog *p, int mem, const dnnl_memory_desc_t *md)
{
    for (size_t i = 0; i < p->conversions; i++) {
        const int to = p->converted[i][1];
        if (p->converted[i][0] == mem && dnnl_memory_desc_equal(&p->mem[to].md, md)) return to;
    }
    return -1;
}

static void append_reorder(dpt_dnnl_prog *p, int from, int to)
{
    dnnl_primitive_desc_t pd = NULL;
    const dpt_dnnl_arg arg[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };

    if (p->err) return;
    dpt_dnnl_check(p,
                   dnnl_reorder_primitive_desc_create(&pd, &p->mem[from].md, p->engine,
                                                      &p->mem[to].md, p->engine, p->attr),
                   "choosing a reorder");
    dpt_dnnl_append(p, pd, arg, 2);
    if (pd) dnnl_primitive_desc_destroy(pd);
}

int dpt_dnnl_in_layout(dpt_dnnl_prog *p, int mem, const dnnl_memory_desc_t *md)
{
    int to;

    if (p->err || dnnl_memory_desc_equal(&p->mem[mem].md, md)) return mem;
    if ((to = find_converted(p, mem, md)) >= 0) return to;
    if (dpl_grow((void **)&p->converted, &p->converted_cap, p->conversions + 1,
                 sizeof *p->converted)) {
        no_memory(p);
        return mem;
    }
    to = dpt_dnnl_mem_new(p, md, DPT_AT_ARENA, 0);
    append_reorder(p, mem, to);
    if (p->err) return mem;
    p->converted[p->conversions][0] = mem;
    p->converted[p->conversions++][1] = to;
    return to;
}

int dpt_dnnl_prog_seal(dpt_dnnl_prog *p)
{
    if (p->err) return p->err;
    if (dpt_arena_place(p->buf, p->mems, &p->arena_bytes)) return no_memory(p);
    for (size_t i = 0; i < p->mems; i++) {
        if (p->mem[i].at == DPT_AT_ARENA) p->mem[i].offset = p->buf[i].offset;
    }
    return DPL_OK;
}

int dpt_dnnl_bind(dpt_dnnl_prog *p, void *const base[DPT_PLACES], dpl_text *why)
{
    for (size_t i = 0; i < p->mems; i++) {
        const dpt_dnnl_mem *m = &p->mem[i];
        dnnl_status_t s;

        if (base[m->at] == p->base[m->at]) continue;
        s = dnnl_memory_set_data_handle_v2(m->m, (char *)base[m->at] + m->offset, p->stream);
        if (s) {
            memset(p->base, 0, sizeof p->base); /* some moved: bind all of them next time */
            return dpl_fail(why, DPL_EDEVICE, "oneDNN: setting an address failed: %s",
                            dnnl_status2str(s));
        }
    }
    memcpy(p->base, base, sizeof p->base);
    return DPL_OK;
}

int dpt_dnnl_run(dpt_dnnl_prog *p, size_t from, size_t to, const int *cancel, dpl_text *why)
{
    dnnl_status_t s;
    size_t i;

    for (i = from; i < to && !dpt_canceled(cancel); i++) {
        const dpt_dnnl_op *op = &p->op[i];
        if ((s = dnnl_primitive_execute(op->p, p->stream, op->args, op->arg))) {
            return fail_at(p, op->node, s, "running", why);
        }
    }
    if ((s = dnnl_stream_wait(p->stream))) {
        return dpl_fail(why, status_of(s), "oneDNN: waiting failed: %s", dnnl_status2str(s));
    }
    return i == to ? DPL_OK : dpl_fail(why, DPL_ECANCELED, "oneDNN: canceled");
}

void *dpt_dnnl_bytes(const dpt_dnnl_prog *p, int mem)
{
    return (char *)p->base[p->mem[mem].at] + p->mem[mem].offset;
}
