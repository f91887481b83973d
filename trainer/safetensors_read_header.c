/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON header of a safetensors file, checked field by field. */
#include "base/alloc.h"
#include "dpload.h"
#include "trainer/safetensors_format.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char metadata_key[] = "__metadata__";

static int parse_dtype(const json_t *v, dpt_st_dtype *out)
{
    const char *s = json_string_value(v);

    for (int d = 0; s && d <= DPT_ST_BOOL; d++) {
        if (!strcmp(s, dpt_st_dtypes[d].name)) {
            *out = (dpt_st_dtype)d;
            return 0;
        }
    }
    return -1;
}

static int parse_size(const json_t *v, int64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0) return -1;
    *out = json_integer_value(v);
    return 0;
}

/* @return what is wrong, NULL = nothing */
static const char *parse_tensor(const json_t *v, dpt_st_tensor *t, size_t *begin)
{
    const json_t *shape = json_object_get(v, "shape"), *at = json_object_get(v, "data_offsets");
    int64_t from, to;

    if (!json_is_object(v) || json_object_size(v) != 3 || !shape || !at) {
        return "must have dtype, shape and data_offsets";
    }
    if (parse_dtype(json_object_get(v, "dtype"), &t->dtype)) return "has an unknown dtype";
    if (!json_is_array(shape) || json_array_size(shape) > sizeof t->shape / sizeof *t->shape) {
        return "has a shape of more than 8 dimensions, or none";
    }
    t->dims = (int)json_array_size(shape);
    t->bytes = dpt_st_dtypes[t->dtype].size;
    for (int d = 0; d < t->dims; d++) {
        if (parse_size(json_array_get(shape, (size_t)d), &t->shape[d])) {
            return "has a size that is not a whole number of at least 0";
        }
        if (dpl_mul(t->bytes, (size_t)t->shape[d], &t->bytes)) return "is too large";
    }
    if (!json_is_array(at) || json_array_size(at) != 2 ||
        parse_size(json_array_get(at, 0), &from) || parse_size(json_array_get(at, 1), &to) ||
        from > to) {
        return "has impossible data_offsets";
    }
    if ((uint64_t)(to - from) != t->bytes) return "has data_offsets that do not fit its shape";
    *begin = (size_t)from;
    return NULL;
}

static int check_metadata(json_t *meta, const char *path, dpl_text *why)
{
    const char *key;
    json_t *v;

    if (meta && !json_is_object(meta)) {
        return dpl_fail(why, DPL_EDATA, "%s: damaged: its metadata is not an object", path);
    }
    json_object_foreach(meta, key, v)
    {
        if (!json_is_string(v)) {
            return dpl_fail(why, DPL_EDATA, "%s: damaged: metadata '%.64s' is not a string", path,
                            key);
        }
    }
    return DPL_OK;
}

typedef struct placed { /* sorted by place; tensors of no bytes come before their neighbour */
    size_t begin;
    dpt_st_tensor t;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->t.bytes > y->t.bytes) - (x->t.bytes < y->t.bytes);
}

/* Tensors must lie end to end and fill the data exactly. */
static int check_places(const placed *p, size_t n, size_t data_len, const char *path, dpl_text *why)
{
    uint64_t end = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i].begin != end) {
            return dpl_fail(why, DPL_EDATA,
                            "%s: damaged: tensor '%.64s' begins at %zu, expected %" PRIu64
                            " (gap or overlap)",
                            path, p[i].t.name, p[i].begin, end);
        }
        end += p[i].t.bytes; /* both below 2^63 */
    }
    if (end > data_len) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: cut short: %" PRIu64 " bytes of tensors expected, %zu found", path,
                        end, data_len);
    }
    if (end < data_len) {
        return dpl_fail(why, DPL_EDATA,
                        "%s: damaged: %" PRIu64 " bytes of tensors expected, %zu found", path, end,
                        data_len);
    }
    return DPL_OK;
}

static int collect(placed *p, size_t *n, json_t *root, const char *path, dpl_text *why)
{
    const char *key, *wrong;
    json_t *v;

    *n = 0;
    json_object_foreach(root, key, v)
    {
        if (!strcmp(key, metadata_key)) continue;
        if ((wrong = parse_tensor(v, &p[*n].t, &p[*n].begin))) {
            return dpl_fail(why, DPL_EDATA, "%s: damaged: tensor '%.64s' %s", path, key, wrong);
        }
        p[(*n)++].t.name = key;
    }
    return DPL_OK;
}

static int store(dpt_st_file *f, const placed *p, size_t n)
{
    f->tensor = dpl_calloc(n, sizeof *f->tensor);
    f->begin = dpl_calloc(n, sizeof *f->begin);
    if (!f->tensor || !f->begin) return DPL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        f->tensor[i] = p[i].t;
        f->begin[i] = p[i].begin;
    }
    f->n = n;
    return DPL_OK;
}

int dpt_st_parse(dpt_st_file *f, const char *path, const char *header, size_t header_len,
                 uint64_t file_len, dpl_text *why)
{
    json_error_t e;
    json_t *root = json_loadb(header, header_len, JSON_REJECT_DUPLICATES, &e);
    placed *p = NULL;
    size_t n;
    int err;

    f->root = root;
    f->data_len = (size_t)(file_len - DPT_ST_PREFIX - header_len);
    if (!json_is_object(root)) {
        return dpl_fail(why, DPL_EDATA, "%s: damaged: its header is not a JSON object%s%s", path,
                        root ? "" : ": ", root ? "" : e.text);
    }
    if ((err = check_metadata(json_object_get(root, metadata_key), path, why))) return err;
    if (!(p = dpl_calloc(json_object_size(root), sizeof *p))) {
        return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    }
    if (!(err = collect(p, &n, root, path, why))) {
        qsort(p, n, sizeof *p, compare_placed);
        if (!(err = check_places(p, n, f->data_len, path, why)) && (err = store(f, p, n))) {
            dpl_fail(why, err, "%s: out of memory", path);
        }
    }
    free(p);
    return err;
}

void dpt_st_parse_free(dpt_st_file *f)
{
    json_decref(f->root);
    free(f->tensor);
    free(f->begin);
}

const char *dpt_st_meta_get(const dpt_st_file *f, const char *key)
{
    return json_string_value(json_object_get(json_object_get(f->root, metadata_key), key));
}

int dpt_st_meta_list(const dpt_st_file *f, const char *key, char ***out, size_t *n)
{
    const char *text = dpt_st_meta_get(f, key);
    json_t *list = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const size_t count = json_array_size(list);
    int err = json_is_array(list) ? DPL_OK : DPL_EDATA;

    *out = NULL;
    *n = 0;
    if (!err && !(*out = dpl_calloc(count, sizeof **out))) err = DPL_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!s) err = DPL_EDATA;
        if (s && !((*out)[i] = dpl_strdup(s))) err = DPL_ENOMEM;
    }
    if (err) dpt_st_list_free(out, *out ? count : 0);
    if (!err) *n = count;
    json_decref(list);
    return err;
}

void dpt_st_list_free(char ***list, size_t n)
{
    for (size_t i = 0; *list && i < n; i++) free((*list)[i]);
    free(*list);
    *list = NULL;
}
