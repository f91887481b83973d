/* SPDX-License-Identifier: Apache-2.0 */
/* Kills while saving, full disks and damaged files: no checkpoint is lost, no damage is taken. */
#include "dpload.h"
#include "tests/checkpoint_net.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void truncated_files_are_refused(void **state)
{
    static const size_t percent[] = { 0, 1, 50, 99 };
    const char *folder = test_net_saved(3);
    const char *paths[] = { test_format("%s/model.safetensors", folder), test_net_state(folder) };
    test_net n;

    (void)state;
    test_net_init(&n);
    for (size_t p = 0; p < 2; p++) {
        size_t len;
        uint8_t *file = test_read_file(paths[p], &len);
        for (size_t i = 0; i < 4; i++) {
            test_write_file(paths[p], file, len * percent[i] / 100);
            test_net_refused(&n, folder, 1, DPL_EDATA, paths[p]);
        }
        test_write_file(paths[p], file, len);
        free(file);
    }
    assert_int_equal(dpt_checkpoint_load(&n.c, folder, 1, NULL), DPL_OK);
}

static void flipped_bytes_are_refused(void **state)
{
    const char *folder = test_net_saved(3);
    const char *paths[] = { test_format("%s/model.safetensors", folder), test_net_state(folder) };
    uint32_t x = 1;
    test_net n;

    (void)state;
    test_net_init(&n);
    for (int i = 0; i < 100; i++) {
        const char *path = paths[i % 2];
        size_t len, at;
        uint8_t *file = test_read_file(path, &len), old;

        x = x * 1664525 + 1013904223;
        at = (size_t)(x >> 8) % len;
        old = file[at];
        file[at] ^= (uint8_t)(1 + x % 255);
        test_write_file(path, file, len);
        test_net_refused(&n, folder, 1, DPL_EDATA, path);
        file[at] = old;
        test_write_file(path, file, len);
        free(file);
    }
    assert_int_equal(dpt_checkpoint_load(&n.c, folder, 1, NULL), DPL_OK);
}

static void save_until_killed(test_net *n, int k, const char *folder)
{
    for (;; k++) {
        test_net_fill(n, k);
        if (dpt_checkpoint_save(&n->c, folder, "model.safetensors", 1, NULL)) _exit(1);
    }
}

static void kills_while_saving_lose_nothing(void **state)
{
    const char *folder = test_net_saved(1);
    int last = 1, moved = 0;
    uint32_t x = (uint32_t)time(NULL);
    test_net n, got;

    (void)state;
    test_net_init(&n);
    for (int kill_no = 0; kill_no < 20; kill_no++) {
        const pid_t child = fork();
        struct timespec pause = { 0, 0 };
        dpl_text why = { "" };
        int status;

        assert_true(child >= 0);
        if (!child) save_until_killed(&n, last + 1, folder);
        x = x * 1664525 + 1013904223;
        pause.tv_nsec = 1000000 + (long)(x >> 8) % 30000000;
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it did not fail on its own */
        test_net_init(&got);
        if (dpt_checkpoint_load(&got.c, folder, 1, &why)) fail_msg("kill %d: %s", kill_no, why.s);
        assert_true(got.c.progress.step >= last);
        moved += got.c.progress.step > last;
        last = (int)got.c.progress.step;
        test_net_fill(&n, last);
        assert_true(test_net_same(&got, &n)); /* weights, state and position of one save */
    }
    assert_true(moved > 0);
    test_net_fill(&n, last + 1);
    test_net_save(&n, folder, "model.safetensors", 1);
    assert_int_equal(test_count_files(folder, "", NULL),
                     2); /* nothing is left of the killed ones */
}

/* A file that may not grow further fails as on a full disk, and so shows the same path. */
static void full_disk_keeps_the_old_checkpoint(void **state)
{
    const char *folder = test_net_saved(3);
    char recipe[40000];
    const rlim_t limits[] = { 4000, 20000 }; /* too small for the state; for the model only */
    struct rlimit old, less;
    test_net n, got;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    memset(recipe, 'r', sizeof recipe - 1);
    recipe[sizeof recipe - 1] = 0;
    test_net_init(&n);
    test_net_fill(&n, 4);
    n.c.recipe = recipe;
    for (size_t i = 0; i < 2; i++) {
        dpl_text why = { "" };
        int err;

        less = old;
        less.rlim_cur = limits[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        err = dpt_checkpoint_save(&n.c, folder, "model.safetensors", 1, &why);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(err, DPL_EIO);
        assert_non_null(strstr(why.s, i ? "model.safetensors: " : "optim-0-4.safetensors: "));
        assert_non_null(strstr(why.s, strerror(EFBIG)));
        assert_non_null(strstr(why.s, " bytes are needed, "));
        assert_int_equal(test_count_files(folder, "", NULL), 2);
        test_net_init(&got);
        assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
        assert_int_equal(got.c.progress.step, 3);
    }
    test_net_save(&n, folder, "model.safetensors", 1);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(test_net_same(&got, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(flipped_bytes_are_refused),
        cmocka_unit_test(kills_while_saving_lose_nothing),
        cmocka_unit_test(full_disk_keeps_the_old_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
