/* SPDX-License-Identifier: Apache-2.0 */
/* Opens safetensors files that may be damaged or hostile: every length is compared with the size of
 * the file before it is used, and the checksum before the data is handed out. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/safetensors_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_at(int fd, void *buf, size_t len, uint64_t at, const char *path, dpl_text *why)
{
    uint8_t *p = buf;

    while (len > 0) {
        const ssize_t got = pread(fd, p, len, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
        if (got == 0) return dpl_fail(why, DPL_EDATA, "%s: became shorter while being read", path);
        p += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return DPL_OK;
}

/* first: the first bytes of the file. A '{' in place 8 decides for safetensors: a header length may
 * look like a pickle's first bytes. */
static int refuse_foreign(const uint8_t *first, size_t len, const char *path, dpl_text *why)
{
    const char *what = NULL;

    if (len > 8 && first[8] == '{') return DPL_OK;
    if (len >= 4 && !memcmp(first, "PK\3\4", 4)) what = "a PyTorch .pth or other zip file";
    if (len >= 2 && first[0] == 0x80 && first[1] >= 2 && first[1] <= 5) {
        what = "a pickle, such as an old PyTorch .pth";
    }
    if (!what) return DPL_OK;
    return dpl_fail(why, DPL_EDATA,
                    "%s: not a safetensors file (%s); convert it in Python: "
                    "safetensors.torch.save_file(torch.load(...), ...)",
                    path, what);
}

static int open_regular(int *fd, const char *path, uint64_t *len, dpl_text *why)
{
    struct stat st;

    /* non-blocking: a FIFO must be refused, not waited for */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &st) < 0) {
        return dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) return dpl_fail(why, DPL_EDATA, "%s: not a regular file", path);
    *len = (uint64_t)st.st_size;
    return DPL_OK;
}

static int read_header(int fd, char **out, size_t *out_len, uint64_t file_len, const char *path,
                       dpl_text *why)
{
    uint8_t first[9] = { 0 };
    const size_t have = file_len < sizeof first ? (size_t)file_len : sizeof first;
    uint64_t len;
    int err;

    if ((err = read_at(fd, first, have, 0, path, why))) return err;
    if ((err = refuse_foreign(first, have, path, why))) return err;
    memcpy(&len, first, sizeof len);
    if (file_len < sizeof first + 1) { /* "{}" is the shortest header */
        return dpl_fail(why, DPL_EDATA,
                        "%s: not a safetensors file, or cut short: %" PRIu64
                        " bytes found, at least 10 expected",
                        path, file_len);
    }
    if (first[8] != '{') {
        return dpl_fail(why, DPL_EDATA, "%s: not a safetensors file: no '{' at byte 8", path);
    }
    if (len > DPT_ST_HEADER_MAX) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: damaged: header of %" PRIu64 " bytes announced, at most %d allowed",
                        path, len, DPT_ST_HEADER_MAX);
    }
    if (len > file_len - DPT_ST_PREFIX) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: cut short: header of %" PRIu64 " bytes announced, but the file has "
                        "%" PRIu64,
                        path, len, file_len);
    }
    if (!(*out = malloc((size_t)len + 1)))
        return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    *out_len = (size_t)len;
    (*out)[len] = 0;
    return read_at(fd, *out, *out_len, DPT_ST_PREFIX, path, why);
}

static int check_crc(const dpt_st_file *f, char *header, size_t header_len, const char *path,
                     dpl_text *why)
{
    const char *stated = dpt_st_meta_get(f, "crc32");
    const char *digits = dpt_st_crc_digits(header, header_len);
    char found[DPT_ST_CRC_DIGITS + 1];
    uint32_t crc;

    if (!stated && !dpt_st_meta_get(f, "written_by")) return DPL_OK; /* not a file of ours */
    if (!stated || !digits || memcmp(stated, digits, DPT_ST_CRC_DIGITS)) {
        return dpl_fail(why, DPL_EDATA, "%s: damaged: it has no readable checksum", path);
    }
    crc = dpt_st_crc(header, header_len, digits);
    crc = dpt_st_crc_more(crc, f->data, f->data_len);
    snprintf(found, sizeof found, "%08" PRIx32, crc);
    if (!memcmp(stated, found, sizeof found)) return DPL_OK;
    return dpl_fail(why, DPL_EDATA,
                    "%s: damaged since it was written: checksum %s expected, %s found", path,
                    stated, found);
}

int dpt_st_open(dpt_st_file **out, const char *path, dpl_text *why)
{
    dpt_st_file *f = dpl_calloc(1, sizeof *f);
    char *header = NULL;
    size_t header_len = 0;
    uint64_t file_len = 0;
    int err, fd = -1;

    *out = NULL;
    if (!f) return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    if ((err = open_regular(&fd, path, &file_len, why))) goto done;
    if ((err = read_header(fd, &header, &header_len, file_len, path, why))) goto done;
    if ((err = dpt_st_parse(f, path, header, header_len, file_len, why))) goto done;
    if (!(f->data = dpl_alloc_aligned(f->data_len, 1))) {
        err = dpl_fail(why, DPL_ENOMEM, "%s: out of memory for %zu bytes", path, f->data_len);
        goto done;
    }
    err = read_at(fd, f->data, f->data_len, DPT_ST_PREFIX + (uint64_t)header_len, path, why);
    if (err || (err = check_crc(f, header, header_len, path, why))) goto done;
    for (size_t i = 0; i < f->n; i++) f->tensor[i].data = f->data + f->begin[i];
    *out = f;
    f = NULL; /* now the caller's */
done:
    if (fd >= 0) close(fd);
    free(header);
    dpt_st_close(&f);
    return err;
}

void dpt_st_close(dpt_st_file **f)
{
    if (!*f) return;
    dpt_st_parse_free(*f);
    free((*f)->data);
    free(*f);
    *f = NULL;
}

size_t dpt_st_count(const dpt_st_file *f)
{
    return f->n;
}

const dpt_st_tensor *dpt_st_at(const dpt_st_file *f, size_t i)
{
    return i < f->n ? &f->tensor[i] : NULL;
}

const dpt_st_tensor *dpt_st_find(const dpt_st_file *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++) {
        if (!strcmp(f->tensor[i].name, name)) return &f->tensor[i];
    }
    return NULL;
}
