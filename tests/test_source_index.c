/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: the same samples as a plain listing, whatever changed in the tree and whatever
 * happened to the file; and how much memory they take. */
#include "base/text.h"
#include "loader/index.h"
#include "loader/index_format.h"
#include "loader/source.h"
#include "loader/source_walk.h"
#include "tests/loaderutil.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { TREES = 12 };

/* Made before the first test, so that one wait is enough for their folders to have settled. */
static char tree[TREES][256], outside[TREES][256], files[256];

static void put(const char *root, const char *name)
{
    char path[8192], *slash;

    snprintf(path, sizeof path, "%s/%s", root, name);
    slash = strrchr(path, '/');
    *slash = 0;
    test_make_folder(path);
    *slash = '/';
    test_write_file(path, "x", 1);
}

static void make_tree(const char *root, const char *other)
{
    static const char *const names[] = {
        "a/2.jpg",     "a/10.jpg",          "a/B.PNG", "a/sub/deep/1.jpg", "a/sub.jpg",
        "a/notes.txt", "m\xC3\xBCl/ x.jpg", "README",  "z/\xFF\n%s.webp",  "z/.hidden.jpg",
    };
    char link[512];

    for (size_t k = 0; k < sizeof names / sizeof *names; k++) put(root, names[k]);
    put(other, "far/1.jpg");
    put(other, "far/in/2.jpg");
    snprintf(link, sizeof link, "%s/q", root);
    assert_int_equal(symlink(test_format("%s/far", other), link), 0);
}

static int make_trees(void **state)
{
    const struct timespec settle = { .tv_sec = 2, .tv_nsec = 200000000 };

    (void)state;
    snprintf(files, sizeof files, "%s", test_tempdir());
    for (int k = 0; k < TREES; k++) {
        snprintf(tree[k], sizeof tree[k], "%s", test_tempdir());
        snprintf(outside[k], sizeof outside[k], "%s", test_tempdir());
        make_tree(tree[k], outside[k]);
    }
    return nanosleep(&settle, NULL);
}

static dpl_options options(const char *root, const char *index)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.index = index;
    return opt;
}

static dpl_samples *open_ok(const dpl_options *opt)
{
    dpl_samples *s;
    dpl_text why;

    if (dpl_samples_open(&s, opt, &why)) fail_msg("open: %s", why.s);
    return s;
}

/* Everything that a source says, as one text. */
static void describe(const dpl_samples *s, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "%llu %s ", (unsigned long long)s->ignored_files,
                                 s->ignored_example ? s->ignored_example : "-");

    for (int c = 0; c < s->classes; c++)
        at += (size_t)snprintf(out + at, size - at, "%s=%llu,", s->class_names[c],
                               (unsigned long long)s->class_counts[c]);
    for (uint64_t i = 0; i < s->total; i++) {
        char buf[DPL_PATH_BYTES];

        at += (size_t)snprintf(out + at, size - at, "%d:%s;", s->ops->label(s, i),
                               s->ops->name(s, i, buf, sizeof buf));
    }
    assert_true(at < size);
}

/* Open with the index; the samples must be those of a plain listing. @return what became of it */
static dpl_index_use open_both(const char *root, const char *index, char *text)
{
    static char plain[1 << 16], indexed[1 << 16];
    dpl_options opt = options(root, NULL);
    dpl_samples *s = open_ok(&opt);
    dpl_index_use use;

    assert_int_equal(s->index_use, DPL_INDEX_NONE);
    assert_null(s->index_text);
    describe(s, plain, sizeof plain);
    dpl_samples_close(&s);
    opt.index = index;
    s = open_ok(&opt);
    describe(s, indexed, sizeof indexed);
    assert_string_equal(indexed, plain);
    use = s->index_use;
    snprintf(text, DPL_TEXT_MAX, "%s", s->index_text);
    dpl_samples_close(&s);
    return use;
}

static void is_used(const char *root, const char *index)
{
    char text[DPL_TEXT_MAX];

    if (open_both(root, index, text) != DPL_INDEX_USED) fail_msg("not used: %s", text);
    assert_non_null(strstr(text, "used"));
}

static void is_written(const char *root, const char *index, const char *part)
{
    char text[DPL_TEXT_MAX];

    assert_int_equal(open_both(root, index, text), DPL_INDEX_WRITTEN);
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void index_gives_what_listing_gives(void **state)
{
    char index[512];
    dpl_options opt;
    dpl_samples *s;
    void *buf = NULL;
    size_t cap = 0, len;
    dpl_text why;

    (void)state;
    snprintf(index, sizeof index, "%s/equal", files);
    is_written(tree[0], index, "No such file");
    is_used(tree[0], index);
    opt = options(test_format("%s//", tree[0]), index);
    s = open_ok(&opt);
    assert_int_equal(s->total, 9);
    assert_int_equal(s->ignored_files, 2);
    assert_string_equal(s->ignored_example, test_format("%s/README", tree[0]));
    for (uint64_t i = 0; i < s->total; i++)
        assert_int_equal(s->ops->read(s, i, &buf, &cap, &len, 10, &why), DPL_OK);
    dpl_samples_close(&s);
    free(buf);
}

static void classes_of_the_caller_choose_the_order(void **state)
{
    static const char *const classes[] = { "z", "none", "q", "m\xC3\xBCl", "a" };
    static char a[1 << 16], b[1 << 16];
    char index[512];
    dpl_options opt = options(tree[1], NULL);
    dpl_samples *s;

    (void)state;
    snprintf(index, sizeof index, "%s/classes", files);
    opt.classes = classes;
    opt.n_classes = 5;
    s = open_ok(&opt);
    describe(s, a, sizeof a);
    dpl_samples_close(&s);
    is_written(tree[1], index, "No such file"); /* without classes: they are no part of the index */
    opt.index = index;
    s = open_ok(&opt);
    assert_int_equal(s->index_use, DPL_INDEX_USED);
    describe(s, b, sizeof b);
    dpl_samples_close(&s);
    assert_string_equal(a, b);
}

static void threads_do_not_matter(void **state)
{
    static char first[1 << 16], other[1 << 16];
    const char *root = test_tempdir();

    (void)state;
    for (int c = 0; c < 40; c++)
        for (int i = 0; i <= c % 5; i++) put(root, test_format("c%d/s%d/%d.jpg", c, i % 2, i));
    put(root, "c31/x.txt");
    put(root, "c9/y.txt");
    for (int threads = 1; threads <= 8; threads++) {
        dpl_options opt = options(root, NULL);
        dpl_samples *s;

        opt.workers = threads;
        s = open_ok(&opt);
        describe(s, threads == 1 ? first : other, sizeof first);
        assert_string_equal(s->ignored_example, test_format("%s/c31/x.txt", root));
        dpl_samples_close(&s);
        if (threads > 1) assert_string_equal(first, other);
    }
}

/* Folders too deep in two classes: the first class is named, and no thread is left behind. */
static void the_first_fault_is_told(void **state)
{
    const char *root = test_tempdir();
    char deep[512] = "";

    (void)state;
    for (int k = 0; k < 70; k++) strcat(deep, "/d");
    for (int c = 0; c < 30; c++) put(root, test_format("c%02d/1.jpg", c));
    test_make_folder(test_format("%s/c11%s", root, deep));
    test_make_folder(test_format("%s/c29%s", root, deep));
    for (int k = 0; k < 20; k++) {
        dpl_options opt = options(root, NULL);
        dpl_samples *s;
        dpl_text why = { "" };

        opt.workers = 1 + k % 4;
        assert_int_equal(dpl_samples_open(&s, &opt, &why), DPL_EDATA);
        assert_null(s);
        assert_non_null(strstr(why.s, "c11/d"));
    }
}

/* --- changes of the tree --- */

static void add_file(int k)
{
    put(tree[k], "a/1.jpg");
}

static void remove_file(int k)
{
    assert_int_equal(unlink(test_format("%s/a/sub.jpg", tree[k])), 0);
}

static void rename_file(int k)
{
    const char *from = test_format("%s/a/sub/deep/1.jpg", tree[k]);

    assert_int_equal(rename(from, test_format("%s/a/sub/deep/0.jpg", tree[k])), 0);
}

static void rename_class(int k)
{
    assert_int_equal(rename(test_format("%s/a", tree[k]), test_format("%s/b", tree[k])), 0);
}

static void add_class(int k)
{
    put(tree[k], "new/1.jpg");
}

static void add_behind_link(int k)
{
    put(outside[k], "far/in/3.jpg");
}

/* Programs that copy trees set a folder's time back after filling it. */
static void add_and_set_time_back(int k)
{
    const char *folder = test_format("%s/z", tree[k]);
    struct stat st;

    assert_int_equal(stat(folder, &st), 0);
    put(tree[k], "z/new.jpg");
    assert_int_equal(utimensat(AT_FDCWD, folder, (struct timespec[]){ st.st_atim, st.st_mtim }, 0),
                     0);
}

static void every_change_is_noticed(void **state)
{
    static const struct {
        void (*change)(int k);
        const char *says;
    } kinds[] = {
        { add_file, ": a/ changed;" },
        { remove_file, ": a/ changed;" },
        { rename_file, ": a/sub/deep/ changed;" },
        { rename_class, ": . changed;" },
        { add_class, ": . changed;" },
        { add_behind_link, ": q/in/ changed;" },
        { add_and_set_time_back, ": z/ changed;" },
    };

    (void)state;
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++) {
        char index[512];

        snprintf(index, sizeof index, "%s/change%d", files, k);
        is_written(tree[2 + k], index, "No such file");
        is_used(tree[2 + k], index);
        kinds[k].change(2 + k);
        is_written(tree[2 + k], index, kinds[k].says);
    }
}

/* A change right after the listing may leave the folder's time as it was: fresh folders are listed
 * once more. */
static void fresh_folders_are_not_trusted(void **state)
{
    const char *root = test_tempdir();
    char index[512];

    (void)state;
    snprintf(index, sizeof index, "%s/fresh", files);
    put(root, "a/1.jpg");
    is_written(root, index, "No such file");
    is_written(root, index, "or just before");
}

/* --- damage --- */

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
    is_written(tree[9], index, "No such file");
    bytes = test_read_file(index, &len);
    test_write_file(hurt, bytes, len);
    assert_int_equal(load(hurt, tree[9]), DPL_INDEX_FILE_GOOD);
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= (uint8_t)(1 << i % 8);
        test_write_file(hurt, bytes, len);
        assert_int_equal(load(hurt, tree[9]),
                         i < 8 ? DPL_INDEX_FILE_FOREIGN : DPL_INDEX_FILE_STALE);
        bytes[i] ^= (uint8_t)(1 << i % 8);
        test_write_file(hurt, bytes, i);
        assert_int_equal(load(hurt, tree[9]), i ? DPL_INDEX_FILE_STALE : DPL_INDEX_FILE_NONE);
    }
    test_write_file(hurt, bytes, len - 1);
    is_written(tree[9], hurt, "written were");
    is_used(tree[9], hurt);
    bytes[len / 2] ^= 1;
    test_write_file(hurt, bytes, len);
    is_written(tree[9], hurt, "damaged");
    is_used(tree[9], hurt);
    bytes[8]++;
    test_write_file(hurt, bytes, len);
    is_written(tree[9], hurt, "another version");
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
    is_written(tree[10], index, "No such file");
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
            load(hurt, tree[10]);
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
    opt = options(tree[0], path);
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
    assert_int_equal(open_both(tree[0], test_format("%s/none/i", files), text),
                     DPL_INDEX_NOT_WRITTEN);
    assert_non_null(strstr(text, "/none/i: cannot write: No such file"));
}

/* --- size --- */

/* 100,000 names as ImageNet has them, made without files: only the root is stamped. */
static void index_memory_is_small(void **state)
{
    enum { CLASSES = 100, EACH = 1000 };
    const int fd = open(tree[11], O_RDONLY | O_DIRECTORY);
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

static void loader_tells_what_became_of_the_index(void **state)
{
    enum { N = 12 };
    char root[256], index[512];
    test_entry a[N], b[N];
    dpl_options opt;
    dpl_loader *l;
    dpl_info info;

    (void)state;
    snprintf(root, sizeof root, "%s", test_tempdir());
    snprintf(index, sizeof index, "%s/loader", files);
    test_make_tree(root, 3, 4);
    opt = options(root, NULL);
    opt.batch = 5;
    opt.width = opt.height = 32;
    opt.epochs = 1;
    assert_int_equal(test_trace(&opt, 0, a, N), N);
    opt.index = index;
    assert_int_equal(test_trace(&opt, 0, b, N), N);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    dpl_info_get(l, &info);
    assert_int_equal(info.index_use, DPL_INDEX_WRITTEN); /* the tree is fresh */
    assert_non_null(strstr(info.index_text, "or just before; all folders were listed"));
    dpl_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_gives_what_listing_gives),
        cmocka_unit_test(classes_of_the_caller_choose_the_order),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(the_first_fault_is_told),
        cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(fresh_folders_are_not_trusted),
        cmocka_unit_test(damage_is_noticed_at_every_byte),
        cmocka_unit_test(nonsense_with_a_right_checksum_does_no_harm),
        cmocka_unit_test(other_files_are_never_overwritten),
        cmocka_unit_test(an_index_that_cannot_be_written_is_told),
        cmocka_unit_test(index_memory_is_small),
        cmocka_unit_test(loader_tells_what_became_of_the_index),
    };

    return cmocka_run_group_tests(tests, make_trees, NULL);
}
