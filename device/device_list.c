/* SPDX-License-Identifier: Apache-2.0 */
/* "cpu:2,sim:38ms,bus=16G" or "cuda:1,0" to single device specs. */
#include "base/alloc.h"
#include "device/device.h"
#include "dpload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEVICES_MAX = 256, GPU_SPEC = 16 };

typedef struct piece {
    const char *s; /* the spec, or NULL: */
    size_t len;
    int gpu; /* "cuda:N" */
} piece;

typedef struct list {
    const char *asked; /* for messages */
    piece p[DEVICES_MAX];
    int n;
    dpl_gpu_info *gpu; /* [gpus] the visible ones, once somebody asked */
    int gpus;
} list;

static int add(list *l, piece p, dpl_text *why)
{
    if (l->n == DEVICES_MAX)
        return dpl_fail(why, DPL_EINVAL, "devices: more than %d in \"%s\"", DEVICES_MAX, l->asked);
    l->p[l->n++] = p;
    return DPL_OK;
}

/* --- GPUs --- */

static int look(list *l, dpl_text *why)
{
    if (!l->gpus) l->gpus = dpl_gpu_list(&l->gpu, why);
    return l->gpus < 0 ? l->gpus : DPL_OK;
}

static int add_gpu(list *l, int gpu, dpl_text *why)
{
    for (int i = 0; i < l->n; i++)
        if (!l->p[i].s && l->p[i].gpu == gpu)
            return dpl_fail(why, DPL_EINVAL, "devices: \"%s\" names cuda:%d twice", l->asked, gpu);
    return add(l, (piece){ .gpu = gpu }, why);
}

static int add_all_gpus(list *l, dpl_text *why)
{
    int err = look(l, why);

    for (int i = 0; i < l->gpus && !err; i++) err = add_gpu(l, l->gpu[i].index, why);
    return err;
}

/* Does s begin with the word, whatever the case? @return what comes behind, or NULL */
static const char *behind(const char *s, const char *word)
{
    const size_t len = strlen(word);

    return strncasecmp(s, word, len) ? NULL : s + len;
}

static int is_uuid(const char *s)
{
    return behind(s, "GPU-") || behind(s, "MIG-");
}

/* A slice of a GPU has a UUID of its own ("MIG-…"), by which CUDA_VISIBLE_DEVICES may name it. */
static int has_uuid(const dpl_gpu_info *g, const char *begin, size_t len)
{
    return !strncasecmp(g->uuid, begin, len) || !strncasecmp(g->outside, begin, len);
}

static int add_uuid(list *l, const char *s, size_t len, dpl_text *why)
{
    const dpl_gpu_info *found = NULL;
    int err = look(l, why);

    if (err) return err;
    for (int i = 0; i < l->gpus; i++) {
        if (!has_uuid(&l->gpu[i], s, len)) continue;
        if (found)
            return dpl_fail(
                why, DPL_EINVAL,
                "devices: \"%.*s\" is the beginning of more than one UUID: %s, %s; give "
                "more of it",
                (int)len, s, found->uuid, l->gpu[i].uuid);
        found = &l->gpu[i];
    }
    if (!found)
        return dpl_fail(why, DPL_EDEVICE,
                        "devices: \"%.*s\": none of the %d visible GPUs has such a UUID (the first "
                        "is %s); look at nvidia-smi -L and CUDA_VISIBLE_DEVICES",
                        (int)len, s, l->gpus, l->gpu[0].uuid);
    return add_gpu(l, found->index, why);
}

/* A number of at most five digits at *s, which moves on. @return it, or -1 */
static int number(const char **s, const char *end)
{
    int n = 0;

    if (*s == end || !isdigit((unsigned char)**s)) return -1;
    for (; *s < end && isdigit((unsigned char)**s); ++*s) {
        if (n > 9999) return -1;
        n = 10 * n + (**s - '0');
    }
    return n;
}

/* "2", "0-3" or the begin of a UUID */
static int add_gpus(list *l, const char *s, size_t len, dpl_text *why)
{
    const char *at = s, *const end = s + len;
    int from, to, err = DPL_OK;

    if (is_uuid(s)) return add_uuid(l, s, len, why);
    from = to = number(&at, end);
    if (from >= 0 && at < end && *at == '-') {
        at++;
        to = number(&at, end);
    }
    if (at != end || from < 0 || to < from)
        return dpl_fail(
            why, DPL_EINVAL,
            "devices: \"%.*s\": a GPU is a number (0), a range (0-3) or the beginning of "
            "its UUID (GPU-8f3a)",
            (int)len, s);
    for (int i = from; i <= to && !err; i++) err = add_gpu(l, i, why);
    return err;
}

/* --- the rest --- */

/* "cpu:N" counts N times "cpu". */
static int add_cpus(list *l, const char *s, size_t len, dpl_text *why)
{
    const char *at = s + 4;
    const int n = number(&at, s + len);
    int err = DPL_OK;

    if (n < 1 || n > DEVICES_MAX || at != s + len)
        return dpl_fail(why, DPL_EINVAL, "devices: \"%.*s\": cpu:N takes N from 1 to %d", (int)len,
                        s, DEVICES_MAX);
    for (int i = 0; i < n && !err; i++) err = add(l, (piece){ .s = s, .len = 3 }, why);
    return err;
}

/* All visible GPUs, or the CPU and why. */
static int add_auto(list *l, dpl_text *why)
{
    const int err = look(l, why);

    if (err == DPL_ENOMEM) return err;
    if (err) return add(l, (piece){ .s = "cpu", .len = 3 }, why);
    return add_all_gpus(l, why);
}

static int is_word(const char *word, const char *s, size_t len)
{
    return strlen(word) == len && !memcmp(word, s, len);
}

static int add_piece(list *l, const char *s, size_t len, dpl_text *why)
{
    piece *before = l->n ? &l->p[l->n - 1] : NULL;

    if (before && before->s && memchr(s, '=', len) && !strncmp(before->s, "sim", 3)) {
        before->len += 1 + len; /* "bus=16G" belongs to the sim spec before it */
        return DPL_OK;
    }
    if (is_word("cuda", s, len)) return add_all_gpus(l, why);
    if (len >= 5 && !memcmp(s, "cuda:", 5)) return add_gpus(l, s + 5, len - 5, why);
    if (isdigit((unsigned char)*s) || is_uuid(s)) return add_gpus(l, s, len, why);
    if (len >= 4 && !memcmp(s, "cpu:", 4)) return add_cpus(l, s, len, why);
    if (is_word("auto", s, len))
        return dpl_fail(why, DPL_EINVAL, "devices: \"%s\": auto stands alone", l->asked);
    return add(l, (piece){ .s = s, .len = len }, why);
}

static int add_pieces(list *l, const char *text, dpl_text *why)
{
    int err = DPL_OK;

    for (const char *s = text; !err; s++) {
        const size_t len = strcspn(s, ",");

        if (!len)
            return dpl_fail(why, DPL_EINVAL, "devices: \"%s\": a name is missing%s", l->asked,
                            *text ? " between two commas or at an end" : "");
        err = add_piece(l, s, len, why);
        s += len;
        if (!*s) break;
    }
    return err;
}

/* A copy of s without the blanks at its ends and around commas. */
static char *tidy(const char *s)
{
    char *out = dpl_calloc(1, strlen(s) + 1);
    size_t n = 0;

    for (; out && *s; s++) {
        if (isblank((unsigned char)*s)) {
            const char next = s[strspn(s, " \t")];

            if (!n || out[n - 1] == ',' || next == ',' || !next) continue;
        }
        out[n++] = *s;
    }
    return out;
}

/* The array and its strings in one piece. */
static char **make_specs(const list *l)
{
    size_t bytes = 0;
    char **spec, *text;

    for (int i = 0; i < l->n; i++) bytes += l->p[i].s ? l->p[i].len + 1 : GPU_SPEC;
    if (!(spec = dpl_calloc(1, (size_t)l->n * sizeof *spec + bytes))) return NULL;
    text = (char *)(spec + l->n);
    for (int i = 0; i < l->n; i++) {
        const piece *p = &l->p[i];

        if (p->s)
            memcpy(text, p->s, p->len);
        else
            snprintf(text, GPU_SPEC, "cuda:%d", p->gpu);
        spec[i] = text;
        text += p->s ? p->len + 1 : GPU_SPEC;
    }
    return spec;
}

int dpl_device_list_parse(char ***out, const char *asked, dpl_text *why)
{
    list l = { .asked = asked };
    char *text = tidy(asked);
    int err;

    *out = NULL;
    dpl_fail(why, DPL_OK, "%s", "");
    if (!text)
        err = dpl_fail(why, DPL_ENOMEM, "devices");
    else if (!strcmp(text, "auto"))
        err = add_auto(&l, why);
    else
        err = add_pieces(&l, text, why);
    if (!err && !(*out = make_specs(&l))) err = dpl_fail(why, DPL_ENOMEM, "devices");
    free(l.gpu);
    free(text);
    return err ? err : l.n;
}
