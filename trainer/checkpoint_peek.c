/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint says of itself; see checkpoint.h. */
#include "base/alloc.h"
#include "base/number.h"
#include "dpload.h"
#include "trainer/checkpoint_fields.h"
#include "trainer/safetensors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int read_size(const dpt_st_file *f, const char *key)
{
    const char *text = dpt_st_meta_get(f, key);
    int64_t v;

    return text && !dpl_parse_int(text, &v) && v > 0 && v <= INT_MAX ? (int)v : 0;
}

static int read_text(char **out, const dpt_st_file *f, const char *key)
{
    const char *text = dpt_st_meta_get(f, key);

    return text && !(*out = dpl_strdup(text)) ? DPL_ENOMEM : DPL_OK;
}

static int read_classes(dpt_checkpoint_peek *p, const dpt_st_file *f)
{
    const dpt_st_tensor *head = dpt_st_find(f, "fc.weight");
    size_t n = 0;
    int err = DPL_OK;

    if (dpt_st_meta_get(f, "classes")) {
        err = dpt_st_meta_list(f, "classes", &p->class_names, &n);
    } else if (head && head->dims == 2 && head->shape[0] <= INT_MAX) {
        n = (size_t)head->shape[0]; /* torchvision's file of a ResNet */
    }
    p->classes = (int)n; /* below the header's length: fits */
    return err;
}

int dpt_checkpoint_peek_open(dpt_checkpoint_peek *p, const char *path, dpl_text *why)
{
    char *file = dpt_ckpt_file(path);
    dpt_st_file *f = NULL;
    int err;

    memset(p, 0, sizeof *p);
    if (!file) return dpl_fail(why, DPL_ENOMEM, "%s: out of memory", path);
    if ((err = dpt_st_open(&f, file, why))) goto done;
    p->height = read_size(f, "height");
    p->width = read_size(f, "width");
    if (!(err = read_text(&p->arch, f, "arch"))) err = read_text(&p->recipe, f, "recipe");
    if (!err) err = read_classes(p, f);
    if (err == DPL_ENOMEM) dpl_fail(why, err, "%s: out of memory", file);
    if (err == DPL_EDATA) dpl_fail(why, err, "%s: its list of classes cannot be read", file);
done:
    if (err) dpt_checkpoint_peek_free(p);
    dpt_st_close(&f);
    free(file);
    return err;
}

void dpt_checkpoint_peek_free(dpt_checkpoint_peek *p)
{
    dpt_st_list_free(&p->class_names, (size_t)p->classes);
    free(p->arch);
    free(p->recipe);
    memset(p, 0, sizeof *p);
}
