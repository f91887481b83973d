/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a list file; see source_list_parse.h. The text is cut in place: a path ends where its tab
 * or its line's end was. */
#include "loader/source_list_parse.h"

#include "base/alloc.h"
#include "dpload.h"
#include "loader/source_list_labels.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct parse {
    dpl_list *list;
    dpl_labels labels;
    const char *name;
    uint64_t line;
    uint64_t with_tab, without_tab; /* first line of each kind, 0 = none yet */
    dpl_text *why;
} parse;

static int bad_line(const parse *p, const char *what)
{
    return dpl_fail(p->why, DPL_EDATA, "%s:%llu: %s", p->name, (unsigned long long)p->line, what);
}

static int no_room(const parse *p, int err)
{
    if (err == DPL_ENOTSUP)
        return dpl_fail(p->why, err, "%s:%llu: more than %d different labels", p->name,
                        (unsigned long long)p->line, DPL_LIST_NAMES_MAX);
    return dpl_fail(p->why, err, "%s: no memory for the list", p->name);
}

/* Labels are the places of their texts until all of them are known. */
static int add_sample(parse *p, const char *path, const char *label)
{
    dpl_list *l = p->list;
    const size_t n = (size_t)l->count + 1;
    uint32_t place = 0;
    int32_t mark = -1;
    int err = DPL_OK;

    if (label && *label && strcmp(label, "-1") != 0) {
        err = dpl_labels_add(&p->labels, label, p->line, &place);
        mark = (int32_t)place;
    }
    if (!err && (dpl_grow((void **)&l->path, &l->path_cap, n, sizeof *l->path) ||
                 dpl_grow((void **)&l->label, &l->label_cap, n, sizeof *l->label)))
        err = DPL_ENOMEM;
    if (err) return no_room(p, err);
    l->path[l->count] = (uint32_t)(path - l->text);
    l->label[l->count++] = mark;
    return DPL_OK;
}

/* Cut blanks off both ends of [s, end). @return the new beginning */
static char *trim(char *s, char *end)
{
    while (s < end && *s == ' ') s++;
    while (s < end && end[-1] == ' ') end--;
    *end = 0;
    return s;
}

/* One line [s, end), without its line end; *end may be written. */
static int parse_line(parse *p, char *s, char *end)
{
    char *tab, *label = NULL;

    if (s < end && end[-1] == '\r') end--;
    if (s == end || *s == '#') return DPL_OK;
    if (memchr(s, 0, (size_t)(end - s)))
        return bad_line(p, "a zero byte: expected text, path<TAB>label");
    if ((tab = memrchr(s, '\t', (size_t)(end - s)))) {
        label = trim(tab + 1, end);
        end = tab;
        if (!p->with_tab) p->with_tab = p->line;
    } else if (!p->without_tab) {
        p->without_tab = p->line;
    }
    *end = 0;
    if (s == end) return bad_line(p, "no path before the tab: expected path<TAB>label");
    if (end - s > DPL_LIST_PATH_MAX) return bad_line(p, "the path is longer than 4095 bytes");
    return add_sample(p, s, label);
}

static int parse_lines(parse *p, char *text, size_t len)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors put it before UTF-8 text */
    char *end = text + len;
    int err = DPL_OK;

    if (len >= 3 && !memcmp(text, mark, 3)) text += 3;
    while (text < end && !err) {
        char *eol = memchr(text, '\n', (size_t)(end - text));

        if (!eol) eol = end;
        p->line++;
        err = parse_line(p, text, eol);
        text = eol + 1;
    }
    return err;
}

static void trim_arrays(dpl_list *l)
{
    const size_t n = (size_t)l->count;
    uint32_t *path = realloc(l->path, n * sizeof *path);
    int32_t *label = realloc(l->label, n * sizeof *label);

    if (path) l->path = path;
    if (label) l->label = label;
    if (path) l->path_cap = n;
    if (label) l->label_cap = n;
}

/* What only the whole list tells. */
static int settle(parse *p, const char *const *classes, int n_classes)
{
    dpl_list *l = p->list;
    int err;

    if (!l->count)
        return dpl_fail(p->why, DPL_EDATA,
                        "%s: no pictures in it: expected lines of path<TAB>label", p->name);
    if (p->with_tab && p->without_tab)
        return dpl_fail(p->why, DPL_EDATA,
                        "%s:%llu: no tab, but line %llu has one: expected path<TAB>label, or "
                        "path<TAB> for a picture without a label",
                        p->name, (unsigned long long)p->without_tab,
                        (unsigned long long)p->with_tab);
    err = dpl_labels_settle(&p->labels, &l->titles, p->name, classes, n_classes, p->why);
    if (err) return err == DPL_EDATA ? err : no_room(p, err);
    for (uint64_t i = 0; i < l->count; i++)
        if (l->label[i] >= 0) l->label[i] = p->labels.meaning[l->label[i]];
    trim_arrays(l);
    dpl_name_list_trim(&l->titles);
    return DPL_OK;
}

int dpl_list_parse(dpl_list *l, char *text, size_t len, const char *name,
                   const char *const *classes, int n_classes, dpl_text *why)
{
    parse p = { .list = l, .name = name, .why = why };
    int err;

    if (len >= UINT32_MAX)
        return dpl_fail(why, DPL_ENOTSUP, "%s: a list of more than 4 GiB; split it", name);
    l->text = text;
    err = parse_lines(&p, text, len);
    if (!err) err = settle(&p, classes, n_classes);
    dpl_labels_fini(&p.labels);
    if (err) dpl_list_fini(l);
    return err;
}

void dpl_list_fini(dpl_list *l)
{
    free(l->path);
    free(l->label);
    dpl_name_list_free(&l->titles);
    memset(l, 0, sizeof *l);
}
