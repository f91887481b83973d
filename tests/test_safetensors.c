/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors writer against the reference writer's bytes, the reader against damaged files. */
#include "trainer/safetensors.h"

#include "dpload.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char reference[] = "tests/data/safetensors_reference.safetensors";

static dpt_st_file *open_file(const char *path)
{
    dpt_st_file *f;
    dpl_text why = { "" };

    if (dpt_st_open(&f, path, &why)) fail_msg("%s", why.s);
    return f;
}

static void expect_refused(const char *path, int err, const char *text)
{
    dpt_st_file *f = (dpt_st_file *)&f;
    dpl_text why = { "" };
    const int got = dpt_st_open(&f, path, &why);

    if (got != err || !strstr(why.s, text) || !strstr(why.s, path)) {
        fail_msg("got %d '%s', expected %d '%s'", got, why.s, err, text);
    }
    assert_null(f);
}

static const char *file_with(const void *data, size_t len)
{
    static const char *folder;
    const char *path;

    if (!folder) folder = test_tempdir();
    path = test_format("%s/made.safetensors", folder);
    test_write_file(path, data, len);
    return path;
}

/* A file of this header and data_len zero bytes. */
static const char *file_of(const char *header, size_t data_len)
{
    const uint64_t n = strlen(header);
    uint8_t *file = calloc(1, 8 + n + data_len);
    const char *path;

    assert_non_null(file);
    memcpy(file, &n, 8);
    memcpy(file + 8, header, n);
    path = file_with(file, 8 + n + data_len);
    free(file);
    return path;
}

/* A small file of ours. */
static const char *write_ours(const char *name)
{
    static const float w[6] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t n = 3;
    const dpt_st_tensor t[] = {
        { "fc.weight", DPT_ST_F32, 2, { 2, 3 }, w, sizeof w },
        { "bn.num_batches_tracked", DPT_ST_I64, 0, { 0 }, &n, sizeof n },
    };
    const dpt_st_meta meta[] = { { "arch", "tiny\"crc32\":\"12345678\"" },
                                 { "classes", "[\"ant\",\"bee\"]" } };
    const char *path = test_format("%s/%s", test_tempdir(), name);
    dpl_text why = { "" };

    if (dpt_st_write(path, t, 2, meta, 2, NULL, &why)) fail_msg("%s", why.s);
    return path;
}

static void reads_what_the_reference_wrote(void **state)
{
    dpt_st_file *f = open_file(reference);
    const dpt_st_tensor *t;

    (void)state;
    assert_int_equal(dpt_st_count(f), 12);
    assert_string_equal(dpt_st_meta_get(f, "format"), "pt");
    assert_null(dpt_st_meta_get(f, "crc32"));
    t = dpt_st_find(f, "layer1.0.bn1.num_batches_tracked");
    assert_true(t && t->dtype == DPT_ST_I64 && t->dims == 0 && *(const int64_t *)t->data == -2);
    t = dpt_st_find(f, "layer1.0.conv1.weight");
    assert_true(t && t->dtype == DPT_ST_F32 && t->dims == 4 && t->bytes == 24);
    assert_true(t->shape[0] == 1 && t->shape[1] == 2 && t->shape[2] == 3 && t->shape[3] == 1);
    assert_true(((const float *)t->data)[5] == 5);
    t = dpt_st_find(f, "a \"quoted\" \\ n\xc3\xa4me\t");
    assert_true(t && t->dims == 1 && ((const float *)t->data)[1] == 4);
    t = dpt_st_find(f, "none");
    assert_true(t && t->bytes == 0 && t->shape[0] == 0 && t->shape[1] == 3);
    assert_null(dpt_st_find(f, "fc.weight"));
    assert_null(dpt_st_at(f, 12));
    dpt_st_close(&f);
    assert_null(f);
}

/* Given the reference's tensors in another order, we write its bytes; only the metadata differs. */
static void writes_the_bytes_of_the_reference(void **state)
{
    dpt_st_file *f = open_file(reference);
    const char *path = test_format("%s/rewritten.safetensors", test_tempdir());
    const size_t n = dpt_st_count(f);
    dpt_st_tensor t[16];
    size_t len, ref_len;
    uint8_t *got, *want;
    char *got_rest, *want_rest;
    uint64_t header, ref_header;

    (void)state;
    for (size_t i = 0; i < n; i++) t[(i * 5 + 3) % n] = *dpt_st_at(f, i);
    assert_int_equal(dpt_st_write(path, t, n, NULL, 0, NULL, NULL), DPL_OK);
    dpt_st_close(&f);
    got = test_read_file(path, &len);
    want = test_read_file(reference, &ref_len);
    memcpy(&header, got, 8);
    memcpy(&ref_header, want, 8);
    assert_int_equal(header % 8, 0);
    assert_int_equal(len - header, ref_len - ref_header);
    assert_memory_equal(got + 8 + header, want + 8 + ref_header, len - 8 - header);
    got[8 + header - 1] = want[8 + ref_header - 1] = 0; /* both end in padding */
    got_rest = strstr((char *)got + 8, "},");
    want_rest = strstr((char *)want + 8, "},");
    assert_non_null(got_rest);
    while (got_rest[strlen(got_rest) - 1] == ' ') got_rest[strlen(got_rest) - 1] = 0;
    while (want_rest[strlen(want_rest) - 1] == ' ') want_rest[strlen(want_rest) - 1] = 0;
    assert_string_equal(got_rest, want_rest);
    free(got);
    free(want);
}

static void metadata_and_lists_survive(void **state)
{
    dpt_st_file *f = open_file(write_ours("meta.safetensors"));
    char **list;
    size_t n;

    (void)state;
    assert_string_equal(dpt_st_meta_get(f, "arch"), "tiny\"crc32\":\"12345678\"");
    assert_string_equal(dpt_st_meta_get(f, "format"), "pt");
    assert_int_equal(strlen(dpt_st_meta_get(f, "crc32")), 8);
    assert_int_equal(dpt_st_meta_list(f, "classes", &list, &n), DPL_OK);
    assert_int_equal(n, 2);
    assert_string_equal(list[0], "ant");
    assert_string_equal(list[1], "bee");
    dpt_st_list_free(&list, n);
    assert_null(list);
    assert_int_equal(dpt_st_meta_list(f, "arch", &list, &n), DPL_EDATA);
    assert_int_equal(dpt_st_meta_list(f, "nothing", &list, &n), DPL_EDATA);
    dpt_st_close(&f);
}

static void every_flipped_bit_is_noticed(void **state)
{
    size_t len;
    uint8_t *file = test_read_file(write_ours("flip.safetensors"), &len);
    dpt_st_file *f;

    (void)state;
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            file[i] ^= (uint8_t)(1 << bit);
            if (!dpt_st_open(&f, file_with(file, len), NULL)) {
                fail_msg("bit %d of byte %zu was turned, and the file was taken", bit, i);
            }
            file[i] ^= (uint8_t)(1 << bit);
        }
    }
    f = open_file(file_with(file, len));
    dpt_st_close(&f);
    free(file);
}

static void every_truncation_is_noticed(void **state)
{
    size_t len;
    uint8_t *file = test_read_file(reference, &len); /* no checksum helps here */
    dpt_st_file *f;

    (void)state;
    for (size_t n = 0; n < len; n++) {
        assert_int_equal(dpt_st_open(&f, file_with(file, n), NULL), DPL_EDATA);
    }
    expect_refused(file_with(file, 0), DPL_EDATA, "0 bytes found");
    expect_refused(file_with(file, len - 1), DPL_EDATA, "169 bytes of tensors expected, 168 found");
    file = realloc(file, len + 1);
    assert_non_null(file);
    file[len] = 0;
    expect_refused(file_with(file, len + 1), DPL_EDATA, "169 bytes of tensors expected, 170 found");
    free(file);
}

static void header_lengths_are_not_believed(void **state)
{
    static const uint64_t lengths[] = { 0,          1,          2,          857,
                                        865,        100000000,  100000001,  0x7fffffff,
                                        0x80000000, 0xffffffff, 1ull << 63, UINT64_MAX };
    size_t len;
    uint8_t *file = test_read_file(reference, &len);
    dpt_st_file *f;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(file, &lengths[i], 8);
        assert_int_equal(dpt_st_open(&f, file_with(file, len), NULL), DPL_EDATA);
    }
    expect_refused(file_with(file, len), DPL_EDATA, "18446744073709551615 bytes announced");
    memcpy(file, &(uint64_t){ len - 7 }, 8); /* one byte past the end */
    expect_refused(file_with(file, len), DPL_EDATA, "header of 1034 bytes announced, but the file");
    free(file);
}

static void bad_headers_are_refused(void **state)
{
#define T(rest) "{\"x\":{\"dtype\":\"F32\"," rest "}}"
    static const struct {
        const char *header;
        size_t data;
        const char *text;
    } bad[] = {
        { "{\"x\":", 4, "not a JSON object" },
        { "{\"x\":1}", 4, "must have dtype" },
        { "{\"x\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype" },
        { "{\"x\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype" },
        { T("\"shape\":[1],\"data_offsets\":[0,4],\"y\":1"), 4, "must have dtype" },
        { T("\"shape\":1,\"data_offsets\":[0,4]"), 4, "8 dimensions" },
        { T("\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4, "8 dimensions" },
        { T("\"shape\":[-1],\"data_offsets\":[0,4]"), 4, "whole number" },
        { T("\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, "whole number" },
        { T("\"shape\":[4611686018427387905],\"data_offsets\":[0,4]"), 4, "too large" },
        { T("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0, "too large" },
        { T("\"shape\":[99999999999999999999],\"data_offsets\":[0,4]"), 4, "not a JSON object" },
        { T("\"shape\":[1],\"data_offsets\":[4,0]"), 4, "impossible" },
        { T("\"shape\":[1],\"data_offsets\":[0,4,8]"), 4, "impossible" },
        { T("\"shape\":[1],\"data_offsets\":[-4,0]"), 4, "impossible" },
        { T("\"shape\":[2],\"data_offsets\":[0,4]"), 4, "do not fit" },
        { T("\"shape\":[1],\"data_offsets\":[4,8]"), 8, "begins at 4, expected 0" },
        { T("\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]"), 8,
          "begins at" },
        { T("\"shape\":[1],\"data_offsets\":[0,4]"), 3, "4 bytes of tensors expected, 3 found" },
        { T("\"shape\":[1],\"data_offsets\":[0,4]"), 5, "4 bytes of tensors expected, 5 found" },
        { "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
          "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
          6, "begins at 2, expected 4" },
        { "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
          "\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
          8, "duplicate" },
        { "{\"__metadata__\":[]}", 0, "not an object" },
        { "{\"__metadata__\":{\"a\":1}}", 0, "not a string" },
        { "{\"__metadata__\":{\"written_by\":\"x\"}}", 0, "no readable checksum" },
        { "{\"__metadata__\":{\"crc32\":\"0\"}}", 0, "no readable checksum" },
        { "{\"__metadata__\":{\"crc32\":\"00000000\"}}", 0, "checksum 00000000 expected" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_refused(file_of(bad[i].header, bad[i].data), DPL_EDATA, bad[i].text);
    }
}

static void good_headers_of_others_are_taken(void **state)
{
    dpt_st_file *f = open_file(file_of("{}", 0));

    (void)state;
    assert_int_equal(dpt_st_count(f), 0);
    assert_null(dpt_st_meta_get(f, "format"));
    dpt_st_close(&f);
    /* data in any order, odd places, blanks around */
    f = open_file(
        file_of("{ \"y\": {\"shape\": [1], \"data_offsets\": [1, 5], \"dtype\": \"F32\"},\n"
                "\"x\": {\"dtype\": \"U8\", \"shape\": [], \"data_offsets\": [0, 1]} }  ",
                5));
    assert_string_equal(dpt_st_at(f, 0)->name, "x");
    assert_string_equal(dpt_st_at(f, 1)->name, "y");
    assert_ptr_equal(dpt_st_at(f, 1)->data, (const char *)dpt_st_at(f, 0)->data + 1);
    dpt_st_close(&f);
}

static void other_files_are_named(void **state)
{
    const char *folder = test_tempdir(), *fifo = test_format("%s/fifo", folder);

    (void)state;
    expect_refused(file_with("PK\3\4\0\0\10\10\0\0\0\0", 12), DPL_EDATA, "a PyTorch .pth");
    expect_refused(file_with("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j", 11), DPL_EDATA, "a pickle");
    expect_refused(file_with("\x80\4\x95\0\0\0\0\0\0\0", 10), DPL_EDATA, "a pickle");
    expect_refused(file_with("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16), DPL_EDATA, "not a safetensors");
    expect_refused(folder, DPL_EDATA, "not a regular file");
    expect_refused(test_format("%s/none", folder), DPL_EIO, "No such file");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_refused(fifo, DPL_EDATA, "not a regular file");
}

/* 0x480 = 1152 bytes of header look like a pickle's first two bytes. */
static void a_header_length_like_a_pickle_is_fine(void **state)
{
    char header[0x480 + 1];
    dpt_st_file *f;

    (void)state;
    snprintf(header, sizeof header, "%-*s", 0x480, "{}");
    f = open_file(file_of(header, 0));
    dpt_st_close(&f);
}

static void failed_write_keeps_the_old_file(void **state)
{
    const char *folder = test_format("%s/no/folder", test_tempdir());
    const char *path = test_format("%s/x.safetensors", folder);
    dpl_text why = { "" };

    (void)state;
    assert_int_equal(dpt_st_write(path, NULL, 0, NULL, 0, NULL, &why), DPL_EIO);
    assert_non_null(strstr(why.s, path));
    assert_non_null(strstr(why.s, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_reference_wrote),
        cmocka_unit_test(writes_the_bytes_of_the_reference),
        cmocka_unit_test(metadata_and_lists_survive),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_truncation_is_noticed),
        cmocka_unit_test(header_lengths_are_not_believed),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(good_headers_of_others_are_taken),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(a_header_length_like_a_pickle_is_fine),
        cmocka_unit_test(failed_write_keeps_the_old_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
