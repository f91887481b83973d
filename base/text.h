/* SPDX-License-Identifier: Apache-2.0 */
/* A message of bounded length that travels with a status code. The owner is the caller; writing one
 * never fails and never allocates. A text that does not fit has "..." in its middle: the end, where the
 * reason stands behind a long path, is kept. */
#ifndef DPL_BASE_TEXT_H
#define DPL_BASE_TEXT_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_TEXT_MAX = 1024 };

typedef struct dpl_text {
    char s[DPL_TEXT_MAX]; /* always terminated */
} dpl_text;

/** Set the text (t may be NULL) and return status, so that a failing function can end with
 *  `return dpl_fail(t, DPL_EIO, "%s: %s", path, strerror(errno));` */
int dpl_fail(dpl_text *t, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Put "prefix: " in front of the text that is already there. */
void dpl_text_prefix(dpl_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Write s with each control character as \n, \t or \xNN: a message may hold the name of a file, and
 *  that must neither break the line nor drive the terminal. */
void dpl_print_visible(FILE *f, const char *s);

#ifdef __cplusplus
}
#endif
#endif
