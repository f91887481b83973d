/* SPDX-License-Identifier: Apache-2.0 */
/* Writes safetensors files byte for byte as the reference writer does; see safetensors.h. */
#include "base/alloc.h"
#include "base/files.h"
#include "base/json_out.h"
#include "dpload.h"
#include "trainer/safetensors_format.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static int compare_tensors(const void *a, const void *b, void *tensors)
{
    const dpt_st_tensor *t = tensors, *x = &t[*(const size_t *)a], *y = &t[*(const size_t *)b];
    const int by_rank = dpt_st_dtypes[y->dtype].rank - dpt_st_dtypes[x->dtype].rank;

    return by_rank ? by_rank : strcmp(x->name, y->name);
}

static int size_fits(const dpt_st_tensor *t)
{
    size_t bytes = dpt_st_dtypes[t->dtype].size;

    for (int d = 0; d < t->dims; d++) {
        if (dpl_mul(bytes, (size_t)t->shape[d], &bytes)) return 0;
    }
    return bytes == t->bytes;
}

static void put_tensor(dpl_json *j, const dpt_st_tensor *t, uint64_t begin)
{
    dpl_json_object(j, t->name);
    dpl_json_string(j, "dtype", dpt_st_dtypes[t->dtype].name);
    dpl_json_array(j, "shape");
    for (int d = 0; d < t->dims; d++) dpl_json_int(j, NULL, t->shape[d]);
    dpl_json_end(j);
    dpl_json_array(j, "data_offsets");
    dpl_json_uint(j, NULL, begin);
    dpl_json_uint(j, NULL, begin + t->bytes);
    dpl_json_end(j);
    dpl_json_end(j);
}

/* *data_len: bytes of all tensors. The header comes padded with spaces to a multiple of 8. */
static int make_header(char **out, size_t *len, uint64_t *data_len, const dpt_st_tensor *t,
                       const size_t *order, size_t n, const dpt_st_meta *meta, size_t n_meta)
{
    FILE *f = open_memstream(out, len);
    dpl_json j;
    int failed;

    *data_len = 0;
    if (!f) return DPL_ENOMEM;
    dpl_json_begin(&j, f);
    dpl_json_object(&j, NULL);
    dpl_json_object(&j, "__metadata__");
    dpl_json_string(&j, "crc32", "00000000");
    dpl_json_string(&j, "format", "pt");
    dpl_json_string(&j, "written_by", "dptrain " DPL_VERSION);
    for (size_t i = 0; i < n_meta; i++) dpl_json_string(&j, meta[i].key, meta[i].value);
    dpl_json_end(&j);
    for (size_t i = 0; i < n; i++) {
        assert(size_fits(&t[order[i]]));
        put_tensor(&j, &t[order[i]], *data_len);
        *data_len += t[order[i]].bytes;
    }
    dpl_json_end(&j);
    fflush(f);
    fprintf(f, "%*s", (int)((8 - *len % 8) % 8), "");
    failed = ferror(f);
    return fclose(f) || failed ? DPL_ENOMEM : DPL_OK;
}

/* The checksum of everything, put in its place in the header. */
static uint32_t seal(char *header, size_t header_len, const dpt_st_tensor *t, const size_t *order,
                     size_t n)
{
    char *digits = dpt_st_crc_digits(header, header_len), text[DPT_ST_CRC_DIGITS + 1];
    uint32_t crc;

    assert(digits);
    crc = dpt_st_crc(header, header_len, digits);
    for (size_t i = 0; i < n; i++) {
        crc = dpt_st_crc_more(crc, t[order[i]].data, t[order[i]].bytes);
    }
    snprintf(text, sizeof text, "%08" PRIx32, crc);
    memcpy(digits, text, DPT_ST_CRC_DIGITS);
    return crc;
}

/* A full disk is the usual reason why a checkpoint is not written, and not every file system says so
 * in the error. */
static int say_space(const char *path, uint64_t needed, dpl_text *why)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    struct statvfs st;

    if (why && folder && !statvfs(folder, &st)) {
        const dpl_text cause = *why;
        dpl_fail(why, DPL_EIO, "%s (%" PRIu64 " bytes are needed, %" PRIu64 " are free in %s)",
                 cause.s, needed, (uint64_t)st.f_bavail * st.f_frsize, folder);
    }
    free(folder);
    return DPL_EIO;
}

static int write_parts(FILE *f, const char *header, size_t header_len, const dpt_st_tensor *t,
                       const size_t *order, size_t n)
{
    const uint64_t prefix = header_len;

    if (fwrite(&prefix, 1, sizeof prefix, f) < sizeof prefix ||
        fwrite(header, 1, header_len, f) < header_len) {
        return DPL_EIO;
    }
    for (size_t i = 0; i < n; i++) {
        if (fwrite(t[order[i]].data, 1, t[order[i]].bytes, f) < t[order[i]].bytes) return DPL_EIO;
    }
    return DPL_OK;
}

int dpt_st_write(const char *path, const dpt_st_tensor *t, size_t n, const dpt_st_meta *meta,
                 size_t n_meta, uint32_t *crc, dpl_text *why)
{
    dpl_replace out = { 0 };
    size_t *order = dpl_calloc(n, sizeof *order), header_len = 0;
    char *header = NULL;
    uint64_t data_len = 0;
    uint32_t sum;
    int err = DPL_ENOMEM;

    if (crc) *crc = 0;
    if (!order) goto done;
    for (size_t i = 0; i < n; i++) order[i] = i;
    qsort_r(order, n, sizeof *order, compare_tensors, (void *)t);
    if ((err = make_header(&header, &header_len, &data_len, t, order, n, meta, n_meta))) goto done;
    sum = seal(header, header_len, t, order, n);

    if ((err = dpl_replace_open(&out, path, why))) goto done;
    if ((err = write_parts(out.f, header, header_len, t, order, n))) {
        dpl_fail(why, err, "%s: %s", path, strerror(errno));
        dpl_replace_abort(&out); /* first: its bytes count as free again */
    } else {
        err = dpl_replace_commit(&out, why);
    }
    if (err == DPL_EIO) say_space(path, DPT_ST_PREFIX + header_len + data_len, why);
    if (!err && crc) *crc = sum;
done:
    if (err == DPL_ENOMEM) dpl_fail(why, err, "%s: out of memory while saving", path);
    free(order);
    free(header);
    return err;
}
