/* SPDX-License-Identifier: Apache-2.0 */
/* Processor quotas of containers, from made /proc and /sys folders. */
#include "base/cgroup.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <string.h>

static void put(const char *root, const char *path, const char *text)
{
    const char *full = test_format("%s/%s", root, path);
    char folder[4096];

    snprintf(folder, sizeof folder, "%s", full);
    *strrchr(folder, '/') = 0;
    test_make_folder(folder);
    test_write_file(full, text, strlen(text));
}

static void no_files_means_no_quota(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    assert_int_equal(dpl_cgroup_cpus(root), 0);
    put(root, "proc/self/cgroup", "0::/\n");
    assert_int_equal(dpl_cgroup_cpus(root), 0);
    put(root, "proc/self/cgroup", "");
    assert_int_equal(dpl_cgroup_cpus(root), 0);
    assert_true(dpl_cgroup_cpus("") >= 0); /* the real one */
}

static void v2_container_sees_its_own_root(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "0::/\n");
    put(root, "sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 2);
    put(root, "sys/fs/cgroup/cpu.max", "250000 100000\n"); /* a part of one is one */
    assert_int_equal(dpl_cgroup_cpus(root), 3);
    put(root, "sys/fs/cgroup/cpu.max", "5000 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 1);
    put(root, "sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 0);
}

static void v2_smallest_quota_up_the_tree_holds(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "0::/user.slice/job 7/step\n");
    put(root, "sys/fs/cgroup/user.slice/job 7/step/cpu.max", "max 100000\n");
    put(root, "sys/fs/cgroup/user.slice/job 7/cpu.max", "300000 100000\n");
    put(root, "sys/fs/cgroup/user.slice/cpu.max", "400000 50000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 3);
    put(root, "sys/fs/cgroup/user.slice/cpu.max", "100000 50000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 2);
    put(root, "sys/fs/cgroup/user.slice/job 7/step/cpu.max", "100000 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 1);
}

static void v1_quota_and_period_are_read(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/docker/abc\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "50000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 3);
    put(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(dpl_cgroup_cpus(root), 0);
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 4);
}

/* /proc names the host's group, which the container's mount does not show. */
static void v1_group_of_the_host_falls_back_to_the_mount(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "4:cpu:/kubepods/pod1/c1\n");
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 2);
}

static void hybrid_takes_the_smaller(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "1:cpuacct,cpu:/a\n0::/b\n");
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "500000\n");
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/unified/b/cpu.max", "300000 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 3);
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 1);
}

static void group_above_the_mount_does_not_leave_it(void **state)
{
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "0::/../../other\n");
    put(root, "sys/other/cpu.max", "100000 100000\n");
    put(root, "sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(dpl_cgroup_cpus(root), 2);
}

static void nonsense_is_no_quota(void **state)
{
    static const char *const texts[] = { "",
                                         "\n",
                                         "0 0\n",
                                         "100000 0\n",
                                         "-1 100000\n",
                                         "x y\n",
                                         "100000\n",
                                         "99999999999999999999999 100000\n" };
    static const char *const groups[] = { "::::\n", "0::\n", ":\n", "0\n", "a:cpu\n", "0::/" };
    const char *root = test_tempdir();

    (void)state;
    put(root, "proc/self/cgroup", "0::/\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put(root, "sys/fs/cgroup/cpu.max", texts[i]);
        assert_int_equal(dpl_cgroup_cpus(root), 0);
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put(root, "proc/self/cgroup", groups[i]);
        assert_int_equal(dpl_cgroup_cpus(root), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_files_means_no_quota),
        cmocka_unit_test(v2_container_sees_its_own_root),
        cmocka_unit_test(v2_smallest_quota_up_the_tree_holds),
        cmocka_unit_test(v1_quota_and_period_are_read),
        cmocka_unit_test(v1_group_of_the_host_falls_back_to_the_mount),
        cmocka_unit_test(hybrid_takes_the_smaller),
        cmocka_unit_test(group_above_the_mount_does_not_leave_it),
        cmocka_unit_test(nonsense_is_no_quota),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
