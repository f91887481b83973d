/* SPDX-License-Identifier: Apache-2.0 */
/* The run folder: chosen, created and tried out before the first step, so that hours of training
 * don't end in a folder that cannot be written. */
#include "base/alloc.h"
#include "base/files.h"
#include "trainer/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* runs/ARCH-DATE-N with the first N that is free; mkdir decides, so two runs never share one. */
static int make_default(dpt_run *r, dpl_text *why)
{
    char date[16];
    const time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(date, sizeof date, "%Y%m%d", &tm);
    if (dpl_make_folder("runs", why)) return DPT_EXIT_FAILED;
    for (int n = 1; n < 100000; n++) {
        char *path;

        if (asprintf(&path, "runs/%s-%s-%d", r->opt->arch, date, n) < 0)
            return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
        if (mkdir(path, 0777) == 0) {
            r->folder = path;
            return DPT_EXIT_DONE;
        }
        if (errno != EEXIST) {
            dpl_fail(why, 0, "%s: %s; choose a run folder with --output", path, strerror(errno));
            free(path);
            return DPT_EXIT_FAILED;
        }
        free(path);
    }
    return dpl_fail(why, DPT_EXIT_FAILED, "runs/: no free name; choose one with --output");
}

static int is_empty(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    if (!d) return 1; /* not there, or the probe will say why */
    for (struct dirent *e; !n && (e = readdir(d));)
        n = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return !n;
}

static int same_folder(const char *a, const char *b)
{
    struct stat x, y;

    return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int dpt_run_folder_check(const dpt_run *r, dpl_text *why)
{
    const char *name = r->opt->output ? r->opt->output : r->resume_folder;

    if (r->rank || !name || r->opt->force || r->opt->evaluate ||
        same_folder(name, r->resume_folder) || is_empty(name))
        return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_USAGE,
                    "--output %s: the folder is not empty; choose another, go on with its run by "
                    "--resume %s, or overwrite it with --force",
                    name, name);
}

static int make_named(dpt_run *r, dpl_text *why)
{
    const char *name = r->opt->output ? r->opt->output : r->resume_folder;

    if (!(r->folder = dpl_strdup(name))) return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    if (!dpl_make_folder(name, why)) return DPT_EXIT_DONE;
    dpl_text_prefix(why, "--output %s: cannot create the run folder", name);
    return DPT_EXIT_FAILED;
}

/* Two runs that save to one folder take each other's checkpoints away, as when one is resumed that
 * has not ended yet. The lock ends with the process; a file system without locks goes unguarded. */
static int lock(dpt_run *r, dpl_text *why)
{
    r->folder_locked = opendir(r->folder);
    if (!r->folder_locked || !flock(dirfd(r->folder_locked), LOCK_EX | LOCK_NB) ||
        errno != EWOULDBLOCK)
        return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_FAILED,
                    "%s: another run writes to this folder; wait for its end, stop it, or choose "
                    "another with --output",
                    r->folder);
}

static int probe(const dpt_run *r, dpl_text *why)
{
    char *path = dpl_path_join(r->folder, ".probe");
    int fd, rc = DPT_EXIT_DONE;

    if (!path) return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, "x", 1) != 1)
        rc = dpl_fail(why, DPT_EXIT_FAILED,
                      "%s: cannot write to the run folder: %s; choose another with --output",
                      r->folder, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    return rc;
}

/* A new checkpoint is written beside the old one, and the best weights are kept apart. */
static int check_space(const dpt_run *r, dpl_text *why)
{
    const double p = (double)r->graph->param_floats, b = (double)r->graph->buffer_floats;
    const double need =
        sizeof(float) * (2 * p + b) * (r->resumed ? 1 : 2) + sizeof(float) * (p + b) + (1 << 20);
    struct statvfs fs;
    char a[32], c[32];
    double available;

    if (statvfs(r->folder, &fs)) return DPT_EXIT_DONE; /* unknown: the save itself will tell */
    available = (double)fs.f_bavail * (double)fs.f_frsize;
    if (available >= need) return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_FAILED,
                    "%s: %s free, the checkpoints of %s take up to %s; free some space or choose "
                    "another --output",
                    r->folder, dpt_format_bytes(a, available), r->graph->arch,
                    dpt_format_bytes(c, need));
}

int dpt_run_folder(dpt_run *r, dpl_text *why)
{
    const dpt_runlog_data data = {
        r->train_path,           r->val_path, &r->train_info, &r->val_info,
        dpt_run_backend_name(r), r->argc,     r->argv
    };
    const dpt_progress *at;
    int rc;

    if (r->rank) return DPT_EXIT_DONE; /* process 0 does all of it */
    rc = r->opt->output || r->resume_folder ? make_named(r, why) : make_default(r, why);
    if (rc || (rc = lock(r, why)) || (rc = probe(r, why)) || (rc = check_space(r, why))) return rc;
    at = r->resumed ? &r->progress : NULL;
    if (dpt_runlog_open(&r->log, r->folder, at, why)) return DPT_EXIT_FAILED;
    if (dpt_runlog_args(r->folder, r->cli, &data, why)) return DPT_EXIT_FAILED;
    return DPT_EXIT_DONE;
}
