/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader's tests share: sources in memory, and the trace of an epoch over all ranks. */
#ifndef TESTS_LOADERUTIL_H
#define TESTS_LOADERUTIL_H

#include "dpload.h"
#include "tests/testutil.h"

/** n samples from `kinds` JPEG files; sample i is file i % kinds with label i % 7. */
typedef struct test_memory {
    dpl_source source;
    uint64_t n;
    int kinds;
    uint8_t *file[16];
    size_t len[16];
} test_memory;

/** Gray files of one value each: value of sample i is test_gray_value(i). At most 16 values. */
void test_memory_gray(test_memory *m, uint64_t n);
uint8_t test_gray_value(uint64_t i);
/** Pictures with texture, 40..90 pixels a side. */
void test_memory_pictures(test_memory *m, uint64_t n);
void test_memory_free(test_memory *m);

/** Options for a small, quick loader on m. */
dpl_options test_loader_options(const test_memory *m);

/** One delivered sample; hash is over its pixels. */
typedef struct test_entry {
    uint64_t id, hash;
    int64_t label;
} test_entry;

uint64_t test_hash(const void *bytes, size_t len);
/** Bytes of one delivered picture. */
size_t test_picture_bytes(const dpl_batch *b);

/** Run one epoch on every rank of opt->world, in turn, and write what was delivered to trace in the
 *  order of the whole epoch. Host devices only. @return samples delivered, at most cap */
uint64_t test_trace(const dpl_options *opt, uint64_t epoch, test_entry *trace, uint64_t cap);

#endif
