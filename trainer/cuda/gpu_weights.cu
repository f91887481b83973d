/* SPDX-License-Identifier: Apache-2.0 */
/* Weights between the flat fp32 array, [k][c][r][s], and what convolutions read, [k][r][s][c] with
 * padding: all tensors in one launch, blockIdx.y says which. What is written leaves in 16 bytes; what
 * is read lies r * s (or c) apart, and the first-level cache has the neighbours. */
#include "trainer/cuda/gpu_device.cuh"

static const size_t MOST = (DPT_BLOCKS + 63) / 64; /* blocks of one tensor */

/* Where element e of the typed tensor lies in the flat one. @return false for padding */
static __device__ bool flat_of(const dpt_gpu_tensor &t, size_t e, size_t *flat)
{
    const size_t c = e % (size_t)t.c_padded, rest = e / (size_t)t.c_padded;
    const size_t area = (size_t)t.r * (size_t)t.s, at = rest % area, k = rest / area;

    *flat = t.flat + (k * (size_t)t.c + c) * area + at;
    return k < (size_t)t.k && c < (size_t)t.c;
}

/* PER neighbours that have k, r and s in common; they end where c_padded does. */
template <class T, unsigned PER>
static __device__ void fill_typed(const dpt_gpu_tensor &t, size_t e, const float *flat)
{
    const size_t area = (size_t)t.r * (size_t)t.s, c = e % (size_t)t.c_padded;
    dpt_vec<T> v;
    size_t from;

    flat_of(t, e, &from);
    for (unsigned k = 0; k < PER; k++) {
        const bool inside = c + k < (size_t)t.c && e / (size_t)t.c_padded / area < (size_t)t.k;

        v.at[k] = dpt_of_float<T>(inside ? flat[from + k * area] : 0.f);
    }
    if constexpr (PER > 1)
        dpt_store16((T *)t.typed + e, v);
    else
        ((T *)t.typed)[e] = v.at[0];
}

template <class T>
static __global__ void __launch_bounds__(DPT_THREADS, 4)
    to_typed_kernel(const dpt_gpu_tensor *table, const float *flat)
{
    enum { PER = 16 / sizeof(T) };
    const dpt_gpu_tensor t = table[blockIdx.y];
    const size_t area = (size_t)t.r * (size_t)t.s;
    const size_t n = (size_t)t.k_padded * area * (size_t)t.c_padded;

    if (t.c_padded % PER == 0 && dpt_aligned16(t.typed)) {
        for (size_t e = dpt_thread() * PER; e < n; e += dpt_stride() * PER)
            fill_typed<T, PER>(t, e, flat);
    } else {
        for (size_t e = dpt_thread(); e < n; e += dpt_stride()) fill_typed<T, 1>(t, e, flat);
    }
}

/* Element i of the tensor in the flat order, from the typed one. */
template <class T> static __device__ float typed_value(const dpt_gpu_tensor &t, size_t i)
{
    const size_t area = (size_t)t.r * (size_t)t.s, at = i % area, rest = i / area;
    const size_t c = rest % (size_t)t.c, k = rest / (size_t)t.c;

    return dpt_to_float(((const T *)t.typed)[(k * area + at) * (size_t)t.c_padded + c]);
}

template <class T>
static __global__ void __launch_bounds__(DPT_THREADS, 4)
    to_flat_kernel(const dpt_gpu_tensor *table, float *flat)
{
    const dpt_gpu_tensor t = table[blockIdx.y];
    const size_t n = (size_t)t.k * (size_t)t.c * (size_t)t.r * (size_t)t.s;
    float *out = flat + t.flat;
    const unsigned lead = dpt_lead(out);

    for (size_t q = dpt_thread(); q < dpt_fours(n, lead); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, lead);
        dpt_vec<float> v;

        if (f.whole) {
            for (int k = 0; k < 4; k++) v.at[k] = typed_value<T>(t, f.from + k);
            dpt_store16(out + f.from, v);
        } else {
            for (size_t i = f.from; i < f.to; i++) out[i] = typed_value<T>(t, i);
        }
    }
}

template <class T>
static int launch_to_typed(const dpt_gpu_tensor *table, int tensors, size_t elements,
                           const float *flat, void *stream)
{
    const dim3 grid(dpt_grid(elements, DPT_THREADS * (16 / sizeof(T)), MOST), (unsigned)tensors);

    return DPT_LAUNCH((to_typed_kernel<T>), grid, DPT_THREADS, 0, stream, table, flat);
}

template <class T>
static int launch_to_flat(const dpt_gpu_tensor *table, int tensors, size_t elements, float *flat,
                          void *stream)
{
    const dim3 grid(dpt_grid(elements, DPT_THREADS * 4, MOST), (unsigned)tensors);

    return DPT_LAUNCH((to_flat_kernel<T>), grid, DPT_THREADS, 0, stream, table, flat);
}

static int is_valid(const dpt_gpu_tensor *table, int tensors, dpt_gpu_type type, const float *flat)
{
    return tensors >= 0 && tensors <= 65535 && dpt_type_known(type) && (!tensors || table) && flat;
}

int dpt_gpu_weights_to_typed(const dpt_gpu_tensor *table, int tensors, size_t elements,
                             dpt_gpu_type type, const float *flat, void *stream)
{
    if (!is_valid(table, tensors, type, flat)) return cudaErrorInvalidValue;
    if (!tensors || !elements) return cudaSuccess;
    return DPT_BY_TYPE(type, launch_to_typed, table, tensors, elements, flat, stream);
}

int dpt_gpu_weights_to_flat(const dpt_gpu_tensor *table, int tensors, size_t elements,
                            dpt_gpu_type type, float *flat, void *stream)
{
    if (!is_valid(table, tensors, type, flat)) return cudaErrorInvalidValue;
    if (!tensors || !elements) return cudaSuccess;
    return DPT_BY_TYPE(type, launch_to_flat, table, tensors, elements, flat, stream);
}
