/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says: results on stdout, messages and progress on stderr. On a terminal progress is one
 * line that is redrawn; elsewhere it is plain lines. One thread uses a report. */
#ifndef DPT_TRAINER_REPORT_H
#define DPT_TRAINER_REPORT_H

#include "trainer/backend.h"
#include "trainer/cli.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpt_pass_kind { DPT_PASS_TRAIN, DPT_PASS_TEST, DPT_PASS_SIM } dpt_pass_kind;

/** One pass over training or validation pictures, under way. "Here" = in this process, so without
 *  what a resumed run did before. */
typedef struct dpt_pass {
    dpt_pass_kind kind;
    int64_t epoch, epochs;       /* 0-based; of the run */
    uint64_t batch, batches;     /* batches done; of the pass */
    uint64_t images, images_all; /* pictures behind us, refused ones included; of the pass */
    dpt_sums last, total;        /* of the last step; of the whole pass */
    double lr;
    double last_time, last_wait;      /* seconds of the last step, and its share without data */
    double time, wait, compute, rate; /* seconds, summed here; smoothed pictures per second */
    int64_t steps, images_here;
} dpt_pass;

/** Count one step: sums over its samples, seconds it took, seconds of them spent without data and
 *  computing. planned: pictures of the batch, refused ones included. */
void dpt_pass_step(dpt_pass *p, const dpt_sums *sums, int planned, double time, double wait,
                   double compute);
/** Pictures per second here, and the share of the time spent without data, 0..1. */
double dpt_pass_rate(const dpt_pass *p);
double dpt_pass_wait_share(const dpt_pass *p);
/** Sums to a mean loss and percentages; 0 when there is no sample. */
double dpt_mean_loss(const dpt_sums *s);
double dpt_percent(int64_t part, int64_t whole);

typedef struct dpt_report {
    FILE *out, *err;
    int quiet, verbose, json;
    int rank, world; /* of several processes; those with a rank above 0 leave the talking to it */
    int live;        /* 1 = progress is redrawn in place */
    int plain;       /* 1 = progress is lines */
    double interval; /* plain: seconds between lines, 0 = every print_freq steps */
    int print_freq;  /* steps */
    int color, utf8; /* of err */
    int shown;       /* a live line stands on the terminal */
    int64_t last_ns; /* when progress was last written */
    int64_t started_ns; /* of the pass, for the time to go */
} dpt_report;

void dpt_report_init(dpt_report *r, const dpt_options *o);
/** This is process `rank` of `world`: what only it can know is said with its number in front; the rest
 *  is left to process 0. */
void dpt_report_process(dpt_report *r, int rank, int world);
/** A line on stderr. note: hidden by -qq. detail: with -v. warn: "dptrain: warning: ", hidden by
 *  -qq. */
void dpt_report_note(dpt_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dpt_report_detail(dpt_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dpt_report_warn(dpt_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** "dptrain: TEXT" as a note, by every process: of a picture that it alone has read. */
void dpt_report_own(dpt_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** A line of results: stdout; with --json stderr, as a note. */
void dpt_report_result(dpt_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** "dptrain: TEXT" on stderr, always and by every process. */
void dpt_report_error(dpt_report *r, const char *text);

/** Progress: at the start of a pass, after each of its steps, while waiting (live only), and at its
 *  end, where the live line is wiped. */
void dpt_report_begin(dpt_report *r, const dpt_pass *p);
void dpt_report_step(dpt_report *r, const dpt_pass *p);
void dpt_report_tick(dpt_report *r, const dpt_pass *p);
void dpt_report_wipe(dpt_report *r);

/* Formatting, without a trailing newline; all return what snprintf does. */

/** The plain line, as log parsers of other trainers know it. */
int dpt_format_pass(char *buf, size_t len, const dpt_pass *p);
/** The live line in at most `columns` columns; elapsed: seconds since the pass began. */
void dpt_format_live(char *buf, size_t len, const dpt_pass *p, int columns, int utf8, int color,
                     double elapsed);
/** "1,281,167" */
const char *dpt_format_count(char buf[32], uint64_t n);
/** "12:35", "3:02:11" */
const char *dpt_format_duration(char buf[32], double seconds);
/** "12.3 s", from a minute on as dpt_format_duration(). */
const char *dpt_format_seconds(char buf[32], double seconds);
/** "9.2 MiB" */
const char *dpt_format_bytes(char buf[32], double bytes);

#ifdef __cplusplus
}
#endif
#endif
