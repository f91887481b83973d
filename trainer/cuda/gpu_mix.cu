/* SPDX-License-Identifier: Apache-2.0 */
/* Mixup and CutMix. A picture is rows of `row` elements: [h] of them (NHWC) or [channels][h] (NCHW); a
 * box is a range of rows and of elements in them. */
#include "trainer/cuda/gpu_device.cuh"

#include "kernels/convert_math.h"

#include <limits.h>

struct dpt_mix_job {
    dpt_gpu_mix mix;
    unsigned row, elements; /* of a picture */
    unsigned pixel;         /* elements between two neighbours of a row */
};

/* What the partner gives of one picture: elements [from, to) of rows [top, bottom) of each plane. */
struct dpt_mix_box {
    int64_t from, to, top, bottom;
};

static __device__ dpt_mix_box box_of(const dpt_mix_job &job, int picture)
{
    const int32_t *box = job.mix.box ? job.mix.box + 4 * (size_t)picture : nullptr;
    dpt_mix_box b = { 0, 0, 0, 0 };

    if (!box) return b;
    b.from = (int64_t)box[0] * job.pixel;
    b.to = b.from + (int64_t)box[2] * job.pixel;
    b.top = box[1];
    b.bottom = b.top + box[3];
    return b;
}

/* PER neighbours of one row. */
template <class T, unsigned PER> static __device__ dpt_vec<T> load(const T *p)
{
    dpt_vec<T> v;

    if constexpr (PER > 1)
        v = dpt_load16(p);
    else
        v.at[0] = *p;
    return v;
}

/* PER neighbours of one row, from element `at` of the picture on. */
template <class T, unsigned PER>
static __device__ void mix(const dpt_mix_job &job, int picture, const dpt_mix_box &box, unsigned at)
{
    const unsigned row = at / job.row % (unsigned)job.mix.h, column = at % job.row;
    const int in_rows = row >= box.top && row < box.bottom;
    const float *weight = job.mix.weight ? job.mix.weight + picture : nullptr;
    const size_t own = (size_t)picture * job.elements + at;
    const size_t other = (size_t)job.mix.partner[picture] * job.elements + at;
    dpt_vec<T> a = load<T, PER>((const T *)job.mix.src + own), b = a;

    if (weight || (in_rows && column + PER > box.from && column < box.to))
        b = load<T, PER>((const T *)job.mix.src + other);
    for (unsigned k = 0; k < PER; k++) {
        if (in_rows && column + k >= box.from && column + k < box.to)
            a.at[k] = b.at[k];
        else if (weight)
            a.at[k] = dpt_of_float<T>(
                dpl_blend(dpt_to_float(a.at[k]), dpt_to_float(b.at[k]), *weight, 1 - *weight));
    }
    if constexpr (PER > 1)
        dpt_store16((T *)job.mix.dst + own, a);
    else
        ((T *)job.mix.dst)[own] = a.at[0];
}

template <class T, unsigned PER>
static __global__ void __launch_bounds__(DPT_THREADS, 4) mix_kernel(const dpt_mix_job job)
{
    for (int picture = (int)blockIdx.y; picture < job.mix.n; picture += (int)gridDim.y) {
        const dpt_mix_box box = box_of(job, picture);

        for (size_t at = dpt_thread() * PER; at < job.elements; at += dpt_stride() * PER)
            mix<T, PER>(job, picture, box, (unsigned)at);
    }
}

template <class T> static int launch(const dpt_mix_job &job, void *stream)
{
    enum { PER = 16 / sizeof(T) };
    const int whole =
        job.row % PER == 0 && dpt_aligned16(job.mix.src) && dpt_aligned16(job.mix.dst);
    const dim3 grid(dpt_grid(job.elements, DPT_THREADS * (whole ? PER : 1), DPT_BLOCKS),
                    dpt_grid((size_t)job.mix.n, 1, DPT_BLOCKS));

    if (whole) return DPT_LAUNCH((mix_kernel<T, PER>), grid, DPT_THREADS, 0, stream, job);
    return DPT_LAUNCH((mix_kernel<T, 1>), grid, DPT_THREADS, 0, stream, job);
}

static int is_valid(const dpt_gpu_mix *m)
{
    if (!m->src || !m->dst || m->src == m->dst || !m->partner || !dpt_type_known(m->type)) return 0;
    if (m->n < 0 || m->h < 1 || m->w < 1 || m->channels < 1) return 0;
    return m->h <= INT_MAX / m->w && m->h * m->w <= INT_MAX / m->channels;
}

int dpt_gpu_mix_run(const dpt_gpu_mix *m, void *stream)
{
    dpt_mix_job job;

    if (!m || !is_valid(m)) return cudaErrorInvalidValue;
    if (!m->n) return cudaSuccess;
    job.mix = *m;
    job.pixel = m->nchw ? 1 : (unsigned)m->channels;
    job.row = (unsigned)m->w * job.pixel;
    job.elements = (unsigned)m->h * (unsigned)m->w * (unsigned)m->channels;
    return DPT_BY_TYPE(m->type, launch, job, stream);
}
