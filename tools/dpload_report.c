/* SPDX-License-Identifier: Apache-2.0 */
/* What dpload bench says: rates, a table of stages, and where the time went in words. */
#include "base/json_out.h"
#include "base/thread.h"
#include "tools/dpload_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

static double seconds(const bench_result *r)
{
    return (double)(r->end.ns - r->start_ns) / 1e9;
}

/* a / b, 0 where b is nothing */
static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

double bench_rate(const bench_result *r)
{
    return per((double)r->images, seconds(r));
}

/* By what the workers finished, not by what was taken: the batches that were waiting when the clock
 * started would count too much. */
double bench_warm_rate(const bench_result *r)
{
    if (!r->warm.ns) return 0;
    return per((double)(r->end.stats.prepared - r->warm.stats.prepared),
               (double)(r->end.ns - r->warm.ns) / 1e9);
}

int bench_stages(const bench_result *r, bench_stage out[BENCH_STAGES])
{
    const dpl_stats *s = &r->end.stats;
    const int workers = r->info.workers, n = r->has_upload ? 4 : 3;
    const bench_stage all[BENCH_STAGES] = {
        { "read", r->info.readers ? r->info.readers : workers, s->read_s, 0, 0, 0 },
        { "decode", workers, s->decode_s, 0, 0, 0 },
        { "augment", workers, s->augment_s, 0, 0, 0 },
        { "upload", 1, s->upload_s, 0, 0, 0 },
    };

    for (int i = 0; i < n; i++) {
        out[i] = all[i];
        out[i].busy = per(out[i].seconds, s->seconds * out[i].threads);
        out[i].ms_per_image = per(1e3 * out[i].seconds, (double)s->prepared);
        out[i].capacity = per((double)s->prepared * out[i].threads, out[i].seconds);
    }
    return n;
}

/* What takes most of the workers' time; to wait for readers counts as reading. */
static const bench_stage *heaviest(const bench_result *r, const bench_stage *stage)
{
    const int apart = r->info.readers > 0;
    const double read = apart ? r->end.stats.read_wait_s : stage[0].seconds;
    const bench_stage *most = stage[2].seconds > stage[1].seconds ? &stage[2] : &stage[1];

    return read > most->seconds ? &stage[0] : most;
}

static double wait_share(const bench_result *r)
{
    return per(r->end.stats.wait_s, seconds(r));
}

bench_verdict bench_verdict_of(const bench_result *r)
{
    const dpl_stats *s = &r->end.stats;

    if (wait_share(r) < 0.02) return BENCH_KEEPS_UP;
    if (per(s->blocked_s, s->seconds * r->info.workers) > wait_share(r)) return BENCH_STARTS_ONLY;
    return BENCH_LOADER_IS_THE_LIMIT;
}

/* The verdict in words, and what would help. */
static void print_verdict(const bench_result *r, const bench_stage *stage)
{
    const double waited = 100 * wait_share(r);
    const int cores = dpl_cpus_usable(NULL), workers = r->info.workers;

    printf("the consumer waited for data %.1f %% of the time: ", waited);
    switch (bench_verdict_of(r)) {
    case BENCH_KEEPS_UP: printf("the loader keeps up\n"); return;
    case BENCH_STARTS_ONLY:
        printf("for the first batches; then the loader waits for it, and keeps up\n");
        return;
    case BENCH_LOADER_IS_THE_LIMIT: break;
    }
    printf("the loader is the limit, %s most of all; ", heaviest(r, stage)->name);
    if (heaviest(r, stage) == stage) {
        printf("readers %d: try --readers %d\n", r->info.readers,
               r->info.readers ? 2 * r->info.readers : 2 * workers);
    } else if (workers < cores) {
        printf("loader threads %d, usable cores %d: try --workers %d\n", workers, cores, cores);
    } else {
        printf("loader threads %d, usable cores %d: every core has one\n", workers, cores);
    }
}

static void print_words(const bench_result *r, const bench_stage *stage)
{
    const dpl_stats *s = &r->end.stats;
    const double total = s->seconds * r->info.workers;
    const double read = r->info.readers ? s->read_wait_s : s->read_s;
    const double known = read + s->decode_s + s->augment_s + s->blocked_s + s->starved_s;

    printf("the loader's threads spent %.0f %% of their time decoding, %.0f %% %s, %.0f %% "
           "augmenting,\n%.0f %% waiting for a free batch slot, %.0f %% without work at the end, "
           "%.0f %% otherwise\n",
           100 * per(s->decode_s, total), 100 * per(read, total),
           r->info.readers ? "waiting for readers" : "reading", 100 * per(s->augment_s, total),
           100 * per(s->blocked_s, total), 100 * per(s->starved_s, total),
           total > known ? 100 * per(total - known, total) : 0);
    print_verdict(r, stage);
}

static double peak_mb(void)
{
    struct rusage u;

    return getrusage(RUSAGE_SELF, &u) ? 0 : (double)u.ru_maxrss * 1024 / 1e6;
}

void bench_print(const bench_result *r, const cli_options *o)
{
    const dpl_stats *s = &r->end.stats;
    bench_stage stage[BENCH_STAGES];
    const int n = bench_stages(r, stage);

    printf("%" PRIu64 " images in %" PRIu64 " batches, %.2f s: %.0f images/s, listing included",
           r->images, r->batches, seconds(r), bench_rate(r));
    if (bench_warm_rate(r) > 0) printf(", %.0f images/s after warm-up", bench_warm_rate(r));
    printf("\n%.1f MB/s of files, %.1f Mpixel/s decoded, %.1f MB/s delivered%s\n",
           per((double)s->bytes_read / 1e6, s->seconds),
           per((double)s->pixels_decoded / 1e6, s->seconds),
           per((double)s->bytes_out / 1e6, s->seconds), o->hash ? " (hashing included)" : "");
    printf("\n%-8s %8s %8s %10s %15s\n", "stage", "threads", "busy", "ms/image", "capacity img/s");
    for (int i = 0; i < n; i++) {
        printf("%-8s %8d %6.1f %% %10.3f %15.0f\n", stage[i].name, stage[i].threads,
               100 * stage[i].busy, stage[i].ms_per_image, stage[i].capacity);
    }
    putchar('\n');
    print_words(r, stage);
    if (s->bad || s->warned) {
        printf("%" PRIu64 " bad picture%s left out, %" PRIu64 " decoded with a warning\n", s->bad,
               s->bad == 1 ? "" : "s", s->warned);
    }
    for (size_t i = 0; i < r->n_hashes; i++) {
        printf("hash of epoch %zu%s: %016" PRIx64 "\n", i, i < r->epochs ? "" : " (cut short)",
               r->hashes[i]);
    }
    if (o->verbose) printf("peak memory of the process: %.1f MB\n", peak_mb());
}

/* --- JSON --- */

static void json_settings(dpl_json *j, const bench_result *r, const cli_options *o)
{
    const dpl_options *p = &o->loader;

    dpl_json_string(j, "version", dpl_version());
    dpl_json_string(j, "path", p->path);
    if (p->list) dpl_json_string(j, "list", p->list);
    if (r->info.index_text) dpl_json_string(j, "index", r->info.index_text);
    dpl_json_string(j, "recipe", p->recipe == DPL_EVAL ? "eval" : "train");
    dpl_json_uint(j, "samples", r->info.samples);
    dpl_json_int(j, "classes", r->info.classes);
    dpl_json_int(j, "width", p->width);
    dpl_json_int(j, "height", p->height);
    dpl_json_string(j, "dtype", cli_dtype_name(p->dtype));
    dpl_json_string(j, "layout", p->layout == DPL_NCHW ? "nchw" : "nhwc");
    dpl_json_int(j, "batch", p->batch);
    dpl_json_int(j, "workers", r->info.workers);
    dpl_json_int(j, "readers", r->info.readers);
    dpl_json_int(j, "prefetch", r->info.prefetch);
    dpl_json_string(j, "devices", r->info.devices);
    dpl_json_int(j, "rank", p->rank);
    dpl_json_int(j, "world", p->world);
    dpl_json_uint(j, "seed", p->seed);
    dpl_json_number(j, "step_s", (double)r->step_ns / 1e9);
    dpl_json_int(j, "usable_cores", dpl_cpus_usable(NULL));
}

static void json_memory(dpl_json *j, const bench_result *r)
{
    dpl_json_object(j, "memory");
    dpl_json_uint(j, "slot_bytes", r->info.slot_bytes);
    dpl_json_uint(j, "scratch_bytes_per_worker", r->info.scratch_bytes);
    dpl_json_uint(j, "read_ahead_bytes", r->info.read_ahead_bytes);
    dpl_json_uint(j, "index_bytes", r->info.index_bytes);
    dpl_json_number(j, "peak_process_mb", peak_mb());
    dpl_json_end(j);
}

static void json_stages(dpl_json *j, const bench_result *r)
{
    bench_stage stage[BENCH_STAGES];
    const int n = bench_stages(r, stage);

    dpl_json_array(j, "stages");
    for (int i = 0; i < n; i++) {
        dpl_json_object(j, NULL);
        dpl_json_string(j, "name", stage[i].name);
        dpl_json_int(j, "threads", stage[i].threads);
        dpl_json_number(j, "busy_share", stage[i].busy);
        dpl_json_number(j, "ms_per_image", stage[i].ms_per_image);
        dpl_json_number(j, "capacity_images_per_s", stage[i].capacity);
        dpl_json_end(j);
    }
    dpl_json_end(j);
}

static void json_rates(dpl_json *j, const bench_result *r)
{
    const dpl_stats *s = &r->end.stats;

    dpl_json_uint(j, "epochs", r->epochs);
    dpl_json_uint(j, "batches", r->batches);
    dpl_json_uint(j, "images", r->images);
    dpl_json_number(j, "seconds", seconds(r));
    dpl_json_number(j, "images_per_s", bench_rate(r));
    dpl_json_number(j, "images_per_s_warm", bench_warm_rate(r));
    dpl_json_number(j, "file_mb_per_s", per((double)s->bytes_read / 1e6, s->seconds));
    dpl_json_number(j, "mpixel_per_s", per((double)s->pixels_decoded / 1e6, s->seconds));
    dpl_json_number(j, "blocked_s", s->blocked_s);
    dpl_json_number(j, "starved_s", s->starved_s);
    dpl_json_number(j, "read_wait_s", s->read_wait_s);
    dpl_json_number(j, "wait_share", wait_share(r));
    dpl_json_uint(j, "bad", s->bad);
    dpl_json_uint(j, "warned", s->warned);
}

void bench_print_json(const bench_result *r, const cli_options *o)
{
    dpl_json j;

    dpl_json_begin(&j, stdout);
    dpl_json_object(&j, NULL);
    json_settings(&j, r, o);
    json_rates(&j, r);
    json_stages(&j, r);
    json_memory(&j, r);
    if (o->hash) {
        dpl_json_array(&j, "hashes");
        for (size_t i = 0; i < r->n_hashes; i++) {
            char text[17];

            snprintf(text, sizeof text, "%016" PRIx64, r->hashes[i]);
            dpl_json_string(&j, NULL, text);
        }
        dpl_json_end(&j);
    }
    dpl_json_end(&j);
    putchar('\n');
}
