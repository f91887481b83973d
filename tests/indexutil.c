/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of index files share; see indexutil.h. */
#include "tests/indexutil.h"

#include "base/text.h"
#include "loader/source_walk.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void test_index_put(const char *root, const char *name)
{
    char path[8192], *slash;

    snprintf(path, sizeof path, "%s/%s", root, name);
    slash = strrchr(path, '/');
    *slash = 0;
    test_make_folder(path);
    *slash = '/';
    test_write_file(path, "x", 1);
}

void test_index_tree(const char *root, const char *other)
{
    static const char *const names[] = {
        "a/2.jpg",     "a/10.jpg",          "a/B.PNG", "a/sub/deep/1.jpg", "a/sub.jpg",
        "a/notes.txt", "m\xC3\xBCl/ x.jpg", "README",  "z/\xFF\n%s.webp",  "z/.hidden.jpg",
    };
    char link[512];

    for (size_t k = 0; k < sizeof names / sizeof *names; k++) test_index_put(root, names[k]);
    test_index_put(other, "far/1.jpg");
    test_index_put(other, "far/in/2.jpg");
    snprintf(link, sizeof link, "%s/q", root);
    assert_int_equal(symlink(test_format("%s/far", other), link), 0);
}

dpl_options test_index_options(const char *root, const char *index)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.path = root;
    opt.index = index;
    return opt;
}

dpl_samples *test_index_open(const dpl_options *opt)
{
    dpl_samples *s;
    dpl_text why;

    if (dpl_samples_open(&s, opt, &why)) fail_msg("open: %s", why.s);
    return s;
}

void test_index_describe(const dpl_samples *s, char *out, size_t size)
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

dpl_index_use test_index_both(const char *root, const char *index, char *text)
{
    static char plain[1 << 16], indexed[1 << 16];
    dpl_options opt = test_index_options(root, NULL);
    dpl_samples *s = test_index_open(&opt);
    dpl_index_use use;

    assert_int_equal(s->index_use, DPL_INDEX_NONE);
    assert_null(s->index_text);
    test_index_describe(s, plain, sizeof plain);
    dpl_samples_close(&s);
    opt.index = index;
    s = test_index_open(&opt);
    test_index_describe(s, indexed, sizeof indexed);
    assert_string_equal(indexed, plain);
    use = s->index_use;
    snprintf(text, DPL_TEXT_MAX, "%s", s->index_text);
    dpl_samples_close(&s);
    return use;
}

void test_index_used(const char *root, const char *index)
{
    char text[DPL_TEXT_MAX];

    if (test_index_both(root, index, text) != DPL_INDEX_USED) fail_msg("not used: %s", text);
    assert_non_null(strstr(text, "used"));
}

void test_index_written(const char *root, const char *index, const char *part)
{
    char text[DPL_TEXT_MAX];

    assert_int_equal(test_index_both(root, index, text), DPL_INDEX_WRITTEN);
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

void test_index_settle(void)
{
    const struct timespec settle = { .tv_sec = 2, .tv_nsec = 200000000 };

    nanosleep(&settle, NULL);
}
