/* SPDX-License-Identifier: Apache-2.0 */
/* What the resample, rotate and augment tests share: the pictures of tests/scripts/make_augment.py
 * and the lines of the expected data it writes. */
#ifndef TESTS_AUGMENT_PICTURE_H
#define TESTS_AUGMENT_PICTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Fill out [h][w][3] with the script's picture(w, h, seed). */
void test_formula_picture(uint8_t *out, int w, int h, int seed);

/** CRC-32 of n bytes. */
uint32_t test_crc(const void *p, size_t n);

/** Open expected data; the test fails when it is not there. fclose() it. */
FILE *test_data_open(const char *path);
/** Next line that is not a comment into buf. @return 0 at the end */
int test_data_line(FILE *f, char buf[256]);

#endif
