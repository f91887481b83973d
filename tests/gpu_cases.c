/* SPDX-License-Identifier: Apache-2.0 */
/* Rig of the kernel tests; see gpu_cases.h. */
#include "tests/gpu_cases.h"

#include "base/rng.h"
#include "device/device.h"
#include "dpload.h"
#include "kernels/convert.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"
#include "trainer/trainer_plugin.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { GUARD = 256, GUARD_BYTE = 0xC5, FRESH_BYTE = 0xA5, MAX_BLOCKS = 256 };

typedef struct block {
    uint8_t *base, *user; /* device memory */
    size_t bytes, whole;  /* of user, of base */
} block;

static dpl_device *device;
static dpl_stream *stream;
static const dpt_gpu_kernels *kernels;
static block blocks[MAX_BLOCKS];
static int n_blocks;

/* A plug-in that lies beside the test has to work: only what is not there is skipped. */
static int is_beside(const char *library)
{
    char path[PATH_MAX + 64];

    assert_non_null(realpath("/proc/self/exe", path));
    strcpy(strrchr(path, '/') + 1, library);
    return !access(path, F_OK);
}

int gpu_open(void **state)
{
    const dpt_trainer_plugin *plugin;
    dpl_text why = { "" };

    (void)state;
    setenv("FAKE_CUDA_DEVICES", "1", 1);
    if (dpl_device_open(&device, "cuda:0", &why) || dpt_plugin_cuda(&plugin, &why)) {
        const int wrong = device ? is_beside(DPT_CUDA_PLUGIN) : test_fake_cuda() != NULL;

        print_message("no kernels to test: %s\n", why.s);
        dpl_device_close(&device);
        return wrong ? -1 : 0;
    }
    if (dpl_stream_create(device, &stream, "kernels", &why)) return -1;
    kernels = plugin->kernels;
    return 0;
}

int gpu_close(void **state)
{
    gpu_free_all(state);
    dpl_stream_destroy(&stream);
    dpl_device_close(&device);
    return 0;
}

const dpt_gpu_kernels *gpu_kernels(void)
{
    if (!kernels) skip();
    return kernels;
}

void *gpu_stream(void)
{
    return dpl_stream_native(stream);
}

static void sync_stream(void)
{
    if (dpl_stream_sync(stream)) fail_msg("%s", dpl_device_failure(device));
}

void *gpu_put_off(const void *host, size_t bytes, size_t off)
{
    block b = { .bytes = bytes, .whole = bytes + off + 2 * (size_t)GUARD };
    uint8_t *image;

    assert_true(n_blocks < MAX_BLOCKS);
    assert_non_null(image = malloc(b.whole));
    assert_non_null(b.base = dpl_device_alloc(device, b.whole));
    b.user = b.base + GUARD + off;
    memset(image, GUARD_BYTE, b.whole);
    memset(image + GUARD + off, FRESH_BYTE, bytes);
    if (host) memcpy(image + GUARD + off, host, bytes);
    assert_int_equal(dpl_copy_to_device(stream, b.base, image, b.whole), DPL_OK);
    sync_stream();
    free(image);
    blocks[n_blocks++] = b;
    return b.user;
}

void *gpu_put(const void *host, size_t bytes)
{
    return gpu_put_off(host, bytes, 0);
}

void *gpu_new(size_t bytes)
{
    return gpu_put(NULL, bytes);
}

static const block *block_of(const void *p)
{
    int i = 0;

    while (i < n_blocks && blocks[i].user != p) i++;
    assert_true(i < n_blocks);
    return &blocks[i];
}

void *gpu_get(const void *p)
{
    const block *b = block_of(p);
    const size_t before = (size_t)(b->user - b->base), behind = before + b->bytes;
    uint8_t *image = malloc(b->whole);

    assert_non_null(image);
    assert_int_equal(dpl_copy_to_host(stream, image, b->base, b->whole), DPL_OK);
    sync_stream();
    for (size_t i = 0; i < b->whole; i++) {
        if (i >= before && i < behind) continue;
        if (image[i] != GUARD_BYTE)
            fail_msg("byte %zd of %zu was written", (ssize_t)(i - before), b->bytes);
    }
    memmove(image, image + before, b->bytes);
    return image;
}

int gpu_free_all(void **state)
{
    (void)state;
    if (stream) dpl_stream_sync(stream);
    while (n_blocks > 0) dpl_device_free(device, blocks[--n_blocks].base);
    return 0;
}

size_t gpu_size(dpt_gpu_type type)
{
    return type == DPT_GPU_FP32 ? sizeof(float) : sizeof(uint16_t);
}

static float of_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, rest = h & 0x3ff;
    const float size = exponent == 31 ? (rest ? NAN : INFINITY)
                       : exponent     ? ldexpf((float)(rest | 0x400), exponent - 25)
                                      : ldexpf((float)rest, -24);

    return h & 0x8000 ? -size : size;
}

float gpu_float(const void *v, size_t i, dpt_gpu_type type)
{
    const char *at = (const char *)v + i * gpu_size(type);
    uint32_t bits;
    uint16_t half;
    float x;

    if (type == DPT_GPU_FP32) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    memcpy(&half, at, sizeof half);
    if (type == DPT_GPU_FP16) return of_half(half);
    bits = (uint32_t)half << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void gpu_store(void *v, size_t i, dpt_gpu_type type, float x)
{
    char *at = (char *)v + i * gpu_size(type);
    const uint16_t half = type == DPT_GPU_FP16 ? dpl_to_half(x) : dpl_to_bfloat(x);

    if (type == DPT_GPU_FP32)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, &half, sizeof half);
}

void gpu_same_numbers(const void *got, const void *want, size_t n, dpt_gpu_type type,
                      const char *what)
{
    const size_t size = gpu_size(type);

    for (size_t i = 0; i < n; i++) {
        if (!memcmp((const char *)got + i * size, (const char *)want + i * size, size)) continue;
        fail_msg("%s, %s: number %zu of %zu is %.9g, expected %.9g", what, gpu_type_name(type), i,
                 n, (double)gpu_float(got, i, type), (double)gpu_float(want, i, type));
    }
}

float *gpu_normals(size_t n, float scale, uint64_t seed)
{
    float *v = malloc((n + !n) * sizeof *v);
    dpl_rng r;

    assert_non_null(v);
    dpl_rng_init(&r, seed, 0, 0, DPL_RNG_INIT);
    dpl_rng_normals(&r, v, n);
    for (size_t i = 0; i < n; i++) v[i] *= scale;
    return v;
}

const char *gpu_type_name(dpt_gpu_type type)
{
    return type == DPT_GPU_FP32 ? "fp32" : type == DPT_GPU_BF16 ? "bf16" : "fp16";
}
