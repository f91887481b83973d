/* SPDX-License-Identifier: Apache-2.0 */
/* What dpload bench --limit says. */
#include "base/json_out.h"
#include "tools/dpload_bench.h"

#include <inttypes.h>
#include <stdio.h>

void bench_print_limit(const dpl_limit *m)
{
    printf("%" PRIu64 " images in %d rounds, in each the loader and libjpeg alone on the same "
           "boxes\n",
           m->images, m->rounds);
    printf("loader          %8.0f images/s (median)\n", m->images_per_s);
    printf("libjpeg alone   %8.0f images/s (median)\n", m->bare_per_s);
    printf("ratio           %8.3f (median; %.3f to %.3f), by processor time %.3f\n", m->ratio,
           m->ratio_min, m->ratio_max, m->cpu_ratio);
}

void bench_print_limit_json(const dpl_limit *m, const dpl_loader *l, const cli_options *o)
{
    dpl_info info;
    dpl_json j;

    dpl_info_get(l, &info);
    dpl_json_begin(&j, stdout);
    dpl_json_object(&j, NULL);
    dpl_json_string(&j, "version", dpl_version());
    dpl_json_string(&j, "path", o->loader.path);
    dpl_json_int(&j, "workers", info.workers);
    dpl_json_int(&j, "rounds", m->rounds);
    dpl_json_uint(&j, "images", m->images);
    dpl_json_number(&j, "images_per_s", m->images_per_s);
    dpl_json_number(&j, "bare_per_s", m->bare_per_s);
    dpl_json_number(&j, "ratio", m->ratio);
    dpl_json_number(&j, "ratio_min", m->ratio_min);
    dpl_json_number(&j, "ratio_max", m->ratio_max);
    dpl_json_number(&j, "cpu_ratio", m->cpu_ratio);
    dpl_json_end(&j);
    putchar('\n');
}
