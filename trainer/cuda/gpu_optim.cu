/* SPDX-License-Identifier: Apache-2.0 */
/* One optimizer step over all parameters. A thread updates four neighbours that lie on 16 bytes, when
 * they are of one segment, else each for itself. LARS takes norms first: DPT_GPU_NORM_PARTS blocks per
 * segment, then one thread per segment, so that no sum depends on other segments. */
#include "trainer/cuda/gpu_device.cuh"

#include "trainer/cuda/gpu_math.h"
#include "trainer/optim_math.h"

/* A step, with the rules' terms. */
struct dpt_update_job {
    dpt_gpu_update u;
    dpt_sgd_terms sgd[2];     /* [decay] */
    dpt_adamw_terms adamw[2]; /* [1]: of the step before, when one was left out */
    int whole;                /* all arrays begin on 16 bytes */
};

/* What is known only on the GPU. */
struct dpt_update_now {
    float factor; /* of gradients */
    dpt_adamw_terms adamw;
};

/* What a rule reads and writes of one parameter. */
struct dpt_update_cell {
    float p, g, m, v;
};

/* @return false when everything is to stay as it is */
static __device__ bool factor_of(const dpt_gpu_update &u, float *factor)
{
    const double n = u.sums ? u.sums[DPT_GPU_N] : 1;

    *factor = 1;
    if ((u.skip && *u.skip) || n == 0) return false;
    if (u.sums || u.scale)
        *factor = dpt_gradient_factor(u.sums ? u.planned : 1, n, u.scale ? (double)*u.scale : 1.0);
    return true;
}

static __device__ dpt_update_now now_of(const dpt_update_job &job, float factor)
{
    const bool late = job.u.done && *job.u.done < job.u.step;

    return { factor, late ? job.adamw[1] : job.adamw[0] };
}

/* --- norms --- */

/* Where in u.norms: partial sums of squares of weights and gradients, then the ratios. */
static __device__ size_t part_at(unsigned segment, unsigned part)
{
    return 2 * ((size_t)segment * DPT_GPU_NORM_PARTS + part);
}

static __device__ size_t ratio_at(const dpt_gpu_update &u, unsigned segment)
{
    return 2 * (size_t)u.segments * DPT_GPU_NORM_PARTS + segment;
}

static __device__ double decay_of(const dpt_gpu_update &u, unsigned segment)
{
    return u.table[segment].decay ? u.weight_decay : 0;
}

static __global__ void __launch_bounds__(DPT_THREADS, 4) norm_parts_kernel(const dpt_gpu_update u)
{
    __shared__ double shared[DPT_THREADS];
    const dpt_gpu_segment s = u.table[blockIdx.y];
    double weights = 0, grads = 0;
    float factor;

    if (!factor_of(u, &factor)) return;
    for (size_t i = dpt_thread(); i < s.count; i += dpt_stride()) {
        const double p = (double)u.params[s.at + i], g = (double)(u.grads[s.at + i] * factor);

        weights += p * p;
        grads += g * g;
    }
    if (blockIdx.x * DPT_THREADS < s.count) { /* the same for all threads */
        weights = dpt_block_join<dpt_add>(weights, shared);
        grads = dpt_block_join<dpt_add>(grads, shared);
    }
    if (threadIdx.x) return;
    u.norms[part_at(blockIdx.y, blockIdx.x)] = weights;
    u.norms[part_at(blockIdx.y, blockIdx.x) + 1] = grads;
}

static __global__ void __launch_bounds__(DPT_THREADS, 4) ratio_kernel(const dpt_gpu_update u)
{
    float factor;

    if (!factor_of(u, &factor)) return; /* then there are no sums */
    for (size_t i = dpt_thread(); i < (size_t)u.segments; i += dpt_stride()) {
        const unsigned s = (unsigned)i;
        double weights = 0, grads = 0;

        for (unsigned k = 0; k < DPT_GPU_NORM_PARTS; k++) {
            weights += u.norms[part_at(s, k)];
            grads += u.norms[part_at(s, k) + 1];
        }
        if (!u.table[s].decay) weights = 0; /* and with it the ratio */
        u.norms[ratio_at(u, s)] =
            (double)dpt_lars_ratio(u.trust, u.weight_decay, u.eps, sqrt(weights), sqrt(grads));
    }
}

/* --- update --- */

/* The segment that holds float i, or -1. */
static __device__ int segment_of(const dpt_gpu_update &u, size_t i)
{
    int lo = 0, hi = u.segments;

    while (lo < hi) {
        const int middle = lo + (hi - lo) / 2;

        if (u.table[middle].at <= i)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo && i - u.table[lo - 1].at < u.table[lo - 1].count ? lo - 1 : -1;
}

template <int RULE, bool MOVED>
static __device__ void step(const dpt_update_job &job, int segment, const dpt_update_now &now,
                            dpt_update_cell *c)
{
    const int decayed = job.u.table[segment].decay != 0;
    const float g = c->g * now.factor;

    if constexpr (RULE == DPT_RULE_ADAMW) {
        c->p = dpt_adamw(&now.adamw, decayed, c->p, &c->m, &c->v, g);
    } else if constexpr (RULE == DPT_RULE_LARS) {
        const float ratio = (float)job.u.norms[ratio_at(job.u, (unsigned)segment)];
        const float decay = (float)decay_of(job.u, (unsigned)segment);
        const float scaled = dpt_lars_gradient(ratio, decay, c->p, g);

        c->p = MOVED ? dpt_sgd_moved(&job.sgd[0], c->p, &c->m, scaled)
                     : dpt_sgd_plain(&job.sgd[0], c->p, scaled);
    } else {
        c->p = MOVED ? dpt_sgd_moved(&job.sgd[decayed], c->p, &c->m, g)
                     : dpt_sgd_plain(&job.sgd[decayed], c->p, g);
    }
}

/* Four neighbours of one segment. */
template <int RULE, bool MOVED>
static __device__ void step_four(const dpt_update_job &job, int segment, const dpt_update_now &now,
                                 size_t i)
{
    const dpt_gpu_update &u = job.u;
    const dpt_vec<float> g = dpt_load16(u.grads + i);
    dpt_vec<float> p = dpt_load16(u.params + i), m = p, v = p;

    if (MOVED) m = dpt_load16(u.momentum + i);
    if (RULE == DPT_RULE_ADAMW) v = dpt_load16(u.second + i);
    for (int k = 0; k < 4; k++) {
        dpt_update_cell c = { p.at[k], g.at[k], m.at[k], v.at[k] };

        step<RULE, MOVED>(job, segment, now, &c);
        p.at[k] = c.p;
        m.at[k] = c.m;
        v.at[k] = c.v;
    }
    dpt_store16(u.params + i, p);
    if (MOVED) dpt_store16(u.momentum + i, m);
    if (RULE == DPT_RULE_ADAMW) dpt_store16(u.second + i, v);
}

template <int RULE, bool MOVED>
static __device__ void step_one(const dpt_update_job &job, int segment, const dpt_update_now &now,
                                size_t i)
{
    const dpt_gpu_update &u = job.u;
    dpt_update_cell c = { u.params[i], u.grads[i], 0, 0 };

    if (MOVED) c.m = u.momentum[i];
    if (RULE == DPT_RULE_ADAMW) c.v = u.second[i];
    step<RULE, MOVED>(job, segment, now, &c);
    u.params[i] = c.p;
    if (MOVED) u.momentum[i] = c.m;
    if (RULE == DPT_RULE_ADAMW) u.second[i] = c.v;
}

template <int RULE, bool MOVED>
static __global__ void __launch_bounds__(DPT_THREADS, 2) update_kernel(const dpt_update_job job)
{
    const size_t n = job.u.floats;
    float factor;

    if (!factor_of(job.u, &factor)) return;
    const dpt_update_now now = now_of(job, factor);
    for (size_t q = dpt_thread(); q < dpt_fours(n, 0); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, 0);
        const int segment = segment_of(job.u, f.from);

        if (job.whole && f.whole && segment >= 0 &&
            f.to <= job.u.table[segment].at + job.u.table[segment].count) {
            step_four<RULE, MOVED>(job, segment, now, f.from);
            continue;
        }
        for (size_t i = f.from; i < f.to; i++) {
            const int own = segment_of(job.u, i);

            if (own >= 0) step_one<RULE, MOVED>(job, own, now, i);
        }
    }
}

/* Same test as the update's. */
static __global__ void count_kernel(int64_t *done, const double *sums, const int32_t *skip)
{
    if (!*skip && sums[DPT_GPU_N] != 0) ++*done;
}

/* --- host --- */

static int is_valid(const dpt_gpu_update *u)
{
    if (u->segments < 0 || u->segments > 65535 || (u->segments && !u->table)) return 0;
    if (!u->params || !u->grads || (u->sums && !(u->planned > 0))) return 0;
    switch (u->rule) {
    case DPT_RULE_SGD: return u->momentum || u->beta1 == 0;
    case DPT_RULE_ADAMW: return u->momentum && u->second && u->step >= 1;
    case DPT_RULE_LARS: return (u->momentum || u->beta1 == 0) && u->norms;
    }
    return 0;
}

static dpt_update_job job_of(const dpt_gpu_update *u)
{
    dpt_update_job job;

    memset(&job, 0, sizeof job);
    job.u = *u;
    job.sgd[0] = dpt_sgd_terms_of(u->lr, u->beta1, 0, u->nesterov, u->first);
    job.sgd[1] = dpt_sgd_terms_of(u->lr, u->beta1, u->weight_decay, u->nesterov, u->first);
    for (int late = 0; u->rule == DPT_RULE_ADAMW && late < 2 && late < u->step; late++)
        job.adamw[late] = dpt_adamw_terms_of(u->lr, u->weight_decay, u->beta1, u->beta2, u->eps,
                                             (double)(u->step - late));
    job.whole = dpt_aligned16(u->params) && dpt_aligned16(u->grads) && dpt_aligned16(u->momentum) &&
                dpt_aligned16(u->second);
    return job;
}

static int norms(const dpt_gpu_update *u, void *stream)
{
    const dim3 grid(DPT_GPU_NORM_PARTS, (unsigned)u->segments);
    const unsigned finish = dpt_grid((size_t)u->segments, DPT_THREADS, DPT_BLOCKS);
    int err;

    if ((err = DPT_LAUNCH(norm_parts_kernel, grid, DPT_THREADS, 0, stream, *u))) return err;
    return DPT_LAUNCH(ratio_kernel, finish, DPT_THREADS, 0, stream, *u);
}

template <int RULE> static int launch(const dpt_update_job &job, void *stream)
{
    const unsigned grid = dpt_grid(job.u.floats, DPT_THREADS * 4, DPT_BLOCKS);

    if (RULE == DPT_RULE_ADAMW || job.u.beta1 != 0)
        return DPT_LAUNCH((update_kernel<RULE, true>), grid, DPT_THREADS, 0, stream, job);
    return DPT_LAUNCH((update_kernel<RULE, false>), grid, DPT_THREADS, 0, stream, job);
}

int dpt_gpu_update_run(const dpt_gpu_update *u, void *stream)
{
    int err;

    if (!u || !is_valid(u)) return cudaErrorInvalidValue;
    if (!u->segments || !u->floats) return cudaSuccess;
    if (u->rule == DPT_RULE_SGD) return launch<DPT_RULE_SGD>(job_of(u), stream);
    if (u->rule == DPT_RULE_ADAMW) return launch<DPT_RULE_ADAMW>(job_of(u), stream);
    if ((err = norms(u, stream))) return err;
    return launch<DPT_RULE_LARS>(job_of(u), stream);
}

int dpt_gpu_count_update(int64_t *done, const double *sums, const int32_t *skip, void *stream)
{
    if (!done || !sums || !skip) return cudaErrorInvalidValue;
    return DPT_LAUNCH(count_kernel, 1, 1, 0, stream, done, sums, skip);
}
