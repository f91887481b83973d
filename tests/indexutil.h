/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of index files share: trees, and sources that are compared with a plain listing. */
#ifndef TESTS_INDEXUTIL_H
#define TESTS_INDEXUTIL_H

#include "dpload.h"
#include "loader/source.h"

#include <stddef.h>

/** A file of one byte, with its folders. */
void test_index_put(const char *root, const char *name);
/** 9 pictures in 4 classes, odd names, two ignored files, a class that is a link into `other`. */
void test_index_tree(const char *root, const char *other);
/** Wait until folders made before are old enough for an index to be trusted. */
void test_index_settle(void);

dpl_options test_index_options(const char *root, const char *index);
/** Open, or fail the test. */
dpl_samples *test_index_open(const dpl_options *opt);
/** Everything that a source says, as one text. */
void test_index_describe(const dpl_samples *s, char *out, size_t size);
/** Open with the index; the samples must be those of a plain listing.
 *  @param text  [DPL_TEXT_MAX] index_text
 *  @return what became of the index */
dpl_index_use test_index_both(const char *root, const char *index, char *text);
/** The same, and the index must be used, or written for a reason that holds `part`. */
void test_index_used(const char *root, const char *index);
void test_index_written(const char *root, const char *index, const char *part);

#endif
