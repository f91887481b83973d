/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a loader. */
#include "loader/loader.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "kernels/convert_math.h"
#include "loader/options.h"
#include "loader/recipe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAD_AT_LEAST = 10 };

/* Why this thread's last dpl_open() failed: there is no loader yet to hold it. */
static _Thread_local dpl_text open_error;

static void settle_recipe(dpl_loader *l)
{
    const dpl_options *o = &l->opt;

    dpl_recipe_make(&l->recipe, o);
    l->limits = (dpl_decode_limits){ .max_pixels = o->max_pixels,
                                     .max_scans = o->max_scans,
                                     .exact = !l->recipe.fast,
                                     .exif = o->exif,
                                     .strict = o->strict };
    for (int c = 0; c < 3; c++) {
        l->scale[c] = dpl_normal_scale((double)o->std[c]);
        l->bias[c] = dpl_normal_bias((double)o->mean[c], (double)o->std[c]);
    }
    l->picture_bytes = (size_t)o->width * (size_t)o->height * 3 * dpl_dtype_bytes(o->dtype);
    dpl_kernels_select(&l->kernels, dpl_cpu_flags());
}

static uint64_t bad_cap(const dpl_options *o, uint64_t samples)
{
    const uint64_t share = (uint64_t)(o->max_bad * (double)samples);

    if (o->max_bad <= 0) return 0;
    return share < BAD_AT_LEAST ? BAD_AT_LEAST : share;
}

static int init_sync(dpl_loader *l, dpl_text *why)
{
    int held = 0;

    if (!pthread_mutex_init(&l->lock, NULL)) held = 1;
    if (held == 1 && !pthread_mutex_init(&l->name_lock, NULL)) held = 2;
    if (held == 2 && !dpl_cond_init(&l->work)) held = 3;
    if (held == 3 && !dpl_cond_init(&l->ready)) held = 4;
    if (held == 4 && !dpl_cond_init(&l->idle)) held = 5;
    l->has_sync = held;
    return held == 5 ? DPL_OK : dpl_fail(why, DPL_ENOMEM, "no memory for locks");
}

static void fini_sync(dpl_loader *l)
{
    if (l->has_sync > 4) pthread_cond_destroy(&l->idle);
    if (l->has_sync > 3) pthread_cond_destroy(&l->ready);
    if (l->has_sync > 2) pthread_cond_destroy(&l->work);
    if (l->has_sync > 1) pthread_mutex_destroy(&l->name_lock);
    if (l->has_sync > 0) pthread_mutex_destroy(&l->lock);
}

/* Everything is released here, however far opening came. */
static void destroy(dpl_loader *l)
{
    dpl_ahead_cancel(l->ahead); /* lets workers go that wait for a file */
    dpl_workers_stop(l);
    dpl_ahead_close(&l->ahead);
    dpl_slots_destroy(l);
    dpl_lanes_close(l);
    dpl_bad_fini(l);
    dpl_samples_close(&l->samples);
    fini_sync(l);
    free(l);
}

/* The options' pointers belong to the caller and end with dpl_open(). */
static void forget_pointers(dpl_options *o)
{
    o->path = NULL;
    o->source = NULL;
    o->list = NULL;
    o->index = NULL;
    o->classes = NULL;
    o->devices = NULL;
    o->split = NULL;
}

static int open_parts(dpl_loader *l, dpl_text *why)
{
    int err;

    if ((err = dpl_options_check(&l->opt, why)) || (err = init_sync(l, why)) ||
        (err = dpl_lanes_open(l, &l->opt, why)) ||
        (err = dpl_samples_open(&l->samples, &l->opt, why)))
        return err;
    settle_recipe(l);
    dpl_steps_init(&l->steps, l->samples->count, (uint64_t)l->opt.batch, l->opt.drop_last);
    l->claim_end = UINT64_MAX;
    l->bad_cap = bad_cap(&l->opt, l->samples->count);
    forget_pointers(&l->opt);
    if ((err = dpl_slots_create(l, why))) return err;
    l->workers = dpl_workers_count(&l->opt);
    l->opened_ns = dpl_now_ns();
    if ((err = dpl_ahead_open(&l->ahead, l, why))) return err;
    return dpl_workers_start(l, why);
}

int dpl_open(dpl_loader **out, const dpl_options *opt)
{
    dpl_text *why = &open_error;
    dpl_loader *l;
    int err;

    if (!out) return dpl_fail(why, DPL_EINVAL, "dpl_open: the place for the loader is NULL");
    *out = NULL;
    if (!(l = dpl_calloc(1, sizeof *l))) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    l->pid = getpid();
    if (!(err = dpl_options_take(&l->opt, opt, why))) err = open_parts(l, why);
    if (err)
        destroy(l);
    else
        *out = l;
    return err;
}

void dpl_cancel(dpl_loader *l)
{
    if (!l || dpl_loader_foreign(l)) return;
    pthread_mutex_lock(&l->lock);
    l->canceled = l->stopping = 1;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->ready);
    pthread_cond_broadcast(&l->idle);
    pthread_mutex_unlock(&l->lock);
    dpl_ahead_cancel(l->ahead);
}

void dpl_close(dpl_loader **l)
{
    if (!l || !*l) return;
    /* In a forked child the threads are not there and locks may be held for ever: leave it all. */
    if (!dpl_loader_foreign(*l)) destroy(*l);
    *l = NULL;
}

const char *dpl_error_text(const dpl_loader *l)
{
    return l ? l->error.s : open_error.s;
}
