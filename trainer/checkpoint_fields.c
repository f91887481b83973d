/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of checkpoints; see checkpoint_fields.h. */
#include "trainer/checkpoint_fields.h"

#include "base/files.h"
#include "base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name, kind)                                                                          \
    {                                                                                              \
#        name, kind, offsetof(dpt_progress, name)                                                  \
    }

const dpt_ckpt_field dpt_ckpt_fields[DPT_CKPT_FIELDS] = {
    FIELD(epoch, DPT_CKPT_INT64),       FIELD(sample, DPT_CKPT_UINT64),
    FIELD(step, DPT_CKPT_INT64),        FIELD(evaluated, DPT_CKPT_INT),
    FIELD(train_loss, DPT_CKPT_DOUBLE), FIELD(train_n, DPT_CKPT_INT64),
    FIELD(train_top1, DPT_CKPT_INT64),  FIELD(train_top5, DPT_CKPT_INT64),
    FIELD(best_top1, DPT_CKPT_DOUBLE),  FIELD(best_epoch, DPT_CKPT_INT64),
    FIELD(seed, DPT_CKPT_UINT64),       FIELD(samples, DPT_CKPT_UINT64),
};

int dpt_ckpt_states(dpt_rule rule, dpt_ckpt_state out[DPT_CKPT_STATES])
{
    out[0] = (dpt_ckpt_state){ rule == DPT_RULE_ADAMW ? "exp_avg." : "momentum.",
                               offsetof(dpt_checkpoint, momentum) };
    out[1] = (dpt_ckpt_state){ "exp_avg_sq.", offsetof(dpt_checkpoint, second) };
    return rule == DPT_RULE_ADAMW ? 2 : 1;
}

float *dpt_ckpt_array(const dpt_checkpoint *c, const dpt_ckpt_state *s)
{
    float *array;

    memcpy(&array, (const char *)c + s->offset, sizeof array);
    return array;
}

char *dpt_ckpt_renamed(const char *name, const char *from, const char *to)
{
    const size_t len = strlen(name), cut = strlen(from), add = strlen(to);
    char *out;

    if (len < cut || strcmp(name + len - cut, from)) return NULL;
    if (!(out = malloc(len - cut + add + 1))) return NULL;
    memcpy(out, name, len - cut);
    memcpy(out + len - cut, to, add + 1);
    return out;
}

char *dpt_ckpt_class_text(const char *const *names, int n)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    dpl_json j;
    int failed;

    if (!f) return NULL;
    dpl_json_begin(&j, f);
    dpl_json_array(&j, NULL);
    for (int i = 0; i < n; i++) dpl_json_string(&j, NULL, names[i]);
    dpl_json_end(&j);
    failed = ferror(f);
    if (!fclose(f) && !failed) return text;
    free(text);
    return NULL;
}

void dpt_ckpt_triple_text(char buf[DPT_CKPT_TRIPLE_MAX], const float v[3])
{
    char number[3][DPL_NUMBER_MAX];

    for (int i = 0; i < 3; i++)
        dpl_number_text(round((double)v[i] * 1e6) / 1e6, number[i], sizeof number[i]);
    snprintf(buf, DPT_CKPT_TRIPLE_MAX, "[%s,%s,%s]", number[0], number[1], number[2]);
}

char *dpt_ckpt_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t keep = slash ? (size_t)(slash - path) + 1 : 0, len = strlen(name);
    char *out = malloc(keep + len + 1);

    if (!out) return NULL;
    memcpy(out, path, keep);
    memcpy(out + keep, name, len + 1);
    return out;
}

char *dpt_ckpt_file(const char *path)
{
    struct stat st;

    if (!stat(path, &st) && S_ISDIR(st.st_mode)) return dpl_path_join(path, DPT_CKPT_MODEL);
    return strdup(path);
}
