/* SPDX-License-Identifier: Apache-2.0 */
/* The system's own NCCL, as far as it goes without a GPU: it is found and asked for an id, and
 * joining says what is wrong instead of hanging. The same program in a folder without the fake NCCL
 * is the one that finds it. */
#include "dpload.h"
#include "tests/fake/fake_cuda.h"
#include "tests/testutil.h"
#include "trainer/cuda/comm.h"
#include "trainer/trainer_plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the child --- */

static int say(const char *what, int err, const dpl_text *why)
{
    printf("%s: %d %s\n", what, err, err ? why->s : "");
    fflush(stdout);
    return err;
}

static int run_alone(const char *address)
{
    const dpt_comm_options opt = { .ranks = 1, .timeout_ms = 30000 };
    const dpt_trainer_plugin *plugin;
    dpt_comm *c = NULL;
    dpt_comm_id id;
    dpl_text why = { "" };

    if (say("plugin", dpt_plugin_cuda(&plugin, &why), &why)) return 0;
    if (say("id", plugin->comm->id_get(&id, *address ? address : NULL, &why), &why)) return 0;
    say("create", plugin->comm->create(&c, &id, &opt, &why), &why);
    plugin->comm->destroy(&c);
    return 0;
}

/* --- the tests --- */

/* What the program says in a folder of its own, with the plug-ins and the fake runtime, and this as
 * NCCL or none (NULL). */
static char *run_elsewhere(const char *nccl, const char *address)
{
    static const char *const files[] = { "libdptrain_cuda.so", "libdpload_cuda.so",
                                         "libfakecudart.so" };
    const char *folder = test_tempdir();
    char here[PATH_MAX], *text;
    size_t len;

    assert_non_null(realpath("/proc/self/exe", here));
    assert_int_equal(system(test_format("cp '%s' %s/alone", here, folder)), 0);
    *strrchr(here, '/') = '\0';
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(system(test_format("cp '%s/%s' %s/", here, files[i], folder)), 0);
    if (nccl) test_write_file(test_format("%s/libnccl.so.2", folder), nccl, strlen(nccl));
    assert_int_equal(
        system(test_format("timeout 120 %s/alone alone '%s' >%s/out", folder, address, folder)), 0);
    text = (char *)test_read_file(test_format("%s/out", folder), &len);
    assert_true(len > 0);
    text[len - 1] = '\0';
    return text;
}

static int system_has_nccl(void)
{
    void *handle = dlopen("libnccl.so.2", RTLD_LAZY);

    if (handle) dlclose(handle);
    return handle != NULL;
}

static void expect(char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no \"%s\" in: %s", part, text);
}

static void the_systems_nccl_says_what_it_lacks(void **state)
{
    static const char *const addresses[] = { "", "127.0.0.1:29999" };
    (void)state;

    if (!test_fake_nccl() || !system_has_nccl()) skip();
    for (int i = 0; i < 2; i++) {
        char *text = run_elsewhere(NULL, addresses[i]);

        expect(text, "plugin: 0");
        expect(text, "id: 0");
        expect(text, "create: -8 rank 0 of 1 (GPU 0): joining: unhandled cuda error");
        free(text);
    }
}

static void without_nccl_it_says_where_it_looked(void **state)
{
    char *text;
    (void)state;

    if (!test_fake_nccl() || system_has_nccl()) skip();
    text = run_elsewhere(NULL, "");
    expect(text, "id: -9 several GPUs need NCCL: libnccl.so.2 is not in /");
    expect(text, "install it, or use one GPU");
    free(text);
}

static void a_broken_nccl_is_told(void **state)
{
    char *text;
    (void)state;

    if (!test_fake_nccl()) skip();
    text = run_elsewhere("no library", "");
    expect(text, "id: -9 NCCL does not load: /");
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_systems_nccl_says_what_it_lacks),
        cmocka_unit_test(without_nccl_it_says_where_it_looked),
        cmocka_unit_test(a_broken_nccl_is_told),
    };

    if (argc == 3 && !strcmp(argv[1], "alone")) return run_alone(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
