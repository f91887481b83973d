/* SPDX-License-Identifier: Apache-2.0 */
/* A class tree of good and bad files, each with its verdict, and the two users that must agree on it:
 * the library and `dpload check`. */
#ifndef TESTS_FAULT_SET_H
#define TESTS_FAULT_SET_H

#include "dpload.h"
#include "tests/fault_make.h"

typedef enum fault_verdict {
    FAULT_OK,
    FAULT_WARN, /* used, and named once; bad when strict */
    FAULT_BAD,  /* left out, named with the reason */
    FAULT_ANY   /* one of these, always the same */
} fault_verdict;

enum { FAULT_ENTRIES = 128 };

typedef struct fault_set {
    char root[256];
    int n;
    struct fault_entry {
        char path[600]; /* below root */
        fault_verdict verdict;
        const char *reason; /* part of the text */
    } entry[FAULT_ENTRIES];
} fault_set;

/** A new folder with the classes "a" and "b", one good picture in each. */
void fault_begin(fault_set *s);
/** Write f to path below root; the folders are made. reason is not copied, NULL for FAULT_OK. */
void fault_add(fault_set *s, const char *path, fault_file f, fault_verdict v, const char *reason);
/** Only expect: the file is there, or is missing on purpose. */
void fault_expect(fault_set *s, const char *path, fault_verdict v, const char *reason);

/** Run the loader over the set and hold it against the verdicts: what is delivered, with which
 *  label, what is named and why, how much is counted; lenient and strict, whole pictures and random
 *  crops, with 1, 2 and 8 workers. Then `dpload check`, where it was built. Ends with
 *  fault_free_all(). */
void fault_judge(fault_set *s);

/** Options for whole pictures: nothing is cropped, so all of each is decoded. */
dpl_options fault_options(const fault_set *s);

/** Run a shell command in the set's root; "dpload" and "dptrain" stand for the built programs. Texts
 *  are static. @return exit code; -1 = the programs were not built */
int fault_run(const fault_set *s, const char **out, const char **err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Deliver one file as an evaluation that resizes nothing would: rgb [h][w][3] of a picture that is
 *  w x h as displayed. With other files of the set it may be one batch. free() it. */
uint8_t *fault_pixels(fault_file f, int exif, int w, int h);

#endif
