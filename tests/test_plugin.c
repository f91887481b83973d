/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the CUDA parts: what is said when one is missing, of another build, or lacks a library. The
 * plug-ins are looked for beside the program, so a copy of this one runs in a folder of its own, with
 * changed copies of the plug-in that stands beside the tests. */
#include "device/device_plugin.h"
#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/trainer_plugin.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char work[4096], plugin[8192]; /* folder of the copy; the plug-in beside this program */
static const char fake[] = "libfakecudart.so"; /* what a plug-in over the fake runtime needs */

static int set_up(void **state)
{
    char self[4096], folder[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(work, sizeof work, "%s", test_tempdir());
    dirname(strcpy(folder, self));
    snprintf(work, sizeof work, "%s", test_tempdir());
    snprintf(plugin, sizeof plugin, "%s/" DPL_CUDA_PLUGIN, folder);
    /* a copy finds there what it needs, and no plug-in */
    assert_int_equal(system(test_format("cp '%s' %s/probe && mkdir %s/needs && ln -s '%s/%s' "
                                        "%s/needs/",
                                        self, work, work, folder, fake, work)),
                     0);
    setenv("LD_LIBRARY_PATH", test_format("%s/needs", work), 1);
    return 0;
}

/* Put a copy of the plug-in beside the probe, with every `from` in it made `to`, which is not longer. */
static void plant(const char *name, const char *from, const char *to)
{
    size_t len, room = strlen(from), found = 0;
    uint8_t *data;

    if (access(plugin, R_OK)) skip(); /* a build without CUDA */
    data = test_read_file(plugin, &len);
    assert_true(strlen(to) <= room);
    for (size_t i = 0; i + room + 1 <= len; i++) {
        if (memcmp(data + i, from, room + 1) != 0) continue;
        memset(data + i, 0, room);
        memcpy(data + i, to, strlen(to));
        found++;
    }
    if (!found && from == fake) skip(); /* one for real GPUs stands there */
    assert_true(found > 0);
    test_write_file(test_format("%s/%s", work, name), (const char *)data, len);
    free(data);
}

/* What the copy of this program says when it opens the plug-in of the loader or of the trainer. */
static void expect(const char *which, const char *const *parts)
{
    char out[5000], *text;
    size_t len;

    snprintf(out, sizeof out, "%s/out", work);
    assert_int_equal(system(test_format("%s/probe %s >%s", work, which, out)), 0);
    text = (char *)test_read_file(out, &len);
    assert_true(len > 0);
    text[len - 1] = '\0';
    for (; *parts; parts++)
        if (!strstr(text, *parts)) fail_msg("not \"%s\" in: %s", *parts, text);
    free(text);
    unlink(test_format("%s/" DPL_CUDA_PLUGIN, work));
    unlink(test_format("%s/" DPT_CUDA_PLUGIN, work));
}

#define SAYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void a_missing_one_says_where_it_was_looked_for(void **state)
{
    (void)state;
    expect("trainer", SAYS("-9 no CUDA support here: libdptrain_cuda.so is not in ", work,
                           "/../lib or the system's folders", "make CUDA=1"));
    expect("loader", SAYS("-9 no CUDA support here: libdpload_cuda.so is not in ", work));
}

static void one_of_another_version_is_refused(void **state)
{
    (void)state;
    plant(DPL_CUDA_PLUGIN, DPL_VERSION, "9.9.9");
    expect("loader", SAYS("-9 libdpload_cuda.so is of another version (9.9.9, expected " DPL_VERSION
                          "): install both from one build"));
}

static void one_without_the_entry_is_refused(void **state)
{
    (void)state;
    plant(DPT_CUDA_PLUGIN, DPL_VERSION, DPL_VERSION); /* the loader's under the trainer's name */
    expect("trainer", SAYS("-9 libdptrain_cuda.so is of another version (none, expected "));
}

static void a_library_that_it_lacks_is_named(void **state)
{
    (void)state;
    plant(DPT_CUDA_PLUGIN, fake, "libcudnn.so.99");
    expect("trainer", SAYS("-9 libdptrain_cuda.so needs libcudnn.so.99, which is not in the "
                           "system's folders: install cuDNN 9 (",
                           "LD_LIBRARY_PATH"));
    plant(DPT_CUDA_PLUGIN, fake, "libother.so.3");
    expect("trainer", SAYS("-9 libdptrain_cuda.so needs libother.so.3, ", ": install it, or "));
    plant(DPL_CUDA_PLUGIN, fake, "libcudnn.so.99");
    expect("loader", SAYS("-9 libdpload_cuda.so needs libcudnn.so.99, ", ": install it, or "));
}

static void one_that_is_damaged_is_refused(void **state)
{
    (void)state;
    test_write_file(test_format("%s/" DPT_CUDA_PLUGIN, work), "no library", 10);
    expect("trainer", SAYS("-9 libdptrain_cuda.so does not load: ", "file too short"));
}

static int probe(const char *which)
{
    const dpt_trainer_plugin *trainer;
    const dpl_device_ops *ops;
    dpl_text why = { "" };
    const int err =
        strcmp(which, "loader") ? dpt_plugin_cuda(&trainer, &why) : dpl_plugin_cuda(&ops, &why);

    printf("%d %s\n", err, why.s);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_one_says_where_it_was_looked_for),
        cmocka_unit_test(one_of_another_version_is_refused),
        cmocka_unit_test(one_without_the_entry_is_refused),
        cmocka_unit_test(a_library_that_it_lacks_is_named),
        cmocka_unit_test(one_that_is_damaged_is_refused),
    };

    if (argc == 2) return probe(argv[1]);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
