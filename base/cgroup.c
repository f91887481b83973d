/* SPDX-License-Identifier: Apache-2.0 */
/* Quota from /proc/self/cgroup and the files below /sys/fs/cgroup. Inside a container the path in
 * /proc may be the host's, which is not there; the mount's own root still holds the quota, so every
 * step from the full path up to the root is tried and what is absent is passed over. */
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The first line of a small file. @return 0, or -1 when there is none */
static int read_line(const char *path, char *buf, int len)
{
    FILE *f = fopen(path, "re");
    const int ok = f && fgets(buf, len, f);

    if (f) fclose(f);
    return ok ? 0 : -1;
}

static void take_smaller(int *cpus, int64_t quota, int64_t period)
{
    int64_t n;

    if (quota <= 0 || period <= 0) return; /* v1 writes -1 for none */
    n = quota / period + (quota % period > 0);
    if (n < INT_MAX && (!*cpus || n < *cpus)) *cpus = (int)n;
}

static void read_v2(const char *folder, int *cpus)
{
    char path[PATH_MAX], line[128];
    int64_t quota, period;

    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path) return;
    if (read_line(path, line, sizeof line)) return;
    if (sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) == 2) {
        take_smaller(cpus, quota, period); /* "max 100000" does not match */
    }
}

static void read_v1(const char *folder, int *cpus)
{
    static const char *const names[2] = { "cpu.cfs_quota_us", "cpu.cfs_period_us" };
    char path[PATH_MAX], line[128];
    int64_t v[2];

    for (int i = 0; i < 2; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path) return;
        if (read_line(path, line, sizeof line) || sscanf(line, "%" SCNd64, &v[i]) != 1) return;
    }
    take_smaller(cpus, v[0], v[1]);
}

/* From mount + group up to mount itself. */
static void walk_up(const char *root, const char *mount, const char *group,
                    void (*read)(const char *, int *), int *cpus)
{
    char path[PATH_MAX];
    size_t base;
    const int n = snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, mount);

    if (n < 0 || n >= (int)sizeof path) return;
    base = (size_t)n;
    if (!strstr(group, "..") && base + strlen(group) < sizeof path) {
        memcpy(path + base, group, strlen(group) + 1);
    }
    for (;;) {
        char *slash = strrchr(path + base, '/');
        if (slash && !slash[1]) { /* "/" or a trailing one */
            *slash = 0;
            continue;
        }
        read(path, cpus);
        if (!slash) return;
        *slash = 0;
    }
}

/* One line of /proc/self/cgroup: "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1). */
static void read_group(const char *root, char *line, int *cpus)
{
    char *controllers = strchr(line, ':'), *group, mount[256], *save = NULL;

    line[strcspn(line, "\n")] = 0;
    if (!controllers || !(group = strchr(++controllers, ':'))) return;
    *group++ = 0;
    if (!*controllers) {
        walk_up(root, "", group, read_v2, cpus);
        walk_up(root, "/unified", group, read_v2, cpus);
        return;
    }
    snprintf(mount, sizeof mount, "/%s", controllers);
    for (char *c = strtok_r(controllers, ",", &save); c; c = strtok_r(NULL, ",", &save)) {
        if (strcmp(c, "cpu")) continue;
        walk_up(root, mount, group, read_v1, cpus); /* cpu,cpuacct: where it is mounted */
        walk_up(root, "/cpu", group, read_v1, cpus);
    }
}

int dpl_cgroup_cpus(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    int cpus = 0;
    FILE *f;

    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return 0;
    if (!(f = fopen(path, "re"))) return 0;
    while (fgets(line, sizeof line, f)) read_group(root, line, &cpus);
    fclose(f);
    return cpus;
}
