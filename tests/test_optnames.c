/* SPDX-License-Identifier: Apache-2.0 */
/* Names of fields in the library's messages become names of options, and nothing else does. */
#include "base/optnames.h"
#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/cli.h"

#include <stdio.h>
#include <string.h>

static void expect(int status, const char *from, const char *to)
{
    dpl_text t;

    snprintf(t.s, sizeof t.s, "%s", from);
    dpl_opt_name_fields(dpt_cli_spec()->opts, status, &t);
    assert_string_equal(t.s, to);
}

static void fields_become_options(void **state)
{
    (void)state;
    expect(DPL_EINVAL, "max_bad 2: expected 0..1", "--max-bad 2: expected 0..1");
    expect(DPL_EINVAL, "batch 0: expected 1..1048576", "--batch 0: expected 1..1048576");
    expect(DPL_EINVAL, "devices: \"x\": auto stands alone", "--devices: \"x\": auto stands alone");
    expect(DPL_EINVAL, "crop 2: expected 0..1", "--train-crop 2: expected 0..1");
    expect(DPL_EINVAL, "width 0: expected 1..8192", "--size 0: expected 1..8192");
    expect(DPL_EINVAL, "split[1] is 0: expected at least 1",
           "--split[1] is 0: expected at least 1");
    expect(DPL_EINVAL, "color_jitter (hue) 0.6: expected 0..0.5",
           "--color-jitter (hue) 0.6: expected 0..0.5");
    expect(DPL_ENOMEM, "workers 900: only 8 threads could be started",
           "--workers 900: only 8 threads could be started");
    expect(DPL_EDATA, "11 bad samples, the cap is 10 (max_bad 0.001 of 40 samples); the first: a",
           "11 bad samples, the cap is 10 (--max-bad 0.001 of 40 samples); the first: a");
    expect(DPL_EDATA, "3x4 pixels, the limit is 9 (max_pixels)",
           "3x4 pixels, the limit is 9 (--max-pixels)");
    expect(DPL_EDATA, "JPEG: the end marker is missing (strict)",
           "JPEG: the end marker is missing (--strict)");
    expect(DPL_ENOMEM, "use a smaller options.batch, options.width or options.prefetch",
           "use a smaller --batch, --size or --prefetch");
}

static void prose_and_files_stay(void **state)
{
    static const char *const texts[] = {
        "",
        "batch/c0: this class folder holds no pictures",
        "max_bad/c0/x.jpg: empty file",
        "a/max_bad: empty file",
        "list: No such file or directory",
        "x.jpg: not supported (strict) here",
        "no memory for a batch slot of 9 bytes",
        "a device failed in the work on batch 3: lost",
        "sample 4 gives another label each time",
        "no_such_field 3: expected 4",
        "n_classes 3: expected 0 without classes",
        "my_options.batch is not it",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect(DPL_EDATA, texts[i], texts[i]);
    expect(DPL_EINVAL, "batches 3: expected 4", "batches 3: expected 4");
}

/* A text that is as long as it may be stays ended. */
static void a_full_text_is_cut(void **state)
{
    dpl_text t;

    (void)state;
    memset(t.s, 'x', sizeof t.s);
    memcpy(t.s, "max_bad ", 8);
    t.s[sizeof t.s - 1] = 0;
    dpl_opt_name_fields(dpt_cli_spec()->opts, DPL_EINVAL, &t);
    assert_int_equal(strlen(t.s), sizeof t.s - 1);
    assert_memory_equal(t.s, "--max-bad xxx", 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_become_options),
        cmocka_unit_test(prose_and_files_stay),
        cmocka_unit_test(a_full_text_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
