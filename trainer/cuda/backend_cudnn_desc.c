/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of tensors and operations; see backend_cudnn_desc.h. */
#include "trainer/cuda/backend_cudnn_desc.h"

#include "dpload.h"

#include <stdbool.h>
#include <string.h>

#define LINK(name, other) dpt_cu_desc_link(l, d, CUDNN_ATTR_OPERATION_##name, other)

/* Of one operation graph under construction. */
typedef struct maker {
    dpt_cu_descs *l;
    const dpt_cu_prog *p;
    const int *local;
    int locals;
    cudnnBackendDescriptor_t tensor[DPT_CU_LOCAL];
} maker;

cudnnBackendDescriptor_t dpt_cu_desc_new(dpt_cu_descs *l, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;

    if (l->status) return NULL;
    if (l->n == DPT_CU_DESCS) {
        l->status = CUDNN_STATUS_INTERNAL_ERROR;
        l->what = "too many descriptors";
        return NULL;
    }
    l->status = cudnnBackendCreateDescriptor(type, &d);
    if (l->status) {
        l->what = "create a descriptor";
        return NULL;
    }
    return l->d[l->n++] = d;
}

void dpt_cu_desc_set(dpt_cu_descs *l, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (l->status) return;
    l->status = cudnnBackendSetAttribute(d, name, type, n, values);
    if (l->status) l->what = "set an attribute";
}

void dpt_cu_desc_link(dpt_cu_descs *l, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t other)
{
    dpt_cu_desc_set(l, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void dpt_cu_desc_done(dpt_cu_descs *l, cudnnBackendDescriptor_t d, const char *what)
{
    if (l->status) return;
    l->status = cudnnBackendFinalize(d);
    if (l->status) l->what = what;
}

void dpt_cu_descs_free(dpt_cu_descs *l)
{
    while (l->n > 0) cudnnBackendDestroyDescriptor(l->d[--l->n]);
}

int dpt_cu_fail(cudnnStatus_t s, const char *what, dpl_text *why)
{
    char words[512] = "";
    const int category = CUDNN_STATUS_CATEGORY((int)s);
    const int err = s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                            s == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                        ? DPL_ENOMEM
                    : category == CUDNN_STATUS_NOT_SUPPORTED ? DPL_ENOTSUP
                                                             : DPL_EDEVICE;

    cudnnGetLastErrorString(words, sizeof words);
    for (char *c = words; *c; c++) {
        if (*c == '\n') *c = ' ';
    }
    return dpl_fail(why, err, "%s: %s%s%s%s", what, cudnnGetErrorString(s), *words ? " (" : "",
                    words, *words ? ")" : "");
}

static cudnnDataType_t data_type(dpt_gpu_type type, dpt_cu_elem e)
{
    static const cudnnDataType_t of[] = { CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF };

    return e == DPT_CU_T      ? of[type]
           : e == DPT_CU_F32  ? CUDNN_DATA_FLOAT
           : e == DPT_CU_BOOL ? CUDNN_DATA_BOOLEAN
                              : CUDNN_DATA_INT8;
}

static void set_int(dpt_cu_descs *l, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    int64_t v)
{
    dpt_cu_desc_set(l, d, name, CUDNN_TYPE_INT64, 1, &v);
}

static cudnnBackendDescriptor_t new_tensor(maker *m, const dpt_cu_tensor *t, int64_t uid)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(l, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t dim[4] = { t->n, t->c, t->h, t->w };
    const int64_t row = (int64_t)t->w * t->c;
    const int64_t stride[4] = { t->h * row, 1, row, t->c };
    const cudnnDataType_t type = data_type(m->p->type, t->elem);
    const bool yes = true;
    /* parameters lie anywhere among the floats of the flat arrays */
    const int caller = t->at >= DPT_CU_PARAMS && t->at < DPT_CU_PLACES;

    dpt_cu_desc_set(l, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set_int(l, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    set_int(l, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, caller ? 4 : 16);
    if (t->at == DPT_CU_VIRTUAL) {
        dpt_cu_desc_set(l, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    if (t->at == DPT_CU_SCALAR) {
        dpt_cu_desc_set(l, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    dpt_cu_desc_done(l, d, "describe a tensor");
    return d;
}

static cudnnBackendDescriptor_t of(const maker *m, int tensor)
{
    for (int i = 0; i < m->locals; i++) {
        if (m->local[i] == tensor) return m->tensor[i];
    }
    return NULL;
}

static cudnnBackendDescriptor_t window(dpt_cu_descs *l, const dpt_cu_prim *q)
{
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(l, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const int64_t pad[2] = { q->pad, q->pad }, stride[2] = { q->stride, q->stride };
    const int64_t dilation[2] = { 1, 1 };
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;

    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set_int(l, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    dpt_cu_desc_done(l, d, "describe a convolution");
    return d;
}

/* What the three directions call their tensors. */
typedef struct conv_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t in0, in1, out, window, alpha, beta;
} conv_names;

static cudnnBackendDescriptor_t convolution(maker *m, const dpt_cu_prim *q)
{
    static const conv_names names[] = {
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA },
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA },
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA }
    };
    dpt_cu_descs *l = m->l;
    const conv_names *c = &names[q->kind - DPT_CU_CONV];
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(l, c->type);
    const float one = 1, zero = 0;

    dpt_cu_desc_link(l, d, c->in0, of(m, q->in[0]));
    dpt_cu_desc_link(l, d, c->in1, of(m, q->in[1]));
    dpt_cu_desc_link(l, d, c->out, of(m, q->out[0]));
    dpt_cu_desc_link(l, d, c->window, window(l, q));
    dpt_cu_desc_set(l, d, c->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    dpt_cu_desc_set(l, d, c->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    return d;
}

static cudnnBackendDescriptor_t pointwise(maker *m, const dpt_cu_prim *q)
{
    static const cudnnPointwiseMode_t modes[] = { CUDNN_POINTWISE_ADD,      CUDNN_POINTWISE_SUB,
                                                  CUDNN_POINTWISE_MUL,      CUDNN_POINTWISE_RSQRT,
                                                  CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_CMP_GT,
                                                  CUDNN_POINTWISE_RELU_BWD };
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t f = dpt_cu_desc_new(l, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnPointwiseMode_t mode = modes[q->kind - DPT_CU_ADD];

    dpt_cu_desc_set(l, f, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dpt_cu_desc_set(l, f, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    dpt_cu_desc_done(l, f, "describe arithmetic");
    LINK(POINTWISE_PW_DESCRIPTOR, f);
    if (q->kind == DPT_CU_RELU_BACK) {
        LINK(POINTWISE_DYDESC, of(m, q->in[0]));
        LINK(POINTWISE_XDESC, of(m, q->in[1]));
        LINK(POINTWISE_DXDESC, of(m, q->out[0]));
        return d;
    }
    LINK(POINTWISE_XDESC, of(m, q->in[0]));
    if (q->in[1] >= 0) LINK(POINTWISE_BDESC, of(m, q->in[1]));
    LINK(POINTWISE_YDESC, of(m, q->out[0]));
    return d;
}

static cudnnBackendDescriptor_t norm(maker *m, const dpt_cu_prim *q)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t d =
        dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    const cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM;
    const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_TRAINING;

    dpt_cu_desc_set(l, d, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1,
                    &phase);
    LINK(NORM_FWD_XDESC, of(m, q->in[0]));
    LINK(NORM_FWD_SCALE_DESC, of(m, q->in[1]));
    LINK(NORM_FWD_BIAS_DESC, of(m, q->in[2]));
    LINK(NORM_FWD_EPSILON_DESC, of(m, q->in[3]));
    LINK(NORM_FWD_YDESC, of(m, q->out[0]));
    LINK(NORM_FWD_MEAN_DESC, of(m, q->out[1]));
    LINK(NORM_FWD_INV_VARIANCE_DESC, of(m, q->out[2]));
    return d;
}

static cudnnBackendDescriptor_t norm_back(maker *m, const dpt_cu_prim *q)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t d =
        dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    const cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM;

    dpt_cu_desc_set(l, d, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    LINK(NORM_BWD_DYDESC, of(m, q->in[0]));
    LINK(NORM_BWD_XDESC, of(m, q->in[1]));
    LINK(NORM_BWD_MEAN_DESC, of(m, q->in[2]));
    LINK(NORM_BWD_INV_VARIANCE_DESC, of(m, q->in[3]));
    LINK(NORM_BWD_SCALE_DESC, of(m, q->in[4]));
    LINK(NORM_BWD_DXDESC, of(m, q->out[0]));
    LINK(NORM_BWD_DSCALE_DESC, of(m, q->out[1]));
    LINK(NORM_BWD_DBIAS_DESC, of(m, q->out[2]));
    return d;
}

/* map: what is pooled, whole when averaging. */
static cudnnBackendDescriptor_t pool_window(maker *m, const dpt_cu_prim *q,
                                            const dpt_cu_tensor *map)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t d = dpt_cu_desc_new(l, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    const int max = q->kind == DPT_CU_MAXPOOL || q->kind == DPT_CU_MAXPOOL_BACK;
    const cudnnResampleMode_t mode =
        max ? CUDNN_RESAMPLE_MAXPOOL : CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    const cudnnPaddingMode_t padding = max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN; /* as the reference; else it vanishes */
    const int64_t side = max ? q->k : 0, step = max ? q->stride : 1;
    const cudnnFraction_t pad[2] = { { q->pad, 1 }, { q->pad, 1 } };
    const cudnnFraction_t stride[2] = { { step, 1 }, { step, 1 } };
    const cudnnFraction_t size[2] = { { max ? side : map->h, 1 }, { max ? side : map->w, 1 } };

    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding);
    set_int(l, d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 2);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 2, pad);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, 2, pad);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, stride);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, 2, size);
    dpt_cu_desc_done(l, d, "describe a pool");
    return d;
}

static cudnnBackendDescriptor_t pool(maker *m, const dpt_cu_prim *q)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t w = pool_window(m, q, &m->p->tensor[q->in[0]]);
    cudnnBackendDescriptor_t d =
        dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);

    LINK(RESAMPLE_FWD_DESC, w);
    LINK(RESAMPLE_FWD_XDESC, of(m, q->in[0]));
    LINK(RESAMPLE_FWD_YDESC, of(m, q->out[0]));
    if (q->out[1] >= 0) LINK(RESAMPLE_FWD_IDXDESC, of(m, q->out[1]));
    return d;
}

static cudnnBackendDescriptor_t pool_back(maker *m, const dpt_cu_prim *q)
{
    dpt_cu_descs *l = m->l;
    cudnnBackendDescriptor_t w = pool_window(m, q, &m->p->tensor[q->out[0]]);
    cudnnBackendDescriptor_t d =
        dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);

    LINK(RESAMPLE_BWD_DESC, w);
    LINK(RESAMPLE_BWD_DYDESC, of(m, q->in[0]));
    LINK(RESAMPLE_BWD_DXDESC, of(m, q->out[0]));
    if (q->in[1] >= 0) LINK(RESAMPLE_BWD_IDXDESC, of(m, q->in[1]));
    return d;
}

static cudnnBackendDescriptor_t operation(maker *m, const dpt_cu_prim *q)
{
    switch (q->kind) {
    case DPT_CU_CONV:
    case DPT_CU_DGRAD:
    case DPT_CU_WGRAD: return convolution(m, q);
    case DPT_CU_BN: return norm(m, q);
    case DPT_CU_BN_BACK: return norm_back(m, q);
    case DPT_CU_MAXPOOL:
    case DPT_CU_AVGPOOL: return pool(m, q);
    case DPT_CU_MAXPOOL_BACK:
    case DPT_CU_AVGPOOL_BACK: return pool_back(m, q);
    default: return pointwise(m, q);
    }
}

cudnnBackendDescriptor_t dpt_cu_desc_graph(dpt_cu_descs *l, const dpt_cu_prog *p, size_t op,
                                           const int local[DPT_CU_LOCAL], int locals)
{
    const dpt_cu_op *o = &p->op[op];
    maker m = { .l = l, .p = p, .local = local, .locals = locals };
    cudnnBackendDescriptor_t ops[DPT_CU_PRIMS], d;

    for (int i = 0; i < locals; i++) m.tensor[i] = new_tensor(&m, &p->tensor[local[i]], i + 1);
    for (int i = 0; i < o->prims; i++) {
        ops[i] = operation(&m, &o->prim[i]);
        dpt_cu_desc_done(l, ops[i], "describe an operation");
    }
    d = dpt_cu_desc_new(l, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    dpt_cu_desc_set(l, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, o->prims,
                    ops);
    dpt_cu_desc_done(l, d, "describe a graph of operations");
    return l->status ? NULL : d;
}
