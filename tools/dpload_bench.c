/* SPDX-License-Identifier: Apache-2.0 */
/* dpload bench: take batches as fast as they come, or at the pace of a modelled training step. */
#include "tools/dpload_bench.h"

#include "base/clock.h"
#include "base/files.h"
#include "tools/dpload_cli.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PHASE_IMAGES = 256 };

static const dpl_opt rows[] = {
    CLI_OPT_SIZE("deliver N x N pixels [224]"),
    CLI_OPT_RECIPE,
    CLI_OPT_SUBSET("which part of DIR; auto goes by the recipe [auto]"),
    { "epochs", 0, NULL, DPL_OPT_UINT64, CLI_AT(loader.epochs), 1, 1000000, NULL, "N",
      "times through the pictures [1]", NULL, 1 },
    { "batches", 0, NULL, DPL_OPT_INT, CLI_AT(batches), 1, 2147483647, NULL, "N",
      "end after N batches [all]", NULL, 1 },
    { "step", 0, NULL, DPL_OPT_STRING, CLI_AT(step), 0, 0, NULL, "TIME",
      "take TIME over each batch, as training would: 38ms [that of sim devices, else 0]", NULL, 1 },
    { "hash", 0, NULL, DPL_OPT_FLAG, CLI_AT(hash), 0, 0, NULL, NULL,
      "one number for all delivered bytes of an epoch", NULL, 1 },
    { "limit", 0, NULL, DPL_OPT_FLAG, CLI_AT(limit), 0, 0, NULL, NULL,
      "measure in turns the loader and libjpeg alone on the same boxes, print the ratio", NULL, 1 },
    { "rounds", 0, NULL, DPL_OPT_INT, CLI_AT(rounds), 1, 1000, NULL, "N",
      "of --limit; each takes the next --batches batches, or 256 pictures [5]", NULL, 0 },
    { "json", 0, NULL, DPL_OPT_FLAG, CLI_AT(json), 0, 0, NULL, NULL,
      "one JSON object on standard output", NULL, 1 },
    { "devices", 0, "device", DPL_OPT_STRING, CLI_AT(loader.devices), 0, 0, NULL, "LIST",
      "a part of each batch for each: cpu,cpu or sim:38ms; GPUs: 0,1 or 0-3 or cuda = all;\n"
      "auto = all GPUs, else cpu [auto; with --hash or --limit cpu]",
      NULL, 0 },
    { "rank", 0, NULL, DPL_OPT_INT, CLI_AT(loader.rank), 0, 1048575, NULL, "N",
      "load the share of process N of --world [0]", NULL, 0 },
    { "world", 0, NULL, DPL_OPT_INT, CLI_AT(loader.world), 1, 1048576, NULL, "N",
      "processes that share each batch [1]", NULL, 0 },
    { "dtype", 0, NULL, DPL_OPT_CHOICE, CLI_AT(loader.dtype), 0, 0,
      "uint8|float32|bfloat16|float16", "TYPE",
      "of the delivered pixels: uint8, float32, bfloat16 or float16 [uint8]", NULL, 0 },
    { "layout", 0, NULL, DPL_OPT_CHOICE, CLI_AT(loader.layout), 0, 0, "nhwc|nchw", "ORDER",
      "nhwc, or with any dtype but uint8 nchw [nhwc]", NULL, 0 },
    CLI_OPT_VERBOSE,
    CLI_OPT_END,
};
static const cli_command command = {
    .program = "dpload bench",
    .summary = "Measure how fast pictures are loaded, and where the time goes.",
    .examples =
        "dpload bench --workers 8 imagenet\n"
        "dpload bench --step 38ms --batch 64 imagenet   (would training starve?)\n"
        "dpload bench --limit --workers 2 imagenet       (how near the decoder's own speed?)\n",
    .own = rows,
    .loader = NULL,
};

/* --- hash --- */

static void put_le(uint8_t *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(v >> (8 * i));
}

/* Sample by sample: pixels, label (4 bytes), id (8 bytes), numbers little-endian. So neither the
 * size of a batch nor its split over devices matters, only what is delivered, and in which order. */
static void hash_batch(tool_hash64 *h, const dpl_batch *b)
{
    const size_t one = (size_t)b->width * (size_t)b->height * 3 * cli_dtype_bytes(b->dtype);

    for (int p = 0; p < b->parts; p++) {
        const dpl_part *part = &b->part[p];

        for (int i = 0; i < part->n; i++) {
            uint8_t tail[12];

            put_le(tail, (uint32_t)part->labels[i], 4);
            put_le(tail + 4, part->ids[i], 8);
            tool_hash64_add(h, (const uint8_t *)part->pixels + (size_t)i * one, one);
            tool_hash64_add(h, tail, sizeof tail);
        }
    }
}

/* --- the run --- */

/* The time of a step: --step, or the longest that a device "sim:38ms" in the list models. */
static int find_step(const cli_options *o, int64_t *step_ns, dpl_text *why)
{
    const char *at = o->loader.devices ? o->loader.devices : "";

    *step_ns = 0;
    if (o->step && (dpl_parse_time_ns(o->step, step_ns) || *step_ns < 0)) {
        return dpl_fail(why, DPL_EINVAL, "--step %s: expected a time, for example 38ms", o->step);
    }
    while (!o->step && (at = strstr(at, "sim:"))) {
        char time[32];
        int64_t ns;

        at += strlen("sim:");
        snprintf(time, sizeof time, "%.*s", (int)strcspn(at, ","), at);
        if (!dpl_parse_time_ns(time, &ns) && ns > *step_ns) *step_ns = ns;
    }
    return DPL_OK; /* a device that cannot be read is refused by dpl_open() */
}

static void sleep_until(int64_t ns)
{
    const struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {}
}

static void mark(bench_mark *m, const dpl_loader *l)
{
    m->ns = dpl_now_ns();
    m->stats.size = sizeof m->stats;
    dpl_stats_get(l, &m->stats);
}

/* The pipeline is full, so that from here on the rate is a steady one. */
static int is_warm(const bench_result *r, const dpl_info *info)
{
    return r->batches == (uint64_t)info->prefetch + 1;
}

static int keep_hash(bench_result *r, tool_hash64 *h)
{
    uint64_t *more = realloc(r->hashes, (r->n_hashes + 1) * sizeof *more);

    if (!more) return DPL_ENOMEM;
    r->hashes = more;
    r->hashes[r->n_hashes++] = tool_hash64_value(h);
    tool_hash64_init(h);
    return DPL_OK;
}

/* @return DPL_OK at the end of the last epoch (or after o->batches), else what dpl_next() gave */
static int run(dpl_loader *l, const cli_options *o, bench_result *r)
{
    uint64_t epochs = 0, last = 0; /* last: index of the batch in its epoch, from 1 */
    dpl_info info;
    tool_hash64 hash;
    int err = DPL_OK;

    dpl_info_get(l, &info);
    tool_hash64_init(&hash);
    while (epochs < o->loader.epochs && (!o->batches || r->batches < (uint64_t)o->batches)) {
        dpl_batch b;

        err = dpl_next(l, &b, -1);
        if (err == DPL_EOF) {
            epochs++;
            last = 0;
            err = o->hash ? keep_hash(r, &hash) : DPL_OK;
            if (err) break;
            continue;
        }
        if (err) break;
        r->batches++;
        last = b.index + 1;
        r->images += (uint64_t)b.n;
        if (o->hash) hash_batch(&hash, &b);
        if (is_warm(r, &info)) mark(&r->warm, l);
        if (r->step_ns) sleep_until(dpl_now_ns() + r->step_ns);
        dpl_release(l, &b, NULL);
    }
    if (!err && last && o->hash) err = keep_hash(r, &hash);
    r->epochs = epochs + (last == info.batches);
    return err;
}

static int finish(dpl_loader *l, const cli_options *o, bench_result *r, int err)
{
    mark(&r->end, l);
    dpl_info_get(l, &r->info);
    r->has_upload = strstr(r->info.devices, "sim") || strstr(r->info.devices, "cuda");
    if (err && err != DPL_EDATA) return cli_fail_loader(err, l);
    if (!err && o->json) bench_print_json(r, o);
    if (!err && !o->json) bench_print(r, o);
    cli_name_bad(l);
    return err ? cli_fail_loader(err, l) : CLI_DONE;
}

/* What is hashed is read here, and a GPU's memory cannot be. */
static int check_hash(const dpl_loader *l, const cli_options *o)
{
    dpl_info info;

    dpl_info_get(l, &info);
    if (!o->hash || !strstr(info.devices, "cuda")) return CLI_DONE;
    fprintf(
        stderr,
        "dpload: --hash with --devices %s: pixels on a GPU are not hashed; what is delivered is "
        "the same on every device: use --devices cpu\n",
        o->loader.devices);
    return CLI_USAGE;
}

/* --- the decoder's limit --- */

/* Batches of a phase: as asked, or what takes long enough to be timed. */
static int phase_batches(const cli_options *o)
{
    const int least = (PHASE_IMAGES + o->loader.batch - 1) / o->loader.batch;

    return o->batches ? o->batches : least;
}

static int run_limit(dpl_loader *l, const cli_options *o)
{
    dpl_limit limit;
    const int err = dpl_limit_measure(l, phase_batches(o), o->rounds, &limit);

    if (err) return cli_fail_loader(err, l);
    if (o->json)
        bench_print_limit_json(&limit, l, o);
    else
        bench_print_limit(&limit);
    cli_name_bad(l);
    return CLI_DONE;
}

int cli_bench(int argc, char **argv)
{
    cli_options o = { .size = 0 };
    bench_result r = { .batches = 0 };
    cli_data data = { NULL, NULL, 0 };
    dpl_loader *l = NULL;
    dpl_text why = { "" };
    const char *dir;
    int code, err;

    dpl_options_init(&o.loader, sizeof o.loader);
    o.loader.epochs = 1;
    o.rounds = 5;
    if (cli_parse(&command, argc, argv, &o, &dir, &code)) return code;
    if (!o.loader.devices) o.loader.devices = o.hash || o.limit ? "cpu" : "auto";
    if (o.limit) o.loader.epochs = 0; /* rounds go on where the last one ended */
    if ((err = find_step(&o, &r.step_ns, &why)) || (err = cli_data_choose(&data, dir, &o, &why))) {
        code = cli_fail(err, why.s);
        goto done;
    }
    r.start_ns = dpl_now_ns(); /* the loader starts to work inside dpl_open() */
    if ((err = dpl_open(&l, &o.loader))) {
        code = cli_fail_loader(err, NULL);
    } else if (!(code = check_hash(l, &o))) {
        cli_announce(l, &o, o.json ? stderr : stdout);
        code = o.limit ? run_limit(l, &o) : finish(l, &o, &r, run(l, &o, &r));
    }
done:
    dpl_close(&l);
    cli_data_free(&data);
    free(r.hashes);
    return code;
}
