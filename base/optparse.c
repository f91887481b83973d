/* SPDX-License-Identifier: Apache-2.0 */
/* Options from the environment and the command line by getopt_long(); see optparse.h. */
#include "base/optparse.h"

#include "base/alloc.h"
#include "base/optdoc.h"
#include "base/optvalue.h"
#include "dpload.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* What getopt_long() returns for a long name: CODE + 2 * index in the table, + 1 for --no-NAME.
 * All names of an option share one code, so that their abbreviations are not ambiguous. */
enum { CODE_HELP = 256, CODE = 258, EXPECTED = 256, NAME = 64 };

typedef struct parser {
    const dpl_opt_spec *spec;
    void *values;
    char *given; /* may be NULL */
    dpl_text *why;
    struct option *longs; /* ends in zeros */
    char *pool;           /* the long names, one after the other */
    char shorts[3 + 2 * 128];
} parser;

static size_t count(const dpl_opt *o)
{
    size_t n = 0;

    while (o[n].name) n++;
    return n;
}

static int takes_value(const dpl_opt *o)
{
    return o->type != DPL_OPT_FLAG && o->type != DPL_OPT_COUNT;
}

/* Calls visit for the name and each alias of o. */
static void each_name(const dpl_opt *o, void (*visit)(void *, const char *, size_t), void *arg)
{
    visit(arg, o->name, strlen(o->name));
    for (const char *a = o->aliases; a && *a; a += strspn(a, " ")) {
        const size_t n = strcspn(a, " ");
        visit(arg, a, n);
        a += n;
    }
}

typedef struct room {
    size_t names, bytes;
} room;

static void measure(void *arg, const char *name, size_t len)
{
    room *r = arg;

    (void)name;
    r->names += 2;
    r->bytes += 2 * (len + sizeof "no-");
}

typedef struct filler {
    parser *p;
    const dpl_opt *o;
    struct option *next;
    char *text;
} filler;

static void add_long(filler *f, const char *prefix, const char *name, size_t len, int code)
{
    const int n = sprintf(f->text, "%s%.*s", prefix, (int)len, name);

    f->next->name = f->text;
    f->next->has_arg = takes_value(f->o) ? required_argument : no_argument;
    f->next->val = code;
    f->next++;
    f->text += n + 1;
}

static void add_name(void *arg, const char *name, size_t len)
{
    filler *f = arg;
    const int code = CODE + 2 * (int)(f->o - f->p->spec->opts);

    add_long(f, "", name, len, code);
    if (f->o->type == DPL_OPT_FLAG) add_long(f, "no-", name, len, code + 1);
}

/* Tables for getopt_long(). */
static int build(parser *p)
{
    room need = { 2, 0 }; /* --help and the end */
    filler f = { .p = p };
    char *s = p->shorts;

    for (const dpl_opt *o = p->spec->opts; o->name; o++) each_name(o, measure, &need);
    p->longs = dpl_calloc(need.names, sizeof *p->longs);
    p->pool = dpl_calloc(need.bytes, 1);
    if (!p->longs || !p->pool) return dpl_fail(p->why, DPL_ENOMEM, "out of memory");
    f.next = p->longs;
    f.text = p->pool;
    *s++ = ':'; /* a missing value is told from an unknown option */
    *s++ = 'h';
    for (const dpl_opt *o = p->spec->opts; o->name; o++) {
        f.o = o;
        each_name(o, add_name, &f);
        if (!o->letter) continue;
        *s++ = o->letter;
        if (takes_value(o)) *s++ = ':';
    }
    *s = 0;
    f.next->name = "help";
    f.next->val = CODE_HELP;
    return DPL_OK;
}

/* The table entry of a code or letter; *no: it was --no-NAME. */
static const dpl_opt *find(const parser *p, int code, int *no)
{
    *no = code >= CODE && (code - CODE) % 2;
    if (code >= CODE) return p->spec->opts + (code - CODE) / 2;
    for (const dpl_opt *o = p->spec->opts; o->name; o++) {
        if (o->letter == code) return o;
    }
    return NULL;
}

static void mark(parser *p, const dpl_opt *o)
{
    if (p->given) p->given[o - p->spec->opts] = 1;
}

static int fail_value(parser *p, const dpl_opt *o, const char *shown, char between,
                      const char *value)
{
    char expected[EXPECTED];

    dpl_opt_expected(o, expected, sizeof expected);
    return dpl_fail(p->why, DPL_EINVAL, "%s%c%s: expected %s", shown, between, value, expected);
}

/* PREFIX_VAL_SPLIT for "val-split". */
typedef struct env_find {
    const char *prefix;
    char name[NAME * 2];
    const char *value;
} env_find;

static void look_up(void *arg, const char *name, size_t len)
{
    env_find *e = arg;
    char full[sizeof e->name];
    const char *value;

    if (e->value) return;
    if (snprintf(full, sizeof full, "%s%.*s", e->prefix, (int)len, name) >= (int)sizeof full)
        return;
    for (char *c = full + strlen(e->prefix); *c; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
    if (!(value = getenv(full)) || !*value) return; /* empty: as if it were not set */
    e->value = value;
    memcpy(e->name, full, sizeof full);
}

static int from_environment(parser *p)
{
    for (const dpl_opt *o = p->spec->opts; p->spec->env && o->name; o++) {
        env_find e = { .prefix = p->spec->env };
        each_name(o, look_up, &e);
        if (!e.value) continue;
        if (dpl_opt_set(o, p->values, e.value)) return fail_value(p, o, e.name, '=', e.value);
        mark(p, o);
    }
    return DPL_OK;
}

/* "--val: could be --val-split or --val-size"; 0 when fewer than two options begin like that. */
static int fail_ambiguous(parser *p, const char *name, size_t len)
{
    char list[512] = "";
    size_t used = 0;
    int hits = 0;

    for (const struct option *l = p->longs; l->name; l++) {
        if (strncmp(l->name, name, len)) continue;
        hits++;
        if (used < sizeof list) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", used ? ", " : "",
                                     l->name);
        }
    }
    if (hits < 2) return 0;
    return dpl_fail(p->why, DPL_EINVAL, "--%.*s is ambiguous: %s", (int)len, name, list);
}

static int fail_unknown_long(parser *p, const char *token)
{
    const size_t len = strcspn(token + 2, "=");
    char name[NAME], near[NAME];
    int err = fail_ambiguous(p, token + 2, len);

    if (err) return err;
    snprintf(name, sizeof name, "%.*s", (int)len, token + 2);
    if (len < sizeof name && dpl_opt_nearest(p->spec, name, near, sizeof near)) {
        return dpl_fail(p->why, DPL_EINVAL, "unknown option --%s; did you mean --%s?", name, near);
    }
    return dpl_fail(p->why, DPL_EINVAL, "unknown option --%.*s; --help lists the options", (int)len,
                    token + 2);
}

/* The argument that holds the unknown letter: getopt_long() moves on only behind its last letter. */
static const char *short_token(int argc, char **argv, int letter)
{
    const char *before = argv[optind - 1];

    if (before[0] == '-' && before[1] != '-' && before[strlen(before) - 1] == letter) return before;
    return optind < argc ? argv[optind] : before;
}

static int fail_unknown_short(parser *p, int letter, const char *token)
{
    char near[NAME];

    if (strlen(token) > 3 && dpl_opt_nearest(p->spec, token + 1, near, sizeof near)) {
        return dpl_fail(p->why, DPL_EINVAL, "unknown option %s; did you mean --%s?", token, near);
    }
    if (!isprint(letter)) {
        return dpl_fail(p->why, DPL_EINVAL, "unknown option %s; --help lists the options", token);
    }
    return dpl_fail(p->why, DPL_EINVAL, "unknown option -%c; --help lists the options", letter);
}

/* getopt_long() gave '?' or ':'. */
static int fail_option(parser *p, int c, int argc, char **argv)
{
    const char *token = argv[optind - 1];
    char expected[EXPECTED];
    int no;
    const dpl_opt *o = find(p, optopt, &no);

    if (c == '?' && !optopt) return fail_unknown_long(p, token);
    if (c == '?' && optopt >= CODE_HELP) {
        return dpl_fail(p->why, DPL_EINVAL, "%.*s takes no value", (int)strcspn(token, "="), token);
    }
    if (c == '?' || !o) return fail_unknown_short(p, optopt, short_token(argc, argv, optopt));
    dpl_opt_expected(o, expected, sizeof expected);
    return dpl_fail(p->why, DPL_EINVAL, "%s: a value is missing: %s", token,
                    o->type == DPL_OPT_STRING && o->arg ? o->arg : expected);
}

/* One option of the command line, from argv[optind - 1]. shown: as it was typed. */
static int take(parser *p, int code, const char *shown, const char *token)
{
    char near[NAME];
    int no, *number, err;
    const dpl_opt *o = find(p, code, &no);

    number = (int *)(void *)((char *)p->values + o->offset);
    mark(p, o);
    if (o->type == DPL_OPT_FLAG)
        *number = !no;
    else if (o->type == DPL_OPT_COUNT)
        *number += 1;
    else if (dpl_opt_set(o, p->values, optarg)) {
        err = fail_value(p, o, shown, ' ', optarg);
        /* "-batch 3" is read as "-b atch" */
        if (code < CODE && optarg == token + 2 &&
            dpl_opt_nearest(p->spec, token + 1, near, sizeof near)) {
            dpl_fail(p->why, err, "unknown option %s; did you mean --%s?", token, near);
        }
        return err;
    }
    return DPL_OK;
}

static int from_arguments(parser *p, int argc, char **argv, FILE *out)
{
    char shown[NAME];
    int c, index = -1, err;

    optind = 0; /* glibc and musl: start anew */
    opterr = 0;
    optopt = 0;
    while ((c = getopt_long(argc, argv, p->shorts, p->longs, &index)) != -1) {
        if (c == '?' || c == ':') return fail_option(p, c, argc, argv);
        if (c == 'h' || c == CODE_HELP) {
            dpl_opt_help(p->spec, out, c == CODE_HELP);
            return DPL_OPT_HELPED;
        }
        if (c >= CODE)
            snprintf(shown, sizeof shown, "--%s", p->longs[index].name);
        else
            snprintf(shown, sizeof shown, "-%c", c);
        if ((err = take(p, c, shown, argv[optind - 1]))) return err;
        optopt = 0;
    }
    return DPL_OPT_RUN;
}

int dpl_opt_parse(const dpl_opt_spec *spec, int argc, char **argv, void *values, char *given,
                  int *operand, FILE *out, dpl_text *why)
{
    parser p = { .spec = spec, .values = values, .given = given, .why = why };
    dpl_text from_env = { "" };
    dpl_opt_doc doc = DPL_OPT_DOC_MAN;
    int err, env_err;

    *operand = argc;
    if ((err = dpl_opt_doc_asked(argc, argv, &doc, why))) {
        if (err == DPL_OPT_HELPED) dpl_opt_doc_table(spec, doc, out);
        return err;
    }
    if (given) memset(given, 0, count(spec->opts));
    if ((err = build(&p))) goto done;
    p.why = &from_env;
    env_err = from_environment(&p);
    p.why = why;
    err = from_arguments(&p, argc, argv, out); /* -h works with a wrong variable, too */
    *operand = optind;
    if (!err && env_err) err = dpl_fail(why, env_err, "%s", from_env.s);
done:
    free(p.longs);
    free(p.pool);
    return err;
}
