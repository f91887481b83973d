/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing a file so that a crash or a full disk at any moment leaves the old one or the new one:
 * temporary name, fsync, rename, fsync of the folder; see files.h. */
#include "base/files.h"

#include "base/alloc.h"
#include "dpload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NAMES = 1000 };

static void forget(dpl_replace *r)
{
    free(r->path);
    free(r->temp);
    memset(r, 0, sizeof *r);
}

/* The name to replace: behind symbolic links, so that the link itself stays. NULL: out of memory. */
static char *resolve(const char *path)
{
    struct stat st;
    char *real = NULL;

    if (!lstat(path, &st) && S_ISLNK(st.st_mode)) real = realpath(path, NULL);
    return real ? real : dpl_strdup(path);
}

/* A new file beside the target under a name that nobody else uses. @return its descriptor, or -1 */
static int open_temp(dpl_replace *r)
{
    const size_t len = strlen(r->path) + 40;

    if (!(r->temp = malloc(len))) {
        errno = ENOMEM;
        return -1;
    }
    for (int i = 0; i < NAMES; i++) {
        snprintf(r->temp, len, "%s.tmp-%ld-%d", r->path, (long)getpid(), i);
        const int fd = open(r->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

int dpl_replace_open(dpl_replace *r, const char *path, dpl_text *why)
{
    struct stat st;
    int fd = -1, error;

    memset(r, 0, sizeof *r);
    if (!(r->path = resolve(path))) return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    if (!stat(r->path, &st) && !S_ISREG(st.st_mode)) { /* never put a file in /dev/null's place */
        forget(r);
        return dpl_fail(why, DPL_EIO, "%s: cannot write: %s", path,
                        S_ISDIR(st.st_mode) ? "it is a folder" : "it is not a regular file");
    }
    if ((fd = open_temp(r)) >= 0 && (r->f = fdopen(fd, "w"))) return DPL_OK;
    error = errno;
    if (fd >= 0) {
        close(fd);
        unlink(r->temp);
    }
    forget(r);
    return dpl_fail(why, error == ENOMEM ? DPL_ENOMEM : DPL_EIO, "%s: cannot write: %s", path,
                    strerror(error));
}

/* File systems without fsync say so; there is nothing more to do on them. */
static int sync_fd(int fd)
{
    if (!fsync(fd) || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS) return 0;
    return errno;
}

static int sync_folder_of(const char *path)
{
    char *folder = dpl_strdup(path), *slash;
    int fd, error;

    if (!folder) return ENOMEM;
    slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return errno == EACCES ? 0 : errno; /* a folder may be writable but not readable */
    error = sync_fd(fd);
    close(fd);
    return error;
}

/* stdio keeps the flag of a failed write but not its cause; a full disk is the usual one. */
static int lost_cause(int fd)
{
    struct statvfs fs;

    return !fstatvfs(fd, &fs) && fs.f_bavail == 0 ? ENOSPC : EIO;
}

/* All bytes on the disk, file closed. @return 0 or an errno value */
static int finish(FILE *f)
{
    int error = 0;

    errno = 0;
    if (fflush(f)) error = errno ? errno : EIO;
    if (!error && ferror(f)) error = lost_cause(fileno(f));
    if (!error) error = sync_fd(fileno(f));
    errno = 0;
    if (fclose(f) && !error) error = errno ? errno : EIO;
    return error;
}

int dpl_replace_commit(dpl_replace *r, dpl_text *why)
{
    int error = finish(r->f), err = DPL_OK;

    r->f = NULL;
    if (!error && rename(r->temp, r->path)) error = errno;
    if (error) {
        unlink(r->temp);
        err = dpl_fail(why, DPL_EIO, "%s: cannot write: %s", r->path, strerror(error));
    } else if ((error = sync_folder_of(r->path))) {
        err = dpl_fail(why, DPL_EIO, "%s: written, but its folder cannot be synced: %s", r->path,
                       strerror(error));
    }
    forget(r);
    return err;
}

void dpl_replace_abort(dpl_replace *r)
{
    if (!r->f) return;
    fclose(r->f);
    unlink(r->temp);
    forget(r);
}
