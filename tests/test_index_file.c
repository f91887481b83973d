/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: whatever happens to the file, the samples are those of a plain listing; and how much
 * memory it takes. */
#include "base/text.h"
#include "loader/index.h"
#include "loader/index_format.h"
#include "tests/indexutil.h"
#include "tests/testutil.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { TREES = 3 };

static char tree[TREES][256], files[256];

static int make_trees(void **state)
{
    (void)state;
    snprintf(files, sizeof files, "%s", test_tempdir());
    for (int k = 0; k < TREES; k++) {
        snprintf(tree[k], sizeof tree[k], "%s", test_tempdir());
        test_index_tree(tree[k], test_tempdir());
    }
    test_index_settle();
    return 0;
}

static dpl_index_file load(const char *path, const char *root)
{
    const int fd = open(root, O_RDONLY | O_DIRECTORY);
    dpl_index x;
    dpl_text why = { "" };
    const dpl_index_file found = dpl_index_load(&x, path, fd, &why);
    size_t sum = 0;

    close(fd);
    for (uint64_t k = 0; k < x.classes; k++)
        for (uint64_t i = 0; i < x.of[k].count; i++)
            sum += strlen(x.of[k].names + x.of[k].offset[i]) + strlen(x.of[k].title);
    assert_true(sum < 1000000);
    if (found != DPL_INDEX_FILE_GOOD) {
        assert_int_not_equal(*why.s, 0);
        assert_null(x.of);
    }
    dpl_index_fini(&x);
    return found;
}

static void damage_is_noticed_at_every_byte(void **state)
{
    char index[512], hurt[512];
    uint8_t *bytes;
    size_t len;

    (void)state;
    snprintf(index, sizeof index, "%s/whole", files);
    snprintf(hurt, sizeof hurt, "%s/hurt", files);
    test_index_written(tree[0], index, "No such file");
    bytes = test_read_file(index, &len);
    test_write_file(hurt, bytes, len);
    assert_int_equal(load(hurt, tree[0]), DPL_INDEX_FILE_GOOD);
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= (uint8_t)(1 << i % 8);
        test_write_file(hurt, bytes, len);
        assert_int_equal(load(hurt, tree[0]),
                         i < 8 ? DPL_INDEX_FILE_FOREIGN : DPL_INDEX_FILE_STALE);
        bytes[i] ^= (uint8_t)(1 << i % 8);
        test_write_file(hurt, bytes, i);
        assert_int_equal(load(hurt, tree[0]), i ? DPL_INDEX_FILE_STALE : DPL_INDEX_FILE_NONE);
    }
    test_write_file(hurt, bytes, len - 1);
    test_index_written(tree[0], hurt, "written were");
    test_index_used(tree[0], hurt);
    bytes[len / 2] ^= 1;
    test_write_file(hurt, bytes, len);
    test_index_written(tree[0], hurt, "damaged");
    test_index_used(tree[0], hurt);
    bytes[8]++;
    test_write_file(hurt, bytes, len);
    test_index_written(tree[0], hurt, "another version");
    free(bytes);
}

/* A right checksum over nonsense: no place may lead out of the file. */
static void nonsense_with_a_right_checksum_does_no_harm(void **state)
{
    const size_t after = offsetof(dpl_index_header, bytes);
    char index[512], hurt[512];
    uint8_t *bytes;
    size_t len;

    (void)state;
    snprintf(index, sizeof index, "%s/sound", files);
    snprintf(hurt, sizeof hurt, "%s/unsound", files);
    test_index_written(tree[1], index, "No such file");
    bytes = test_read_file(index, &len);
    for (size_t i = after; i + 8 <= len; i += 4) {
        const uint64_t values[] = { 0, 1, len - 1, len, len * 8, UINT64_MAX, UINT64_C(1) << 61 };

        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            uint8_t old[8];
            uint32_t crc;

            memcpy(old, bytes + i, 8);
            memcpy(bytes + i, &values[k], 8);
            crc = (uint32_t)crc32(0, bytes + after, (uInt)(len - after));
            memcpy(bytes + offsetof(dpl_index_header, crc), &crc, sizeof crc);
            test_write_file(hurt, bytes, len);
            load(hurt, tree[1]);
            memcpy(bytes + i, old, 8);
        }
    }
    free(bytes);
}

static void other_files_are_never_overwritten(void **state)
{
    static const char text[] = "a.jpg\t0\n";
    char path[512];
    dpl_options opt;
    dpl_samples *s;
    dpl_text why = { "" };
    uint8_t *bytes;
    size_t len;

    (void)state;
    snprintf(path, sizeof path, "%s/list.txt", files);
    test_write_file(path, text, sizeof text - 1);
    opt = test_index_options(tree[0], path);
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EIO);
    assert_null(s);
    assert_non_null(strstr(why.s, "list.txt: not an index file"));
    bytes = test_read_file(path, &len);
    assert_int_equal(len, sizeof text - 1);
    assert_memory_equal(bytes, text, len);
    free(bytes);
    opt.index = files;
    assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EIO);
    assert_non_null(strstr(why.s, "not an index file"));
}

static void an_index_that_cannot_be_written_is_told(void **state)
{
    char text[DPL_TEXT_MAX];

    (void)state;
    assert_int_equal(test_index_both(tree[0], test_format("%s/none/i", files), text),
                     DPL_INDEX_NOT_WRITTEN);
    assert_non_null(strstr(text, "/none/i: cannot write: No such file"));
}

/* --- size --- */

/* 100,000 names as ImageNet has them, made without files: only the root is stamped. */
static void index_memory_is_small(void **state)
{
    enum { CLASSES = 100, EACH = 1000 };
    const int fd = open(tree[2], O_RDONLY | O_DIRECTORY);
    dpl_index x = { .classes = CLASSES, .samples = CLASSES * EACH, .listed_ns = INT64_MAX }, y;
    char path[512];
    struct stat st;
    dpl_stamp stamp;
    dpl_text why = { "" };

    (void)state;
    snprintf(path, sizeof path, "%s/large", files);
    x.of = calloc(CLASSES, sizeof *x.of);
    x.lists = calloc(CLASSES, sizeof *x.lists);
    for (int c = 0; c < CLASSES; c++)
        assert_int_equal(dpl_name_list_add(&x.titles, "", test_format("n%08d", c)), DPL_OK);
    for (int c = 0; c < CLASSES; c++) {
        dpl_name_list *l = &x.lists[c];

        for (int i = 0; i < EACH; i++)
            assert_int_equal(dpl_name_list_add(l, "", test_format("n%08d_%05d.JPEG", c, i)), 0);
        x.of[c] = (dpl_index_class){ dpl_name_at(&x.titles, (uint64_t)c), l->block, l->offset,
                                     l->count, l->block_len };
    }
    assert_int_equal(fstat(fd, &st), 0);
    stamp = dpl_stamp_of(&st);
    assert_int_equal(dpl_stamps_add(&x.stamps, ".", &stamp), DPL_OK);
    assert_int_equal(dpl_index_save(&x, path, &why), DPL_OK);
    if (dpl_index_load(&y, path, fd, &why)) fail_msg("%s", why.s);
    assert_int_equal(y.samples, CLASSES * EACH);
    assert_string_equal(y.of[99].names + y.of[99].offset[999], "n00000099_00999.JPEG");
    assert_true(y.bytes < (size_t)CLASSES * EACH * 30); /* 21 of the name, 4 of its offset */
    dpl_index_fini(&x);
    dpl_index_fini(&y);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_noticed_at_every_byte),
        cmocka_unit_test(nonsense_with_a_right_checksum_does_no_harm),
        cmocka_unit_test(other_files_are_never_overwritten),
        cmocka_unit_test(an_index_that_cannot_be_written_is_told),
        cmocka_unit_test(index_memory_is_small),
    };

    return cmocka_run_group_tests(tests, make_trees, NULL);
}
