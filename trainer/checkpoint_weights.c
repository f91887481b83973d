/* SPDX-License-Identifier: Apache-2.0 */
/* Weights for a run that begins with those of another, also of another program; see checkpoint.h. All
 * but the last layer must fit; what does not is counted, because a network of another name tells
 * itself by how much of it there is. */
#include "dpload.h"
#include "trainer/checkpoint_fields.h"
#include "trainer/checkpoint_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_count(const char *name)
{
    static const char end[] = "num_batches_tracked";
    const size_t len = strlen(name);

    return len >= sizeof end - 1 && !strcmp(name + len - (sizeof end - 1), end);
}

/* How many tensors g lacks, has in another shape, or finds missing; first: what is wrong with the first
 * of them. *classes: the file's number of them where it is another, else 0. */
static size_t misfits(const dpt_ckpt_source *s, const dpt_graph *g, int64_t *classes,
                      dpl_text *first)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) s->entry[i].used = is_count(s->entry[i].name);
    *classes = dpt_ckpt_other_classes(s, g);
    for (int i = 0; i < g->params; i++) {
        if (*classes && dpt_ckpt_is_head(g, &g->param[i])) continue;
        n += dpt_ckpt_check(s, g, "", &g->param[i], n ? NULL : first) != DPL_OK;
    }
    for (int i = 0; i < g->buffers; i++)
        n += dpt_ckpt_check(s, g, "", &g->buffer[i], n ? NULL : first) != DPL_OK;
    if (!n) dpt_ckpt_check_unused(s, g, first);
    for (size_t i = 0; i < s->n; i++) n += !s->entry[i].used;
    return n;
}

/* The network that the file's tensors are of, or NULL. */
static const char *other_arch(const dpt_ckpt_source *s, const dpt_checkpoint *c)
{
    const char *const *arch = dpt_graph_archs();

    for (; *arch; arch++) {
        dpt_graph *g = NULL;
        int64_t classes;
        const int fits =
            !dpt_graph_build(&g, *arch, c->graph->classes, c->height, c->width, NULL) &&
            !misfits(s, g, &classes, NULL);

        dpt_graph_destroy(&g);
        if (fits) break;
    }
    return *arch;
}

static int check_tensors(const dpt_ckpt_source *s, const dpt_checkpoint *c, int64_t *classes,
                         dpl_text *why)
{
    dpl_text first = { "" };
    const size_t n = misfits(s, c->graph, classes, &first);
    char others[64] = "";
    const char *arch;

    if (!n) return DPL_OK;
    if (n > 1) snprintf(others, sizeof others, ", the first of %zu that do not fit", n);
    if ((arch = other_arch(s, c)))
        return dpl_fail(why, DPL_EDATA, "%s%s; its tensors are those of %s: give --arch %s",
                        first.s, others, arch, arch);
    return dpl_fail(why, DPL_EDATA, "%s%s; is --arch %s that of the file?", first.s, others,
                    c->graph->arch);
}

static int check_numbers(const dpt_ckpt_source *s, dpl_text *why)
{
    static const char *const names[] = {
        [DPT_ST_F16] = "float16", [DPT_ST_BF16] = "bfloat16", [DPT_ST_F64] = "float64"
    };

    for (size_t i = 0; i < s->n; i++) {
        const dpt_st_dtype type = s->entry[i].t->dtype;

        if (type == DPT_ST_F16 || type == DPT_ST_BF16 || type == DPT_ST_F64)
            return dpl_fail(why, DPL_EDATA,
                            "%s: tensor '%.64s' is %s; convert the file's tensors to float32",
                            s->path, s->entry[i].name, names[type]);
    }
    return DPL_OK;
}

static int check_model(const dpt_ckpt_source *s, const dpt_checkpoint *c, int64_t *classes,
                       dpl_text *why)
{
    const char *arch = dpt_st_meta_get(s->file, "arch");
    int err;

    if (arch && strcmp(arch, c->graph->arch) != 0)
        return dpl_fail(why, DPL_EDATA,
                        "%s: holds the weights of a %.64s, this run trains a %s: give --arch %.64s",
                        s->path, arch, c->graph->arch, arch);
    if ((err = check_numbers(s, why))) return err;
    return check_tensors(s, c, classes, why);
}

/* Another list of as many classes: the last layer is taken, but that may not be what was meant. */
static int note_names(const dpt_ckpt_source *s, const dpt_checkpoint *c, dpl_text *note,
                      dpl_text *why)
{
    const char *stored = dpt_st_meta_get(s->file, "classes");
    const size_t classes = (size_t)c->graph->classes;
    char *own = stored && c->class_names ? dpt_ckpt_class_text(c->class_names, (int)classes) : NULL;
    char **list = NULL;
    size_t n = 0, i = 0;
    int err = DPL_OK;

    if (!stored || !c->class_names) goto done;
    if (!own) {
        err = dpl_fail(why, DPL_ENOMEM, "%s: out of memory", s->path);
        goto done;
    }
    if (!strcmp(own, stored)) goto done; /* also where a name is not UTF-8 */
    if ((err = dpt_st_meta_list(s->file, "classes", &list, &n))) {
        dpl_fail(why, err, "%s: its list of classes cannot be read", s->path);
        goto done;
    }
    while (i < n && i < classes && !strcmp(list[i], c->class_names[i])) i++;
    if (i < n && i < classes)
        dpl_fail(note, 0,
                 "class %zu of %s is '%.64s', of the data '%.64s': the last layer is taken all the "
                 "same",
                 i, s->path, list[i], c->class_names[i]);
done:
    dpt_st_list_free(&list, n);
    free(own);
    return err;
}

/* classes: the file's number of them where it is another, else 0 */
static int note_head(const dpt_ckpt_source *s, const dpt_checkpoint *c, int64_t classes,
                     dpl_text *note, dpl_text *why)
{
    const dpt_graph *g = c->graph;
    const dpt_param *weight;

    if (!classes) return note_names(s, c, note, why);
    weight = &g->param[g->node[g->nodes - 1].param];
    dpl_fail(note, 0,
             "%s has %" PRId64 " classes, the data has %d: the last layer (%s, %s) keeps its "
             "initial values",
             s->path, classes, g->classes, weight[0].name, weight[1].name);
    return DPL_OK;
}

static const char *said(const dpt_ckpt_source *s, const char *key, const char *own)
{
    const char *text = dpt_st_meta_get(s->file, key);

    return text ? text : own;
}

/* What the file does not say counts as equal. */
static void note_input(const dpt_ckpt_source *s, const dpt_checkpoint *c, dpl_text *note)
{
    char mean[DPT_CKPT_TRIPLE_MAX], std[DPT_CKPT_TRIPLE_MAX], width[16], height[16];
    dpl_text was, is;

    dpt_ckpt_triple_text(mean, c->mean);
    dpt_ckpt_triple_text(std, c->std);
    snprintf(width, sizeof width, "%d", c->width);
    snprintf(height, sizeof height, "%d", c->height);
    dpl_fail(&is, 0, "%s x %s, mean %s, std %s", width, height, mean, std);
    dpl_fail(&was, 0, "%.16s x %.16s, mean %.99s, std %.99s", said(s, "width", width),
             said(s, "height", height), said(s, "mean", mean), said(s, "std", std));
    if (strcmp(was.s, is.s) != 0)
        dpl_fail(note, 0, "the pictures of %s were %s; here they are %s", s->path, was.s, is.s);
}

int dpt_checkpoint_weights(dpt_checkpoint *c, const char *path, dpt_checkpoint_notes *notes,
                           dpl_text *why)
{
    dpt_ckpt_source s = { 0 };
    const dpt_graph *g = c->graph;
    int64_t classes = 0, tracked = 0;
    int err;

    notes->head.s[0] = notes->input.s[0] = '\0';
    if ((err = dpt_ckpt_open(&s, path, DPT_CKPT_WRAPPED, why))) goto done;
    if ((err = check_model(&s, c, &classes, why))) goto done;
    if ((err = dpt_ckpt_tracked(&s, g, &tracked, why))) goto done;
    if ((err = note_head(&s, c, classes, &notes->head, why))) goto done;
    note_input(&s, c, &notes->input);
    for (int i = 0; i < g->params; i++)
        if (!classes || !dpt_ckpt_is_head(g, &g->param[i]))
            dpt_ckpt_copy(&s, "", &g->param[i], c->params);
    for (int i = 0; i < g->buffers; i++) dpt_ckpt_copy(&s, "", &g->buffer[i], c->buffers);
    c->batches_tracked = tracked;
done:
    dpt_ckpt_close(&s);
    return err;
}
