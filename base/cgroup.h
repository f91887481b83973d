/* SPDX-License-Identifier: Apache-2.0 */
/* The processor quota that a container gives this process. */
#ifndef DPL_BASE_CGROUP_H
#define DPL_BASE_CGROUP_H

#ifdef __cplusplus
extern "C" {
#endif

/** Processors by cgroup quota (v1 cpu.cfs_quota_us, v2 cpu.max), rounded up: the smallest over the
 *  process's group and all groups above it. 0 = no quota.
 *  @param root  "" for the real system; tests pass a folder that has proc/ and sys/ below it */
int dpl_cgroup_cpus(const char *root);

#ifdef __cplusplus
}
#endif
#endif
