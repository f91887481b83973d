/* SPDX-License-Identifier: Apache-2.0 */
/* The batch slots: their memory, allocated once, and their way to the devices. */
#include "loader/loader.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* --- devices --- */

static int lane_open(dpl_lane *lane, const char *spec, dpl_text *why)
{
    int err = dpl_device_open(&lane->device, spec, why);

    if (err) return err;
    if (pthread_mutex_init(&lane->upload_lock, NULL))
        return dpl_fail(why, DPL_ENOMEM, "device %s: no lock", spec);
    lane->has_lock = 1;
    if (!dpl_device_has_memory(lane->device)) return DPL_OK;
    return dpl_stream_create(lane->device, &lane->copies, "dpl-copy", why);
}

static int take_split(dpl_loader *l, const dpl_options *opt, dpl_text *why)
{
    if (opt->n_split < 0 || (opt->split && !opt->n_split))
        return dpl_fail(why, DPL_EINVAL, "n_split %d: expected the number of entries of split",
                        opt->n_split);
    if (!opt->n_split) return DPL_OK;
    if (!opt->split || opt->n_split != l->lanes)
        return dpl_fail(why, DPL_EINVAL, "split has %d weights: expected %d, one per device (%s)",
                        opt->split ? opt->n_split : 0, l->lanes,
                        opt->devices ? opt->devices : "cpu");
    for (int p = 0; p < l->lanes; p++)
        if (opt->split[p] < 1)
            return dpl_fail(why, DPL_EINVAL, "split[%d] is %d: expected at least 1", p,
                            opt->split[p]);
    if (!(l->weight = dpl_calloc((size_t)l->lanes, sizeof *l->weight)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory");
    memcpy(l->weight, opt->split, (size_t)l->lanes * sizeof *l->weight);
    return DPL_OK;
}

/* Every part of a full batch must have work. */
static int check_shares(const dpl_loader *l, const dpl_options *opt, dpl_text *why)
{
    const uint64_t least = (uint64_t)(opt->batch / opt->world);
    uint64_t *share;
    int empty = -1;

    if ((int64_t)opt->batch < (int64_t)opt->world * l->lanes)
        return dpl_fail(why, DPL_EINVAL,
                        "batch %d is smaller than the number of devices: %d processes x %d parts; "
                        "use a batch of at least %lld, or fewer devices",
                        opt->batch, opt->world, l->lanes, (long long)opt->world * l->lanes);
    if (!(share = dpl_calloc((size_t)l->lanes, sizeof *share)))
        return dpl_fail(why, DPL_ENOMEM, "out of memory");
    dpl_split(least, l->weight, l->lanes, share);
    for (int p = 0; p < l->lanes && empty < 0; p++)
        if (!share[p]) empty = p;
    free(share);
    if (empty < 0) return DPL_OK;
    return dpl_fail(why, DPL_EINVAL,
                    "batch %d leaves nothing for device %d with its weight %d; use a larger batch "
                    "or a less uneven split",
                    opt->batch, empty, l->weight ? l->weight[empty] : 1);
}

/* Keep what the list of devices came to. note: of dpl_device_list_parse() */
static int note_devices(dpl_loader *l, char *const *spec, int n, const char *note)
{
    size_t bytes = 1, at = 0;

    for (int p = 0; p < n; p++) bytes += strlen(spec[p]) + 1;
    if (!(l->devices = dpl_calloc(1, bytes))) return DPL_ENOMEM;
    for (int p = 0; p < n; p++)
        at += (size_t)snprintf(l->devices + at, bytes - at, "%s%s", p ? "," : "", spec[p]);
    return *note && !(l->devices_text = dpl_strdup(note)) ? DPL_ENOMEM : DPL_OK;
}

int dpl_lanes_open(dpl_loader *l, const dpl_options *opt, dpl_text *why)
{
    char **spec = NULL;
    const int n = dpl_device_list_parse(&spec, opt->devices ? opt->devices : "cpu", why);
    int err = n < 0 ? n : DPL_OK;

    if (!err && (err = note_devices(l, spec, n, why->s))) dpl_fail(why, err, "out of memory");
    if (!err && !(l->lane = dpl_calloc((size_t)n, sizeof *l->lane)))
        err = dpl_fail(why, DPL_ENOMEM, "no memory for %d devices", n);
    if (!err) {
        l->lanes = n;
        if (!(err = take_split(l, opt, why))) err = check_shares(l, opt, why);
    }
    for (int p = 0; p < n && !err; p++) {
        err = lane_open(&l->lane[p], spec[p], why);
        if (!err && !l->trace) l->trace = dpl_device_trace(l->lane[p].device);
    }
    free(spec);
    return err;
}

void dpl_lanes_close(dpl_loader *l)
{
    for (int p = 0; p < l->lanes; p++) {
        dpl_lane *lane = &l->lane[p];

        if (lane->copies) dpl_stream_destroy(&lane->copies);
        if (lane->has_lock) pthread_mutex_destroy(&lane->upload_lock);
        dpl_device_close(&lane->device);
    }
    free(l->lane);
    free(l->weight);
    free(l->devices);
    free(l->devices_text);
}

const char *dpl_lanes_failure(const dpl_loader *l)
{
    const char *s = "";

    for (int p = 0; p < l->lanes && !*s; p++) s = dpl_device_failure(l->lane[p].device);
    return *s ? s : "it did not say why";
}

/* --- memory --- */

static size_t line_up(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* An epoch has two sizes of batch: full ones and perhaps a last one. Room for both, because a part of
 * a smaller batch is not always smaller (largest remainder). */
static int size_lanes(dpl_loader *l, dpl_text *why)
{
    const uint64_t last = l->steps.count - 1;
    uint64_t *share = dpl_calloc((size_t)l->lanes, sizeof *share);
    uint64_t first, n;

    if (!share) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    for (int which = 0; which < 2; which++) {
        dpl_steps_rank(&l->steps, which ? last : 0, l->opt.rank, l->opt.world, &first, &n);
        dpl_split(n, l->weight, l->lanes, share);
        for (int p = 0; p < l->lanes; p++)
            if ((uint64_t)l->lane[p].capacity < share[p]) l->lane[p].capacity = (int)share[p];
    }
    free(share);
    return DPL_OK;
}

static size_t part_bytes(size_t n, size_t pixels)
{
    return pixels + line_up(n * sizeof(uint64_t)) + 2 * line_up(n * sizeof(int32_t)) +
           line_up(n * sizeof(float));
}

/* Lay a part's arrays for n samples out over its block; pixels: their bytes. */
static void part_carve(dpl_slot_part *part, size_t n, size_t pixels)
{
    uint8_t *at = part->block;

    part->pixels = at;
    part->ids = (uint64_t *)(void *)(at += pixels);
    part->labels = (int32_t *)(void *)(at += line_up(n * sizeof *part->ids));
    part->labels2 = (int32_t *)(void *)(at += line_up(n * sizeof *part->labels));
    part->mix = (float *)(void *)(at + line_up(n * sizeof *part->labels2));
}

/* The halo stays in the memory of the host. */
static int halo_create(dpl_loader *l, dpl_slot_part *halo, dpl_text *why)
{
    const size_t pixels = line_up(l->picture_bytes), bytes = part_bytes(1, pixels);

    if (!dpl_mix_is_on(&l->opt)) return DPL_OK;
    if (!(halo->block = dpl_alloc_aligned(bytes, 1)) || !(halo->bad = dpl_calloc(1, 1)))
        return dpl_fail(why, DPL_ENOMEM, "no memory to mix batches: %zu bytes", bytes);
    part_carve(halo, 1, pixels);
    l->slot_bytes += bytes;
    return DPL_OK;
}

static int part_create(dpl_loader *l, dpl_slot_part *part, const dpl_lane *lane, dpl_text *why)
{
    const size_t n = lane->capacity ? (size_t)lane->capacity : 1;
    size_t pixels, bytes;
    int err;

    if (dpl_mul(n, l->picture_bytes, &pixels) || pixels > SIZE_MAX / 2)
        return dpl_fail(why, DPL_ENOMEM, "a batch slot of %zu pictures is too large", n);
    pixels = line_up(pixels);
    bytes = part_bytes(n, pixels);
    if (!(part->block = dpl_device_host_alloc(lane->device, bytes)) ||
        !(part->bad = dpl_calloc(n, 1)))
        return dpl_fail(why, DPL_ENOMEM,
                        "no memory for a batch slot of %zu bytes (%zu pictures, %d slots); use a "
                        "smaller options.batch, options.width or options.prefetch",
                        bytes, n, l->slots);
    part_carve(part, n, pixels);
    l->slot_bytes += bytes;
    if ((err = dpl_event_create(lane->device, &part->released, why))) return err;
    if (!lane->copies) return DPL_OK;
    if ((err = dpl_event_create(lane->device, &part->uploaded, why))) return err;
    l->slot_bytes += pixels;
    if (!(part->device_pixels = dpl_device_alloc(lane->device, pixels)))
        return dpl_fail(why, DPL_ENOMEM,
                        "device %s: no memory for a batch part of %zu bytes (%zu pictures, %d "
                        "slots); use a smaller options.batch, options.width or options.prefetch",
                        dpl_device_name(lane->device), pixels, n, l->slots);
    return DPL_OK;
}

int dpl_slots_create(dpl_loader *l, dpl_text *why)
{
    int err = size_lanes(l, why);

    if (err) return err;
    l->slots = l->opt.prefetch + 1;
    l->slot = dpl_calloc((size_t)l->slots, sizeof *l->slot);
    l->in_flight = dpl_calloc((size_t)l->slots, sizeof(dpl_slot *));
    if (!l->slot || !l->in_flight) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    l->free_tail = &l->free_slots;
    for (int k = 0; k < l->slots; k++) {
        dpl_slot *s = &l->slot[k];

        s->part = dpl_calloc((size_t)l->lanes + 1, sizeof *s->part);
        s->view = dpl_calloc((size_t)l->lanes, sizeof *s->view);
        if (!s->part || !s->view) return dpl_fail(why, DPL_ENOMEM, "out of memory");
        for (int p = 0; p < l->lanes; p++)
            if ((err = part_create(l, &s->part[p], &l->lane[p], why))) return err;
        if ((err = halo_create(l, &s->part[l->lanes], why))) return err;
        *l->free_tail = s;
        l->free_tail = &s->next_free;
    }
    return DPL_OK;
}

static void part_destroy(dpl_slot_part *part, dpl_device *device)
{
    if (part->uploaded) dpl_event_destroy(&part->uploaded);
    if (part->released) dpl_event_destroy(&part->released);
    if (part->device_pixels) dpl_device_free(device, part->device_pixels);
    if (part->block) dpl_device_host_free(device, part->block);
    free(part->bad);
}

void dpl_slots_destroy(dpl_loader *l)
{
    for (int k = 0; l->slot && k < l->slots; k++) {
        dpl_slot *s = &l->slot[k];

        if (s->part) dpl_slot_settle(s, l->lanes); /* an error here changes nothing: it all goes */
        for (int p = 0; s->part && p < l->lanes; p++) part_destroy(&s->part[p], l->lane[p].device);
        if (s->part) free(s->part[l->lanes].block);
        if (s->part) free(s->part[l->lanes].bad);
        dpl_issues_clear(s);
        free(s->issue);
        free(s->part);
        free(s->view);
    }
    free(l->slot);
    free(l->in_flight);
}

/* --- the life of a slot --- */

int dpl_slot_settle(dpl_slot *s, int lanes)
{
    int err = DPL_OK;

    for (int p = 0; p < lanes; p++) {
        dpl_slot_part *part = &s->part[p];
        const int up = part->uploaded ? dpl_event_sync(part->uploaded) : DPL_OK;
        const int down = part->released ? dpl_event_sync(part->released) : DPL_OK;

        if (up || down) err = up ? up : down;
    }
    return err;
}

void dpl_slot_recycle(dpl_loader *l, dpl_slot *s)
{
    dpl_issues_clear(s);
    s->state = DPL_SLOT_FREE;
    s->next_free = NULL;
    *l->free_tail = s;
    l->free_tail = &s->next_free;
    pthread_cond_broadcast(&l->work);
}

void dpl_slot_compact(const dpl_loader *l, dpl_slot *s, int p)
{
    dpl_slot_part *part = &s->part[p];
    dpl_part *view = &s->view[p];
    int n = 0;

    for (int k = 0; k < part->planned; k++) {
        if (part->bad[k]) continue;
        if (n != k) {
            memcpy(part->pixels + (size_t)n * l->picture_bytes,
                   part->pixels + (size_t)k * l->picture_bytes, l->picture_bytes);
            part->ids[n] = part->ids[k];
            part->labels[n] = part->labels[k];
            part->labels2[n] = part->labels2[k];
            part->mix[n] = part->mix[k];
        }
        n++;
    }
    view->n = n;
    view->pixels = part->device_pixels ? part->device_pixels : part->pixels;
    view->labels = part->labels;
    view->labels2 = part->labels2;
    view->mix = part->mix;
    view->ids = part->ids;
    view->device = p;
}

int dpl_slot_upload(dpl_loader *l, dpl_slot *s, int p)
{
    dpl_slot_part *part = &s->part[p];
    dpl_lane *lane = &l->lane[p];
    int err;

    if (!lane->copies || !s->view[p].n) return DPL_OK;
    pthread_mutex_lock(&lane->upload_lock);
    err = dpl_copy_to_device(lane->copies, part->device_pixels, part->pixels,
                             (size_t)s->view[p].n * l->picture_bytes);
    if (!err) err = dpl_event_record(part->uploaded, lane->copies);
    pthread_mutex_unlock(&lane->upload_lock);
    return err;
}
