/* SPDX-License-Identifier: Apache-2.0 */
/* What dpload bench measures and prints. */
#ifndef TOOLS_DPLOAD_BENCH_H
#define TOOLS_DPLOAD_BENCH_H

#include "dpload.h"
#include "tools/dpload_cli.h"
#include "tools/hash64.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_mark {
    int64_t ns; /* 0 = never came */
    dpl_stats stats;
} bench_mark;

typedef struct bench_result {
    int64_t start_ns; /* before the loader was opened */
    bench_mark warm, end;
    dpl_info info;
    uint64_t batches, images, epochs; /* epochs: whole ones */
    int64_t step_ns;
    int has_upload;   /* some device has memory of its own */
    uint64_t *hashes; /* one for each epoch, the last may be cut short by --batches */
    size_t n_hashes;
} bench_result;

/** A stage of the loader: all its threads' work. */
typedef struct bench_stage {
    const char *name;
    int threads;
    double seconds;
    double busy;         /* share of the threads' time */
    double ms_per_image; /* 0 = no images */
    double capacity;     /* images/s if the threads did nothing else; 0 = no work seen */
} bench_stage;

enum { BENCH_STAGES = 4 };

/** read, decode, augment, upload. @return how many took part: upload only with device memory */
int bench_stages(const bench_result *r, bench_stage out[BENCH_STAGES]);
/** Images per second, since the loader was opened or once the pipeline was full (0 = too few batches). */
double bench_rate(const bench_result *r);
double bench_warm_rate(const bench_result *r);

/** Who waited for whom. A loader whose threads waited longer for a free slot than the consumer for data is
 *  fast enough: what the consumer waited for were the first batches. */
typedef enum bench_verdict {
    BENCH_KEEPS_UP,
    BENCH_STARTS_ONLY, /* keeps up, once the first batches are there */
    BENCH_LOADER_IS_THE_LIMIT
} bench_verdict;
bench_verdict bench_verdict_of(const bench_result *r);

void bench_print(const bench_result *r, const cli_options *o);
void bench_print_json(const bench_result *r, const cli_options *o);

void bench_print_limit(const dpl_limit *m);
void bench_print_limit_json(const dpl_limit *m, const dpl_loader *l, const cli_options *o);

#ifdef __cplusplus
}
#endif
#endif
