/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out. */
#ifndef DPL_BASE_FILES_H
#define DPL_BASE_FILES_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Read a regular file into *buf (grown with dpl_reserve(), kept by the caller for the next file).
 *  One open, one fstat, one read when the file does not change. EIO, ESTALE, EINTR and a file that
 *  grows or shrinks meanwhile are retried twice. Never blocks on a FIFO or device: anything but a regular file is refused.
 *  @param limit  bytes; a larger file is DPL_EDATA
 *  @return DPL_OK; DPL_EIO ("permission denied", "no such file" …), DPL_EDATA ("empty file",
 *          "not a regular file", too large), DPL_ENOMEM. The text names the cause, not the path. */
int dpl_read_file(int dirfd, const char *path, void **buf, size_t *cap, size_t *len, uint64_t limit,
                  dpl_text *why);

/** A file being replaced: written beside the target under a temporary name, then fsync, rename and
 *  fsync of the folder. The target is never seen half-written. */
typedef struct dpl_replace {
    FILE *f; /* write here; NULL when nothing is open */
    char *path, *temp;
} dpl_replace;

/** Start. Behind a symbolic link its target is replaced; what is no regular file is refused.
 *  @return DPL_OK, DPL_EIO, DPL_ENOMEM; the text names path and cause. */
int dpl_replace_open(dpl_replace *r, const char *path, dpl_text *why);

/** Make it durable and visible. Every write error since open is found here at the latest.
 *  On an error the temporary file is removed and the old target is untouched, except that
 *  a failing fsync of the folder is found when the new file is in place already.
 *  @return DPL_OK, DPL_EIO (text: path, cause). r is closed either way. */
int dpl_replace_commit(dpl_replace *r, dpl_text *why);

/** Give up: remove the temporary file. A closed r is ignored. */
void dpl_replace_abort(dpl_replace *r);

/** Create a folder and its parents. @return DPL_OK, DPL_EIO (text: path, cause) */
int dpl_make_folder(const char *path, dpl_text *why);

/** For the start of main(): a program started with a closed stdin, stdout or stderr would be given
 *  that number for the next file it opens, and its messages would be written into that file. The
 *  place is taken by a descriptor that cannot be written, so output to it still fails, as it should. */
void dpl_keep_standard_files(void);

/** "a/b" in new memory, or NULL. free() it. */
char *dpl_path_join(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif
