/* SPDX-License-Identifier: Apache-2.0 */
/* One sample from its bytes to its place in a slot: read, decode, augment. Runs on a worker's thread
 * with the worker's own memory and takes no lock. */
#include "loader/loader.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdlib.h>

/* Scratch that a worker keeps between pictures: enough for everyday ones. */
#define KEEP_FILE    ((size_t)16 << 20)
#define KEEP_DECODER ((size_t)32 << 20)
#define KEEP_APPLY   ((size_t)16 << 20)

static void count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Add the time since *mark, and set the mark anew. */
static void lap(uint64_t *counter, int64_t *mark)
{
    const int64_t now = dpl_now_ns();

    count(counter, (uint64_t)(now - *mark));
    *mark = now;
}

/* Bytes of a sample into w->file: from the readers, which know it by its number, or read here. */
static int read_sample(dpl_worker *w, uint64_t batch, uint64_t id, uint64_t number, size_t *len,
                       dpl_text *why)
{
    dpl_samples *samples = w->loader->samples;

    if (w->loader->ahead)
        return dpl_ahead_take(w->loader->ahead, number, &w->file, &w->file_cap, len, why);
    dpl_trace_push(w->loader->trace, "read", batch);
    const int err = samples->ops->read(samples, id, &w->file, &w->file_cap, len,
                                       w->loader->opt.max_file_bytes, why);

    dpl_trace_pop(w->loader->trace);
    if (!err) count(&w->count.bytes_read, *len);
    return err;
}

int dpl_prepare_decode(dpl_worker *w, const void *file, size_t len, uint64_t epoch, uint64_t id,
                       dpl_plan *plan, dpl_pixels *px, int *warned, dpl_text *why)
{
    const dpl_recipe_spec *recipe = &w->loader->recipe;
    int width, height, x, y, region_w, region_h;
    dpl_rng rng;
    int err = dpl_decode_begin(w->decoder, file, len, &width, &height, why);

    if (err) return err;
    dpl_rng_init(&rng, w->loader->opt.seed, epoch, id, DPL_RNG_AUGMENT);
    dpl_plan_draw(plan, recipe, &rng, width, height);
    dpl_plan_region(plan, recipe, &x, &y, &region_w, &region_h);
    err = dpl_decode_region(w->decoder, x, y, region_w, region_h,
                            dpl_plan_denominator(plan, recipe), px, warned, why);
    if (!err) count(&w->count.pixels_decoded, dpl_decode_count(w->decoder));
    return err;
}

/* Write the finished picture to out, as uint8 at once, else by way of w->picture. */
static int write_sample(dpl_worker *w, uint8_t *out, const dpl_plan *plan, const dpl_pixels *px,
                        uint64_t epoch, uint64_t id)
{
    const dpl_loader *l = w->loader;
    uint8_t *picture = w->picture ? w->picture : out;
    const int err = dpl_plan_apply(picture, plan, &l->recipe, px, &l->kernels, &w->scratch);

    if (err) return err;
    if (w->picture) dpl_finish_convert(l, out, picture);
    if (plan->erase.w) dpl_finish_erase(l, out, &plan->erase, epoch, id);
    return DPL_OK;
}

int dpl_prepare(dpl_worker *w, dpl_slot *s, int p, int place, int *warned, dpl_text *why)
{
    const dpl_loader *l = w->loader;
    dpl_slot_part *part = &s->part[p];
    const int at = place - part->first;
    const uint64_t id =
        dpl_sample_at(l, &s->order, dpl_batch_position(l, s->index, s->first + (uint64_t)place));
    int64_t mark = dpl_now_ns();
    dpl_plan plan;
    dpl_pixels px;
    size_t len;
    int err;

    *warned = 0;
    part->ids[at] = id;
    part->labels[at] = part->labels2[at] = l->samples->ops->label(l->samples, id);
    part->mix[at] = 1;
    err = read_sample(w, s->index, id, s->number + (uint64_t)place, &len, why);
    lap(l->ahead ? &w->count.read_wait_ns : &w->count.read_ns, &mark);
    if (err) return err;
    dpl_trace_push(l->trace, "decode", s->index);
    err = dpl_prepare_decode(w, w->file, len, s->epoch, id, &plan, &px, warned, why);
    dpl_trace_pop(l->trace);
    lap(&w->count.decode_ns, &mark);
    if (err) return err;
    err = write_sample(w, part->pixels + (size_t)at * l->picture_bytes, &plan, &px, s->epoch, id);
    lap(&w->count.augment_ns, &mark);
    if (err) return dpl_fail(why, err, "no memory to augment a picture");
    count(&w->count.bytes_out, l->picture_bytes);
    count(&w->count.prepared, 1);
    return DPL_OK;
}

/* --- scratch memory --- */

static size_t picture_pixels(const dpl_loader *l)
{
    return (size_t)l->opt.width * (size_t)l->opt.height * 3;
}

static size_t keep_apply(const dpl_loader *l)
{
    const size_t blur =
        l->recipe.blur > 0 ? dpl_blur_scratch(l->opt.width, l->opt.blur_kernel / 2) : 0;

    /* a picture that is moved is made in two steps */
    return KEEP_APPLY + 2 * picture_pixels(l) + 2 * blur * sizeof(float);
}

uint64_t dpl_prepare_scratch(const dpl_loader *l)
{
    return KEEP_FILE + KEEP_DECODER + keep_apply(l) +
           (l->opt.dtype != DPL_UINT8 ? picture_pixels(l) : 0);
}

int dpl_prepare_init(dpl_worker *w, dpl_text *why)
{
    const dpl_loader *l = w->loader;
    const int err = dpl_decoder_create(&w->decoder, &l->limits);

    if (err) return dpl_fail(why, err, "no memory for a decoder");
    if (l->opt.dtype == DPL_UINT8) return DPL_OK;
    if (!(w->picture = dpl_alloc_aligned(picture_pixels(l), 1)))
        return dpl_fail(why, DPL_ENOMEM, "no memory for a worker's picture");
    return DPL_OK;
}

void dpl_prepare_fini(dpl_worker *w)
{
    dpl_decoder_destroy(&w->decoder);
    dpl_apply_scratch_free(&w->scratch);
    free(w->picture);
    free(w->file);
}

void dpl_prepare_trim(dpl_worker *w)
{
    const dpl_apply_scratch *sc = &w->scratch;

    dpl_decoder_trim(w->decoder, KEEP_DECODER);
    if (sc->rows_cap + sc->image_cap + sc->blur_cap + sc->taps_x.block_cap + sc->taps_y.block_cap >
        keep_apply(w->loader))
        dpl_apply_scratch_free(&w->scratch);
    if (w->file_cap <= KEEP_FILE) return;
    free(w->file);
    w->file = NULL;
    w->file_cap = 0;
}
