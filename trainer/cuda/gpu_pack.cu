/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of the flat array one behind the other, and back: blockIdx.y is the segment. In packed each
 * begins on 16 bytes; in flat it begins anywhere, and is read or written in 16 bytes where both do. */
#include "trainer/cuda/gpu_device.cuh"

static const size_t MOST = (DPT_BLOCKS + 63) / 64; /* blocks of one segment */

/* Floats of packed before segment s. The whole block comes. */
static __device__ size_t packed_before(const dpt_gpu_segment *table, unsigned s, size_t *shared)
{
    size_t floats = 0;

    for (unsigned i = threadIdx.x; i < s; i += DPT_THREADS) floats += (table[i].count + 3) / 4 * 4;
    return dpt_block_join<dpt_add>(floats, shared);
}

/* dst[i] = src[i]; dst and src are of one segment, `both` = both begin on 16 bytes. */
static __device__ void copy(float *dst, const float *src, size_t n, bool both)
{
    for (size_t q = dpt_thread(); q < dpt_fours(n, 0); q += dpt_stride()) {
        const dpt_four f = dpt_four_at(q, n, 0);

        if (f.whole && both)
            dpt_store16(dst + f.from, dpt_load16(src + f.from));
        else
            for (size_t i = f.from; i < f.to; i++) dst[i] = src[i];
    }
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    pack_kernel(const dpt_gpu_segment *table, const float *flat, float *packed)
{
    __shared__ size_t shared[DPT_THREADS];
    const dpt_gpu_segment s = table[blockIdx.y];
    float *to = packed + packed_before(table, blockIdx.y, shared);

    copy(to, flat + s.at, s.count, dpt_aligned16(flat + s.at));
}

static __global__ void __launch_bounds__(DPT_THREADS, 4)
    unpack_kernel(const dpt_gpu_segment *table, const float *packed, float *flat)
{
    __shared__ size_t shared[DPT_THREADS];
    const dpt_gpu_segment s = table[blockIdx.y];
    const float *from = packed + packed_before(table, blockIdx.y, shared);

    copy(flat + s.at, from, s.count, dpt_aligned16(flat + s.at));
}

static int is_valid(const dpt_gpu_segment *table, int segments, const float *flat,
                    const float *packed)
{
    return segments >= 0 && segments <= 65535 && (!segments || table) && flat && packed &&
           dpt_aligned16(packed);
}

int dpt_gpu_pack(const dpt_gpu_segment *table, int segments, size_t floats, const float *flat,
                 float *packed, void *stream)
{
    const dim3 grid(dpt_grid(floats, DPT_THREADS * 4, MOST), (unsigned)segments);

    if (!is_valid(table, segments, flat, packed)) return cudaErrorInvalidValue;
    if (!segments || !floats) return cudaSuccess;
    return DPT_LAUNCH(pack_kernel, grid, DPT_THREADS, 0, stream, table, flat, packed);
}

int dpt_gpu_unpack(const dpt_gpu_segment *table, int segments, size_t floats, const float *packed,
                   float *flat, void *stream)
{
    const dim3 grid(dpt_grid(floats, DPT_THREADS * 4, MOST), (unsigned)segments);

    if (!is_valid(table, segments, flat, packed)) return cudaErrorInvalidValue;
    if (!segments || !floats) return cudaSuccess;
    return DPT_LAUNCH(unpack_kernel, grid, DPT_THREADS, 0, stream, table, packed, flat);
}
