/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share: guarded memory, temporary folders, made pictures and class trees. */
#ifndef TESTS_TESTUTIL_H
#define TESTS_TESTUTIL_H

#include "tools/jpeg_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** n bytes of noise (a function of seed) that end at an unreadable page. */
uint8_t *test_guarded_bytes(size_t n, uint64_t seed);
/** n writable bytes with canaries on both sides; test_canary_ok() tells whether they still stand. */
void *test_canary(size_t n);
int test_canary_ok(const void *p, size_t n);
/** Free everything the two above gave out. */
void test_free_all(void);

/** Instruction sets the tests run at: dpl_cpu_flags(). */
unsigned test_cpu(void);

/** A new empty folder under TMPDIR, removed with its contents at exit. Never NULL; do not free. */
const char *test_tempdir(void);
/** printf into one of 16 rotating static buffers of 4096 bytes. */
const char *test_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void test_make_folder(const char *path); /* with parents */
void test_write_file(const char *path, const void *data, size_t len);
/** Whole file in malloc'd memory; fails the test when it cannot be read. */
uint8_t *test_read_file(const char *path, size_t *len);

/** Run this program again with these arguments and this environment, silent on stderr when quiet, and
 *  wait for it. Fails the test when a signal ends it. @return its exit status */
int test_run_self(char *const *argv, char *const *envp, int quiet);

/** A w x h RGB picture with smooth areas, edges and some noise, a function of seed. free() it. */
uint8_t *test_picture(int w, int h, uint64_t seed);
/** The same as a JPEG file in memory; spec NULL = quality 90, 4:2:0. free() it. */
uint8_t *test_jpeg(int w, int h, uint64_t seed, const tool_jpeg_spec *spec, size_t *len);
/** A class tree below root: classes "c0", "c1", … with `files` JPEGs of about 40..90 pixels each. */
void test_make_tree(const char *root, int classes, int files);

#endif
