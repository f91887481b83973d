/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_set.h. */
#include "tests/fault_set.h"

#include "base/clock.h"
#include "base/optnames.h"
#include "tests/loaderutil.h"
#include "trainer/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WHOLE_SHORT = 1, WHOLE_SIDE = 256, BATCH = 7, SECONDS_MAX = 60 };

/* --- the set --- */

void fault_begin(fault_set *s)
{
    static const tool_jpeg_spec usual = { .quality = 90 };

    memset(s, 0, sizeof *s);
    snprintf(s->root, sizeof s->root, "%s", test_tempdir());
    fault_add(s, "a/good.jpg", fault_jpeg(&usual, 50, 40, 1), FAULT_OK, NULL);
    fault_add(s, "b/good.jpg", fault_jpeg(&usual, 40, 50, 2), FAULT_OK, NULL);
}

void fault_expect(fault_set *s, const char *path, fault_verdict v, const char *reason)
{
    struct fault_entry *e = &s->entry[s->n++];

    assert_true(s->n <= FAULT_ENTRIES && strlen(path) < sizeof e->path);
    snprintf(e->path, sizeof e->path, "%s", path);
    e->verdict = v;
    e->reason = reason ? reason : "";
}

void fault_add(fault_set *s, const char *path, fault_file f, fault_verdict v, const char *reason)
{
    const char *full = test_format("%s/%s", s->root, path);
    char *folder = strdup(full);

    assert_non_null(folder);
    *strrchr(folder, '/') = 0;
    test_make_folder(folder);
    free(folder);
    test_write_file(full, f.bytes, f.len);
    fault_expect(s, path, v, reason);
}

static const struct fault_entry *entry_of(const fault_set *s, const char *name)
{
    const size_t root = strlen(s->root);

    assert_int_equal(strncmp(name, s->root, root), 0);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->entry[i].path, name + root + 1)) return &s->entry[i];
    fail_msg("%s: delivered or named, but not in the set", name);
    return NULL;
}

static int count(const fault_set *s, fault_verdict v)
{
    int n = 0;

    for (int i = 0; i < s->n; i++) n += s->entry[i].verdict == v;
    return n;
}

/* --- the loader --- */

dpl_options fault_options(const fault_set *s)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.path = s->root;
    opt.recipe = DPL_EVAL;
    opt.resize = WHOLE_SHORT;
    opt.width = opt.height = WHOLE_SIDE;
    opt.batch = BATCH;
    opt.epochs = 1;
    opt.max_bad = 1;
    return opt;
}

/* What one epoch gave: a hash of every sample's id, label and pixels, 0 = not delivered; and a hash of
 * what was named, in order. */
typedef struct outcome {
    uint64_t sample[FAULT_ENTRIES], named;
    uint64_t delivered, bad, warned;
} outcome;

static void take_part(const fault_set *s, const dpl_loader *l, const dpl_batch *b, outcome *o)
{
    const size_t bytes = test_picture_bytes(b);
    const dpl_part *p = &b->part[0];
    dpl_info info;

    dpl_info_get(l, &info);
    for (int k = 0; k < p->n; k++) {
        const struct fault_entry *e = entry_of(s, dpl_sample_name(l, p->ids[k]));
        const char *title = info.class_names[p->labels[k]];

        /* the label is that of the folder the file lies in */
        assert_true(!strncmp(e->path, title, strlen(title)) && e->path[strlen(title)] == '/');
        assert_int_equal(o->sample[e - s->entry], 0); /* exactly once */
        o->sample[e - s->entry] =
            test_hash((const uint8_t *)p->pixels + (size_t)k * bytes, bytes) | 1;
        o->delivered++;
    }
}

static void take_named(const fault_set *s, const dpl_loader *l, const dpl_options *opt, int whole,
                       outcome *o)
{
    dpl_stats st = { .size = sizeof st };
    dpl_bad bad;

    for (uint64_t i = 0; !dpl_bad_get(l, i, &bad); i++) {
        const struct fault_entry *e = entry_of(s, bad.path);
        const int refused = bad.kind == DPL_BAD_REFUSED;

        if (e->verdict == FAULT_OK || (e->verdict == FAULT_WARN && refused != opt->strict) ||
            (e->verdict == FAULT_BAD && !refused && whole))
            fail_msg("%s: %s: %s", bad.path, refused ? "refused" : "warned", bad.reason);
        if (whole && e->verdict != FAULT_ANY && !strstr(bad.reason, e->reason))
            fail_msg("%s: \"%s\" does not say \"%s\"", bad.path, bad.reason, e->reason);
        if (refused) assert_int_equal(o->sample[e - s->entry], 0);
        o->named = o->named * 31 + test_hash(bad.path, strlen(bad.path)) +
                   test_hash(bad.reason, strlen(bad.reason)) + (uint64_t)refused;
    }
    dpl_stats_get(l, &st);
    o->bad = st.bad;
    o->warned = st.warned;
}

static void run_epoch(const fault_set *s, const dpl_options *opt, int whole, outcome *o)
{
    const int64_t start = dpl_now_ns();
    dpl_loader *l;
    dpl_batch b;
    int err;

    memset(o, 0, sizeof *o);
    if (dpl_open(&l, opt)) fail_msg("open: %s", dpl_error_text(NULL));
    while (!(err = dpl_next(l, &b, SECONDS_MAX * 1000))) {
        take_part(s, l, &b, o);
        dpl_release(l, &b, NULL);
    }
    if (err != DPL_EOF) fail_msg("next: %d %s", err, dpl_error_text(l));
    take_named(s, l, opt, whole, o);
    dpl_close(&l);
    assert_true(dpl_now_ns() - start < (int64_t)SECONDS_MAX * 1000000000);
    assert_int_equal(o->delivered + o->bad, (uint64_t)s->n); /* none vanishes */
}

static void same_for_all_workers(const fault_set *s, dpl_options opt, int whole, outcome *first)
{
    outcome next;

    opt.workers = 1;
    run_epoch(s, &opt, whole, first);
    for (int workers = 2; workers <= 8; workers += 6) {
        opt.workers = workers;
        run_epoch(s, &opt, whole, &next);
        assert_memory_equal(&next, first, sizeof next);
    }
}

static void judge_library(const fault_set *s)
{
    const int any = count(s, FAULT_ANY);
    dpl_options opt = fault_options(s);
    outcome o;

    same_for_all_workers(s, opt, 1, &o);
    for (int i = 0; i < s->n; i++) {
        const fault_verdict v = s->entry[i].verdict;

        if (v != FAULT_ANY && (o.sample[i] != 0) != (v != FAULT_BAD))
            fail_msg("%s: %s", s->entry[i].path, o.sample[i] ? "delivered" : "left out");
    }
    if (!any) assert_int_equal(o.bad, (uint64_t)count(s, FAULT_BAD));
    if (!any) assert_int_equal(o.warned, (uint64_t)count(s, FAULT_WARN));

    opt.strict = 1;
    opt.workers = 2;
    run_epoch(s, &opt, 1, &o);
    if (!any) assert_int_equal(o.delivered, (uint64_t)count(s, FAULT_OK));
    assert_int_equal(o.warned, 0);

    opt.strict = 0; /* random crops: damage behind a crop may go unseen, but never by chance */
    opt.recipe = DPL_TRAIN;
    opt.width = opt.height = 24;
    same_for_all_workers(s, opt, 0, &o);
}

/* --- the program --- */

static const char *programs(void)
{
    static char folder[4096];
    const char *bin = getenv("BIN");
    struct stat st;

    if (!*folder && !realpath(bin ? bin : "build/bin", folder)) return NULL;
    if (stat(test_format("%s/dpload", folder), &st) || stat(test_format("%s/dptrain", folder), &st))
        return NULL;
    return folder;
}

/* Keep at most one end of each: what is longer than a test looks at is cut. */
static void slurp(const char *path, char *to, size_t cap)
{
    size_t len;
    uint8_t *text = test_read_file(path, &len);

    if (len >= cap) len = cap - 1;
    memcpy(to, text, len);
    to[len] = 0;
    free(text);
}

int fault_run(const fault_set *s, const char **out, const char **err, const char *format, ...)
{
    static char texts[2][1 << 16];
    const char *bin = programs(), *work = test_tempdir();
    char line[4096], command[16384];
    va_list ap;
    int status;

    *out = texts[0];
    *err = texts[1];
    if (!bin) return -1;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    snprintf(command, sizeof command, "cd '%s' && PATH='%s':\"$PATH\" && { %s\n} >%s/out 2>%s/err",
             s->root, bin, line, work, work);
    status = system(command);
    assert_true(WIFEXITED(status));
    slurp(test_format("%s/out", work), texts[0], sizeof texts[0]);
    slurp(test_format("%s/err", work), texts[1], sizeof texts[1]);
    return WEXITSTATUS(status);
}

static void find_line(const fault_set *s, const struct fault_entry *e, const char *out)
{
    const char *name =
        test_format("%s/%s\t%s", s->root, e->path, e->verdict == FAULT_WARN ? "warning: " : "");
    const char *at = strstr(out, name), *end;
    dpl_text reason;

    snprintf(reason.s, sizeof reason.s, "%s", e->reason); /* the program names its options */
    dpl_opt_name_fields(dpt_cli_spec()->opts, DPL_EDATA, &reason);
    if (!at) fail_msg("no line for %s in\n%s", e->path, out);
    end = strchr(at, '\n');
    at = strstr(at, reason.s);
    if (!at || at > end) fail_msg("%s: no \"%s\" in\n%s", e->path, reason.s, out);
}

static void judge_program(const fault_set *s)
{
    const int bad = count(s, FAULT_BAD), warned = count(s, FAULT_WARN);
    const char *out, *err;
    const int code = fault_run(s, &out, &err, "dpload check -j 2 %s", s->root);

    if (code < 0 || count(s, FAULT_ANY)) return;
    if (code != (bad ? 3 : 0)) fail_msg("exit %d\n%s%s", code, out, err);
    assert_string_equal(err, "");
    for (int i = 0; i < s->n; i++) {
        if (s->entry[i].verdict != FAULT_OK)
            find_line(s, &s->entry[i], out);
        else
            assert_null(strstr(out, test_format("%s/%s\t", s->root, s->entry[i].path)));
    }
    if (!strstr(out, test_format("%d pictures: %d decoded in full (%d with a warning), %d bad;",
                                 s->n, s->n - bad, warned, bad)))
        fail_msg("counts: %s", out);
}

void fault_judge(fault_set *s)
{
    judge_library(s);
    judge_program(s);
    fault_free_all();
}

/* --- one picture --- */

static uint64_t one(void *user)
{
    (void)user;
    return 1;
}

static int64_t read_one(void *user, uint64_t i, void *buf, size_t cap)
{
    const fault_file *f = user;

    (void)i;
    memcpy(buf, f->bytes, f->len < cap ? f->len : cap);
    return (int64_t)f->len;
}

static int32_t no_label(void *user, uint64_t i)
{
    (void)user;
    (void)i;
    return -1;
}

uint8_t *fault_pixels(fault_file f, int exif, int w, int h)
{
    const dpl_source source = { &f, one, read_one, no_label, NULL };
    const size_t bytes = (size_t)w * (size_t)h * 3;
    uint8_t *rgb = malloc(bytes);
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;

    assert_non_null(rgb);
    dpl_options_init(&opt, sizeof opt);
    opt.source = &source;
    opt.recipe = DPL_EVAL;
    opt.width = w;
    opt.height = h;
    opt.resize = w < h ? w : h;
    opt.exif = exif;
    opt.workers = 1;
    opt.epochs = 1;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    assert_int_equal(dpl_next(l, &b, SECONDS_MAX * 1000), DPL_OK);
    if (b.n != 1) {
        dpl_bad bad = { 0 };

        dpl_bad_get(l, 0, &bad);
        fail_msg("not decoded: %s", bad.reason ? bad.reason : "?");
    }
    memcpy(rgb, b.part[0].pixels, bytes);
    dpl_release(l, &b, NULL);
    dpl_close(&l);
    return rgb;
}
