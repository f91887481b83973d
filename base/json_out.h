/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer: commas, nesting, escapes and number formats are right by construction. */
#ifndef DPL_BASE_JSON_OUT_H
#define DPL_BASE_JSON_OUT_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_JSON_DEPTH = 16 };

typedef struct dpl_json {
    FILE *f; /* borrowed; write errors are left to ferror(f) */
    int depth;
    char open[DPL_JSON_DEPTH]; /* '{' or '[' */
    char any[DPL_JSON_DEPTH];  /* 1 = needs a comma first */
} dpl_json;

/** Start writing a value to f. Everything goes on one line. */
void dpl_json_begin(dpl_json *j, FILE *f);

/* In an object every value takes a key; at top level and in an array key is NULL. */
void dpl_json_object(dpl_json *j, const char *key);
void dpl_json_array(dpl_json *j, const char *key);
void dpl_json_end(dpl_json *j); /* closes the innermost object or array */
/** Bytes that are not valid UTF-8 are written as U+FFFD. s NULL = null. */
void dpl_json_string(dpl_json *j, const char *key, const char *s);
/** Shortest text that reads back as the same double; not finite = null. */
void dpl_json_number(dpl_json *j, const char *key, double v);
void dpl_json_int(dpl_json *j, const char *key, int64_t v);
void dpl_json_uint(dpl_json *j, const char *key, uint64_t v);
void dpl_json_bool(dpl_json *j, const char *key, int v);

#ifdef __cplusplus
}
#endif
#endif
