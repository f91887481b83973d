/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, messages, status codes, instruction sets. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void overflowing_sizes_give_null(void **state)
{
    size_t product;

    (void)state;
    assert_null(dpl_alloc_aligned(SIZE_MAX / 2 + 1, 2));
    assert_null(dpl_alloc_aligned(SIZE_MAX - 10, 1)); /* overflows only when rounded up */
    assert_null(dpl_calloc(SIZE_MAX / 2 + 1, 2));
    assert_int_equal(dpl_mul(SIZE_MAX / 2 + 1, 2, &product), -1);
    assert_int_equal(dpl_mul(SIZE_MAX, 1, &product), 0);
    assert_true(product == SIZE_MAX);
    assert_int_equal(dpl_mul(0, SIZE_MAX, &product), 0);
    assert_true(product == 0);
}

static void memory_is_zeroed_or_aligned(void **state)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 100000 };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *zeroed = dpl_calloc(sizes[i], 1), *aligned = dpl_alloc_aligned(sizes[i], 1);
        assert_non_null(zeroed);
        assert_non_null(aligned);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(zeroed[k], 0);
        assert_int_equal((uintptr_t)aligned % 64, 0);
        memset(aligned, 1, (sizes[i] + 63) / 64 * 64); /* ASan: rounded up to 64 */
        free(zeroed);
        free(aligned);
    }
}

static void growing_keeps_contents(void **state)
{
    int *p = NULL;
    size_t cap = 0;

    (void)state;
    for (size_t n = 1; n <= 1000; n++) {
        void *q = p;
        assert_int_equal(dpl_grow(&q, &cap, n, sizeof *p), DPL_OK);
        p = q;
        assert_true(cap >= n);
        p[n - 1] = (int)n;
    }
    assert_true(cap < 2000);
    for (int n = 1; n <= 1000; n++) assert_int_equal(p[n - 1], n);
    free(p);
}

static void failed_growth_leaves_all_as_it_was(void **state)
{
    void *p = NULL;
    size_t cap = 0, old;

    (void)state;
    assert_int_equal(dpl_grow(&p, &cap, 10, 1), DPL_OK);
    memset(p, 7, 10);
    old = cap;
    assert_int_equal(dpl_grow(&p, &cap, SIZE_MAX / 4, 8), DPL_ENOMEM);
    assert_int_equal(dpl_grow(&p, &cap, SIZE_MAX, 1), DPL_ENOMEM);
    assert_int_equal(cap, old);
    assert_int_equal(((char *)p)[9], 7);
    free(p);
    p = NULL;
    cap = 0;
    assert_int_equal(dpl_reserve(&p, &cap, 100), DPL_OK);
    assert_int_equal((uintptr_t)p % 64, 0);
    memset(p, 7, 100);
    assert_int_equal(dpl_reserve(&p, &cap, SIZE_MAX - 1), DPL_ENOMEM);
    assert_int_equal(cap, 100);
    assert_int_equal(((char *)p)[99], 7);
    free(p);
}

static void copies_of_strings(void **state)
{
    char *s = dpl_strdup("abc");

    (void)state;
    assert_string_equal(s, "abc");
    free(s);
    assert_null(dpl_strdup(NULL));
}

static void failing_sets_the_text(void **state)
{
    dpl_text t;

    (void)state;
    assert_int_equal(dpl_fail(&t, DPL_EIO, "%s: %d", "file", 3), DPL_EIO);
    assert_string_equal(t.s, "file: 3");
    dpl_text_prefix(&t, "line %d", 7);
    assert_string_equal(t.s, "line 7: file: 3");
    assert_int_equal(dpl_fail(NULL, DPL_EDATA, "x"), DPL_EDATA);
    dpl_text_prefix(NULL, "x");
}

/* t is a head of b's, dots, and this end. */
static void cut_before(const dpl_text *t, const char *end)
{
    const char *dots = strstr(t->s, "b...b");

    assert_int_equal(strlen(t->s), DPL_TEXT_MAX - 1);
    assert_non_null(dots);
    assert_true(dots - t->s > DPL_TEXT_MAX / 2);
    assert_string_equal(t->s + DPL_TEXT_MAX - 1 - strlen(end), end);
}

/* A path of thousands of bytes must not push out what is wrong with it. */
static void long_texts_are_cut_visibly_and_keep_their_end(void **state)
{
    char big[2 * DPL_TEXT_MAX], huge[20 * DPL_TEXT_MAX];
    dpl_text t;

    (void)state;
    memset(big, 'b', sizeof big - 1);
    big[sizeof big - 1] = 0;
    memset(huge, 'b', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    dpl_fail(&t, DPL_EIO, "%s: File name too long", big);
    cut_before(&t, "bbb: File name too long");
    big[DPL_TEXT_MAX] = 0; /* one byte too many */
    dpl_fail(&t, DPL_EIO, "%s", big);
    cut_before(&t, "bbb");
    big[DPL_TEXT_MAX - 1] = 0; /* fits exactly */
    dpl_fail(&t, DPL_EIO, "%s", big);
    assert_string_equal(t.s, big);
    dpl_text_prefix(&t, "pre");
    assert_memory_equal(t.s, "pre: bbb", 8);
    cut_before(&t, "bbb");
    dpl_fail(&t, DPL_EIO, "short");
    dpl_text_prefix(&t, "%s", big);
    cut_before(&t, "bbb: short");
    dpl_fail(&t, DPL_EIO, "%s", huge); /* more than is ever formatted */
    cut_before(&t, "bbb");
    dpl_fail(&t, DPL_EIO, "short");
    dpl_text_prefix(&t, "%s", huge);
    cut_before(&t, "bbb: short");
}

static void every_status_has_a_text_and_a_place(void **state)
{
    int want = 0;

    (void)state;
#define CHECK(name, value, text)                                                                   \
    assert_int_equal(name, want--);                                                                \
    assert_string_equal(dpl_status_text(name), text);
    DPL_STATUS_LIST(CHECK)
#undef CHECK
    assert_string_equal(dpl_status_text(want), "unknown status");
    assert_string_equal(dpl_status_text(1), "unknown status");
    assert_string_equal(dpl_version(), DPL_VERSION);
}

static void clock_does_not_go_back(void **state)
{
    int64_t last = dpl_now_ns();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        const int64_t now = dpl_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

/* What the kernel prints about this processor. */
static int cpuinfo_has(const char *flag)
{
    char *line = NULL;
    size_t cap = 0;
    int found = 0;
    FILE *f = fopen("/proc/cpuinfo", "r");

    if (!f) skip();
    while (!found && getline(&line, &cap, f) > 0) {
        if (strncmp(line, "flags", 5) && strncmp(line, "Features", 8)) continue;
        line[strcspn(line, "\n")] = ' ';
        found = strstr(line, test_format(" %s ", flag)) != NULL;
    }
    free(line);
    fclose(f);
    return found;
}

static void flags_are_what_the_kernel_says(void **state)
{
    char *old = getenv("DPL_CPU") ? strdup(getenv("DPL_CPU")) : NULL;
    unsigned flags;

    (void)state;
    unsetenv("DPL_CPU");
    flags = dpl_cpu_flags();
    assert_int_equal(!!(flags & DPL_CPU_AVX2), cpuinfo_has("avx2") && cpuinfo_has("fma") &&
                                                   cpuinfo_has("bmi2") && cpuinfo_has("f16c"));
    assert_int_equal(!!(flags & DPL_CPU_AVX512),
                     cpuinfo_has("avx512f") && cpuinfo_has("avx512bw") && cpuinfo_has("avx512dq") &&
                         cpuinfo_has("avx512vl"));
    assert_int_equal(!!(flags & DPL_CPU_VBMI), (flags & DPL_CPU_AVX512) &&
                                                   cpuinfo_has("avx512vbmi") &&
                                                   cpuinfo_has("avx512_vnni"));
    assert_int_equal(!!(flags & DPL_CPU_NEON), cpuinfo_has("asimd"));
    if (old) setenv("DPL_CPU", old, 1);
    free(old);
}

static void environment_masks_levels(void **state)
{
    char *old = getenv("DPL_CPU") ? strdup(getenv("DPL_CPU")) : NULL;
    unsigned all;

    (void)state;
    unsetenv("DPL_CPU");
    all = dpl_cpu_flags();
    setenv("DPL_CPU", "c", 1);
    assert_int_equal(dpl_cpu_flags(), DPL_CPU_C);
    setenv("DPL_CPU", "avx2", 1);
    assert_int_equal(dpl_cpu_flags(), all & ~(unsigned)(DPL_CPU_AVX512 | DPL_CPU_VBMI));
    setenv("DPL_CPU", "avx512", 1);
    assert_int_equal(dpl_cpu_flags(), all & ~(unsigned)DPL_CPU_VBMI);
    setenv("DPL_CPU", "avx512vbmi", 1);
    assert_int_equal(dpl_cpu_flags(), all);
    if (old)
        setenv("DPL_CPU", old, 1);
    else
        unsetenv("DPL_CPU");
    free(old);
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_string_equal(dpl_cpu_name(DPL_CPU_C), "c");
    assert_string_equal(dpl_cpu_name(DPL_CPU_AVX2), "avx2");
    assert_string_equal(dpl_cpu_name(DPL_CPU_AVX2 | DPL_CPU_AVX512), "avx512");
    assert_string_equal(dpl_cpu_name(DPL_CPU_NEON), "neon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflowing_sizes_give_null),
        cmocka_unit_test(memory_is_zeroed_or_aligned),
        cmocka_unit_test(growing_keeps_contents),
        cmocka_unit_test(failed_growth_leaves_all_as_it_was),
        cmocka_unit_test(copies_of_strings),
        cmocka_unit_test(failing_sets_the_text),
        cmocka_unit_test(long_texts_are_cut_visibly_and_keep_their_end),
        cmocka_unit_test(every_status_has_a_text_and_a_place),
        cmocka_unit_test(clock_does_not_go_back),
        cmocka_unit_test(flags_are_what_the_kernel_says),
        cmocka_unit_test(environment_masks_levels),
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
