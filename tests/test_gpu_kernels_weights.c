/* SPDX-License-Identifier: Apache-2.0 */
/* Weights between the flat array and what convolutions read; segments between the flat array and packed
 * ones. */
#include "tests/gpu_cases.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

/* --- weights --- */

/* k, c, r, s, k_padded, c_padded: a first convolution, 3 x 3, 1 x 1, a vector, a row that is no
 * multiple of 16 bytes, more than one block. */
static const int tensors[][6] = {
    { 4, 3, 7, 7, 8, 8 },   { 5, 16, 3, 3, 8, 16 }, { 6, 24, 1, 1, 6, 24 },
    { 13, 1, 1, 1, 13, 1 }, { 3, 5, 2, 3, 3, 5 },   { 2, 64, 5, 5, 2, 64 },
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

/* All tensors, in one array after the other, with a gap between them. */
typedef struct weights {
    dpt_gpu_tensor table[TENSORS];
    size_t typed_at[TENSORS]; /* numbers from the start */
    size_t floats, elements, typed;
} weights;

static size_t area(const dpt_gpu_tensor *t)
{
    return (size_t)(t->r * t->s);
}

static size_t typed_count(const dpt_gpu_tensor *t)
{
    return (size_t)(t->k_padded * t->c_padded) * area(t);
}

/* Flat offsets are 3 floats, then whatever comes; the typed ones are multiples of 16 bytes. */
static void lay_out(weights *w)
{
    memset(w, 0, sizeof *w);
    w->floats = 3;
    for (int i = 0; i < TENSORS; i++) {
        const int *d = tensors[i];
        dpt_gpu_tensor *t = &w->table[i];

        *t = (dpt_gpu_tensor){ .flat = w->floats,
                               .k = d[0],
                               .c = d[1],
                               .r = d[2],
                               .s = d[3],
                               .k_padded = d[4],
                               .c_padded = d[5] };
        w->floats += (size_t)(t->k * t->c) * area(t) + 1;
        w->typed_at[i] = w->typed;
        w->typed += (typed_count(t) + 7) / 8 * 8;
        w->elements += typed_count(t);
    }
}

/* What the typed tensors hold for the flat array: zero in padding, 0xA5 in gaps. free() it. */
static char *typed_of(const weights *w, const float *flat, dpt_gpu_type type)
{
    char *out = malloc(w->typed * gpu_size(type));

    assert_non_null(out);
    memset(out, 0xA5, w->typed * gpu_size(type));
    for (int n = 0; n < TENSORS; n++) {
        const dpt_gpu_tensor *t = &w->table[n];
        size_t e = w->typed_at[n];

        for (int k = 0; k < t->k_padded; k++) {
            for (size_t at = 0; at < area(t); at++) {
                for (int c = 0; c < t->c_padded; c++, e++) {
                    const size_t from = t->flat + (size_t)(k * t->c + c) * area(t) + at;

                    gpu_store(out, e, type, k < t->k && c < t->c ? flat[from] : 0);
                }
            }
        }
    }
    return out;
}

/* off: of the typed tensors, bytes behind a multiple of 64. @return the typed memory */
static void *put_table(weights *w, dpt_gpu_type type, const void *typed, size_t off,
                       dpt_gpu_tensor **table)
{
    char *memory = gpu_put_off(typed, w->typed * gpu_size(type), off);

    for (int i = 0; i < TENSORS; i++) w->table[i].typed = memory + w->typed_at[i] * gpu_size(type);
    *table = gpu_put(w->table, sizeof w->table);
    return memory;
}

static void check_to_typed(dpt_gpu_type type, size_t off)
{
    dpt_gpu_tensor *table;
    char *want, *got;
    float *flat;
    void *typed;
    weights w;

    lay_out(&w);
    flat = gpu_normals(w.floats, 1, 1);
    want = typed_of(&w, flat, type);
    typed = put_table(&w, type, NULL, off, &table);
    assert_int_equal(gpu_kernels()->weights_to_typed(table, TENSORS, w.elements, type,
                                                     gpu_put(flat, w.floats * sizeof *flat),
                                                     gpu_stream()),
                     0);
    got = gpu_get(typed);
    gpu_same_numbers(got, want, w.typed, type, "typed");
    free(got);
    free(want);
    free(flat);
    gpu_free_all(NULL);
}

static void convolutions_read_weights_channels_last(void **state)
{
    (void)state;
    gpu_kernels();
    for (int type = 0; type < GPU_TYPES; type++)
        for (size_t off = 0; off <= 4; off += 4) check_to_typed((dpt_gpu_type)type, off);
}

/* What the type makes of one number. */
static float rounded(float x, dpt_gpu_type type)
{
    float one;

    gpu_store(&one, 0, type, x);
    return gpu_float(&one, 0, type);
}

/* off: floats that the flat array begins off 16 bytes. */
static void check_to_flat(dpt_gpu_type type, size_t off)
{
    dpt_gpu_tensor *table;
    float *flat, *got, *to;
    char *typed;
    weights w;

    lay_out(&w);
    flat = gpu_normals(w.floats, 1, 2);
    typed = typed_of(&w, flat, type);
    put_table(&w, type, typed, 0, &table);
    to = gpu_put_off(NULL, w.floats * sizeof *flat, off * sizeof *flat);
    assert_int_equal(
        gpu_kernels()->weights_to_flat(table, TENSORS, w.elements, type, to, gpu_stream()), 0);
    got = gpu_get(to);
    for (int n = 0; n < TENSORS; n++) {
        const dpt_gpu_tensor *t = &w.table[n];
        const size_t end = t->flat + (size_t)(t->k * t->c) * area(t);

        for (size_t i = t->flat; i < end; i++) assert_true(got[i] == rounded(flat[i], type));
        assert_int_equal(((uint8_t *)&got[end])[0], 0xA5); /* the gap */
    }
    free(got);
    free(flat);
    free(typed);
    gpu_free_all(NULL);
}

static void gradients_come_back_to_the_flat_array(void **state)
{
    (void)state;
    gpu_kernels();
    for (int type = 0; type < GPU_TYPES; type++)
        for (size_t off = 0; off < 4; off++) check_to_flat((dpt_gpu_type)type, off);
}

/* --- segments --- */

/* Begin on and off 16 bytes, lengths of all remainders, more than one block. */
static const dpt_gpu_segment segments[] = { { 40, 5, 1 },     { 0, 4, 1 },  { 7, 1, 1 },
                                            { 101, 1030, 1 }, { 50, 0, 1 }, { 2001, 2043, 1 },
                                            { 60, 7, 1 },     { 12, 6, 1 } };
enum { SEGMENTS = sizeof segments / sizeof *segments, FLAT = 4100, PACKED = 3108 };

static size_t all_floats(void)
{
    size_t n = 0;

    for (int i = 0; i < SEGMENTS; i++) n += segments[i].count;
    return n;
}

static size_t round_up(size_t n)
{
    return (n + 3) / 4 * 4;
}

/* off: floats that the flat array begins off 16 bytes. */
static void check_pack(size_t off)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    const dpt_gpu_segment *table = gpu_put(segments, sizeof segments);
    float *flat = gpu_normals(FLAT, 1, 3), *want = malloc(PACKED * sizeof *want), *got;
    float *device = gpu_put_off(flat, FLAT * sizeof *flat, off * sizeof *flat);
    float *packed = gpu_new(PACKED * sizeof *packed);
    size_t at = 0;

    assert_non_null(want);
    memset(want, 0xA5, PACKED * sizeof *want);
    for (int i = 0; i < SEGMENTS; i++) {
        memcpy(want + at, flat + segments[i].at, segments[i].count * sizeof *want);
        at += round_up(segments[i].count);
    }
    assert_int_equal(at, PACKED);
    assert_int_equal(k->pack(table, SEGMENTS, all_floats(), device, packed, gpu_stream()), 0);
    got = gpu_get(packed);
    gpu_same_numbers(got, want, PACKED, DPT_GPU_FP32, "packed");
    free(got);

    /* back, into an array of 0xA5 */
    device = gpu_put_off(NULL, FLAT * sizeof *flat, off * sizeof *flat);
    free(want);
    assert_non_null(want = malloc(FLAT * sizeof *want));
    memset(want, 0xA5, FLAT * sizeof *want);
    for (int i = 0; i < SEGMENTS; i++)
        memcpy(want + segments[i].at, flat + segments[i].at, segments[i].count * sizeof *want);
    assert_int_equal(k->unpack(table, SEGMENTS, all_floats(), packed, device, gpu_stream()), 0);
    got = gpu_get(device);
    gpu_same_numbers(got, want, FLAT, DPT_GPU_FP32, "unpacked");
    free(got);
    free(want);
    free(flat);
    gpu_free_all(NULL);
}

static void segments_are_packed_and_unpacked(void **state)
{
    (void)state;
    gpu_kernels();
    for (size_t off = 0; off < 4; off++) check_pack(off);
}

/* More segments than a block has threads. */
static void many_segments_find_their_places(void **state)
{
    enum { MANY = 300 };
    static dpt_gpu_segment table[MANY];
    float *flat, *got, *packed;
    size_t at = 0;

    (void)state;
    gpu_kernels();
    flat = gpu_normals(MANY * 3, 1, 4);
    for (int i = 0; i < MANY; i++)
        table[i] = (dpt_gpu_segment){ .at = (size_t)(MANY - 1 - i) * 3, .count = (size_t)(i % 4) };
    for (int i = 0; i < MANY; i++) at += round_up(table[i].count);
    packed = gpu_new(at * sizeof *packed);
    assert_int_equal(gpu_kernels()->pack(gpu_put(table, sizeof table), MANY, MANY * 3 / 2,
                                         gpu_put(flat, MANY * 3 * sizeof *flat), packed,
                                         gpu_stream()),
                     0);
    got = gpu_get(packed);
    at = 0;
    for (int i = 0; i < MANY; i++) {
        for (size_t j = 0; j < table[i].count; j++)
            assert_true(got[at + j] == flat[table[i].at + j]);
        at += round_up(table[i].count);
    }
    free(got);
    free(flat);
}

static void wrong_arguments_queue_nothing(void **state)
{
    const dpt_gpu_kernels *k = gpu_kernels();
    dpt_gpu_tensor *tensor = gpu_new(sizeof *tensor);
    dpt_gpu_segment *segment = gpu_new(sizeof *segment);
    float *flat = gpu_new(64), *packed = gpu_new(64);
    void *s = gpu_stream();

    (void)state;
    assert_int_equal(k->weights_to_typed(NULL, 1, 4, DPT_GPU_FP32, flat, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_typed(tensor, -1, 4, DPT_GPU_FP32, flat, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_typed(tensor, 65536, 4, DPT_GPU_FP32, flat, s),
                     GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_typed(tensor, 1, 4, (dpt_gpu_type)3, flat, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_typed(tensor, 1, 4, DPT_GPU_FP32, NULL, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_flat(NULL, 1, 4, DPT_GPU_FP32, flat, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_flat(tensor, 1, 4, DPT_GPU_FP32, NULL, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->pack(NULL, 1, 4, flat, packed, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->pack(segment, -1, 4, flat, packed, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->pack(segment, 1, 4, NULL, packed, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->pack(segment, 1, 4, flat, packed + 1, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->unpack(segment, 1, 4, packed, NULL, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->unpack(segment, 65536, 4, packed, flat, s), GPU_BAD_ARGUMENT);
    assert_int_equal(k->weights_to_typed(tensor, 0, 0, DPT_GPU_FP32, flat, s), 0);
    assert_int_equal(k->weights_to_typed(tensor, 1, 0, DPT_GPU_FP32, flat, s), 0);
    assert_int_equal(k->weights_to_flat(tensor, 0, 0, DPT_GPU_BF16, flat, s), 0);
    assert_int_equal(k->pack(segment, 0, 0, flat, packed, s), 0);
    assert_int_equal(k->unpack(segment, 1, 0, packed, flat, s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(convolutions_read_weights_channels_last, gpu_free_all),
        cmocka_unit_test_teardown(gradients_come_back_to_the_flat_array, gpu_free_all),
        cmocka_unit_test_teardown(segments_are_packed_and_unpacked, gpu_free_all),
        cmocka_unit_test_teardown(many_segments_find_their_places, gpu_free_all),
        cmocka_unit_test_teardown(wrong_arguments_queue_nothing, gpu_free_all),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
