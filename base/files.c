/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files, folders and paths; see files.h. */
#include "base/files.h"

#include "base/alloc.h"
#include "dpload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 3, ROUND = 65536 };

/* Worth another attempt: shared storage gives these for a moment. */
static int passes(int error)
{
    return error == EIO || error == ESTALE || error == EINTR;
}

static int fail_errno(dpl_text *why, int error)
{
    if (error == EMFILE || error == ENFILE) {
        return dpl_fail(why, DPL_EIO, "too many open files (ulimit -n raises the limit)");
    }
    return dpl_fail(why, DPL_EIO, "%s", strerror(error));
}

/* Size of the open file, or an error for what cannot be read as a picture. */
static int file_size(int fd, uint64_t limit, size_t *size, dpl_text *why)
{
    struct stat st;

    if (fstat(fd, &st)) return fail_errno(why, errno);
    if (S_ISDIR(st.st_mode)) return dpl_fail(why, DPL_EDATA, "not a regular file: a folder");
    if (!S_ISREG(st.st_mode)) return dpl_fail(why, DPL_EDATA, "not a regular file");
    if (st.st_size <= 0) return dpl_fail(why, DPL_EDATA, "empty file");
    if ((uint64_t)st.st_size > limit || (uint64_t)st.st_size >= SIZE_MAX - ROUND) {
        return dpl_fail(why, DPL_EDATA, "%" PRIu64 " bytes, more than the limit of %" PRIu64,
                        (uint64_t)st.st_size, limit);
    }
    *size = (size_t)st.st_size;
    return DPL_OK;
}

/* Fills buf as far as the file goes. @return 0 or an errno value */
static int read_up_to(int fd, unsigned char *buf, size_t want, size_t enough, size_t *got)
{
    for (*got = 0; *got < enough;) {
        const ssize_t n = read(fd, buf + *got, want - *got);
        if (n < 0) return errno;
        if (n == 0) break;
        *got += (size_t)n;
    }
    return 0;
}

/* One open, stat, read, close. *again: the cause may pass. One byte more than the size is asked for,
 * so that the read that brings all bytes also tells that there are no more. */
static int read_once(int dirfd, const char *path, void **buf, size_t *cap, size_t *len,
                     uint64_t limit, int *again, dpl_text *why)
{
    /* O_NONBLOCK: opening a FIFO without a writer must not wait for one. */
    const int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t size = 0, got = 0;
    int err, error;

    *again = 0;
    if (fd < 0) {
        *again = passes(errno);
        return fail_errno(why, errno);
    }
    if ((err = file_size(fd, limit, &size, why))) {
        *again = err == DPL_EIO;
        goto done;
    }
    if ((err = dpl_reserve(buf, cap, (size + ROUND) / ROUND * ROUND))) {
        dpl_fail(why, err, "out of memory for %zu bytes", size);
        goto done;
    }
    if ((error = read_up_to(fd, *buf, size + 1, size, &got))) {
        *again = passes(error);
        err = fail_errno(why, error);
        goto done;
    }
    if (got != size) {
        *again = 1;
        err = dpl_fail(why, DPL_EIO, "the file changes while it is read");
        goto done;
    }
    *len = size;
done:
    close(fd);
    return err;
}

int dpl_read_file(int dirfd, const char *path, void **buf, size_t *cap, size_t *len, uint64_t limit,
                  dpl_text *why)
{
    int err = DPL_EIO, again = 1;

    *len = 0;
    for (int i = 0; i < ATTEMPTS && again; i++) {
        err = read_once(dirfd, path, buf, cap, len, limit, &again, why);
    }
    return err;
}

static int make_one(const char *path, dpl_text *why)
{
    struct stat st;
    int error;

    if (!mkdir(path, 0777)) return DPL_OK;
    error = errno;
    if (!stat(path, &st)) { /* a folder that is there is fine, whatever mkdir says of it */
        if (S_ISDIR(st.st_mode)) return DPL_OK;
        error = ENOTDIR;
    }
    return dpl_fail(why, DPL_EIO, "%s: cannot create the folder: %s", path, strerror(error));
}

int dpl_make_folder(const char *path, dpl_text *why)
{
    char *copy = dpl_strdup(path);
    int err = DPL_OK;

    if (!copy) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    for (char *slash = copy + 1; *copy && !err && (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        err = make_one(copy, why);
        *slash = '/';
    }
    if (!err) err = make_one(copy, why);
    free(copy);
    return err;
}

char *dpl_path_join(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    const int slash = na && a[na - 1] != '/';
    char *path = malloc(na + nb + 2);

    if (!path) return NULL;
    memcpy(path, a, na);
    if (slash) path[na] = '/';
    memcpy(path + na + (size_t)slash, b, nb + 1);
    return path;
}

void dpl_keep_standard_files(void)
{
    int fd;

    do { /* the lowest free number is given first */
        fd = open("/dev/null", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}
